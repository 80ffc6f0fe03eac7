"""Brings the pages of migrate's codes up to date, and the index. ``python -m tools.docs.changes docs/changes``."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from kubectl_dra.migrate.codes import FAMILIES, PAGES, ChangePage
from tools.docs.folder import write

_SAFETY: Final = {
    "safe": "Safe: the devices that a pod gets, and where it can run, stay what they were.",
    "unsafe": "Unsafe: likely what is meant, but for people to judge. `--unsafe` makes it.",
    "note": "A note: nothing is changed for it.",
    "refusal": "A refusal: nothing is changed, and the exit code is 1.",
}


def pages() -> Iterator[tuple[str, str]]:
    """(file name, text) of every page, the index first."""
    yield "README.md", _index()
    for code, one in PAGES.items():
        yield f"{code}.md", _page(one)


def _page(one: ChangePage) -> str:
    facts = f"`{one.name}`\n\n{_SAFETY[one.safety]}"
    return re.sub(r"\A(.*\n\n).*\n\n.*", lambda match: f"{match[1]}{facts}", one.page.text, count=1)


def _index() -> str:
    lines = [
        "# Changes",
        "",
        "What `kubectl dra migrate` changes, notes and refuses. A code never changes its meaning. `make docs` "
        "writes this list.",
        "",
    ]
    for prefix, family in FAMILIES.items():
        mine = [one for one in PAGES.values() if one.code.startswith(prefix)]
        if not mine:
            continue
        lines += [f"## {family}", "", "| code | name | kind | meaning |", "|---|---|---|---|"]
        lines += [f"| [{one.code}]({one.code}.md) | `{one.name}` | {one.safety} | {one.title} |" for one in mine]
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    write(Path(sys.argv[1]), pages())
