"""Writes one page per cause under ``docs/causes``, and the samples in them, from the catalogue and its case files.

    python -m tests.docs.causes docs/causes

A sample is the answer to the first case of the cause's file, in ``tests/explain/cases``.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

from kubectl_dra.explain.causes.registry import all_kinds, families
from kubectl_dra.report.cause_page import SAMPLES, page
from tests.docs.folder import write
from tests.explain.test_cases import CASES, run_case

COLUMNS = 80
_ASSUMED = re.compile(r"^Note: assumed: .*\n", re.MULTILINE)
"""What a live cluster tells by itself."""


def pages() -> Iterator[tuple[str, str]]:
    """(file name, text) of every page, the index first."""
    yield "README.md", _index()
    for kind in all_kinds():
        yield f"{kind.code}.md", page(kind)


def samples() -> Iterator[tuple[str, str]]:
    """(file name, text) of the sample of every cause: a command, as against a live cluster, and what it prints."""
    first = {case.file: case for case in reversed(CASES)}
    with tempfile.TemporaryDirectory() as scratch, mock.patch.dict(os.environ, COLUMNS=str(COLUMNS)):
        for kind in all_kinds():
            case = first[kind.code]
            _, printed = run_case(case, Path(scratch), "text", full=False)
            asked = case.raw.get("explain", "")
            words = [
                "$ kubectl dra explain",
                asked,
                *([] if asked else ["-f manifest.yaml"]),
                *case.raw.get("flags", ()),
            ]
            text = printed.replace(f" --snapshot {scratch}/cluster.yaml", "").replace(f"{scratch}/", "")
            yield f"{kind.code}.txt", f"{' '.join(filter(None, words))}\n{_ASSUMED.sub('', text)}"


def _index() -> str:
    lines = [
        "# Causes",
        "",
        "Why a claim or pod gets no devices: the codes that `kubectl dra explain` prints. A code never changes its",
        "meaning, and `kubectl dra explain --cause CODE` prints its page. These pages are generated (`make docs`).",
        "",
    ]
    for family, kinds in families():
        lines += [f"## {family.value}", "", "| code | meaning |", "|---|---|"]
        lines += [f"| [`{kind.code}`]({kind.code}.md) | {kind.title} |" for kind in kinds]
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    SAMPLES.mkdir(exist_ok=True)
    write(SAMPLES, samples())
    write(Path(sys.argv[1]), pages())
