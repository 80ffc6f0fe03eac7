"""Builds the one-file program: a zip with a small start and, as one stored entry, everything that it unpacks.

    python packaging/pyz.py --wheel dist/kubectl_dra-1.0-py3-none-any.whl --output dist/kubectl-dra.pyz

Native modules (google-re2, PyYAML's and ruamel.yaml's C parts, rpds) cannot be imported from a zip, so the file unpacks
itself once per content, atomically, below the user's cache directory. ``--target`` and ``--python`` choose the platform
and the Python versions whose native modules are inside; packages that are the same for all are inside once.
"""

from __future__ import annotations

import argparse
import filecmp
import hashlib
import io
import platform
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
EPOCH: Final = (1980, 1, 1, 0, 0, 0)
SHEBANG: Final = b"#!/usr/bin/env python3\n"
PYTHONS: Final = ("3.11", "3.12", "3.13", "3.14")
TARGETS: Final = {
    "linux-amd64": "x86_64-manylinux_2_28",
    "linux-arm64": "aarch64-manylinux_2_28",
    "darwin-amd64": "x86_64-apple-darwin",
    "darwin-arm64": "aarch64-apple-darwin",
    "windows-amd64": "x86_64-pc-windows-msvc",
}
"""Target to uv's name of the platform."""
LOCK: Final = HERE / "locks" / "run.txt"
"""What goes in, with hashes."""
_LEFT_OUT: Final = ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json", "uv_cache.json", "WHEEL")


def host() -> str:
    """The target of this machine. Raises SystemExit for a machine that is none of them."""
    machine = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
    name = f"{platform.system().lower()}-{machine.get(platform.machine().lower(), platform.machine())}"
    if name not in TARGETS:
        raise SystemExit(f"{name} is none of {', '.join(TARGETS)}")
    return name


def build(wheel: Path, output: Path, target: str, pythons: Sequence[str], uv: Sequence[str] = ()) -> Path:
    """Writes the program; ``uv`` are further flags such as --no-index. The same inputs give the same bytes."""
    with tempfile.TemporaryDirectory() as scratch:
        roots = {version: Path(scratch) / version for version in pythons}
        for version, root in roots.items():
            _install(wheel, root, target, version, uv)
        return assemble(roots, output, target)


def assemble(roots: Mapping[str, Path], output: Path, target: str) -> Path:
    """Writes the program from what is installed for each Python version."""
    payload = _zip(_payload(roots))
    start = (HERE / "bootstrap.py").read_text()
    digest = hashlib.sha256(payload).hexdigest()[:16]
    for mark, value in (("@DIGEST@", digest), ("@PYTHONS@", " ".join(roots)), ("@MACHINE@", target)):
        start = start.replace(mark, value)
    outer = io.BytesIO()
    with zipfile.ZipFile(outer, "w") as archive:
        archive.writestr(zipfile.ZipInfo("__main__.py", EPOCH), start, zipfile.ZIP_DEFLATED)
        archive.writestr(zipfile.ZipInfo("payload.zip", EPOCH), payload, zipfile.ZIP_STORED)
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_bytes(SHEBANG + outer.getvalue())
    output.chmod(0o755)
    return output


def _install(wheel: Path, root: Path, target: str, version: str, uv: Sequence[str]) -> None:
    chosen = ["--python-version", version, "--python-platform", TARGETS[target], "--target", str(root), *uv]
    install = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--only-binary=:all:", *chosen]
    subprocess.run([*install, "--require-hashes", "--requirement", str(LOCK)], check=True)
    subprocess.run([*install, "--no-deps", str(wheel)], check=True)
    shutil.rmtree(root / "bin", ignore_errors=True)


def _payload(roots: Mapping[str, Path]) -> Iterator[tuple[str, Path]]:
    """Each file with its name in the payload: under lib/ where all versions have the same package, else lib-X.Y/."""
    first = next(iter(roots.values()))
    names = sorted({entry.name for root in roots.values() for entry in root.iterdir()})
    for name in names:
        if all(_same(first / name, root / name) for root in roots.values()):
            yield from _files("lib", first, first / name)
        else:
            for version, root in roots.items():
                yield from _files(f"lib-{version}", root, root / name)


def _files(folder: str, root: Path, top: Path) -> Iterator[tuple[str, Path]]:
    for path in sorted([top, *top.rglob("*")]) if top.exists() else ():
        unneeded = "__pycache__" in path.parts or (path.parent.suffix == ".dist-info" and path.name in _LEFT_OUT)
        if path.is_file() and not unneeded:
            yield f"{folder}/{path.relative_to(root).as_posix()}", path


def _same(one: Path, other: Path) -> bool:
    """Whether two packages (or modules) have the same files."""
    if one == other:
        return True
    mine, theirs = (dict(_files("", root.parent, root)) for root in (one, other))
    return mine.keys() == theirs.keys() and all(filecmp.cmp(mine[name], theirs[name], shallow=False) for name in mine)


def _zip(files: Iterator[tuple[str, Path]]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, path in files:
            archive.writestr(zipfile.ZipInfo(name, EPOCH), path.read_bytes(), zipfile.ZIP_DEFLATED, 9)
    return out.getvalue()


def main() -> None:
    """Builds from the command line."""
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    parser = argparse.ArgumentParser(prog="packaging/pyz.py", description="Build the one-file program.")
    parser.add_argument("--wheel", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--target", choices=TARGETS, default=None, help="default: this machine")
    parser.add_argument("--python", action="append", help="a Python version; may be repeated; default: this one")
    parser.add_argument("--find-links", metavar="DIR", help="take wheels from here only")
    given = parser.parse_args()
    uv = ["--no-index", "--find-links", given.find_links] if given.find_links else []
    out = build(given.wheel, given.output, given.target or host(), given.python or [here], uv)
    sys.stdout.write(f"{out}: {out.stat().st_size / 1e6:.1f} MB\n")


if __name__ == "__main__":
    main()
