"""Recorded clusters: devices that share all they can get the answers of devices that share nothing."""

from __future__ import annotations

from itertools import islice
from typing import Any
from unittest import mock

import pytest
from msgspec.structs import replace

from kubectl_dra.cli.explain.questions import fleet
from kubectl_dra.cluster import device_lists
from kubectl_dra.cluster.files import read_snapshot
from kubectl_dra.explain.diagnosis import Diagnosis
from kubectl_dra.explain.pipeline import diagnose
from kubectl_dra.explain.question.resolve import about_pod
from tools.recorder.recorded import lines
from tools.sharing import DATA, compared, settings_of, text_of

JSON = dict[str, Any]
GPU = "gpu.example.com"
UUID = f'device.attributes["{GPU}"].uuid'


@pytest.mark.parametrize(
    ("corpus", "step"),
    [("alloc-1.34.jsonl.gz", 8), ("alloc-1.36.jsonl.gz", 16), ("pods.jsonl.gz", 8), ("pod-node-resources.jsonl.gz", 2)],
)
def test_the_answers_are_the_same(corpus: str, step: int) -> None:
    asked = apart = 0
    for case in islice(lines(DATA / corpus), 0, None, step):
        count, kept, different = compared(case)
        asked, apart = asked + count, apart + kept
        assert not different
    assert asked > 20 and apart > 10


def cluster(*objects: JSON) -> JSON:
    """Two nodes of two devices that differ in nothing but their names and UUIDs, with more objects."""
    items: list[JSON] = [{"kind": "DeviceClass", "apiVersion": "resource.k8s.io/v1", "metadata": {"name": "gpu"}}]
    for node in ("a", "b"):
        devices = [
            {"name": f"gpu-{node}-{index}", "attributes": {"uuid": {"string": f"{node}-{index}"}}} for index in range(2)
        ]
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": GPU, "nodeName": node, "pool": pool, "devices": devices}
        ready = {"allocatable": {"cpu": "8", "memory": "8Gi", "pods": "10"}}
        items.append({"kind": "Node", "apiVersion": "v1", "metadata": {"name": node}, "status": ready})
        items.append(
            {"kind": "ResourceSlice", "apiVersion": "resource.k8s.io/v1", "metadata": {"name": node}, "spec": spec}
        )
    return {"release": "1.36", "snapshot": {"kind": "List", "apiVersion": "v1", "items": [*items, *objects]}}


def claim(name: str, selector: str = "", held: tuple[str, ...] = ()) -> JSON:
    """A claim that asks for a device, or holds some of node a or b."""
    exactly = {"deviceClassName": "gpu", "selectors": [{"cel": {"expression": selector}}] if selector else []}
    results = [{"request": "gpu", "driver": GPU, "pool": device[4], "device": device} for device in held]
    return {
        "kind": "ResourceClaim",
        "apiVersion": "resource.k8s.io/v1",
        "metadata": {"name": name, "namespace": "default", "uid": name},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}},
        "status": {"allocation": {"devices": {"results": results}}} if held else {},
    }


def member(name: str) -> JSON:
    """A pod of a gang with the claim of its name."""
    spec = {
        "schedulingGroup": {"podGroupName": "train"},
        "containers": [{"name": "c", "image": "i"}],
        "resourceClaims": [{"name": "gpu", "resourceClaimName": name}],
    }
    meta = {"name": name, "namespace": "default", "uid": name}
    return {"kind": "Pod", "apiVersion": "v1", "metadata": meta, "spec": spec, "status": {"phase": "Pending"}}


def gang(*selectors: str) -> JSON:
    """A cluster with a gang of pods whose claims have these selectors."""
    policy = {"schedulingPolicy": {"gang": {"minCount": len(selectors)}}}
    meta = {"name": "train", "namespace": "default"}
    group = {"kind": "PodGroup", "apiVersion": "scheduling.k8s.io/v1alpha2", "metadata": meta, "spec": policy}
    names = [f"p{number}" for number in range(len(selectors))]
    return cluster(group, *map(claim, names, selectors), *map(member, names))


@pytest.mark.parametrize("wanted", ["a-0", "b-1", "none"])
def test_what_other_pods_of_a_gang_ask_for(wanted: str) -> None:
    asked, apart, different = compared(gang("", f'{UUID} == "b-1"', f'{UUID} == "{wanted}"'))
    assert (asked, apart, different) == (6, 1, [])


def test_what_the_pod_of_a_gang_asks_for_beside_a_supposed_claim() -> None:
    case = gang("", f'{UUID} == "b-1"', "", "")

    def answer(*, compact: bool) -> Diagnosis:
        snapshot = read_snapshot(["-"], stdin=text_of(case), compact=compact)
        plain, wanting = snapshot.claims["default", "p0"], snapshot.claims["default", "p1"]
        question = about_pod(snapshot.pods["default", "p1"], snapshot, exists=True)
        supposed = replace(question.claims[0], claim=replace(wanting, requests=plain.requests))
        return diagnose(replace(question, claims=(supposed,)), snapshot, settings_of(case))

    with mock.patch.object(device_lists, "SAMPLE", 1):
        assert answer(compact=True) == answer(compact=False)


def test_on_which_of_devices_that_are_one_object_a_selector_fails() -> None:
    """The first of them is held, so the scheduler does not ask about it."""
    held = claim("held", held=("gpu-a-0", "gpu-a-1", "gpu-b-0"))
    asked, apart, different = compared(cluster(held, claim("failing", f'{UUID.replace("uuid", "none")} == "x"')))
    assert (asked, apart, different) == (2, 1, [])


def test_devices_are_counted_by_classes_that_read_their_own_values() -> None:
    case = cluster()
    case["snapshot"]["items"][0]["spec"] = {"selectors": [{"cel": {"expression": f'{UUID} == "b-1"'}}]}
    text, settings = text_of(case), settings_of(case)
    with mock.patch.object(device_lists, "SAMPLE", 1):
        shown = fleet(None, read_snapshot(["-"], stdin=text, compact=True), settings)
    assert shown is not None
    assert [(row.id.device, row.classes) for row in shown.rows if row.classes] == [("gpu-b-1", ("gpu",))]
