"""Builds everything that a release publishes into one folder, and checks it.

    python packaging/release.py [--output dist] [--programs DIR] [--target linux-amd64 ...] [--python 3.12 ...]

Makes: sdist and wheel (checked by twine), a one-file program per target, the krew manifest for the programs that
``standalone.py`` has built on each platform, the software bill of materials (CycloneDX) of what the wheel installs, the
notes of this version from CHANGELOG.md, the provenance and SHA256SUMS. It needs what the extra ``release`` of
pyproject.toml installs. Nothing is uploaded.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import krew
import pyz
import sealed

ROOT: Final = Path(__file__).parent.parent
UNRELEASED: Final = "Unreleased"


def version() -> str:
    """The one place of the version: ``kubectl_dra/__init__.py``."""
    found = re.search(r'^__version__ = "([^"]+)"$', (ROOT / "kubectl_dra" / "__init__.py").read_text(), re.MULTILINE)
    if found is None:
        raise SystemExit("kubectl_dra/__init__.py has no __version__")
    return found[1]


def homepage() -> str:
    """The project's address: ``project.urls`` in pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return str(project["urls"]["Homepage"]).rstrip("/")


def notes(changelog: str, wanted: str) -> str:
    """The section of a version in a changelog (Keep a Changelog), without its heading.

    Raises:
        KeyError: there is no such section, or nothing in it.
    """
    sections = re.split(r"^## \[([^\]]+)\][^\n]*\n", changelog, flags=re.MULTILINE)
    found = dict(zip(sections[1::2], sections[2::2], strict=True))
    text = re.sub(r"^\[[^\]]+\]: \S+\n?", "", found.get(wanted, ""), flags=re.MULTILINE).strip()
    if not text:
        raise KeyError(wanted)
    return text + "\n"


def release(
    output: Path, programs: Path | None, targets: Sequence[str], pythons: Sequence[str], *, unreleased: bool, links: str
) -> list[Path]:
    """Builds and checks; returns the files. ``programs`` has archives and bills of ``standalone.py``.

    Raises SystemExit with a sentence, or CalledProcessError.
    """
    section = UNRELEASED if unreleased else version()
    try:
        text = notes((ROOT / "CHANGELOG.md").read_text(), section)
    except KeyError:
        raise SystemExit(f"CHANGELOG.md says nothing about [{section}]: write it, or give --unreleased") from None
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)
    source = ["--no-index", "--find-links", links] if links else []
    _run("-m", "build", "--no-isolation", "--outdir", str(output), str(ROOT))
    wheel, sdist = next(output.glob("*.whl")), next(output.glob("*.tar.gz"))
    _run("-m", "twine", "--no-color", "check", "--strict", str(wheel), str(sdist))
    (output / "RELEASE_NOTES.md").write_text(f"# kubectl-dra {version()}\n\n{text}")
    for target in targets:
        pyz.build(wheel, output / f"kubectl-dra-{target}.pyz", target, pythons, source)
    if programs:
        for path in programs.iterdir():
            shutil.copy2(path, output)
    _write_manifest(
        output, {path.name: path for path in output.glob("kubectl-dra-*") if path.suffix in (".gz", ".zip")}
    )
    return sealed.seal(wheel, output, homepage(), source)


def _write_manifest(output: Path, archives: dict[str, Path]) -> None:
    """Writes the krew manifest, which needs every platform; for some of them only there is none."""
    try:
        text = krew.manifest(version(), homepage(), archives)
    except KeyError as missing:
        sys.stderr.write(f"no krew manifest: {missing} was not built\n")
        return
    if found := krew.problems(text, "dra", archives):
        raise SystemExit("the krew manifest is not right:\n  " + "\n  ".join(found))
    (output / "dra.yaml").write_text(text)


def _run(*arguments: str) -> None:
    subprocess.run([sys.executable, *arguments], check=True, cwd=ROOT)


def main() -> None:
    """Builds from the command line."""
    parser = argparse.ArgumentParser(prog="packaging/release.py", description="Build and check a release.")
    parser.add_argument("--output", type=Path, default=ROOT / "dist")
    parser.add_argument("--programs", type=Path, help="the folder with what standalone.py has built")
    parser.add_argument("--target", action="append", choices=pyz.TARGETS, help="may be repeated; default: all")
    parser.add_argument("--python", action="append", help=f"may be repeated; default: {', '.join(pyz.PYTHONS)}")
    parser.add_argument("--unreleased", action="store_true", help="take the notes from [Unreleased], for a trial")
    parser.add_argument("--find-links", default="", metavar="DIR", help="take wheels from here only")
    given = parser.parse_args()
    files = release(
        given.output.resolve(),
        given.programs,
        given.target or list(pyz.TARGETS),
        given.python or pyz.PYTHONS,
        unreleased=given.unreleased,
        links=given.find_links,
    )
    for path in files:
        sys.stdout.write(f"{path.stat().st_size:>12,}  {path.name}\n")


if __name__ == "__main__":
    main()
