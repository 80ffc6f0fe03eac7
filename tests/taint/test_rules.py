"""Our DeviceTaintRules, and the releases that serve them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kubectl_dra.api.releases import parse_release
from kubectl_dra.api.slices import DeviceID
from kubectl_dra.api.taints import DeviceTaintRule
from kubectl_dra.cluster.client import Answered
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.errors import InputError
from kubectl_dra.taint.device_taint_rules import (
    Decision,
    DesiredRule,
    RuleStage,
    Serving,
    blind_scheduler,
    content,
    decide,
    gates_of,
    how_to_turn_on,
    rule_name,
    rules_unseen,
    undetermined,
)
from kubectl_dra.taint.typed import TaintSpec

DEVICE = DeviceID("gpu.example.com", "n1", "gpu-0")
WISH = DesiredRule(DEVICE, TaintSpec("k", "v", "NoExecute"), "ecc", "OPS-1", "2026-11-21T10:00:00Z", "GPU-a")
FINAL = RuleStage("NoExecute")


def stored(desired: DesiredRule = WISH, stage: RuleStage = FINAL) -> dict[str, Any]:
    raw = content(desired, stage, "v1")
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


def decided(desired: DesiredRule, raw: dict[str, Any] | None, *, overwrite: bool) -> Decision:
    return decide(desired, None if raw is None else DeviceTaintRule.from_json(raw), overwrite=overwrite)


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
    ("desired", "stage", "action", "why"),
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
def test_decisions(desired: DesiredRule, stage: RuleStage, action: str, why: str) -> None:
    raw = stored(stage=stage)
    decision = decided(desired, raw, overwrite=False)
    assert (decision.action, decision.stage, decision.version) == (action, stage, "7")
    if action == "refuse":
        assert why in decision.why and "--overwrite" in decision.why
        assert decided(desired, raw, overwrite=True).action == "change"


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
    assert decision.desired.expires == expires
    assert bool(decision.note) is noted
    if noted:
        assert recorded in decision.note and asked in decision.note and "--overwrite" in decision.note


def test_nothing_there_is_made_and_what_is_recorded_is_kept() -> None:
    assert decided(WISH, None, overwrite=False).action == "create"
    plain = replace(WISH, reason="", ticket="", expires="", hardware="")
    assert decided(plain, stored(), overwrite=False).desired == WISH
    assert decided(WISH, stored(plain), overwrite=False).action == "change"


def test_what_was_under_way_is_not_gone_on_with_after_overwriting() -> None:
    raw = stored(stage=RuleStage("NoSchedule", "NoExecute", "2026-11-21T11:00:00Z"))
    desired = replace(WISH, taint=TaintSpec("k", "w", "NoExecute"))
    assert decided(desired, raw, overwrite=True).stage == RuleStage("NoSchedule")


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


ALPHA, BETA = "--runtime-config=resource.k8s.io/v1alpha3=true", "--runtime-config=resource.k8s.io/v1beta2=true"


@pytest.mark.parametrize(
    ("release", "said", "not_said"),
    [
        ("1.32.0", ["does not have them"], ["--runtime-config"]),
        ("1.33.1", [ALPHA, "--feature-gates=DRADeviceTaints=true"], ["DRADeviceTaintRules"]),
        ("1.34.0", [ALPHA, "--feature-gates=DRADeviceTaints=true"], ["DRADeviceTaintRules"]),
        ("1.35.0", [ALPHA, "--feature-gates=DRADeviceTaints=true,DRADeviceTaintRules=true"], []),
        ("1.36.4", [BETA, "--feature-gates=DRADeviceTaintRules=true"], ["DRADeviceTaints=true"]),
        ("1.37.0", ["does by default"], ["=true"]),
    ],
)
def test_how_to_turn_on(release: str, said: list[str], not_said: list[str]) -> None:
    text = how_to_turn_on(parse_release(release))
    assert all(part in text for part in said) and not any(part in text for part in not_said), text


@pytest.mark.parametrize(
    ("release", "source", "blind", "said"),
    [
        ("1.35.9", "server", False, ""),
        ("1.36.0", "server", True, "kube-scheduler 1.36.0 does not see"),
        ("1.36.2", "server", True, "kube-scheduler 1.36.2 does not see"),
        ("1.36.3", "server", False, ""),
        # A kubelet may be older than the control plane.
        ("1.36.2", "kubelet of node n1", None, "kube-scheduler 1.36.0 to 1.36.2, of which this may be one,"),
    ],
)
def test_schedulers_that_do_not_stand_rules(release: str, source: str, blind: bool | None, said: str) -> None:
    snapshot = Snapshot(release=parse_release(release), release_source=source)
    assert rules_unseen(snapshot) is blind
    warning = blind_scheduler(snapshot)
    assert warning.startswith(said) and bool(warning) is bool(said)


@pytest.mark.parametrize(
    ("release", "known", "gate"),
    [
        ("1.34.0", False, "DRADeviceTaints "),
        ("1.36.4", False, "DRADeviceTaintRules "),
        ("1.36.4", True, ""),
        ("1.37.1", False, ""),
    ],
)
def test_gates_that_cannot_be_seen(release: str, known: bool, gate: str) -> None:
    said = undetermined(Serving("v1beta2", parse_release(release), known))
    assert bool(said) is bool(gate) and gate in said


@dataclass(frozen=True)
class Metrics:
    """An API server whose metrics are this text, or which answers with this status."""

    answer: str | int

    def text(self, path: str) -> str:
        assert path == "/metrics"
        if isinstance(self.answer, int):
            raise Answered(self.answer, "no")
        return self.answer


@pytest.mark.parametrize(
    ("answer", "gates"),
    [
        (
            'kubernetes_feature_enabled{name="DRADeviceTaints",stage="BETA"} 1\n'
            'kubernetes_feature_enabled{name="DRADeviceTaintRules",stage="BETA"} 0\n'
            'kubernetes_feature_enabled{name="DRAAdminAccess",stage=""} 1\n',
            {"DRADeviceTaints": True, "DRADeviceTaintRules": False},
        ),
        ("up 1\n", {}),
        (403, {}),
    ],
)
def test_gates_in_the_metrics(answer: str | int, gates: dict[str, bool]) -> None:
    server: Any = Metrics(answer)
    assert gates_of(server) == gates
