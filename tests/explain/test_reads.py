"""Answers on devices that are shared are those on devices that have everything."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kubectl_dra.api.releases import Release, default_features
from kubectl_dra.api.shared_devices import NAMES, TIMES, PerDeviceColumn
from kubectl_dra.cluster.device_lists import SAMPLE
from kubectl_dra.cluster.files import read_snapshot
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.explain.attributes_read import complete
from kubectl_dra.explain.pipeline import diagnose
from kubectl_dra.explain.question.resolve import Question, about_claim
from kubectl_dra.explain.selector_trace import trace, verify
from kubectl_dra.explain.settings import Settings
from kubectl_dra.scheduling.scheduler import Scheduler
from tools.benchmarks import explain as fleet

NODES = 2 * SAMPLE
RELEASE = Release(1, 36)
SETTINGS = Settings(Scheduler(RELEASE, frozenset(default_features(RELEASE))), with_devices=True)
A, C = f'device.attributes["{fleet.DRIVER}"]', f'device.capacity["{fleet.DRIVER}"]'
MEMORY = fleet.various(NODES - 1)["spec"]["devices"][1]["capacity"]["memory"]["value"]
UUIDS = [
    device["attributes"]["uuid"]["string"]
    for node in range(NODES)
    for device in fleet.slice_of(node)["spec"]["devices"]
]


def ask(
    *selectors: str, count: int = 2, constraint: dict[str, Any] | None = None, capacity: str = ""
) -> dict[str, Any]:
    """A claim for some devices; for a count of 0 all of a node."""
    exactly: dict[str, Any] = {
        "deviceClassName": "gpu",
        "selectors": [{"cel": {"expression": text}} for text in selectors],
        **({"count": count} if count else {"allocationMode": "All"}),
        **({"capacity": {"requests": {"memory": capacity}}} if capacity else {}),
    }
    devices: dict[str, Any] = {"requests": [{"name": "gpu", "exactly": exactly}]}
    if constraint:
        devices["constraints"] = [constraint]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "asked", "namespace": "default", "uid": "asked"},
        "spec": {"devices": devices},
    }


def read(claim: dict[str, Any], *, compact: bool, kind: str = "") -> tuple[Snapshot, Question]:
    items = [*fleet.objects(NODES, kind=kind), claim]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    snapshot = read_snapshot(["-"], stdin=text.encode(), compact=compact)
    return snapshot, about_claim(snapshot.claims["default", "asked"])


CLAIMS = {
    "fits": (ask(f'{A}.productName == "{fleet.FREE_MODEL}"'), False),
    "held": (ask(f'{A}.productName == "{fleet.HELD_MODEL}"'), False),
    "matches nothing": (ask(f'{A}.productName == "NVIDIA H200"'), False),
    "too many": (ask(count=9), False),
    "another attribute matches": (
        ask(constraint={"requests": [], "matchAttribute": "resource.kubernetes.io/pcieRoot"}, count=3),
        False,
    ),
    "one device by its UUID": (ask(f'{A}.uuid == "{UUIDS[-8]}"', count=1), False),
    "no device by its UUID": (ask(f'{A}.uuid == "GPU-bad"', count=1), False),
    "no device by its UUID and more": (
        ask(f'{A}.productName == "{fleet.FREE_MODEL}" && {A}.uuid == "GPU-bad"', f'{A}.uuid != "GPU-worse"'),
        False,
    ),
    "too few by their UUID": (ask(f'{A}.uuid == "{UUIDS[-8]}"'), False),
    "the UUID of a held device": (ask(f'{A}.uuid == "{UUIDS[-16]}"', count=1), False),
    "the UUID that stands in for others": (ask(f'{A}.uuid == "{UUIDS[0]}"', count=1), True),
    "any but the UUID that stands in for others": (ask(f'{A}.uuid != "{UUIDS[0]}"', count=8), True),
    "nearly the UUID": (ask(f'{A}.uuid == "{UUIDS[-8][:-1]}x"', count=1), False),
    "an error beside the UUID": (ask(f'{A}.nothing == "x" && {A}.uuid == "{UUIDS[-8]}"'), False),
    "an error after the UUID": (ask(f'{A}.uuid != "{UUIDS[-8]}" && {A}.nothing == "x"'), False),
    "the UUID as a number": (ask(f'{A}.uuid != "{UUIDS[-8]}" && {A}.type.size() == {A}.brand'), False),
    "the UUID compared and searched": (ask(f'{A}.uuid != "x" && {A}.uuid.startsWith("{UUIDS[-8]}")', count=1), True),
    "the UUID below a binding": (ask(f'cel.bind(u, {A}.uuid, u == "{UUIDS[-8]}")', count=1), True),
    "two devices by their UUIDs": (ask(f'{A}.uuid in ["{UUIDS[-1]}", "{UUIDS[-2]}", "{UUIDS[9]}"]'), True),
    "the name misspelt": (ask(f'{A}.uuidd == "{UUIDS[-8]}"', count=1), True),
    "the name in capitals": (ask(f'has({A}.UUID) && {A}.UUID == "{UUIDS[-8]}"', count=1), True),
    "all attributes": (ask(f'{A}.exists(name, name == "uuid")'), True),
    "the same UUID": (ask(constraint={"requests": [], "matchAttribute": f"{fleet.DRIVER}/uuid"}), True),
    "different UUIDs": (ask(constraint={"requests": [], "distinctAttribute": f"{fleet.DRIVER}/uuid"}), True),
    "does not compile": (ask("device.nothing"), True),
}


VARIOUS = {
    **{name: claim for name, (claim, _) in CLAIMS.items()},
    "more memory than there is": ask(f'{C}.memory.compareTo(quantity("100Gi")) >= 0'),
    "less memory than there is": ask(f'{C}.memory.compareTo(quantity("1Gi")) > 0', count=9),
    "as much memory as some have": ask(f'{C}.memory.compareTo(quantity("41000Mi")) > 0'),
    "the memory of one": ask(f'{C}.memory == quantity("{MEMORY}")', count=1),
    "an amount of memory": ask(capacity="1Gi"),
    "too large an amount of memory": ask(capacity="100Gi"),
    "memory and a UUID": ask(f'{C}.memory.compareTo(quantity("100Gi")) < 0 && {A}.uuid == "{UUIDS[-8]}"', count=1),
    "a device that is tainted": ask(f'{A}.uuid == "{UUIDS[-2]}"', count=1),
    "all of a node": ask(count=0),
}


def holding(number: int, pool: int, *devices: str) -> dict[str, Any]:
    """A claim that holds devices."""
    results = [
        {"request": "gpu", "driver": fleet.DRIVER, "pool": f"node-{pool:05}", "device": device} for device in devices
    ]
    claim = ask(count=len(devices))
    return {
        **claim,
        "metadata": {"name": f"holding-{number}", "namespace": "default", "uid": f"holding-{number}"},
        "status": {"allocation": {"devices": {"results": results}}},
    }


@pytest.mark.parametrize("name", CLAIMS)
def test_the_answer_is_the_same(name: str) -> None:
    claim, whole = CLAIMS[name]
    exact, question = read(claim, compact=False)
    shared, same = read(claim, compact=True)
    assert shared.individual == {PerDeviceColumn("attribute", "uuid")} and not exact.individual
    completed = complete(same, shared, SETTINGS)
    assert (completed.slices == exact.slices) is whole
    assert diagnose(same, shared, SETTINGS) == diagnose(question, exact, SETTINGS)


@pytest.mark.parametrize("name", VARIOUS)
def test_the_answer_is_the_same_where_names_amounts_and_times_differ(name: str) -> None:
    claim = VARIOUS[name]
    exact, question = read(claim, compact=False, kind="various")
    shared, same = read(claim, compact=True, kind="various")
    assert shared.individual == {
        NAMES,
        TIMES,
        PerDeviceColumn("attribute", "uuid"),
        PerDeviceColumn("capacity", "memory"),
    }
    assert shared.exact().slices == exact.slices
    assert len({id(entry.devices) for entry in shared.slices[SAMPLE:]}) < SAMPLE
    assert diagnose(same, shared, SETTINGS) == diagnose(question, exact, SETTINGS)


def test_shared_devices_are_exact_where_asked_for() -> None:
    exact, _ = read(ask(), compact=False)
    shared, _ = read(ask(), compact=True)
    assert len({id(entry.devices) for entry in shared.slices}) < NODES
    assert shared.exact().slices == exact.slices
    assert shared.exact().individual == frozenset()


def test_traces_and_the_second_opinion_read_everything() -> None:
    claim = ask(f'{A}.uuid == "{UUIDS[-8]}"', count=1)
    exact, question = read(claim, compact=False)
    shared, same = read(claim, compact=True)
    name = f"node-{NODES - 1:05}/gpu-0"
    assert trace(same, shared, SETTINGS, name) == trace(question, exact, SETTINGS, name)
    assert verify(same, shared, SETTINGS) == verify(question, exact, SETTINGS)
