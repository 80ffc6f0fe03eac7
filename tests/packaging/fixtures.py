"""Fixtures for tests of built artefacts. A folder's conftest.py imports those that its tests use."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.packaging import toolbox


@pytest.fixture(scope="session")
def wheelhouse() -> Path:
    """The wheels of all dependencies. Skips without PyPI."""
    try:
        return toolbox.wheelhouse()
    except toolbox.Unavailable as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="session")
def tools() -> Path:
    """The directory with uv, pipx, pre-commit, build, twine. Skips without PyPI."""
    try:
        return toolbox.tools()
    except toolbox.Unavailable as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="session")
def offline(wheelhouse: Path) -> dict[str, str]:
    """Variables with which pip and uv take wheels from the folder only, and nothing of this machine's settings."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_", "PIPX_"))}
    return {
        **kept,
        "PIP_NO_COMPILE": "1",
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(wheelhouse),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "UV_NO_INDEX": "1",
        "UV_OFFLINE": "1",
        "UV_FIND_LINKS": str(wheelhouse),
    }


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory, offline: dict[str, str]) -> Path:
    """The wheel of this checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    source = toolbox.checkout(tmp_path_factory.mktemp("checkout"))
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(source)]
    subprocess.run(command, check=True, env=offline)
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="session")
def program(wheel: Path, wheelhouse: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The one-file program for this machine and this Python."""
    import pyz

    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    pip = ["--no-index", "--find-links", str(wheelhouse)]
    return pyz.build(wheel, tmp_path_factory.mktemp("pyz") / "kubectl-dra", pyz.host(), [here], pip)
