"""Nothing is offered that was not proved, in any case file: where no proof succeeds, what rests on one is gone."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import pytest

from kubectl_dra.explain.remedies.prove import WhatIf
from tools.cases import QUICK_CASES, Case, run_case

RESTS_ON_A_PROOF = re.compile(
    r"(?:then|the\s+term|each\s+request|\")\s+it\s+fits\s+on|[Ee]nd\s+pods?\s+\S+/\S|[Dd]elete\s+claim\s+\S+/\S|"
    r"[Ll]ower\s+count|in\s+place\s+of|not\s+enough|[Pp]roved\b|would\s+help|one\s+more\s+node\s+like"
)
"""Offers name an object or a value; general advice ("end pods that are not needed") does not."""
FILES = {name: list(cases) for name, cases in groupby(QUICK_CASES, lambda case: case.file)}


@pytest.fixture
def nothing_is_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("proof", "quick_proof"):
        monkeypatch.setattr(WhatIf, name, lambda *_: None)


def offers(case: Case, folder: Path) -> Iterator[str]:
    """What the answer offers that only a proof allows: sentences of either text, remedies and ways out as data."""
    for full in (False, True):
        _, shown = run_case(case, folder, "text", full=full)
        # The words of a driver offer nothing.
        yield from RESTS_ON_A_PROOF.findall(shown.replace("not enough cpus available", ""))
    _, output = run_case(case, folder, "json")
    found = json.loads(output)
    yield from (cause["fix"]["text"] for cause in found["causes"] if "proof" in cause["fix"])
    yield from (change["text"] for way in found.get("fixes", ()) for change in way["changes"])


@pytest.mark.parametrize("name", FILES)
@pytest.mark.usefixtures("nothing_is_proved")
def test_without_proofs(name: str, tmp_path: Path) -> None:
    assert {case.name: found for case in FILES[name] if (found := list(offers(case, tmp_path)))} == {}


def test_the_sentences_are_there_with_proofs(tmp_path: Path) -> None:
    """Else the test above would find nothing whatever the answers say."""
    several = [cases[0] for cases in FILES.values() if cases[0].raw["expect"].get("proof")]
    assert several
    for case in several:
        assert len(list(offers(case, tmp_path))) > 1, case.name
