"""The change of the scheduler that is named is the one that makes the difference."""

from __future__ import annotations

import json
from collections.abc import Hashable, Sequence
from typing import Any

import pytest

from kubectl_dra.api.releases import default_features, parse_release
from kubectl_dra.cluster.files import read_snapshot
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.explain.settings import Settings
from kubectl_dra.explain.two_releases import TookTooLong, compare, deciding_changes
from kubectl_dra.scheduling.scheduler import ChangeKind, Deciding, Scheduler

API = "resource.k8s.io/v1"
DRIVER = "gpu.example.com"
Json = dict[str, Any]


def scheduler(text: str) -> Scheduler:
    release = parse_release(text)
    return Scheduler(release._replace(patch=0), default_features(release), release.patch)


def named(kind: str, name: str, **fields: Any) -> Json:
    return {"apiVersion": API, "kind": kind, "metadata": {"name": name, "uid": name, "namespace": "default"}, **fields}


def slice_of(name: str, pool: str = "n1", count: int = 1, driver: str = DRIVER, **spec: Any) -> Json:
    spec = {"nodeName": "n1", **spec}
    at = {"name": pool, "generation": 1, "resourceSliceCount": count}
    return named("ResourceSlice", name, spec={"driver": driver, "pool": at, **spec})


def gpu(name: str, **fields: Any) -> Json:
    return {"name": name, **fields}


def drawing(name: str, amount: str = "8", **fields: Any) -> Json:
    draws = [{"counterSet": "card", "counters": {"memory": {"value": amount}}}]
    return gpu(name, consumesCounters=draws, **fields)


def with_card(devices: Sequence[Json], driver: str = DRIVER) -> list[Json]:
    """A pool whose devices draw on one card with 8 of memory."""
    sets = [{"name": "card", "counters": {"memory": {"value": "8"}}}]
    return [
        slice_of(f"{driver}-devices", count=2, driver=driver, devices=list(devices)),
        slice_of(f"{driver}-sets", count=2, driver=driver, sharedCounters=sets),
    ]


def claim(name: str = "wanted", *, count: int = 1, mode: str = "ExactCount", **spec: Any) -> Json:
    wanted = {"deviceClassName": "gpu", "allocationMode": mode, **({"count": count} if mode == "ExactCount" else {})}
    return named("ResourceClaim", name, spec={"devices": {"requests": [{"name": "r", "exactly": wanted}], **spec}})


def holding(device: str, driver: str = DRIVER, **fields: Any) -> Json:
    result = {"request": "r", "driver": driver, "pool": "n1", "device": device, **fields}
    return claim("held") | {"status": {"allocation": {"devices": {"results": [result]}}}}


def snapshot_of(*objects: Json) -> Snapshot:
    nodes: list[Json] = [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}}}
        for name in ("n1", "n2")
    ]
    device_class = named(
        "DeviceClass", "gpu", spec={"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]}
    )
    items = [*nodes, device_class, *objects]
    return read_snapshot(["-"], stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}).encode())


def deciding(before: str, after: str, *objects: Json) -> Deciding:
    (found,) = compare(snapshot_of(*objects), Settings(scheduler(before)), Settings(scheduler(after))).differing
    assert found.deciding is not None
    return found.deciding


TAINT = {"key": "broken", "effect": "NoSchedule"}
SHARE = "4f2b6cde-7a39-4a5e-9d7c-8a6b1c2d3e4f"
DISTINCT: Json = {"constraints": [{"distinctAttribute": f"{DRIVER}/slot", "requests": ["r"]}]}


def slots(*values: str) -> list[Json]:
    return [gpu(f"gpu-{at}", attributes={"slot": {"string": each}}) for at, each in enumerate(values)]


@pytest.mark.parametrize(
    ("before", "after", "objects", "name"),
    [
        ("1.34.10", "1.35.8", [slice_of("a", count=2, devices=[gpu("gpu-0")]), claim()], "loose_pools"),
        (
            "1.34.10",
            "1.35.8",
            [
                slice_of("a", count=2, devices=[gpu("gpu-0")]),
                slice_of("b", count=2, devices=[gpu("gpu-1")], nodeName="n2"),
                claim(mode="All"),
            ],
            "local_pools",
        ),
        ("1.35.8", "1.36.6", [slice_of("a", devices=[gpu("gpu-0", taints=[TAINT])]), claim()], "DRADeviceTaints"),
        (
            "1.36.6",
            "1.37.1",
            [slice_of("a", devices=slots("x", "y", "x")), claim(count=3, **DISTINCT)],
            "distinct_remembers_one",
        ),
        (
            "1.36.1",
            "1.36.2",
            [
                *with_card([drawing("gpu-0", allowMultipleAllocations=True), drawing("gpu-1")]),
                holding("gpu-0", shareID=SHARE),
                claim(),
            ],
            "shares_charge_nothing",
        ),
        (
            "1.36.2",
            "1.36.3",
            [*with_card([drawing("gpu-0", taints=[TAINT]), drawing("gpu-1")]), claim()],
            "counters_leak",
        ),
    ],
)
def test_one_change_alone(before: str, after: str, objects: list[Json], name: str) -> None:
    found = deciding(before, after, *objects)
    (only,) = found.changes
    assert only.name == name and only.link and not found.together


def test_what_is_read_as_data() -> None:
    (gate,) = deciding("1.35.8", "1.36.6", slice_of("a", devices=[gpu("gpu-0", taints=[TAINT])]), claim()).changes
    assert (gate.kind, gate.link) == (ChangeKind.GATE_ON, "https://kep.k8s.io/5055")
    (pools,) = deciding("1.34.10", "1.35.8", slice_of("a", count=2, devices=[gpu("gpu-0")]), claim()).changes
    assert (pools.kind, pools.link.rpartition("/")[2]) == (ChangeKind.OTHERWISE, "134189")
    leak = [*with_card([drawing("gpu-0", taints=[TAINT]), drawing("gpu-1")]), claim()]
    (defect,) = deciding("1.36.2", "1.37.1", *leak).changes
    assert (defect.kind, defect.link.rpartition("/")[2]) == (ChangeKind.DEFECT_GONE, "140431")


def test_several_that_each_suffice() -> None:
    """1.34 compares nothing; the simpler variant of 1.35 refuses the constraint, and the other one compares."""
    found = deciding("1.34.10", "1.35.8", slice_of("a", devices=slots("x", "x")), claim(count=2, **DISTINCT))
    assert {change.name for change in found.changes} == {"distinct_compares_nothing", "either_gate_chooses"}
    assert not found.together


def test_several_together() -> None:
    """A second share of a device that draws on a card."""
    devices = [drawing("gpu-0", allowMultipleAllocations=True), drawing("gpu-1")]
    found = deciding("1.35.8", "1.37.1", *with_card(devices), holding("gpu-0", shareID=SHARE), claim())
    names = {"DRAConsumableCapacity", "DRAPartitionableDevices", "share_without_capacity_charges"}
    assert {change.name for change in found.changes} == names and found.together


def test_no_change_is_named_that_does_not_decide() -> None:
    """Where even all of them together leave the answer as it is, something else differs."""

    def answer(asked: Scheduler) -> Hashable:
        return str(asked.release)

    assert deciding_changes(scheduler("1.35.8"), scheduler("1.37.1"), answer) == Deciding()


def test_the_fewest_that_decide_together() -> None:
    wanted = {"DRADeviceTaints", "crash_on_all"}

    def answer(asked: Scheduler) -> Hashable:
        parts = asked.upgrade.parts if asked.upgrade is not None else frozenset()
        return asked.release.minor == 37 or wanted <= parts

    found = deciding_changes(scheduler("1.35.1"), scheduler("1.37.1"), answer)
    assert {change.name for change in found.changes} == wanted and found.together


def test_of_several_that_suffice_the_one_that_is_needed_counts() -> None:
    """Binding conditions alone would do as well, but the later scheduler does without them."""

    def answer(asked: Scheduler) -> Hashable:
        parts = asked.upgrade.parts if asked.upgrade is not None else frozenset()
        return asked.release.minor == 37 or "DRADeviceTaints" in parts or parts == {"DRADeviceBindingConditions"}

    found = deciding_changes(scheduler("1.35.8"), scheduler("1.37.1"), answer)
    assert [change.name for change in found.changes] == ["DRADeviceTaints"]


def test_no_time() -> None:
    def answer(asked: Scheduler) -> Hashable:
        raise TookTooLong

    with pytest.raises(TookTooLong):
        deciding_changes(scheduler("1.35.8"), scheduler("1.37.1"), answer)


def test_a_rule_and_the_gate_that_it_needs() -> None:
    rule = named("DeviceTaintRule", "r", spec={"deviceSelector": {"driver": DRIVER}, "taint": TAINT})
    rule["apiVersion"] = "resource.k8s.io/v1beta2"
    found = deciding("1.35.8", "1.37.1", slice_of("a", devices=[gpu("gpu-0")]), rule, claim())
    assert {change.name for change in found.changes} == {"DRADeviceTaints", "DRADeviceTaintRules"} and found.together
