"""What the installation tests share on a machine: wheels and tools of PyPI, krew, Prometheus; each fetched once.

They are kept outside the repository, under a name that says what is in them; where one is not kept and cannot be had,
the tests that need it are skipped.
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
from typing import Any, Final

ROOT: Final = Path(__file__).parents[2]
LOCKS: Final = ROOT / "packaging" / "locks"
TOOLS: Final = ("build", "cyclonedx-bom", "hatchling", "pipx", "pre-commit", "twine", "uv")
KREW: Final = "v0.4.4"
_PIP: Final = ("-m", "pip", "--disable-pip-version-check", "--quiet", "--retries", "1", "--timeout", "20")
_PATIENCE: Final = 300
_NO_PYPI: Final = "PyPI cannot be reached, or has not all that is needed"


class Unavailable(Exception):
    """It cannot be had, and is not kept here; the text says why."""


def wheelhouse() -> Path:
    """A folder with the wheels of everything that kubectl-dra needs to be built and installed."""
    locks = [LOCKS / "program.txt", LOCKS / "build.txt"]
    others = ["editables", "pip"]

    def fill(folder: Path) -> None:
        download = [sys.executable, *_PIP, "download", "--only-binary=:all:", "--dest", str(folder)]
        _run([*download, "--require-hashes", *(f"--requirement={path}" for path in locks)], _NO_PYPI)
        _run([*download, *others], _NO_PYPI)

    return _kept("wheels", [*others, *(path.read_text() for path in locks)], fill)


def tools() -> Path:
    """The directory with the programs of ``TOOLS``, in a virtual environment of their own."""

    def fill(folder: Path) -> None:
        venv.create(folder, with_pip=False, symlinks=True)
        python = folder / "bin" / "python"
        pip = [sys.executable, "-m", "pip", "--python", str(python), *_PIP[2:]]
        _run([*pip, "install", "--no-compile", "pip", *TOOLS], _NO_PYPI)

    # Scripts name their interpreter by its path, so this is made where it stays.
    return _kept("tools", TOOLS, fill, in_place=True) / "bin"


def krew() -> Path:
    """krew itself: the one on the PATH, or built by Go from the module proxy."""
    if found := shutil.which("kubectl-krew") or shutil.which("krew"):
        return Path(found)
    go = shutil.which("go")
    if go is None:
        raise Unavailable("there is neither krew nor Go on this machine")
    program = "sigs.k8s.io/krew/cmd/krew"

    def fill(folder: Path) -> None:
        with tempfile.TemporaryDirectory() as scratch:
            for words in (
                ("mod", "init", "krew.example"),
                ("get", f"{program}@{KREW}"),
                ("build", "-o", str(folder / "krew"), program),
            ):
                _run([go, *words], f"krew {KREW} cannot be built", Path(scratch))

    return _kept("krew", [KREW], fill) / "krew"


def promtool() -> Path:
    """Prometheus' own checker."""
    return _of_prometheus("promtool")


def prometheus() -> Path:
    """Prometheus itself, the server."""
    return _of_prometheus("prometheus")


def _of_prometheus(program: str) -> Path:
    """The one on the PATH, or the one in the package of a Debian whose lists are fetched."""
    if found := shutil.which(program):
        return Path(found)
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise Unavailable(f"there is no {program} on this machine, and no apt-get to fetch the package prometheus")

    def fill(folder: Path) -> None:
        with tempfile.TemporaryDirectory() as scratch:
            # Installing it would start a server.
            fetch = ["apt-get", "download", "--quiet", "-o", "Acquire::Retries=1", "prometheus"]
            _run(fetch, "the package prometheus cannot be fetched", Path(scratch))
            package = next(Path(scratch).glob("prometheus_*.deb"))
            _run(["dpkg-deb", "--extract", str(package), scratch], "the package prometheus cannot be unpacked")
            for name in ("prometheus", "promtool"):
                shutil.copy2(Path(scratch) / "usr" / "bin" / name, folder)

    return _kept("prometheus", ["prometheus", "promtool"], fill) / program


def project() -> dict[str, Any]:
    """The project table of pyproject.toml."""
    found: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
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
        packed = name.startswith(("docs/causes/", "docs/rules/", "docs/changes/"))
        if source.is_file() and (packed or not name.startswith(("tests/", "tools/", "docs/"))):
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


def _run(command: Sequence[str], failed: str, folder: Path | None = None) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, timeout=_PATIENCE)
    except subprocess.TimeoutExpired as error:
        raise Unavailable(f"{failed}: no end after {_PATIENCE} s") from error
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        raise Unavailable(f"{failed}: {last}")
