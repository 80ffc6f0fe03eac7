"""Builds the documentation site: ``python -m tools.docs.site [DIRECTORY]``, without an argument into ``site/``.

The pages under ``docs`` are written for GitHub as well: they link to files anywhere in the repository. This program
lays out what the site consists of below ``build/site`` as plain Markdown and a plain ``mkdocs.yml``, with no hooks and
no plugins, so that any generator that reads those can take over. Besides ``docs`` that is the gallery of the
examples, CHANGELOG.md and its like, and the JSON Schemas.
"""

from __future__ import annotations

import posixpath
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from tools.docs import gallery
from tools.docs.links import ROOT

DOCS = ROOT / "docs"
LAID_OUT = ROOT / "build" / "site"
REPOSITORY = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]["Homepage"]
TOP = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
"""Pages of the repository's top directory that are pages of the site, too."""
_LISTED = re.compile(r"^\| \[[^]]*\]\(([^)/#]+\.md)\)", re.MULTILINE)
"""The first column of a table."""
_FENCED = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)
_PICTURE = re.compile(r"^<!-- picture of (examples/\S+) -->$", re.MULTILINE)
"""A place where GitHub shows nothing, and the site the cluster of an example."""
_LINK = re.compile(r"\]\((?!\w+:|#)(?P<path>[^)#\s]+)(?P<anchor>#[^)]*)?\)")


def schemas() -> list[str]:
    """The published JSON Schemas, as paths in the repository."""
    return sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "schemas").rglob("*.json"))


def places() -> dict[str, str]:
    """Where a file of the repository is on the site, both as paths from their tops, for each that is on it."""
    own = {path.relative_to(ROOT).as_posix(): path.relative_to(DOCS).as_posix() for path in _files(DOCS)}
    return own | {name: name.lower() for name in TOP} | {path: path for path in schemas()} | gallery.places()


def _files(folder: Path) -> Iterator[Path]:
    yield from (path for path in folder.rglob("*") if path.is_file())


def relinked(text: str, source: str, site: Mapping[str, str]) -> str:
    """The Markdown of a file of the repository with the links that it needs on the site.

    Args:
        text: The page as it is in the repository.
        source: Its path there.
        site: The ``places`` of pages; what has none is linked to in the repository on the web.
    """
    here = posixpath.dirname(source)
    below = posixpath.dirname(site[source])

    def replaced(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(here, match["path"]))
        anchor = match["anchor"] or ""
        if target in site:
            return f"]({posixpath.relpath(site[target], below or '.')}{anchor})"
        if not (ROOT / target).exists():
            # The generator's check of links shall see it as it is.
            return match[0]
        kind = "tree" if (ROOT / target).is_dir() else "blob"
        return f"]({REPOSITORY}/{kind}/main/{target}{anchor})"

    parts = _FENCED.split(text)
    parts[::2] = [_LINK.sub(replaced, part) for part in parts[::2]]
    return "".join(parts)


def expanded(entries: list[Any], pages: Path) -> list[Any]:
    """The navigation with directories replaced by their pages."""

    def one(entry: Any) -> Any:
        if isinstance(entry, dict):
            return {title: one(below) for title, below in entry.items()}
        if isinstance(entry, list):
            return [one(below) for below in entry]
        if isinstance(entry, str) and entry.endswith("/"):
            return list(_pages(pages / entry, entry))
        return entry

    return [one(entry) for entry in entries]


def _pages(folder: Path, prefix: str) -> Iterator[Any]:
    """README.md, then the other pages: under the headings below which it lists them, the rest at the end."""
    yield f"{prefix}README.md"
    names = {path.name for path in folder.glob("*.md")} - {"README.md"}
    parts = re.split(r"^## (.+)\n", (folder / "README.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    for heading, text in zip(parts[1::2], parts[2::2], strict=True):
        listed = [name for name in _LISTED.findall(text) if name in names]
        if listed:
            names -= set(listed)
            yield {heading: [f"{prefix}{name}" for name in listed]}
    yield from (f"{prefix}{name}" for name in sorted(names))


def lay_out(folder: Path) -> Path:
    """Writes the pages and the configuration of the site into a folder; returns the configuration."""
    shutil.rmtree(folder, ignore_errors=True)
    pages = folder / "docs"
    site = places()
    generated = gallery.pages()
    for source, place in site.items():
        target = pages / place
        target.parent.mkdir(parents=True, exist_ok=True)
        if place.endswith(".md"):
            text = generated.get(place) or (ROOT / source).read_text(encoding="utf-8")
            text = _PICTURE.sub(lambda match: gallery.figure(ROOT / match[1]), relinked(text, source, site))
            target.write_text(text, encoding="utf-8")
        else:
            shutil.copyfile(ROOT / source, target)
    settings = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    settings["nav"] = expanded(settings["nav"], pages)
    written = folder / "mkdocs.yml"
    written.write_text(yaml.safe_dump(settings, sort_keys=False), encoding="utf-8")
    return written


def build(output: Path, folder: Path = LAID_OUT) -> None:
    """Builds the site into a directory, replacing it; ``folder`` is for what it is made of.

    Raises:
        SystemExit: a link or an anchor leads nowhere; the message says which.
    """
    settings = lay_out(folder)
    done = subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--strict", "--clean", "--config-file", str(settings)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise SystemExit(f"{done.stdout}{done.stderr}")
    shutil.rmtree(output, ignore_errors=True)
    shutil.move(folder / "site", output)


if __name__ == "__main__":
    build(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "site")
