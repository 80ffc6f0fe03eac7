"""What ``taint --list`` shows and what ``untaint`` chooses."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from kubectl_dra.api.taints import DeviceTaintRule
from kubectl_dra.taint.device_taint_rules import DesiredRule, RuleStage, content
from kubectl_dra.taint.listing import list_taints
from kubectl_dra.taint.result import expired, plan_removals
from kubectl_dra.taint.typed import Removal, TaintSpec
from tests.taint.world import DRIVER, claim, gpu, node, result, rule, slice_of, world

AT = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)
BASE = (
    node("n1"),
    slice_of("n1", gpu("gpu-0", "GPU-a"), gpu("gpu-1", taints=[{"key": "ecc", "effect": "NoSchedule"}])),
)


def ours(device: str = "gpu-0", key: str = "k", **recorded: str) -> dict[str, Any]:
    (target,) = world(*BASE).devices.named([f"{DRIVER}/n1/gpu-0"])
    desired = DesiredRule(target.id._replace(device=device), TaintSpec(key, "", "NoSchedule"), **recorded)  # type: ignore[arg-type]
    raw = content(desired, RuleStage("NoSchedule"), "v1")
    raw["metadata"]["uid"] = f"uid-{raw['metadata']['name']}"
    return raw


def test_every_taint_with_owner_and_users() -> None:
    mine = ours(reason="ecc", ticket="T", expires="2026-11-21T12:00:00Z", hardware="GPU-a")
    here = world(*BASE, mine, claim("c", result("gpu-0"), pods=("p",)))
    first, second = list_taints(here.inventory.rows, here.snapshot, AT)
    assert (first.owner, first.ours, first.reason, first.ticket, first.pods) == ("rule", True, "ecc", "T", ("team/p",))
    assert not first.expired and not first.warnings
    assert (second.owner, second.name, str(second.taint)) == ("driver", f"{DRIVER}-n1", "ecc:NoSchedule")


@pytest.mark.parametrize(
    ("raw", "warning"),
    [
        (ours(hardware="GPU-old"), "the name now belongs to other hardware: GPU-a; the rule was made for GPU-old"),
        (ours(expires="2026-11-21T10:00:00Z"), "expired"),
        (ours(device="gone"), "no driver publishes this device now"),
        (rule("broad", {"driver": DRIVER}), "2 published devices, and any that appears later"),
        (rule("empty", {}), "it selects every device of the cluster"),
        (rule("nil", None), "no deviceSelector"),
    ],
)
def test_warnings(raw: dict[str, Any], warning: str) -> None:
    here = world(*BASE, raw)
    line = list_taints(here.inventory.rows, here.snapshot, AT)[0]
    assert len(line.warnings) == 1 and warning in line.warnings[0]


def removed(
    *raw_rules: dict[str, Any], removals: tuple[Removal, ...] = (Removal(),), overwrite: bool = False
) -> list[str]:
    here = world(*BASE, *raw_rules)
    rules = here.snapshot.taint_rules
    plan = plan_removals(rules, here.devices.named(["gpu-0", "gpu-1"]), removals, overwrite=overwrite)
    return sorted(rule.metadata.name.partition("-")[0] for _, rule in plan.rules)


EXACT = {"driver": DRIVER, "pool": "n1", "device": "gpu-0"}


def test_only_our_rules_of_these_devices() -> None:
    theirs, broad, other = rule("theirs", EXACT), rule("broad", {"driver": DRIVER}), ours(device="gpu-7")
    assert removed(ours(), theirs, broad, other) == ["gpu"]
    assert removed(ours(), theirs, broad, other, overwrite=True) == ["gpu", "theirs"]
    assert removed(rule("nil", None), rule("empty", {}), overwrite=True) == []


def test_only_the_keys_and_effects_named() -> None:
    rules = (ours(key="a"), ours(key="b"))
    for removal, count in ((Removal("a"), 1), (Removal("a", "NoSchedule"), 1), (Removal("a", "NoExecute"), 0)):
        assert len(removed(*rules, removals=(removal,))) == count
    assert len(removed(*rules)) == 2


def test_what_stays_says_whose_it_is() -> None:
    theirs = rule("theirs", EXACT)
    here = world(*BASE, theirs, rule("broad", {"driver": DRIVER}))
    rules, devices = here.snapshot.taint_rules, here.devices.named(["gpu-0", "gpu-1"])
    staying = plan_removals(rules, devices, [Removal("other")], overwrite=False).staying
    by = [(entry.device.device, entry.owner, f"{entry.ended_by} {entry.command or ''}") for entry in staying]
    how = f"untaint removes it kubectl dra untaint {DRIVER}/n1/gpu-0 k- --overwrite"
    assert ("gpu-0", "DeviceTaintRule theirs", how) in by
    broad = [entry for entry in by if entry[1] == "DeviceTaintRule broad"]
    assert [entry[0] for entry in broad] == ["gpu-0", "gpu-1"] and "selects more" in broad[0][2]
    assert [entry[0] for entry in by if entry[1].startswith(f"driver {DRIVER}")] == ["gpu-1"]


def test_expired() -> None:
    over, later = ours(expires="2026-11-21T09:59:59Z"), ours(key="x", expires="2026-11-21T10:00:01Z")
    foreign = rule("foreign", EXACT, annotations={"kubectl-dra/expires": "2026-11-21T09:00:00Z"})
    odd = ours(key="y", expires="soon")
    rules = [DeviceTaintRule.from_json(raw) for raw in (over, later, foreign, odd)]
    assert [found for _, found in expired(rules, AT)] == rules[:1]
