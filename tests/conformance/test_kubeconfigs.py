"""Kubeconfigs and flags as kubectl answered them: the same refusal, or the same request to the same server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tools.examples import ROOT
from tools.kubeconfigs import clients
from tools.kubeconfigs.cases import cases, subjects
from tools.kubeconfigs.corpus import DIFFERENT, read
from tools.kubeconfigs.lab import Lab

pytestmark = pytest.mark.slow
ROWS = list(read())
PARTS = 8


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    made = Lab(tmp_path_factory.mktemp("lab"))
    yield made
    made.close()


def test_the_corpus_has_the_cases() -> None:
    """Whoever changes the cases records them anew: ``python -m tools.kubeconfigs record``."""
    assert [row.case for row in ROWS] == cases()
    assert len(ROWS) > 600 and {row.version for row in ROWS} == {"v1.33.1"}
    assert DIFFERENT.keys() <= {row.case.name for row in ROWS}


def test_the_table_of_the_page_counts_them() -> None:
    refused = {row.case.name for row in ROWS if row.kubectl.refuses}
    lines = []
    for subject, found in [*subjects().items(), ("**all**", cases())]:
        names = {case.name for case in found}
        lines.append(f"| {subject} | {len(names)} | {len(names & refused)} | {len(names & DIFFERENT.keys())} |")
    assert "\n".join(lines) in (ROOT / "docs" / "decisions" / "client.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("part", range(PARTS))
def test_we_answer_as_kubectl_does(lab: Lab, part: int) -> None:
    wrong = []
    for row in ROWS[part::PARTS]:
        clients.lay_out(lab, row.case)
        ours = clients.ours(lab, row.case)
        verdict = row.verdict(ours)
        alike = verdict in ("same request", "both refuse")
        if alike == (row.case.name in DIFFERENT):
            wrong.append((row.case.name, verdict, row.kubectl, ours))
        assert "secret-of" not in ours.said, row.case.name
    assert not wrong, wrong[:3]
