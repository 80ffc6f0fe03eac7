"""What goes with files that are shipped: a bill of materials, where they come from, and their checksums.

    python packaging/sealed.py --wheel FILE [--output dist] [--find-links DIR]

``kubectl-dra-VERSION.cdx.json`` (CycloneDX) lists what the wheel installs, ``provenance.json`` (an in-toto statement
with a SLSA predicate, unsigned) the commit and the locks from which the files of the folder were made, ``SHA256SUMS``
the checksums of all. The workflow of a release signs the provenance of the same files by itself.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import krew
import pyz

ROOT: Final = Path(__file__).parent.parent
SUMS: Final = "SHA256SUMS"
PROVENANCE: Final = "provenance.json"
_OURS: Final = ("kubectl_dra-*", "kubectl-dra*", "dra.yaml", "RELEASE_NOTES.md")


def seal(wheel: Path, output: Path, homepage: str, source: Sequence[str] = ()) -> list[Path]:
    """Writes all three beside the files; ``source`` are flags that say where packages come from. Returns the files."""
    version = wheel.name.split("-")[1]
    _write_bill(wheel, output / f"kubectl-dra-{version}.cdx.json", source)
    files = sorted({path for pattern in _OURS for path in output.glob(pattern) if path.is_file()})
    statement = _provenance(files, homepage)
    (output / PROVENANCE).write_text(json.dumps(statement, indent=2) + "\n")
    files = [*files, output / PROVENANCE]
    (output / SUMS).write_text("".join(f"{krew.sha256(path)}  {path.name}\n" for path in files))
    return [*files, output / SUMS]


def _write_bill(wheel: Path, path: Path, source: Sequence[str]) -> None:
    """Installs the wheel alone and lists what came with it."""
    with tempfile.TemporaryDirectory() as folder:
        _run("-m", "uv", "venv", "--quiet", "--python", sys.executable, folder)
        python = next(Path(folder).glob("[bS]*/python*"))
        install = ["-m", "uv", "pip", "install", "--quiet", "--python", str(python), *source]
        _run(*install, "--require-hashes", "--requirement", str(pyz.LOCK))
        _run(*install, "--no-deps", str(wheel))
        chosen = ["--output-reproducible", "--output-format", "JSON", "--output-file", str(path)]
        _run("-m", "cyclonedx_py", "environment", "--pyproject", str(ROOT / "pyproject.toml"), *chosen, str(python))


def _provenance(files: Sequence[Path], homepage: str) -> dict[str, Any]:
    locks = sorted((ROOT / "packaging" / "locks").glob("*.txt"))
    commit = _git("rev-parse", "HEAD")
    # Changed files would be in no commit.
    changed = bool(_git("status", "--porcelain", "--untracked-files=no"))
    source = {"uri": f"git+{homepage}", "digest": {"gitCommit": commit}} if commit else {"uri": f"git+{homepage}"}
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": path.name, "digest": {"sha256": krew.sha256(path)}} for path in files],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": f"{homepage}/blob/main/packaging/sealed.py",
                "externalParameters": {"changedSinceCommit": changed},
                "internalParameters": {"python": platform.python_version(), "platform": pyz.host()},
                "resolvedDependencies": [
                    source,
                    *(
                        {"uri": f"file:packaging/locks/{path.name}", "digest": {"sha256": krew.sha256(path)}}
                        for path in locks
                    ),
                ],
            },
            "runDetails": {"builder": {"id": f"{homepage}/blob/main/Makefile"}},
        },
    }


def _git(*words: str) -> str:
    """What git says of the checkout; empty without one."""
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def _run(*arguments: str) -> None:
    subprocess.run([sys.executable, *arguments], check=True, cwd=ROOT)


def main() -> None:
    """Seals from the command line."""
    import release

    parser = argparse.ArgumentParser(prog="packaging/sealed.py", description="Write bill, provenance and checksums.")
    parser.add_argument("--wheel", type=Path, required=True)
    parser.add_argument("--output", type=Path, default=ROOT / "dist")
    parser.add_argument("--find-links", metavar="DIR", help="take wheels from here only")
    given = parser.parse_args()
    source = ["--no-index", "--find-links", given.find_links] if given.find_links else []
    for path in seal(given.wheel.resolve(), given.output.resolve(), release.homepage(), source):
        sys.stdout.write(f"{path.stat().st_size:>12,}  {path.name}\n")


if __name__ == "__main__":
    main()
