"""Builds the program that needs no Python: a folder with an executable, the interpreter and all modules.

    python packaging/standalone.py [--wheel FILE] [--output dist] [--find-links DIR]

It is for the machine and the Python that it is run with: PyInstaller collects files, it does not compile for other
machines. What goes in is pinned with hashes in ``locks/program.txt``. The same inputs give the same bytes. Written are
the krew archive and the bill of materials (CycloneDX) of what is inside. It needs uv and cyclonedx-bom.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import krew
import pyz

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parent
LOCK: Final = HERE / "locks" / "program.txt"
_EPOCH: Final = "315532800"
_BUILDERS: Final = ("pyinstaller", "pyinstaller-hooks-contrib", "altgraph", "packaging", "setuptools")
_PARTS: Final = (
    "import json,platform,ssl,zlib; print(json.dumps({'python': platform.python_version(), "
    "'openssl': ssl.OPENSSL_VERSION.split()[1], 'zlib': zlib.ZLIB_RUNTIME_VERSION}))"
)
"""What comes from the interpreter and not from a package."""


def build(wheel: Path, output: Path, uv: Sequence[str] = ()) -> tuple[Path, Path]:
    """Makes ``output``/kubectl-dra, a folder with the program, and the bill of materials beside it.

    ``uv`` are further flags such as --offline. Returns both.
    """
    with tempfile.TemporaryDirectory() as scratch:
        python = _environment(Path(scratch) / "venv", wheel, uv)
        folder = _frozen(python, Path(scratch))
        shutil.rmtree(output / "kubectl-dra", ignore_errors=True)
        # krew unpacks no links.
        shutil.copytree(folder, output / "kubectl-dra", symlinks=False)
        bill = output / f"kubectl-dra-{pyz.host()}.cdx.json"
        _write_bill(python, bill)
    return output / "kubectl-dra", bill


def _environment(folder: Path, wheel: Path, uv: Sequence[str]) -> Path:
    """A virtual environment with the wheel, what it needs, and PyInstaller; its interpreter."""
    _run(sys.executable, "-m", "uv", "venv", "--quiet", "--python", sys.executable, str(folder))
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    install = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", str(python), *uv]
    _run(*install, "--only-binary", ":all:", "--require-hashes", "--requirement", str(LOCK))
    _run(*install, "--no-deps", str(wheel))
    return python


def _frozen(python: Path, scratch: Path) -> Path:
    # The order of sets and the times in archives would differ from build to build.
    steady = {**os.environ, "PYTHONHASHSEED": "0", "SOURCE_DATE_EPOCH": _EPOCH, "PYTHONDONTWRITEBYTECODE": "1"}
    command = [str(python), "-m", "PyInstaller", "--noconfirm", "--log-level=WARN"]
    folders = [f"--distpath={scratch / 'dist'}", f"--workpath={scratch / 'work'}"]
    steady["PYINSTALLER_CONFIG_DIR"] = str(scratch / "config")
    # The checkout is not what is to be packed.
    steady["PYTHONSAFEPATH"] = "1"
    _run(*command, *folders, str(HERE / "standalone" / "kubectl-dra.spec"), environment=steady, folder=scratch)
    return scratch / "dist" / "kubectl-dra"


def _write_bill(python: Path, path: Path) -> None:
    """Lists the packages and libraries inside, without what only built it."""
    project = ["--pyproject", str(ROOT / "pyproject.toml")]
    chosen = ["--output-reproducible", "--output-format", "JSON", "--output-file", str(path)]
    _run(sys.executable, "-m", "cyclonedx_py", "environment", *project, *chosen, str(python))
    bill = json.loads(path.read_text())
    gone = {part["bom-ref"] for part in bill["components"] if part["name"] in _BUILDERS}
    bill["components"] = [part for part in bill["components"] if part["bom-ref"] not in gone]
    bill["dependencies"] = [_without(entry, gone) for entry in bill["dependencies"] if entry["ref"] not in gone]
    parts = json.loads(subprocess.run([python, "-c", _PARTS], check=True, capture_output=True, text=True).stdout)
    bill["components"] += [_library(name, version) for name, version in sorted(parts.items())]
    path.write_text(json.dumps(bill, indent=2) + "\n")


def _without(entry: dict[str, Any], gone: Iterable[str]) -> dict[str, Any]:
    return (
        {**entry, "dependsOn": kept}
        if (kept := sorted(set(entry.get("dependsOn", ())) - set(gone)))
        else {"ref": entry["ref"]}
    )


def _library(name: str, version: str) -> dict[str, str]:
    purl = f"pkg:generic/{name}@{version}"
    return {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}


def _run(*command: str, environment: dict[str, str] | None = None, folder: Path = ROOT) -> None:
    subprocess.run(command, check=True, cwd=folder, env=environment)


def main() -> None:
    """Builds from the command line."""
    parser = argparse.ArgumentParser(prog="packaging/standalone.py", description="Build the program without Python.")
    parser.add_argument("--wheel", type=Path, required=True)
    parser.add_argument("--output", type=Path, default=ROOT / "dist")
    parser.add_argument("--find-links", metavar="DIR", help="take wheels from here only")
    given = parser.parse_args()
    uv = ["--no-index", "--find-links", given.find_links] if given.find_links else []
    output = given.output.resolve()
    with tempfile.TemporaryDirectory() as scratch:
        folder, bill = build(given.wheel.resolve(), Path(scratch), uv)
        packed = krew.archive(folder, pyz.host(), output)
        shutil.copy2(bill, output)
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    sys.stdout.write(f"{packed}: {packed.stat().st_size / 1e6:.1f} MB, unpacked {size / 1e6:.1f} MB\n")


if __name__ == "__main__":
    main()
