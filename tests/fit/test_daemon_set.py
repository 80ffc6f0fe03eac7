"""``fit`` and ``explain -f`` of a DaemonSet: a pod for each node that it may run on."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.fit.test_stored import agreeing
from tests.fit.worlds import JSON, existing, item, made_claim, node, pod_spec, running, said, template

OWNER: JSON = {"kind": "DaemonSet", "name": "web", "uid": "o", "apiVersion": "apps/v1"}
EFFECTS = ("NoSchedule", "NoExecute", "PreferNoSchedule")
UNSCHEDULABLE = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}


def daemon_set(gpus: int = 1, **spec: Any) -> JSON:
    labels = {"app": "web"}
    pods = {"metadata": {"labels": labels}, "spec": pod_spec(gpus, **spec)}
    meta = {"name": "web", "namespace": "default"}
    whole = {"selector": {"matchLabels": labels}, "template": pods}
    return {"kind": "DaemonSet", "apiVersion": "apps/v1", "metadata": meta, "spec": whole}


def placed_on(found: JSON) -> dict[str, str]:
    return {each["pod"]["name"]: each["node"] for each in found["placements"]}


@pytest.mark.parametrize("seed", range(20))
def test_a_pod_for_each_node_that_it_may_run_on(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    cluster, wanted, fitting = [template(1)], [], []
    tolerated = random.random() < 0.5
    for name in "abcde"[: random.randint(1, 5)]:
        gpus = random.randint(0, 2)
        made = node(name, gpus)
        labels = {"pool": random.choice(("gpu", "cpu"))}
        made[0]["metadata"]["labels"] |= labels
        taints = [{"key": "x", "value": "y", "effect": effect} for effect in EFFECTS if random.random() < 0.2]
        taints += [UNSCHEDULABLE] if random.random() < 0.2 else []
        made[0]["spec"] = {"taints": taints}
        cluster += made
        repelled = any(each["key"] == "x" and each["effect"] != "PreferNoSchedule" for each in taints)
        if labels["pool"] == "gpu" and (tolerated or not repelled):
            wanted.append(name)
            fitting += [name] if gpus else []
    more: JSON = {"tolerations": [{"key": "x", "operator": "Exists"}]} if tolerated else {}
    found = agreeing(tmp_path, cluster, [daemon_set(nodeSelector={"pool": "gpu"}, **more)])
    assert (found["podCounts"]["wanted"], sorted(placed_on(found).values())) == (len(wanted), fitting)
    assert (found["verdict"] == "can-be-scheduled") is (bool(wanted) and fitting == wanted)


def test_a_node_that_is_full_keeps_only_its_own_pod(tmp_path: Path) -> None:
    cluster = [*node("a", 1), *node("b", 2), template(1), *running("other", "a", [0])]
    found = agreeing(tmp_path, cluster, [daemon_set()])
    assert (found["verdict"], found["podCounts"]["fit"], found["podCounts"]["wanted"]) == (
        "can-be-scheduled-in-part",
        1,
        2,
    )
    assert list(placed_on(found).values()) == ["b"]
    assert not found["dependsOnChance"]


def test_pods_that_run_have_their_nodes(tmp_path: Path) -> None:
    there = existing("web-x", pod_spec(1), "b", OWNER)
    there["metadata"]["labels"] = {"app": "web"}
    cluster = [*node("a", 1), *node("b", 1), template(1), daemon_set(), there, made_claim("web-x", "b", [0])]
    found = agreeing(tmp_path, cluster, [daemon_set()])
    assert (found["verdict"], found["podCounts"]["running"]) == ("can-be-scheduled", 1)
    assert list(placed_on(found).values()) == ["a"]


def test_no_node_may_run_one(tmp_path: Path) -> None:
    found = agreeing(tmp_path, [*node("a", 1), template(1)], [daemon_set(nodeSelector={"pool": "gpu"})])
    why = "1 node lacks the label pool=gpu that its nodeSelector names"
    assert found["answer"] == f"DaemonSet default/web makes no pod: no node may run one ({why})."


@pytest.mark.parametrize("label", [True, False])
def test_which_nodes_have_no_pod_and_why(tmp_path: Path, label: bool) -> None:
    cluster = [*node("a", 1), *node("b", 1), *node("c"), template(1), *running("other", "b", [0])]
    for each in cluster:
        if label and each["kind"] == "Node" and each["metadata"]["name"] != "c":
            each["metadata"]["labels"]["accelerator"] = "gpu"
    found = item(tmp_path, cluster, [daemon_set()])
    assert found["nodesWithoutPod"] == [
        {"node": "b", "cause": "devices-held"},
        {"node": "c", "cause": "no-devices-on-eligible-nodes"},
    ]
    _, out, _ = said(tmp_path, cluster, [daemon_set()])
    assert "  no pod on b: devices-held\n  no pod on c: no-devices-on-eligible-nodes\n" in out
    assert "Pod default/web-1 (for node b) is the first of 2 that do not fit:" in out


@pytest.mark.parametrize("label", [True, False])
def test_a_node_without_devices_gets_no_pod(tmp_path: Path, label: bool) -> None:
    cluster = [*node("a", 1), *node("b", 1), *node("c"), template(1)]
    for each in cluster:
        if label and each["kind"] == "Node" and each["metadata"]["name"] != "c":
            each["metadata"]["labels"]["accelerator"] = "gpu"
    found = item(tmp_path, cluster, [daemon_set()])
    stop = found["stop"]
    assert "the pod is for node c only, for which no device is published; 2 devices" in stop["reason"]
    fix = stop["fix"]["text"]
    assert "spec.template.spec.nodeSelector of DaemonSet default/web" in fix
    assert ("add accelerator: gpu to " in fix, "label the nodes that have such devices" in fix) == (label, not label)
    if label:
        again = item(tmp_path, cluster, [daemon_set(nodeSelector={"accelerator": "gpu"})])
        assert again["verdict"] == "can-be-scheduled"


def former_pods(*names: str) -> list[JSON]:
    """A DaemonSet of a former template, which runs on these nodes, and holds a device of each."""
    pods = [existing(f"web-{name}", {**pod_spec(1), "priorityClassName": ""}, name, OWNER) for name in names]
    for pod in pods:
        pod["metadata"]["labels"] = {"app": "web"}
    return [daemon_set(), *pods, *(made_claim(f"web-{name}", name, [0]) for name in names)]


def rolled(gpus: int = 1, pool: str = "", **strategy: Any) -> JSON:
    """Another template, and how it comes to the nodes."""
    web = daemon_set(gpus, hostname="changed", **({"nodeSelector": {"pool": pool}} if pool else {}))
    web["spec"]["updateStrategy"] = strategy
    return web


def limits(surge: Any, unavailable: Any) -> JSON:
    return {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}


@pytest.mark.parametrize(
    ("devices", "gpus", "strategy", "expected"),
    [
        ((1, 1, 1), 1, {}, (3, 0)),
        ((1, 1, 1), 1, limits(0, "50%"), (3, 0)),
        ((1, 1, 1), 1, limits(1, 0), (0, 3)),
        ((2, 2, 2), 1, limits(1, 0), (3, 0)),
        ((2, 1, 1), 1, limits(2, 0), (1, 2)),
        ((2, 2, 2), 2, limits(1, 0), (0, 3)),
        ((1, 1, 1), 2, {}, (0, 2)),
        ((1, 1, 1), 2, limits(0, 2), (0, 1)),
        ((2, 2, 2), 2, {}, (3, 0)),
    ],
)
def test_pods_of_a_former_template_are_replaced_node_by_node(
    tmp_path: Path, devices: tuple[int, ...], gpus: int, strategy: JSON, expected: tuple[int, int]
) -> None:
    made = [raw for name, number in zip("abc", devices, strict=True) for raw in node(name, number)]
    found = agreeing(tmp_path, [*made, template(1), template(2), *former_pods(*"abc")], [rolled(gpus, **strategy)])
    assert (found["podCounts"]["fit"], found["rollout"]["leftPods"]) == expected
    assert (found["verdict"] == "can-be-scheduled") is (expected[0] == 3)
    eased = strategy in (limits(1, 0), limits(2, 0)) and expected[1]
    assert (
        "Set maxSurge to 0 and maxUnavailable to 1" in found.get("stop", {}).get("fix", {}).get("text", "")
    ) is bool(eased)


def test_where_the_rollout_stops_depends_on_which_nodes_come_first(tmp_path: Path) -> None:
    """Of the one node with too few devices the successor does not fit, and no other old pod ends then."""
    made = [raw for name, number in zip("abc", (1, 2, 2), strict=True) for raw in node(name, number)]
    found = agreeing(tmp_path, [*made, template(1), template(2), *former_pods(*"abc")], [rolled(2)])
    assert (found["podCounts"]["fewest"], found["podCounts"]["most"]) == (0, 2)
    assert "depending on which of the old pods end first" in found["answer"]


def test_a_daemon_set_that_replaces_no_pod_by_itself(tmp_path: Path) -> None:
    made = [raw for name in "ab" for raw in node(name, 1)]
    found = agreeing(tmp_path, [*made, template(1), *former_pods("a")], [rolled(type="OnDelete")])
    assert (found["verdict"], found["formerPods"]) == ("can-be-scheduled", 1)
    assert list(placed_on(found).values()) == ["b"]
    assert "each is replaced once you delete it (OnDelete)" in found["answer"]


def test_pods_on_nodes_that_are_wanted_no_more_end_at_once(tmp_path: Path) -> None:
    made = [raw for name in "ab" for raw in node(name, 1)]
    made[0]["metadata"]["labels"]["pool"] = "gpu"
    found = agreeing(tmp_path, [*made, template(1), *former_pods(*"ab")], [rolled(pool="gpu")])
    assert (found["verdict"], found["podCounts"]["wanted"], found["rollout"]["leftPods"]) == ("can-be-scheduled", 1, 0)
