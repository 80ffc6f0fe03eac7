"""Brings the pages of causes under ``docs/causes`` up to date: the samples in them, from case files, and the index.

    python -m tools.docs.causes docs/causes

A sample is the answer to a case of the cause's file, in ``tests/explain/cases``.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

from kubectl_dra.command import LIVE
from kubectl_dra.data.code_pages import replaced
from kubectl_dra.explain.cause_kinds import CauseKind
from kubectl_dra.explain.causes.registry import all_kinds, families
from tools.cases import CASES, Case, run_case
from tools.docs import messages
from tools.docs.folder import write

COLUMNS = 80
_STAGE = re.compile(r"^Stage:.*$", re.MULTILINE)
_ASSUMED = re.compile(r"^Note: assumed: .*\n(?:  .*\n)*", re.MULTILINE)
"""What a live cluster tells by itself."""


def pages() -> Iterator[tuple[str, str]]:
    """(file name, text) of every page, the index first."""
    yield "README.md", _index()
    with tempfile.TemporaryDirectory() as scratch, mock.patch.dict(os.environ, COLUMNS=str(COLUMNS)):
        for kind in all_kinds():
            yield f"{kind.code}.md", _page(kind, _sample(kind.code, Path(scratch)))


def _page(kind: CauseKind, sample: str) -> str:
    """The page with its stage and its sample: a command, as against a live cluster, and what it prints."""
    text = _STAGE.sub(f"Stage: {kind.family.value}", kind.page.text, count=1)
    seen = f"```text\n{sample.rstrip()}\n```\n\nKubernetes shows: {kind.seen_as}"
    return replaced(text, "What it looks like", seen)


def _sample(code: str, scratch: Path) -> str:
    """The first short answer that shows the cause; where none does, why it is so by a long one."""
    cases = [case for case in CASES if case.file == code and code in case.raw["expect"].get("causes", ())]
    for case in cases:
        shown = _shown(case, scratch, full=False)
        if code in shown.partition("\n")[2]:
            return shown
    shown = _shown(cases[0], scratch, full=True).partition("\n\nTimeline")[0].partition("\n\nClaim ")[0] + "\n"
    if code not in shown:
        raise SystemExit(f"no case of {code} shows it: its first case has to")
    return shown


def _shown(case: Case, scratch: Path, *, full: bool) -> str:
    _, printed = run_case(case, scratch, "text", full=full)
    asked = case.raw.get("explain", "-f manifest.yaml")
    words = ["$ kubectl dra explain", asked, *case.raw.get("flags", ()), *(["--full"] if full else [])]
    # The page shows the answer about a live cluster.
    text = printed.replace(f" --snapshot {scratch}/cluster.yaml", "").replace(f"{scratch}/", "")
    text = text.replace(f"{LIVE.capitalize()}: $ ", "$ ").replace(f" ({LIVE})", "")
    return f"{' '.join(words)}\n{_ASSUMED.sub('', text)}"


def _index() -> str:
    lines = [
        "# Causes",
        "",
        "Why a claim or pod gets no devices: the codes that `kubectl dra explain` prints. A code never changes its",
        "meaning, and `kubectl dra explain --explain CODE` prints its page. `make docs` writes this list and",
        "the samples.",
        "",
    ]
    for family, kinds in families():
        lines += [f"## {family.value}", "", "| code | meaning |", "|---|---|"]
        lines += [f"| [`{kind.code}`]({kind.code}.md) | {kind.title} |" for kind in kinds]
        lines.append("")
    return "\n".join(lines)


def write_all(folder: Path) -> None:
    """Writes the pages, and beside the folder the page of messages."""
    write(folder, pages())
    (folder.parent / "messages.md").write_text(messages.render(), encoding="utf-8")


if __name__ == "__main__":
    write_all(Path(sys.argv[1]))
