"""The real helm for tests of charts: whoever uses ``helm`` has it on the PATH, or is skipped where none can be had."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tools.controlplane.program import Unavailable
from tools.helm import find_helm


@pytest.fixture
def helm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The program, with folders of its own for what it keeps."""
    try:
        program = find_helm()
    except Unavailable as reason:
        pytest.skip(str(reason))
    for name in ("HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    return program
