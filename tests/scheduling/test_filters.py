"""The filters that look at a node alone: cordons, taints, affinity, ports, resources, declared features."""

from __future__ import annotations

from typing import Any

import pytest

from kubectl_dra.api.pods import Pod
from kubectl_dra.scheduling.amounts import pod_amounts
from kubectl_dra.scheduling.node_resources import Insufficient, NodeResourcesFit
from kubectl_dra.scheduling.simple_filters import (
    NodeAffinityFilter,
    NodeDeclaredFeatures,
    NodeName,
    NodePorts,
    NodeUnschedulable,
    TaintToleration,
)
from tools.scheduling.small_clusters import JSON, asked, node, pod, refused, state, words

ROOM = {"cpu": "4", "memory": "8Gi", "pods": "10"}
LOOSE = {"key": "k", "operator": "Exists"}


def container(**fields: Any) -> list[JSON]:
    return [{"name": "main", **fields}]


def asking(cpu: str = "1", **more: Any) -> list[JSON]:
    return container(resources={"requests": {"cpu": cpu, **more}})


def test_a_cordon_is_tolerated_like_a_taint() -> None:
    cordoned = {**node("a"), "spec": {"unschedulable": True}}
    cluster = state([cordoned, node("b")])
    assert refused(NodeUnschedulable, pod("p"), cluster) == {"a": "node(s) were unschedulable"}
    tolerant = pod("p", tolerations=[{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}])
    assert refused(NodeUnschedulable, tolerant, cluster) == {}


def test_a_named_node_is_the_only_one() -> None:
    found = refused(NodeName, pod("p", "b"), state([node("a"), node("b")]))
    assert found == {"a": "node(s) didn't match the requested node name"}


@pytest.mark.parametrize(
    ("toleration", "fits"),
    [
        ({}, False),
        ({"key": "k", "operator": "Exists"}, True),
        ({"operator": "Exists"}, True),
        ({"key": "k", "value": "5"}, True),
        ({"key": "k", "operator": "Equal", "value": "6"}, False),
        ({"key": "k", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "k", "operator": "Lt", "value": "6"}, True),
        ({"key": "k", "operator": "Lt", "value": "5"}, False),
        ({"key": "k", "operator": "Gt", "value": "4"}, True),
        ({"key": "k", "operator": "Gt", "value": "04"}, False),
        ({"key": "k", "operator": "Gt", "value": "x"}, False),
    ],
)
def test_taints_and_tolerations(toleration: JSON, fits: bool) -> None:
    tainted = node("a", taints=[{"key": "k", "value": "5", "effect": "NoSchedule"}])
    cluster = state([tainted], gates=["TaintTolerationComparisonOperators"])
    found = refused(TaintToleration, pod("p", tolerations=[toleration] if toleration else []), cluster)
    assert found == ({} if fits else {"a": "node(s) had untolerated taint(s)"})


def test_numbers_are_compared_only_where_the_feature_is_on() -> None:
    tainted = node("a", taints=[{"key": "k", "value": "5", "effect": "NoSchedule"}])
    number = pod("p", tolerations=[{"key": "k", "operator": "Lt", "value": "6"}])
    assert refused(TaintToleration, number, state([tainted]))


@pytest.mark.parametrize(
    ("release", "words"),
    [("1.34.1", "taint {k: v}"), ("1.34.2", "taint(s)"), ("1.34", "taint(s)"), ("1.35.0", "taint(s)")],
)
def test_only_the_first_patches_of_1_34_name_the_taint(release: str, words: str) -> None:
    tainted = node("a", taints=[{"key": "k", "value": "v", "effect": "NoSchedule"}])
    assert refused(TaintToleration, pod("p"), state([tainted], release=release)) == {
        "a": f"node(s) had untolerated {words}"
    }


def test_a_preference_refuses_nobody() -> None:
    tainted = node("a", taints=[{"key": "k", "effect": "PreferNoSchedule"}])
    assert refused(TaintToleration, pod("p"), state([tainted])) == {}


def affinity(*terms: JSON) -> JSON:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    return {"nodeAffinity": required}


def named(*names: str) -> JSON:
    return {"matchFields": [{"key": "metadata.name", "operator": "In", "values": list(names)}]}


def test_node_selector_and_affinity_must_both_hold() -> None:
    nodes = [node("a", labels={"disk": "ssd", "gen": "3"}), node("b", labels={"disk": "ssd", "gen": "1"}), node("c")]
    newer = {"matchExpressions": [{"key": "gen", "operator": "Gt", "values": ["2"]}]}
    found = refused(NodeAffinityFilter, pod("p", nodeSelector={"disk": "ssd"}, affinity=affinity(newer)), state(nodes))
    assert set(found) == {"b", "c"}
    assert set(found.values()) == {"node(s) didn't match Pod's node affinity/selector"}


def test_a_term_that_cannot_be_read_leaves_the_others() -> None:
    broken = {"matchExpressions": [{"key": "gen", "operator": "Gt", "values": ["x"]}]}
    good = {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}
    cluster = state([node("a", labels={"disk": "ssd"}), node("b")])
    assert set(refused(NodeAffinityFilter, pod("p", affinity=affinity(broken, good)), cluster)) == {"b"}


def test_named_nodes_narrow_the_choice_where_every_term_names_some() -> None:
    cluster = state([node("a"), node("b"), node("c")])
    assert asked(NodeAffinityFilter, pod("p", affinity=affinity(named("a"), named("b"))), cluster).nodes == frozenset(
        ("a", "b")
    )
    labelled = {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}
    assert asked(NodeAffinityFilter, pod("p", affinity=affinity(named("a"), labelled)), cluster).nodes is None


def test_terms_that_name_two_nodes_at_once_conflict() -> None:
    both = {"matchFields": [*named("a")["matchFields"], *named("b")["matchFields"]]}
    plugin = asked(NodeAffinityFilter, pod("p", affinity=affinity(both)), state([node("a"), node("b")]))
    assert words(plugin.rejection) == "pod affinity terms conflict"


def port(number: int, **fields: Any) -> JSON:
    return {"containerPort": number, "hostPort": number, **fields}


@pytest.mark.parametrize(
    ("own", "other", "conflict"),
    [
        (port(80), port(80), True),
        (port(80), port(81), False),
        (port(80), port(80, protocol="UDP"), False),
        (port(80, hostIP="10.0.0.1"), port(80, hostIP="10.0.0.2"), False),
        (port(80, hostIP="10.0.0.1"), port(80), True),
        (port(80), {"containerPort": 80}, False),
    ],
)
def test_host_ports(own: JSON, other: JSON, conflict: bool) -> None:
    cluster = state([node("a"), pod("there", "a", containers=container(ports=[other]))])
    found = refused(NodePorts, pod("p", containers=container(ports=[own])), cluster)
    assert bool(found) is conflict


def test_ports_of_sidecars_count_and_those_of_init_containers_do_not() -> None:
    sidecar = {"name": "s", "restartPolicy": "Always", "ports": [port(80)]}
    once = {"name": "i", "ports": [port(81)]}
    cluster = state([node("a"), pod("there", "a", initContainers=[sidecar, once], containers=container())])
    assert refused(NodePorts, pod("p", containers=container(ports=[port(80)])), cluster)
    assert not refused(NodePorts, pod("p", containers=container(ports=[port(81)])), cluster)


def test_every_port_on_the_host_network_is_a_host_port() -> None:
    there = pod("there", "a", hostNetwork=True, containers=container(ports=[{"containerPort": 80}]))
    assert refused(NodePorts, pod("p", containers=container(ports=[port(80)])), state([node("a"), there]))


def test_several_resources_are_told_and_what_the_node_never_has_is_final() -> None:
    cluster = state([node("a", allocatable=ROOM), pod("there", "a", containers=asking("3500m"))])
    plugin = asked(NodeResourcesFit, pod("p", containers=asking("1", memory="9Gi")), cluster)
    found = plugin.filter(cluster.nodes["a"])
    assert words(found) == "Insufficient cpu; Insufficient memory"
    assert found is not None and not found.resolvable
    cpu, memory = found.reasons
    assert isinstance(cpu, Insufficient) and isinstance(memory, Insufficient)
    assert (cpu.requested, cpu.free, cpu.capacity, cpu.never) == (1000, 500, 4000, False)
    assert memory.never


def test_eviction_could_help_where_the_node_is_large_enough() -> None:
    cluster = state([node("a", allocatable=ROOM), pod("there", "a", containers=asking("3500m"))])
    found = asked(NodeResourcesFit, pod("p", containers=asking("1")), cluster).filter(cluster.nodes["a"])
    assert found is not None and found.resolvable


def test_the_number_of_pods_is_a_resource() -> None:
    full = node("a", allocatable={**ROOM, "pods": "1"})
    cluster = state([full, pod("there", "a")])
    assert refused(NodeResourcesFit, pod("p"), cluster) == {"a": "Too many pods"}


def test_pods_that_ended_take_nothing_and_those_that_are_ending_do() -> None:
    ended = pod("ended", "a", containers=asking("4"), status={"phase": "Succeeded"})
    assert not refused(NodeResourcesFit, pod("p", containers=asking("1")), state([node("a", allocatable=ROOM), ended]))
    ending = pod("ending", "a", containers=asking("4"), ending=True)
    assert refused(NodeResourcesFit, pod("p", containers=asking("1")), state([node("a", allocatable=ROOM), ending]))


def test_without_allocatable_a_node_has_enough() -> None:
    assert not refused(NodeResourcesFit, pod("p", containers=asking("1")), state([node("a")]))


@pytest.mark.parametrize(
    ("spec", "status", "cpu"),
    [
        ({"containers": asking("1")}, {}, 1000),
        ({"containers": [*asking("1"), *asking("1500m")]}, {}, 2500),
        ({"containers": asking("1"), "initContainers": asking("3")}, {}, 3000),
        (
            {
                "containers": asking("1"),
                "initContainers": [{**asking("2")[0], "restartPolicy": "Always"}, *asking("3")],
            },
            {},
            5000,
        ),
        ({"containers": asking("1"), "overhead": {"cpu": "250m"}}, {}, 1250),
        ({"containers": asking("1"), "resources": {"requests": {"cpu": "5"}}}, {}, 5000),
        ({"containers": asking("1")}, {"resources": {"requests": {"cpu": "3"}}}, 3000),
        ({"containers": asking("1")}, {"resources": {"requests": {"cpu": "500m"}}}, 1000),
        ({"containers": asking("1")}, {"allocatedResources": {"cpu": "2"}, "resources": {}}, 2000),
        ({"containers": asking("1")}, {"allocatedResources": {"cpu": "2"}}, 1000),
    ],
)
def test_what_a_pod_takes(spec: JSON, status: JSON, cpu: int) -> None:
    statuses = {"containerStatuses": [{"name": "main", **status}]} if status else {}
    assert pod_amounts(Pod.from_json(pod("p", status=statuses, **spec)))["cpu"] == cpu


def test_a_resize_that_cannot_be_done_counts_with_what_the_pod_has() -> None:
    status = {
        "containerStatuses": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}],
        "conditions": [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}],
    }
    assert pod_amounts(Pod.from_json(pod("p", containers=asking("9"), status=status)))["cpu"] == 1000


def test_a_feature_that_the_node_does_not_declare() -> None:
    restarting = pod("p", containers=container(restartPolicyRules=[{"action": "RestartAllContainers"}]))
    able = node("a")
    able["status"]["declaredFeatures"] = ["RestartAllContainersOnContainerExits"]
    cluster = state([able, node("b")])
    assert refused(NodeDeclaredFeatures, restarting, cluster) == {"b": "node(s) didn't match Pod's required features"}
    assert asked(NodeDeclaredFeatures, restarting, state([node("b")], release="1.35")).skipped
