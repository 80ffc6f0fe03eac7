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
def program(wheel: Path, wheelhouse: Path, tools: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The one-file program for this machine and this Python."""
    out = tmp_path_factory.mktemp("pyz") / "kubectl-dra"
    _make(tools, "pyz.py", wheel, wheelhouse, out)
    return out


@pytest.fixture(scope="session")
def standalone(wheel: Path, wheelhouse: Path, tools: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the archive of the program that needs no Python, for this machine, and its bill of materials."""
    out = tmp_path_factory.mktemp("standalone")
    _make(tools, "standalone.py", wheel, wheelhouse, out)
    return out


def _make(tools: Path, script: str, wheel: Path, wheelhouse: Path, output: Path) -> None:
    command: list[str | Path] = [
        tools / "python",
        toolbox.ROOT / "packaging" / script,
        "--wheel",
        wheel,
        "--output",
        output,
    ]
    done = subprocess.run(
        [*command, "--find-links", wheelhouse], capture_output=True, text=True, check=False, cwd=output.parent
    )
    assert done.returncode == 0, done.stdout + done.stderr
