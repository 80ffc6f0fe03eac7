"""Which nodes may run a pod: cordons, node taints, nodeSelector and required node affinity."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from kubectl_dra.api.nodes import Node, NodeTaint
from kubectl_dra.api.pods import Pod
from kubectl_dra.api.releases import Release
from kubectl_dra.cluster.cluster import Cluster
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.explain.node_reasons import AffinityDiffers, LabelDiffers, NodeCordoned, Untolerated, reason_of
from kubectl_dra.explain.phrase import Words
from kubectl_dra.explain.remedies.node_rules import toleration_for
from kubectl_dra.scheduling.chain import Chain
from kubectl_dra.scheduling.framework import Plugin
from kubectl_dra.scheduling.scheduler import Scheduler
from kubectl_dra.scheduling.simple_filters import NodeAffinityFilter, NodeUnschedulable, TaintToleration

JSON = dict[str, Any]


def pod(**spec: Any) -> Pod:
    return Pod.from_json({"metadata": {"name": "p", "namespace": "n"}, "spec": spec})


def node(*taints: str, labels: JSON | None = None, unschedulable: bool = False) -> Node:
    parsed = []
    for text in taints:
        key_value, effect = text.rsplit(":", 1)
        key, _, value = key_value.partition("=")
        parsed.append({"key": key, "value": value, "effect": effect})
    spec = {"taints": parsed, "unschedulable": unschedulable}
    return Node.from_json({"metadata": {"name": "n1", "labels": labels or {}}, "spec": spec})


def rejections(pod: Pod, node: Node) -> list[Words]:
    """What each of the scheduler's filters for placement rules says against the node, in our words."""
    state = Scheduler(Release(1, 36), frozenset()).sees(Cluster(Snapshot(nodes={node.name: node})))
    kinds: tuple[type[Plugin], ...] = (NodeUnschedulable, TaintToleration, NodeAffinityFilter)
    return [
        reason_of(found)
        for found in Chain(pod, state, [kind(pod, state) for kind in kinds]).every(state.nodes[node.name])
    ]


def rejection(pod: Pod, node: Node) -> Words | None:
    """What the first filter says."""
    return next(iter(rejections(pod, node)), None)


def affinity(*terms: JSON, preferred: bool = False) -> JSON:
    if preferred:
        rule = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": terms[0]}]}
        return {"nodeAffinity": rule}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}}


ZONE_A: JSON = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
ZONE_B: JSON = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["b"]}]}


def test_a_plain_pod_on_a_plain_node() -> None:
    assert rejection(pod(), node()) is None


REQUIRED: JSON = {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]}


@pytest.mark.parametrize(
    ("taint", "toleration", "tolerated"),
    [
        ("k=v:NoSchedule", {"key": "k", "operator": "Equal", "value": "v", "effect": "NoSchedule"}, True),
        ("k=v:NoSchedule", {"key": "k", "value": "v"}, True),
        ("k=v:NoSchedule", {"key": "k", "value": "w"}, False),
        ("k=v:NoSchedule", {"key": "k", "operator": "Exists"}, True),
        ("k=v:NoSchedule", {"key": "other", "operator": "Exists"}, False),
        ("k=v:NoSchedule", {"operator": "Exists"}, True),
        ("k:NoSchedule", {"key": "k"}, True),
        ("k=v:NoExecute", {"key": "k", "operator": "Exists", "effect": "NoSchedule"}, False),
        ("k=v:NoExecute", {"key": "k", "operator": "Exists", "effect": "NoExecute"}, True),
        ("k=v:NoExecute", {"key": "k", "operator": "Exists"}, True),
    ],
)
def test_taints_and_tolerations(taint: str, toleration: JSON, tolerated: bool) -> None:
    expected = None if tolerated else Untolerated(node(taint).taints[0])
    assert rejection(pod(tolerations=[toleration]), node(taint)) == expected


def test_a_preference_not_to_schedule_does_not_reject() -> None:
    assert rejection(pod(), node("k=v:PreferNoSchedule")) is None


@pytest.mark.parametrize("taint", ["k=v:NoSchedule", "k:NoExecute", "gpu=yes:NoSchedule"])
def test_the_toleration_offered_for_a_taint_tolerates_it(taint: str) -> None:
    offered = yaml.safe_load(toleration_for(node(taint).taints[0]))
    assert rejection(pod(tolerations=offered), node(taint)) is None


def test_cordoned() -> None:
    cordoned = node(unschedulable=True)
    assert rejection(pod(), cordoned) == NodeCordoned()
    tolerating = pod(tolerations=[{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}])
    assert rejection(tolerating, cordoned) is None


def test_node_selector() -> None:
    picky = pod(nodeSelector={"zone": "a"})
    assert rejection(picky, node(labels={"zone": "a"})) is None
    assert rejection(picky, node(labels={"zone": "b"})) == LabelDiffers("zone", "a")
    assert rejection(picky, node()) == LabelDiffers("zone", "a")


def test_required_affinity() -> None:
    in_b = node(labels={"zone": "b"})
    assert rejection(pod(affinity=affinity(ZONE_A)), in_b) == AffinityDiffers("zone In (a)")
    assert rejection(pod(affinity=affinity(ZONE_A, ZONE_B)), in_b) is None, "one term is enough"
    assert rejection(pod(affinity=affinity(ZONE_A, preferred=True)), in_b) is None, "a preference rejects nothing"


def test_affinity_to_a_node_by_name() -> None:
    field = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n2"]}]}
    assert rejection(pod(affinity=affinity(field)), node()) == AffinityDiffers("node n2")


def test_affinity_that_cannot_be_parsed() -> None:
    broken = {"matchExpressions": [{"key": "zone", "operator": "Near", "values": ["a"]}]}
    assert isinstance(rejection(pod(affinity=affinity(broken)), node()), AffinityDiffers)
    assert rejection(pod(affinity=affinity(broken, ZONE_A)), node(labels={"zone": "a"})) is None


def test_all_reasons_in_the_schedulers_order() -> None:
    found = rejections(pod(nodeSelector={"zone": "a"}), node("k=v:NoSchedule", unschedulable=True))
    assert found == [
        NodeCordoned(),
        Untolerated(NodeTaint("k", "v", "NoSchedule")),
        LabelDiffers("zone", "a"),
    ]
