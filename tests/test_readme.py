"""README says what the tool really prints, and how it really agrees with Kubernetes.

``python -m tests.test_readme`` runs its commands and the conformance comparison, and writes both again.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import io
import re
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from tests.docs import console

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
DATA = ROOT / "tests" / "conformance" / "data"
TABLE = re.compile(r"(<!-- conformance -->\n)(?P<text>.*?)(<!-- /conformance -->)", re.DOTALL)


class Corpus(NamedTuple):
    """Recorded answers: ``kind`` names the module of tests/conformance and the file."""

    kind: str
    what: str
    by: str


CORPORA = (
    Corpus("cel", "selectors: accepted or not, result on each device, worst-case cost", "CEL compiler, 1.36.2"),
    Corpus("alloc", "allocations: devices, order, capacity, config, node selector, errors", "allocator, 1.36.2"),
    Corpus("scheduled", "`explain` end to end: where, on which devices, or why not", "scheduler, 1.36.2"),
    Corpus("manifests", "manifests: accepted or not, the same fields and reasons", "API server, 1.36.2"),
    Corpus("conversions", "conversion between API versions, with defaults", "API server, 1.36.2"),
)


def recorded(corpus: Corpus) -> int:
    """How many answers of Kubernetes there are."""
    with gzip.open(DATA / f"{corpus.kind}.jsonl.gz", "rt") as lines:
        return sum(1 for line in lines if line.strip())


def agreement(corpus: Corpus) -> tuple[int, int]:
    """(agreeing, compared) of a run now."""
    options = argparse.Namespace(devices=DATA / "cel-devices.json", costs=False)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        import_module(f"tests.conformance.{corpus.kind}").run([DATA / f"{corpus.kind}.jsonl.gz"], options)
    last = printed.getvalue().strip().rpartition("\n")[2]
    found = re.fullmatch(r"agree (\d+) of (\d+)", last)
    assert found is not None, last
    return int(found[1]), int(found[2])


def table(counts: dict[str, tuple[int, int]]) -> str:
    """The table of README."""
    lines = ["| compared | with Kubernetes' | recorded | agree |", "|---|---|---|---|"]
    for corpus in CORPORA:
        agree, compared = counts[corpus.kind]
        share = "all" if agree == compared else f"{agree:,}"
        lines.append(f"| {corpus.what} | {corpus.by} | {compared:,} | {share} |")
    return "\n".join(lines) + "\n"


def test_the_figures_are_of_everything_that_is_recorded() -> None:
    """That all agree is what tests/conformance, tests/cel and tests/lint/server assert of the same files."""
    found = TABLE.search(README.read_text(encoding="utf-8"))
    assert found is not None
    counts = {corpus.kind: (recorded(corpus), recorded(corpus)) for corpus in CORPORA}
    assert found["text"] == table(counts), "run: python -m tests.test_readme"


def test_make_targets_of_the_readme_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"(?:`|^)make ([a-z]+)", README.read_text(), re.MULTILINE)) <= targets


if __name__ == "__main__":
    text = console.rewritten(README.read_text(encoding="utf-8"))
    figures = table({corpus.kind: agreement(corpus) for corpus in CORPORA})
    README.write_text(TABLE.sub(lambda match: match[1] + figures + match[3], text), encoding="utf-8")
