"""What the installation tests share on a machine: a folder of wheels and a few tools, fetched from PyPI once.

Both are kept outside the repository, under a name that says what is in them; without PyPI and without them the tests
that need them are skipped.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
import venv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
TOOLS: Final = ("build", "cyclonedx-bom", "distlib", "hatchling", "pipx", "pre-commit", "twine", "uv")
_PIP: Final = ("-m", "pip", "--disable-pip-version-check", "--quiet", "--retries", "1", "--timeout", "20")


class Unavailable(Exception):
    """PyPI cannot be reached, and nothing is kept here."""


def wheelhouse() -> Path:
    """A folder with the wheels of everything that kubectl-dra needs to be built and installed."""
    needed = [*project()["dependencies"], "hatchling>=1.25", "editables", "setuptools", "pip"]

    def fill(folder: Path) -> None:
        _run([sys.executable, *_PIP, "download", "--only-binary=:all:", "--dest", str(folder), *needed])

    return _kept("wheels", needed, fill)


def tools() -> Path:
    """The directory with the programs of ``TOOLS``, in a virtual environment of their own."""

    def fill(folder: Path) -> None:
        venv.create(folder, with_pip=False, symlinks=True)
        python = folder / "bin" / "python"
        _run(
            [sys.executable, "-m", "pip", "--python", str(python), *_PIP[2:], "install", "--no-compile", "pip", *TOOLS]
        )

    # Scripts name their interpreter by its path, so this is made where it stays.
    return _kept("tools", TOOLS, fill, in_place=True) / "bin"


def project() -> dict[str, list[str]]:
    """The project table of pyproject.toml."""
    found: dict[str, list[str]] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return found


def checkout(folder: Path) -> Path:
    """A copy of what the repository's files are now, without what git ignores."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    for name in filter(None, listed.stdout.decode().split("\0")):
        source, target = ROOT / name, folder / name
        if source.is_file() and not name.startswith(("tests/", "docs/", "examples/explain/")):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)
    return folder


def _kept(kind: str, needed: Sequence[str], fill: Callable[[Path], None], *, in_place: bool = False) -> Path:
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kubectl-dra" / "packaging"
    key = hashlib.sha256("\0".join((sys.version, *sorted(needed))).encode()).hexdigest()[:16]
    folder = base / f"{kind}-{key}"
    base.mkdir(parents=True, exist_ok=True)
    with (base / f"{kind}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (folder / ".complete").exists():
            return folder
        shutil.rmtree(folder, ignore_errors=True)
        if in_place:
            fill(folder)
        else:
            with tempfile.TemporaryDirectory(dir=base) as scratch:
                fill(Path(scratch))
                shutil.copytree(scratch, folder)
        (folder / ".complete").touch()
    return folder


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        raise Unavailable(f"PyPI cannot be reached, or has not all that is needed: {last}")
