"""Links of Markdown pages, as GitHub and the site resolve them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
_CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\[[^\]\n]*\]\(([^)\s]+)\)")


def slug(title: str) -> str:
    """The anchor of a heading."""
    plain = re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", title).strip().lower()
    return re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", plain))


def links(path: Path) -> Iterator[str]:
    """The targets of the links of a page, without those inside code."""
    # A link's text may be code: only the backticks go there.
    text = re.sub(r"\[`([^`\n]*)`\]\(", "[code](", path.read_text(encoding="utf-8"))
    yield from _LINK.findall(_CODE.sub("", text))


def anchors(path: Path) -> set[str]:
    """The anchors of the headings of a page."""
    text = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    return {slug(title) for title in re.findall(r"^#+ (.+)$", text, re.MULTILINE)}


def broken(path: Path) -> Iterator[str]:
    """The links of a page that lead nowhere; those to other sites are not followed."""
    for target in links(path):
        if re.match(r"(https?|mailto):", target):
            continue
        where, _, anchor = target.partition("#")
        file = (path.parent / where).resolve() if where else path
        if not file.exists() or (anchor and file.suffix == ".md" and anchor not in anchors(file)):
            yield target
