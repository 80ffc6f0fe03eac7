"""What MkDocs does not do by itself: links out of docs/, the schemas, and directories in the navigation."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
REPOSITORY = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]["Homepage"]
_LISTED = re.compile(r"^\| \[[^]]*\]\(([^)/#]+\.md)\)", re.MULTILINE)
"""The first column of a table."""
_LINK = re.compile(r"\]\((?P<up>(?:\.\./)+)(?P<path>[^)#\s]+)(?P<anchor>#[^)]*)?\)")


def schemas() -> list[str]:
    """The published JSON Schemas, as paths in the repository."""
    return sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "schemas").rglob("*.json"))


def outward(text: str, page: str) -> str:
    """The Markdown of a page (``causes/x.md``) with links that leave docs/ as the site needs them.

    A schema is a file of the site; anything else is in the repository on the web.
    """
    depth = page.count("/")

    def replaced(match: re.Match[str]) -> str:
        ups = match["up"].count("../")
        if ups <= depth:
            return match[0]
        path, anchor = match["path"], match["anchor"] or ""
        if path.startswith("schemas/") and path.endswith(".json"):
            return f"]({'../' * depth}{path})"
        kind = "tree" if (ROOT / path).is_dir() else "blob"
        return f"]({REPOSITORY}/{kind}/main/{path.rstrip('/')}{anchor})"

    return _LINK.sub(replaced, text)


def expanded(entries: list[Any], docs: Path) -> list[Any]:
    """The navigation with directories replaced by their pages."""

    def one(entry: Any) -> Any:
        if isinstance(entry, dict):
            return {title: one(below) for title, below in entry.items()}
        if isinstance(entry, list):
            return [one(below) for below in entry]
        if isinstance(entry, str) and entry.endswith("/"):
            return list(_pages(docs / entry, entry))
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


def on_config(config: Any) -> Any:
    """MkDocs: the configuration is read."""
    config.nav = expanded(config.nav, Path(config.docs_dir))
    return config


def on_files(files: Any, config: Any) -> Any:
    """MkDocs: the files are known; the schemas are added."""
    from mkdocs.structure.files import File  # type: ignore[import-not-found, unused-ignore]

    for path in schemas():
        files.append(File.generated(config, path, abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """MkDocs: a page is read."""
    return outward(markdown, page.file.src_uri)
