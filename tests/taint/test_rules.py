from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kubectl_dra.api.slices import DeviceID
from kubectl_dra.api.taints import DeviceTaintRule
from kubectl_dra.errors import InputError
from kubectl_dra.taint.rules import Decision, RuleStage, Wish, content, decide, rule_name
from kubectl_dra.taint.typed import TaintSpec

DEVICE = DeviceID("gpu.example.com", "n1", "gpu-0")
WISH = Wish(DEVICE, TaintSpec("k", "v", "NoExecute"), "ecc", "OPS-1", "2026-11-21T10:00:00Z", "GPU-a")
FINAL = RuleStage("NoExecute")


def stored(wish: Wish = WISH, stage: RuleStage = FINAL) -> dict[str, Any]:
    raw = content(wish, stage, "v1")
    raw["metadata"]["resourceVersion"] = "7"
    return raw


def test_content_names_everything() -> None:
    raw = content(WISH, RuleStage("NoSchedule", "NoExecute", "2026-11-21T11:00:00Z"), "v1beta2")
    assert raw["apiVersion"] == "resource.k8s.io/v1beta2"
    assert raw["spec"] == {
        "deviceSelector": {"driver": "gpu.example.com", "pool": "n1", "device": "gpu-0"},
        "taint": {"key": "k", "value": "v", "effect": "NoSchedule"},
    }
    assert raw["metadata"]["annotations"] == {
        "kubectl-dra/reason": "ecc",
        "kubectl-dra/ticket": "OPS-1",
        "kubectl-dra/expires": "2026-11-21T10:00:00Z",
        "kubectl-dra/hardware-id": "GPU-a",
        "kubectl-dra/next-effect": "NoExecute",
        "kubectl-dra/next-effect-at": "2026-11-21T11:00:00Z",
    }


def decided(wish: Wish, raw: dict[str, Any] | None, *, overwrite: bool) -> Decision:
    return decide(wish, None if raw is None else DeviceTaintRule.from_json(raw), overwrite=overwrite)


@pytest.mark.parametrize("part", ["driver", "pool", "device"])
def test_no_rule_without_every_part_of_the_name(part: str) -> None:
    with pytest.raises(InputError, match="driver, pool and name"):
        content(replace(WISH, device=DEVICE._replace(**{part: ""})), FINAL, "v1")


NAMES = st.from_regex(r"[a-z]{1,3}", fullmatch=True)


@given(st.tuples(NAMES, NAMES, NAMES, NAMES), st.tuples(NAMES, NAMES, NAMES, NAMES))
def test_names_differ_when_device_or_key_do(one: tuple[str, ...], other: tuple[str, ...]) -> None:
    names = {rule_name(DeviceID(*parts[:3]), parts[3]) for parts in (one, other)}
    assert len(names) == len({one, other})


@pytest.mark.parametrize(
    ("wish", "stage", "action", "why"),
    [
        (WISH, FINAL, "keep", ""),
        (replace(WISH, reason="", ticket="", expires="", hardware=""), FINAL, "keep", ""),
        (replace(WISH, expires="2027-01-01T00:00:00Z"), FINAL, "keep", ""),
        (WISH, RuleStage("None", "NoExecute"), "change", ""),
        (WISH, RuleStage("NoSchedule", "NoExecute", "x"), "change", ""),
        (WISH, RuleStage("NoSchedule"), "refuse", "the effect NoSchedule"),
        (WISH, RuleStage("None"), "refuse", "the effect None"),
        (replace(WISH, taint=TaintSpec("k", "w", "NoExecute")), FINAL, "refuse", "the taint k=v:NoExecute"),
        (replace(WISH, taint=TaintSpec("k", "v", "NoSchedule")), FINAL, "refuse", "the effect NoExecute"),
        (
            replace(WISH, taint=TaintSpec("k", "v", "NoSchedule")),
            RuleStage("NoSchedule", "NoExecute", "x"),
            "refuse",
            "the effect NoSchedule",
        ),
        (replace(WISH, reason="other"), FINAL, "refuse", 'the reason "ecc"'),
        (replace(WISH, ticket="OPS-2"), FINAL, "refuse", 'the ticket "OPS-1"'),
        (replace(WISH, hardware="GPU-b"), FINAL, "refuse", "other hardware"),
    ],
)
def test_decisions(wish: Wish, stage: RuleStage, action: str, why: str) -> None:
    raw = stored(stage=stage)
    decision = decided(wish, raw, overwrite=False)
    assert (decision.action, decision.stage, decision.version) == (action, stage, "7")
    if action == "refuse":
        assert why in decision.why and "--overwrite" in decision.why
        assert decided(wish, raw, overwrite=True).action == "change"


@pytest.mark.parametrize(
    ("recorded", "asked", "overwrite", "expires", "noted"),
    [
        ("2026-11-21T10:00:00Z", "2026-11-21T12:00:00Z", False, "2026-11-21T10:00:00Z", True),
        ("2026-11-21T10:00:00Z", "2026-11-21T12:00:00Z", True, "2026-11-21T12:00:00Z", False),
        ("2026-11-21T10:00:00Z", "", False, "2026-11-21T10:00:00Z", False),
        ("", "2026-11-21T12:00:00Z", False, "2026-11-21T12:00:00Z", False),
    ],
)
@pytest.mark.parametrize("stage", [FINAL, RuleStage("NoSchedule", "NoExecute", "x")])
def test_another_expiry_is_not_taken_silently(
    recorded: str, asked: str, overwrite: bool, expires: str, noted: bool, stage: RuleStage
) -> None:
    raw = stored(replace(WISH, expires=recorded), stage)
    decision = decided(replace(WISH, expires=asked), raw, overwrite=overwrite)
    assert decision.wish.expires == expires
    assert bool(decision.note) is noted
    if noted:
        assert recorded in decision.note and asked in decision.note and "--overwrite" in decision.note


def test_nothing_there_is_made_and_what_is_recorded_is_kept() -> None:
    assert decided(WISH, None, overwrite=False).action == "create"
    plain = replace(WISH, reason="", ticket="", expires="", hardware="")
    assert decided(plain, stored(), overwrite=False).wish == WISH
    assert decided(WISH, stored(plain), overwrite=False).action == "change"


def test_what_was_under_way_is_not_gone_on_with_after_overwriting() -> None:
    raw = stored(stage=RuleStage("NoSchedule", "NoExecute", "2026-11-21T11:00:00Z"))
    wish = replace(WISH, taint=TaintSpec("k", "w", "NoExecute"))
    assert decided(wish, raw, overwrite=True).stage == RuleStage("NoSchedule")


def test_foreign_rules_are_refused() -> None:
    unlabelled = stored()
    del unlabelled["metadata"]["labels"]
    assert "another maker" in decided(WISH, unlabelled, overwrite=False).why
    assert decided(WISH, unlabelled, overwrite=True).action == "change"


@pytest.mark.parametrize("selector", [None, {}, {"driver": "gpu.example.com"}, {**DEVICE._asdict(), "pool": "n2"}])
def test_a_rule_of_that_name_that_selects_something_else_is_never_touched(selector: dict[str, str] | None) -> None:
    raw = stored()
    raw["spec"]["deviceSelector"] = selector
    for overwrite in (False, True):
        assert decided(WISH, raw, overwrite=overwrite).action == "refuse"


def test_a_rule_that_is_being_deleted() -> None:
    raw = stored()
    raw["metadata"]["deletionTimestamp"] = "2026-11-21T10:00:00Z"
    assert "being deleted" in decided(WISH, raw, overwrite=True).why
