"""What the server is predicted to do with a rule, and what a drain says."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kubectl_dra.api.slices import DeviceID
from kubectl_dra.api.taints import DeviceTaintRule
from kubectl_dra.taint.apply import ASKING, ServerAnswer, question_of, server_answer
from kubectl_dra.taint.device_taint_rules import DesiredRule, RuleStage, content, decide
from kubectl_dra.taint.typed import TaintSpec
from kubectl_dra.taint.wait_until_drained import slices_of

# As Kubernetes 1.36.4 writes it.
MESSAGE = (
    "3 published devices selected. 1 allocated device selected. 2 pods would be evicted in 1 namespace if the "
    "effect was NoExecute. This information will not be updated again. Recreate the DeviceTaintRule to trigger an "
    "update."
)


def rule(reason: str = "NoEffect", message: str = MESSAGE, observed: int = 2) -> dict[str, Any]:
    condition = {"type": "EvictionInProgress", "status": "False", "reason": reason, "message": message}
    return {"metadata": {"generation": 2}, "status": {"conditions": [{**condition, "observedGeneration": observed}]}}


DEVICE = DeviceID("gpu.example.com", "n1", "gpu-0")
WISH = DesiredRule(DEVICE, TaintSpec("k", "v", "NoExecute"))


@pytest.mark.parametrize(
    ("stage", "value", "overwrite", "name"),
    [
        (None, "v", False, WISH.name),
        (ASKING, "v", False, WISH.name),
        (RuleStage("NoSchedule"), "v", True, f"{WISH.name}-asked"),
        (RuleStage("None"), "v", True, f"{WISH.name}-asked"),
        (RuleStage("NoSchedule", "NoExecute", "x"), "v", False, f"{WISH.name}-asked"),
        # Who tolerated the other value may not tolerate this one.
        (RuleStage("NoExecute"), "w", True, f"{WISH.name}-asked"),
        (RuleStage("NoExecute"), "v", False, ""),
        (RuleStage("NoSchedule"), "v", False, ""),
    ],
)
def test_by_which_rule_the_server_is_asked(stage: RuleStage | None, value: str, overwrite: bool, name: str) -> None:
    raw = None if stage is None else content(replace(WISH, taint=WISH.taint._replace(value=value)), stage, "v1")
    there = None if raw is None else DeviceTaintRule.from_json(raw)
    question = question_of(WISH, decide(WISH, there, overwrite=overwrite))
    assert (question.name if question else "") == name
    quiet = replace(WISH, taint=TaintSpec("k", "v", "NoSchedule"))
    assert question_of(quiet, decide(quiet, there, overwrite=True)) is None


def test_counts() -> None:
    assert server_answer(rule()) == ServerAnswer(3, 1, 2, MESSAGE)
    assert server_answer(rule(message="1 pod would be evicted")) == ServerAnswer(
        None, None, 1, "1 pod would be evicted"
    )
    assert server_answer(rule(message="other words")) == ServerAnswer(None, None, None, "other words")


@pytest.mark.parametrize("raw", [rule(reason="NotStarted"), rule(observed=1), {}, {"status": {"conditions": []}}])
def test_no_answer_yet(raw: dict[str, Any]) -> None:
    assert server_answer(raw) is None


# What of a drain can be said without a cluster.


@pytest.mark.parametrize(
    ("drivers", "query"),
    [
        (["gpu.example.com"], {"fieldSelector": "spec.driver=gpu.example.com"}),
        (["gpu.example.com", "gpu.example.com"], {"fieldSelector": "spec.driver=gpu.example.com"}),
        (["gpu.example.com", "nic.example.com"], {}),
        ([], {}),
    ],
)
def test_slices_of_one_driver_are_asked_for_by_the_driver(drivers: list[str], query: dict[str, str]) -> None:
    assert slices_of([DeviceID(driver, "n1", f"d-{number}") for number, driver in enumerate(drivers)]) == query
