"""README says what the tool really prints, and how it really agrees with Kubernetes.

``python -m tests.test_readme`` runs its commands and the conformance comparison, and writes both again.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from importlib import import_module
from pathlib import Path

import yaml

from tools.docs import console
from tools.recorder import recorded

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
DATA = ROOT / "tests" / "conformance" / "data"
TABLE = re.compile(r"(<!-- conformance -->\n)(?P<text>.*?)(<!-- /conformance -->)", re.DOTALL)


KINDS = {
    "cel": "selectors",
    "alloc": "allocations, node by node",
    "scheduled": "`explain` end to end",
    "pods": "whole pods",
    "manifests": "manifests",
    "conversions": "conversion between API versions",
}
"""The corpora by the module of tests/conformance that compares them, and what they are about."""


def file_of(kind: str) -> Path:
    """The recorded answers."""
    return DATA / f"{kind}.jsonl.gz"


def provenance() -> dict[str, dict[str, str]]:
    """Where each file of recorded answers comes from."""
    found: dict[str, dict[str, str]] = yaml.safe_load((DATA / "provenance.yaml").read_text())
    return found


def table() -> str:
    """The table of README: how many answers there are of each kind, and how closely they are compared."""
    origin = provenance()
    lines = ["| Kubernetes' answers about | compared is | answers |", "|---|---|---|"]
    for kind, what in KINDS.items():
        compared = import_module(f"tests.conformance.{kind}").compared
        counts = Counter(depth for case in recorded.lines(file_of(kind)) for depth in compared(case))
        by = origin[file_of(kind).name]
        for number, (depth, count) in enumerate(counts.most_common()):
            about = "" if number else f"{what} ({by['of']}, {by['kubernetes']})"
            lines.append(f"| {about} | {depth} | {count:,} |")
    return "\n".join(lines) + "\n"


def disagreeing() -> list[str]:
    """The corpora on which a run now does not agree entirely."""
    options = argparse.Namespace(devices=DATA / "cel-devices.json", costs=False, library=False)
    runs = ((kind, import_module(f"tests.conformance.{kind}").run) for kind in KINDS)
    return [kind for kind, run in runs if run([file_of(kind)], options) != 0]


def test_the_figures_are_of_everything_that_is_recorded() -> None:
    """That all agree is what tests/conformance, tests/cel and tests/admission/server assert of the same files."""
    found = TABLE.search(README.read_text(encoding="utf-8"))
    assert found is not None
    assert found["text"] == table(), "run: python -m tests.test_readme"


def test_every_corpus_has_its_provenance() -> None:
    files = {path.name for path in DATA.iterdir() if path.name != "provenance.yaml"}
    assert provenance().keys() == files
    assert all(entry.keys() == {"kubernetes", "of", "generator", "recorded"} for entry in provenance().values())


def test_make_targets_of_the_readme_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"(?:`|^)make ([a-z]+)", README.read_text(), re.MULTILINE)) <= targets


if __name__ == "__main__":
    if wrong := disagreeing():
        raise SystemExit(f"README says that all agree; these do not: {', '.join(wrong)}")
    text = console.rewritten(README.read_text(encoding="utf-8"))
    README.write_text(TABLE.sub(lambda match: match[1] + table() + match[3], text), encoding="utf-8")
