"""Writes docs/rules, one page for each rule of lint. ``python -m tools.docs.rules docs/rules``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from kubectl_dra.lint.reference import page, title
from kubectl_dra.lint.registry import FAMILIES, RULES
from tools.docs.folder import write


def pages() -> Iterator[tuple[str, str]]:
    """(file name, text) of every page, the index first."""
    yield "README.md", _index()
    for rule in RULES:
        yield f"{rule.code}.md", page(rule)


def _index() -> str:
    lines = [
        "# Rules",
        "",
        "What `kubectl dra lint` finds. A code never changes its meaning. These pages are generated (`make docs`).",
        "",
    ]
    for prefix, family in FAMILIES.items():
        mine = [rule for rule in RULES if rule.code.startswith(prefix)]
        if not mine:
            continue
        lines += [f"## {family}", "", "| code | name | severity | fix | meaning |", "|---|---|---|---|---|"]
        lines += [
            f"| [{rule.code}]({rule.code}.md) | `{rule.name}` | {rule.severity} | "
            f"{'' if rule.fixable == 'none' else rule.fixable} | {title(rule)} |"
            for rule in mine
        ]
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    write(Path(sys.argv[1]), pages())
