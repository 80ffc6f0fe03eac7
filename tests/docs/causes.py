"""Writes one page per cause under ``docs/causes``, from the catalogue in the code."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from kubectl_dra.explain.causes.registry import all_kinds, families
from kubectl_dra.explain.diagnosis import CauseKind
from tests.docs.folder import write


def pages() -> Iterator[tuple[str, str]]:
    """(file name, text) of every page, the index first."""
    yield "README.md", _index()
    for kind in all_kinds():
        yield f"{kind.code}.md", _page(kind)


def _index() -> str:
    lines = [
        "# Causes",
        "",
        "Why a claim or pod gets no devices: the codes that `kubectl dra explain` prints. A code never changes its",
        "meaning. These pages are generated (`make docs`).",
        "",
    ]
    for family, kinds in families():
        lines += [f"## {family.value}", "", "| code | meaning |", "|---|---|"]
        lines += [f"| [`{kind.code}`]({kind.code}.md) | {kind.title} |" for kind in kinds]
        lines.append("")
    return "\n".join(lines)


def _page(kind: CauseKind) -> str:
    return (
        f"# {kind.title}\n\n`{kind.code}`\n\n## What it means\n\n{kind.why}\n\n"
        f"## What Kubernetes shows\n\n{kind.seen_as}\n\n## What helps\n\n{kind.fix}\n"
    )


if __name__ == "__main__":
    write(Path(sys.argv[1]), pages())
