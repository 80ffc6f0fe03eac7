"""Writes docs/changes, one page for each code of migrate. ``python -m tools.docs.changes docs/changes``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from kubectl_dra.migrate.reference import page
from kubectl_dra.migrate.registry import FAMILIES, about
from tools.docs.folder import write


def pages() -> Iterator[tuple[str, str]]:
    """(file name, text) of every page, the index first."""
    yield "README.md", _index()
    for code, one in about().items():
        yield f"{code}.md", page(one)


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
