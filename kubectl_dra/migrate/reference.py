"""Writes one page per code under ``docs/changes``, from the migrations; and where such a page is to be found."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from kubectl_dra.migrate.model import ChangePage
from kubectl_dra.migrate.registry import FAMILIES, about
from kubectl_dra.pages import write

_SAFETY: Final = {
    "safe": "Safe: the devices that a pod gets, and where it can run, stay what they were.",
    "unsafe": "Unsafe: likely what is meant, but for people to judge. `--unsafe` makes it.",
    "note": "A note: nothing is changed for it.",
    "refusal": "A refusal: nothing is changed, and the exit code is 1.",
}


def page_of(code: str) -> str:
    """Where the code is described, from the root of the project."""
    return f"docs/changes/{code}.md"


def pages() -> Iterator[tuple[str, str]]:
    """(file name, text) of every page, the index first."""
    yield "README.md", _index()
    for code, one in about().items():
        yield f"{code}.md", page(one)


def page(one: ChangePage) -> str:
    """The page of a code, as Markdown."""
    text = f"# {one.code}: {one.title}\n\n`{one.name}`\n\n{_SAFETY[one.safety]}\n\n{one.why}\n"
    if one.before:
        text += f"\n## Before\n\n```yaml\n{one.before.rstrip()}\n```\n"
    if one.after:
        text += f"\n## {'Instead' if one.safety in ('note', 'refusal') else 'After'}\n\n```yaml\n"
        text += f"{one.after.rstrip()}\n```\n"
    return text


def _index() -> str:
    lines = [
        "# Changes",
        "",
        "What `kubectl dra migrate` changes, notes and refuses. A code never changes its meaning. These pages are "
        "generated (`make docs`).",
        "",
    ]
    for prefix, family in FAMILIES.items():
        mine = [one for one in about().values() if one.code.startswith(prefix)]
        if not mine:
            continue
        lines += [f"## {family}", "", "| code | name | kind | meaning |", "|---|---|---|---|"]
        lines += [f"| [{one.code}]({one.code}.md) | `{one.name}` | {one.safety} | {one.title} |" for one in mine]
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    write(Path(sys.argv[1]), pages())
