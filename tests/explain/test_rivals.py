"""Pods that want the same devices: whoever is told that it can be scheduled gets devices in the scheduler's order."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest

from kubectl_dra.cli.main import run as command
from tests.ran import ran

JSON = dict[str, Any]
DRA = "resource.k8s.io/v1"


class Waiting(NamedTuple):
    """A pod that waits: since which second, its priority, how many devices of which class it wants."""

    name: str
    second: int = 0
    priority: int = 0
    devices: int = 1
    device_class: str = "gpu"


def _world(nodes: list[int], pods: list[Waiting], held: dict[str, list[JSON]]) -> list[JSON]:
    """Nodes with so many devices each, and pods; ``held`` are the devices of claims that are allocated."""
    objects: list[JSON] = [
        {"apiVersion": DRA, "kind": "DeviceClass", "metadata": {"name": name}, "spec": {}} for name in ("gpu", "any")
    ]
    for index, count in enumerate(nodes):
        name = f"n{index}"
        status = {"allocatable": {"cpu": "64", "memory": "64Gi", "pods": "110"}}
        objects.append({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status})
        spec: JSON = {"driver": "d", "nodeName": name, "devices": [{"name": f"g{number}"} for number in range(count)]}
        spec["pool"] = {"name": name, "generation": 1, "resourceSliceCount": 1}
        objects.append({"apiVersion": DRA, "kind": "ResourceSlice", "metadata": {"name": name}, "spec": spec})
    for pod in pods:
        exactly = {"deviceClassName": pod.device_class, "count": pod.devices}
        meta = {"name": pod.name, "namespace": "default", "uid": f"claim-{pod.name}"}
        claim: JSON = {"apiVersion": DRA, "kind": "ResourceClaim", "metadata": meta}
        claim["spec"] = {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}
        spec = {"priority": pod.priority, "containers": [{"name": "c"}]}
        spec["resourceClaims"] = [{"name": "gpu", "resourceClaimName": pod.name}]
        if pod.name in held:
            results = [{"request": "gpu", **one} for one in held[pod.name]]
            allocation = {"devices": {"results": results}, "allocationTimestamp": "2026-01-01T01:00:00Z"}
            user = {"resource": "pods", "name": pod.name, "uid": f"pod-{pod.name}"}
            claim["status"] = {"allocation": allocation, "reservedFor": [user]}
            spec["nodeName"] = results[0]["pool"]
        made = f"2026-01-01T00:{pod.second // 60:02}:{pod.second % 60:02}Z"
        meta = {"name": pod.name, "namespace": "default", "uid": f"pod-{pod.name}", "creationTimestamp": made}
        phase = {"phase": "Running" if pod.name in held else "Pending"}
        objects += [claim, {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": phase}]
    return objects


def _explain(folder: Path, objects: list[JSON], *words: str) -> tuple[int, JSON]:
    kinds = ["Event", "Namespace", "ResourceQuota", "DeviceTaintRule", "ResourceClaimTemplate"]
    head = {"read": kinds, "serverVersion": "v1.36.4", "readAt": "2026-01-01T02:00:00Z"}
    path = folder / "cluster.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "kubectl-dra": head, "items": objects}))
    code, out, _ = ran("explain", *words, "--snapshot", str(path), "-o", "json")
    return code, json.loads(out)


def _codes(folder: Path, objects: list[JSON], pods: list[Waiting]) -> list[int]:
    return [_explain(folder, objects, f"pod/{pod.name}")[0] for pod in pods]


def test_in_the_order_of_time(tmp_path: Path) -> None:
    pods = [Waiting(f"p{number}", second=number) for number in range(4)]
    objects = _world([2], pods, {})
    assert _codes(tmp_path, objects, pods) == [0, 0, 3, 3]
    _, found = _explain(tmp_path, objects, "pod/p2")
    assert "default/p0, default/p1 want the same devices and come first (by time): nothing is left" in found["answer"]
    _, found = _explain(tmp_path, objects, "pod/p1")
    assert any(note.startswith("3 other pending pods want the same devices: 1 of them is") for note in found["notes"])


def test_priority_comes_before_time(tmp_path: Path) -> None:
    pods = [Waiting("early", second=0), Waiting("late", second=9, priority=100), Waiting("last", second=10)]
    assert _codes(tmp_path, _world([1], pods, {}), pods) == [3, 0, 3]


def test_nobody_knows_who_of_one_second_is_first(tmp_path: Path) -> None:
    pods = [Waiting(f"p{number}") for number in range(4)]
    objects = _world([2], pods, {})
    assert _codes(tmp_path, objects, pods) == [3, 3, 3, 3]
    _, found = _explain(tmp_path, objects, "pod/p2")
    assert "may come first" in found["answer"]


def test_devices_count_and_not_the_name_of_the_class(tmp_path: Path) -> None:
    pods = [Waiting("a", second=0, device_class="any"), Waiting("b", second=1)]
    assert _codes(tmp_path, _world([1], pods, {}), pods) == [0, 3]


def test_who_does_not_fit_takes_nothing(tmp_path: Path) -> None:
    pods = [Waiting("too-many", second=0, priority=9, devices=3), Waiting("b", second=1)]
    assert _codes(tmp_path, _world([2], pods, {}), pods) == [1, 0]


def test_last_tried_counts_as_waiting_since(tmp_path: Path) -> None:
    """A pod that was refused goes to the end of the queue."""
    pods = [Waiting("a", second=0), Waiting("b", second=5)]
    objects = _world([1], pods, {})
    word = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/9 nodes are available."}
    (refused,) = (one for one in objects if one["kind"] == "Pod" and one["metadata"]["name"] == "a")
    refused["status"]["conditions"] = [{**word, "lastTransitionTime": "2026-01-01T00:30:00Z"}]
    assert _codes(tmp_path, objects, pods) == [3, 0]


def test_the_overview_says_how_many(tmp_path: Path) -> None:
    pods = [Waiting(f"p{number}", second=number // 2) for number in range(4)]
    code, found = _explain(tmp_path, _world([2], pods, {}), "-A")
    (item,) = found["items"]
    assert (code, item["served"], len(item["standsFor"])) == (3, 2, 4)
    assert found["answer"] == "4 pods wait, and none is stuck; each of 4 would fit alone, and only 2 of them together."
    code, found = _explain(tmp_path, _world([4], pods, {}), "-A")
    assert code == 0 and "served" not in found["items"][0]


def test_pods_of_several_shapes_are_counted_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One of the two gets the only device, and either may be it."""
    pods = [Waiting("a"), Waiting("b", device_class="any")]
    _, found = _explain(tmp_path, _world([1], pods, {}), "-A")
    assert [item["served"] for item in found["items"]] == [0, 0]
    assert found["answer"] == "2 pods wait, and none is stuck; each of 2 would fit alone, and only 1 of them together."
    assert command(["explain", "-A", "--snapshot", str(tmp_path / "cluster.json")]) == 3
    assert capsys.readouterr().out.count("at least 0 of 1 fit") == 2
    # Who is first decides whether one fits or two.
    pods = [Waiting("a", devices=2), Waiting("b"), Waiting("c", device_class="any")]
    _, found = _explain(tmp_path, _world([2], pods, {}), "-A")
    assert (
        found["answer"] == "3 pods wait, and none is stuck; each of 3 would fit alone, and at least 1 of them together."
    )


@pytest.mark.parametrize("seed", range(25))
def test_as_if_bound_one_after_the_other(tmp_path: Path, seed: int) -> None:
    """Who is told yes is who gets devices when each pod in turn is given what explain shows for it alone."""
    random = Random(seed)
    nodes = [random.randint(1, 3) for _ in range(random.randint(1, 3))]
    pods = []
    for number in range(random.randint(2, 6)):
        wish = random.choice((0, 0, 50)), random.choice((1, 1, 2)), random.choice(("gpu", "any"))
        pods.append(Waiting(f"p{number}", number, *wish))
    objects = _world(nodes, pods, {})
    said = {pod: _explain(tmp_path, objects, f"pod/{pod.name}") for pod in pods}
    held: dict[str, list[JSON]] = {}
    for position, pod in enumerate(sorted(pods, key=lambda one: (-one.priority, one.second))):
        # Those after it do not count yet.
        there = [one for one in pods if one == pod or one.name in held]
        code, found = _explain(tmp_path, _world(nodes, there, held), f"pod/{pod.name}")
        winners = found.get("winners") or []
        chosen = next((one for one in found["placements"] if not winners or one["node"] in winners), None)
        if code == 0 and chosen is not None:
            held[pod.name] = [{key: one[key] for key in ("driver", "pool", "device")} for one in chosen["devices"]]
        foretold, answer = said[pod][0], said[pod][1]["answer"]
        if foretold == 0:
            assert pod.name in held, (position, pod)
        elif foretold == 1 or "nothing is left" in answer:
            assert pod.name not in held, (position, pod)


def test_enough_nodes_are_enough_however_many_wait(tmp_path: Path) -> None:
    """Who comes first takes a node each at most: nothing has to be tried then."""
    pods = [Waiting(f"p{number:03}", second=number) for number in range(150)]
    objects = _world([1] * 200, pods, {})
    code, found = _explain(tmp_path, objects, "pod/p149")
    assert code == 0
    assert any("149 of them are tried before it" in note for note in found["notes"])


def test_too_many_to_be_tried(tmp_path: Path) -> None:
    pods = [Waiting(f"p{number:03}", second=number) for number in range(400)]
    code, found = _explain(tmp_path, _world([1] * 200, pods, {}), "pod/p399")
    assert code == 3 and "what they leave could not be tried" in found["answer"]


def test_what_takes_too_long_stays_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pods = [Waiting("early", second=0), Waiting("late", second=9)]
    monkeypatch.setattr("kubectl_dra.explain.rivals.RIVALS_STEPS", 1)
    code, found = _explain(tmp_path, _world([1], pods, {}), "pod/late")
    assert code == 3 and "what they leave could not be tried" in found["answer"]


def _made_by(objects: list[JSON], name: str, pods: list[str], priority: int = 0) -> list[JSON]:
    """The same objects; these pods are replicas of a Deployment."""
    owner = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": f"{name}-6d4cf56db6",
        "uid": "o",
        "controller": True,
    }
    for raw in objects:
        if raw["kind"] == "Pod" and raw["metadata"]["name"] in pods:
            raw["metadata"] |= {"ownerReferences": [owner], "labels": {"pod-template-hash": "6d4cf56db6"}}
            raw["spec"]["priority"] = priority
    return objects


def _fixes(found: JSON) -> list[JSON]:
    """The fixes that end pods: of the causes, then the further ways."""
    fixes = [cause["fix"] for cause in found["causes"] if "proof" in cause.get("fix", {})] + found.get("fixes", [])
    return [fix for fix in fixes if any(change["kind"] == "release-claims" for change in fix["changes"])]


def _held_by(*names: str) -> dict[str, list[JSON]]:
    return {name: [{"driver": "d", "pool": "n0", "device": f"g{number}"}] for number, name in enumerate(names)}


def test_who_is_not_made_again_is_asked_first(tmp_path: Path) -> None:
    """The replica has held its device for a shorter time, which counts among those alike."""
    pods = [Waiting("web-1", 30), Waiting("bert", 20), Waiting("asks", 40)]
    objects = _made_by(_world([2], pods, _held_by("web-1", "bert")), "web", ["web-1"])
    for held in objects:
        if held["kind"] == "ResourceClaim" and held["metadata"]["name"] == "bert":
            held["status"]["allocation"]["allocationTimestamp"] = "2026-01-01T00:30:00Z"
    first, second = _fixes(_explain(tmp_path, objects, "pod/asks")[1])
    assert [first["text"].split()[2], second["text"].split()[2]] == ["default/bert", "default/web-1"]
    assert "rivals" not in first["proof"] and "rivals" not in second["proof"]


@pytest.mark.parametrize(
    ("second", "priority", "first"), [(10, 0, True), (50, 0, False), (50, 5, True), (10, -1, False)]
)
def test_a_fix_says_which_waiting_pod_may_come_first(tmp_path: Path, second: int, priority: int, first: bool) -> None:
    pods = [Waiting("holds", 1), Waiting("other", second, priority), Waiting("asks", 40)]
    objects = _world([1], pods, _held_by("holds"))
    (fix,) = _fixes(_explain(tmp_path, objects, "pod/asks")[1])
    rivals = [{"namespace": "default", "name": "other"}]
    assert fix["proof"].get("rivals") == (rivals if first else None)
    _, out, _ = ran("explain", "pod/asks", "--snapshot", str(tmp_path / "cluster.json"))
    assert ("another pod that waits may take it first: default/other" in " ".join(out.split())) is first


def test_a_pod_that_wants_what_the_fix_does_not_free_comes_not_first(tmp_path: Path) -> None:
    pods = [Waiting("holds", 1), Waiting("large", 10, devices=5), Waiting("asks", 40)]
    (fix,) = _fixes(_explain(tmp_path, _world([1], pods, _held_by("holds")), "pod/asks")[1])
    assert "rivals" not in fix["proof"]


@pytest.mark.parametrize("priority", [0, 7])
def test_a_successor_of_a_higher_priority_is_tried_first(tmp_path: Path, priority: int) -> None:
    pods = [Waiting("web-1", 1), Waiting("asks", 40)]
    objects = _made_by(_world([1], pods, _held_by("web-1")), "web", ["web-1"], priority)
    (fix,) = _fixes(_explain(tmp_path, objects, "pod/asks")[1])
    # With fewer replicas there is none.
    assert "successorOf" not in fix["proof"]
    for pod in (entry for entry in objects if entry["kind"] == "Pod"):
        pod["spec"]["containers"] = [{"name": "c", "resources": {"requests": {"cpu": "40"}}}]
    (web,) = [entry["spec"] for entry in objects if entry["metadata"]["name"] == "web-1" and entry["kind"] == "Pod"]
    del web["resourceClaims"]
    left = [raw for raw in objects if (raw["kind"], raw["metadata"]["name"]) != ("ResourceClaim", "web-1")]
    ways = _explain(tmp_path, left, "pod/asks")[1]["fixes"]
    (end,) = [way for way in ways if way["changes"][0]["kind"] == "end-pods"]
    assert end["proof"].get("successorOf") == ("Deployment web" if priority else None)


def test_a_new_node_may_serve_others_first(tmp_path: Path) -> None:
    pods = [Waiting("holds", 1), Waiting("other", 10), Waiting("asks", 40)]
    _, found = _explain(tmp_path, _world([1], pods, _held_by("holds")), "pod/asks")
    (new,) = [way for way in found["fixes"] if way["changes"][0]["kind"] == "add-node"]
    assert new["proof"]["rivals"] == [{"namespace": "default", "name": "other"}]


def test_others_compete_for_a_new_node(tmp_path: Path) -> None:
    pods = [Waiting("a", 9, priority=1000), Waiting("b"), Waiting("own", 5)]
    objects = _world([1], [Waiting("h"), *pods], {"h": [{"driver": "d", "pool": "n0", "device": "g0"}]})
    assert [_explain(tmp_path, objects, "pod/own", "--with-node", f"n0,count={count}")[0] for count in (1, 2, 3)] == [
        3,
        3,
        0,
    ]
    _, found = _explain(tmp_path, objects, "pod/own", "--with-node", "n0")
    told = "it would fit with this change, but default/a, default/b want the same devices and come first (by priority"
    assert told in found["answer"]
    assert _explain(tmp_path, objects, "pod/a", "--with-node", "n0")[0] == 0


def test_a_new_node_helps_where_others_take_what_is_there(tmp_path: Path) -> None:
    objects = _world([1], [Waiting("a"), Waiting("own", 5)], {})
    assert _explain(tmp_path, objects, "pod/own")[0] == 3
    code, found = _explain(tmp_path, objects, "pod/own", "--with-node", "n0")
    assert code == 0 and "could be scheduled with this change" in found["answer"]
