"""A pod that fits, on nodes that are then cordoned: whatever else is wrong elsewhere, a fix is to lift the cordon."""

from __future__ import annotations

import json
from collections.abc import Set

import pytest

from tools.asked import Asked
from tools.cases import QUICK_CASES, Case, asked

FITTING = [case for case in QUICK_CASES if case.raw["expect"].get("verdict") == "can-be-scheduled"]
OTHERWISE = {
    "change-refused": "its claim is on the cordoned node, and can come to another one",
    "claim-allocated-elsewhere-unused": "the scheduler frees its claim for another node",
    "class-missing": "the scheduler frees its claim for another node",
}


def cordoned(question: Asked, names: Set[str]) -> Asked:
    """The question in a cluster in which these nodes are cordoned."""
    changed = question.copied()
    for node in changed.of("Node"):
        if node["metadata"]["name"] in names:
            node.setdefault("spec", {})["unschedulable"] = True
    return changed


@pytest.mark.parametrize("case", FITTING, ids=[f"{case.file}: {case.name}" for case in FITTING])
def test_the_end_of_the_cordon_is_a_fix(case: Case) -> None:
    question = asked(case)
    there = {node["metadata"]["name"] for node in question.of("Node")}
    winners = there & set(question.answer().get("winners", ()))
    found = cordoned(question, winners).answer("--full")
    if not winners or found["verdict"] != "cannot-be-scheduled" or case.file in OTHERWISE:
        pytest.skip(OTHERWISE.get(case.file, "the cordon keeps it from no node that it had"))
    assert "kubectl uncordon" in json.dumps(found["causes"]) + json.dumps(found.get("fixes", []))
