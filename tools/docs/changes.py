"""Brings the pages of migrate's codes up to date, and the index. ``python -m tools.docs.changes docs/changes``."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from kubectl_dra.data.code_pages import replaced
from kubectl_dra.data.workload_kinds import workload_kinds
from kubectl_dra.migrate.codes import FAMILIES, PAGES, ChangePage
from tools.docs.folder import write

_KINDS: Final = "Kinds"
"""The section of a page that lists the kinds of ``data/workload_kinds.yaml`` without claims."""
_SAFE: Final = {
    "MIG1": "the pod asks for the same kind and number of devices as before, and could run on the same nodes, once "
    "their DRA driver offers these devices",
    "MIG2": "no pod asks for other devices, or runs elsewhere, because of it",
    "MIG3": "the object means the same as before",
    "MIG501": "the pod asks for the same kind and number of devices as before, and could run on the same nodes, once "
    "their device plugin offers these devices",
    "MIG502": "no workload among the files needs the object",
    "MIG503": "no claim of the namespace among the files needs the key",
}
"""Why a safe change is safe, by the beginning of its code."""
_SAFETY: Final = {
    "safe": "A safe change: {why}. `--write` makes it.",
    "unsafe": "An unsafe change: pods may get other devices, or run elsewhere, so people must judge it. `--unsafe` "
    "makes it.",
    "either": "A change where `migrate` can make it, else a note with what to do by hand.",
    "note": "A note: nothing is changed for it.",
    "refusal": "A refusal: `migrate` leaves the place as it is, and the exit code is 1.",
}


def pages() -> Iterator[tuple[str, str]]:
    """(file name, text) of every page, the index first."""
    yield "README.md", _index()
    for code, one in PAGES.items():
        yield f"{code}.md", _page(one)


def _page(one: ChangePage) -> str:
    why = next((why for prefix, why in _SAFE.items() if one.code.startswith(prefix)), "")
    facts = f"`{one.name}`\n\n{_SAFETY[one.safety].format(why=why)}"
    text = re.sub(r"\A(.*\n\n).*\n\n.*", lambda match: f"{match[1]}{facts}", one.page.text, count=1)
    return replaced(text, _KINDS, _kinds()) if _KINDS in one.page.sections else text


def _kinds() -> str:
    """The kinds without claims: why, and what to do."""
    rows: dict[tuple[str, str], list[str]] = {}
    for (_, kind), known in workload_kinds().items():
        for row in known:
            if row.why:
                name = f"{kind} ({', '.join(row.modes)})" if row.modes else kind
                names = rows.setdefault((row.why, row.way_out), [])
                if name not in names:
                    names.append(name)
    return "\n".join(f"- {', '.join(names)}: {why}. {way_out}" for (why, way_out), names in rows.items())


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
