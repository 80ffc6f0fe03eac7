"""Lists of all that waits name the cause of a pod that ``explain`` names: so does the screen, which shows them.

The pods are those of the cases that other schedulers, queues or autoscalers decide about.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kubectl_dra.api.neighbour_kinds import NEIGHBOUR_KINDS, kind_here
from tools.cases import CASES, Case, asked


def is_of_a_layer(case: Case) -> bool:
    kinds = {kind_here(item["kind"], item["apiVersion"]) for item in case.objects}
    schedulers = {item.get("spec", {}).get("schedulerName") for item in case.objects if item["kind"] == "Pod"}
    return bool(kinds & NEIGHBOUR_KINDS.keys()) or bool(schedulers - {None, "default-scheduler"})


OF_LAYERS = [case for case in CASES if is_of_a_layer(case) and case.raw.get("explain", "").startswith("pod/")]


@pytest.mark.parametrize("case", OF_LAYERS, ids=[f"{case.file}: {case.name}" for case in OF_LAYERS])
def test_the_list_names_the_cause_that_explain_names(case: Case) -> None:
    question = asked(case)
    alone = question.answer()
    rest = tuple(word for word in question.arguments if word != case.raw["explain"])
    listed = replace(question, arguments=(*rest, "-A")).answer("--all")
    name = case.raw["explain"].rpartition("/")[2]
    of_pod = [one for one in listed["items"] if any(each.endswith(f"/{name}") for each in one["standsFor"])]
    assert of_pod or alone["verdict"] not in ("not-allocatable", "undetermined")
    for one in of_pod:
        assert first_code(one) == first_code(alone)


def first_code(answer: dict[str, Any]) -> str:
    return next((cause["code"] for cause in answer["causes"]), "")
