"""The Score plugins: each rule with its numbers, and who wins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from kubectl_dra.api.claims import Allocation, ResourceClaim
from kubectl_dra.api.pods import Pod
from kubectl_dra.scheduling.binding import ImageLocality, best_nodes
from kubectl_dra.scheduling.dynamic_resources import preference
from kubectl_dra.scheduling.framework import ClusterState, ScorePlugin
from kubectl_dra.scheduling.inter_pod_affinity import InterPodAffinityScore
from kubectl_dra.scheduling.node_resources import BalancedAllocation, FitScore
from kubectl_dra.scheduling.pod_topology_spread import PodTopologySpreadScore
from kubectl_dra.scheduling.reasons import PluginName
from kubectl_dra.scheduling.simple_filters import NodeAffinityScore, TaintTolerationScore
from kubectl_dra.scheduling.volume_binding import VolumeBindingScore
from tools.scheduling.small_clusters import JSON, ZONE, claim, node, pod, state, storage_class, using, volume, within

ROOM = {"cpu": "4", "memory": "8Gi", "pods": "110"}


def made(kind: type[ScorePlugin], raw: JSON, cluster: ClusterState) -> ScorePlugin:
    return kind(Pod.from_json(raw), cluster, list(cluster.nodes.values()))


def scored(kind: type[ScorePlugin], raw: JSON, cluster: ClusterState) -> Mapping[str, int]:
    plugin = made(kind, raw, cluster)
    assert not plugin.skipped
    return plugin.scores()


def asking(cpu: str = "", memory: str = "", **resources: Any) -> JSON:
    requests = {name: value for name, value in (("cpu", cpu), ("memory", memory)) if value}
    return {"containers": [{"name": "c", "image": "i", "resources": {"requests": requests, **resources}}]}


def test_the_emptier_node_wins() -> None:
    cluster = state([node("a", allocatable=ROOM), node("b", allocatable=ROOM), pod("x", "a", **asking("1", "2Gi"))])
    # a: cpu (4-2)/4, memory (8-3)/8; b: cpu (4-1)/4, memory (8-1)/8
    assert scored(FitScore, pod("p", **asking("1", "1Gi")), cluster) == {"a": (50 + 62) // 2, "b": (75 + 87) // 2}


def test_containers_without_requests_count_with_what_is_assumed() -> None:
    cluster = state([node("a", allocatable={"cpu": "1", "memory": "2000Mi"})])
    assert scored(FitScore, pod("p", **asking()), cluster) == {"a": 90}
    full = state([node("a", allocatable={"cpu": "1", "memory": "2000Mi"}), pod("x", "a", **asking("400m"))])
    # cpu (1000-400-100)/1000, memory (2000-200-200)/2000
    assert scored(FitScore, pod("p", **asking()), full) == {"a": (50 + 80) // 2}


def test_requests_of_the_pod_as_a_whole_do_not_count_for_the_pod_that_is_scored() -> None:
    """The gate does not reach the scorer; pods that are there count with them."""
    as_a_whole = {**asking("100m", "80Mi"), "resources": {"requests": {"cpu": "2"}}}
    cluster = state([node("a", allocatable={"cpu": "4", "memory": "800Mi"})])
    assert scored(FitScore, pod("p", **as_a_whole), cluster) == {"a": (97 + 90) // 2}
    cluster = state([node("a", allocatable={"cpu": "4", "memory": "800Mi"}), pod("x", "a", **as_a_whole)])
    assert scored(FitScore, pod("p", **asking("1", "80Mi")), cluster) == {"a": (25 + 80) // 2}


def test_balance_counts_before_and_after_since_1_36() -> None:
    objects = [node("a", allocatable=ROOM), pod("x", "a", **asking("2", "1Gi"))]
    raw = pod("p", **asking("1", "4Gi"))
    # Used parts after: cpu 3/4, memory 5/8; before: 2/4 and 1/8.
    assert scored(BalancedAllocation, raw, state(objects, "1.35")) == {"a": 93}
    assert scored(BalancedAllocation, raw, state(objects, "1.36")) == {"a": 50 + (50 + 93 - 81) // 2}


def test_balance_does_not_score_pods_without_requests() -> None:
    assert made(BalancedAllocation, pod("p", **asking()), state([node("a", allocatable=ROOM)])).skipped


def test_fewer_preferred_taints_win() -> None:
    soft = [{"key": key, "effect": "PreferNoSchedule"} for key in "kl"]
    cluster = state([node("a"), node("b", taints=soft[:1]), node("c", taints=soft)])
    assert scored(TaintTolerationScore, pod("p"), cluster) == {"a": 100, "b": 50, "c": 0}
    tolerating = pod("p", tolerations=[{"key": "k", "operator": "Exists"}])
    assert scored(TaintTolerationScore, tolerating, cluster) == {"a": 100, "b": 100, "c": 0}
    elsewhere = pod("p", tolerations=[{"key": "k", "operator": "Exists", "effect": "NoSchedule"}])
    assert scored(TaintTolerationScore, elsewhere, cluster) == {"a": 100, "b": 50, "c": 0}


def test_preferred_node_affinity_adds_weights() -> None:
    terms = [
        {"weight": 30, "preference": {"matchExpressions": [within(ZONE, "z1", "z2")]}},
        {"weight": 10, "preference": {"matchExpressions": [within(ZONE, "z1")]}},
        {"weight": 99, "preference": {}},
    ]
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}}
    cluster = state([node("a", "z1"), node("b", "z2"), node("c", "z3")])
    assert scored(NodeAffinityScore, pod("p", affinity=affinity), cluster) == {"a": 100, "b": 75, "c": 0}
    assert made(NodeAffinityScore, pod("p"), cluster).skipped


SOFT = {"whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {"matchLabels": {"app": "web"}}}
WEB = {"app": "web"}


def test_soft_spreading_prefers_emptier_domains() -> None:
    objects = [node("a", "z1"), node("b", "z2"), node("c"), pod("x", "a", WEB), pod("y", "a", WEB)]
    raw = pod("p", labels=WEB, topologySpreadConstraints=[{"topologyKey": ZONE, "maxSkew": 1, **SOFT}])
    # Two zones: ln(4) a pod, so a has 2.77, rounded 3; c has no zone and gets nothing.
    assert scored(PodTopologySpreadScore, raw, state(objects)) == {"a": 0, "b": 100, "c": 0}


def test_max_skew_waters_differences_down() -> None:
    objects = [node("a", "z1"), node("b", "z2"), pod("x", "a", WEB), pod("y", "a", WEB)]
    raw = pod("p", labels=WEB, topologySpreadConstraints=[{"topologyKey": ZONE, "maxSkew": 5, **SOFT}])
    # a: 2 * ln(4) + 4, rounded 7; b: 4.
    assert scored(PodTopologySpreadScore, raw, state(objects)) == {"a": 100 * 4 // 7, "b": 100}


def test_only_hard_constraints_leave_no_default_ones() -> None:
    hard = {"topologyKey": ZONE, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
    service = {"kind": "Service", "metadata": {"name": "s", "namespace": "default"}, "spec": {"selector": WEB}}
    raw = pod("p", labels=WEB, topologySpreadConstraints=[hard])
    assert made(PodTopologySpreadScore, raw, state([node("a", "z1"), service])).skipped


def controller(kind: str, selector: JSON) -> JSON:
    return {"kind": kind, "metadata": {"name": "owner", "namespace": "default"}, "spec": {"selector": selector}}


@pytest.mark.parametrize(
    ("kind", "version", "selector"),
    [
        ("Service", "", WEB),
        ("ReplicaSet", "apps/v1", {"matchLabels": WEB}),
        ("StatefulSet", "apps/v1", {"matchExpressions": [within("app", "web")]}),
        ("ReplicationController", "v1", WEB),
    ],
)
def test_pods_of_a_service_or_a_controller_are_spread_by_default(kind: str, version: str, selector: JSON) -> None:
    objects = [node("a"), node("b"), pod("x", "a", WEB), controller(kind, selector)]
    owner: JSON = {"owner": {"kind": kind, "apiVersion": version, "name": "owner", "uid": "u"}} if version else {}
    # By node: ln(4) and maxSkew 3 give 3.39, rounded 3, against 2; no node has a zone.
    assert scored(PodTopologySpreadScore, pod("p", labels=WEB, **owner), state(objects)) == {"a": 66, "b": 100}


def test_without_service_and_controller_nothing_is_spread() -> None:
    other = controller("Service", {"app": "db"})
    assert made(PodTopologySpreadScore, pod("p", labels=WEB), state([node("a"), other])).skipped
    owner = {"kind": "Job", "apiVersion": "batch/v1", "name": "owner", "uid": "u"}
    assert made(PodTopologySpreadScore, pod("p", labels=WEB, owner=owner), state([node("a")])).skipped


def preferring(kind: str, weight: int, app: str = "web", key: str = ZONE) -> JSON:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}
    entry = {"weight": weight, "podAffinityTerm": term}
    return {"affinity": {kind: {"preferredDuringSchedulingIgnoredDuringExecution": [entry]}}}


def test_preferred_affinity_and_anti_affinity_of_the_pod() -> None:
    objects = [
        node("a", "z1"),
        node("b", "z2"),
        node("c", "z3"),
        pod("x", "a", WEB),
        pod("y", "a", WEB),
        pod("z", "b", WEB),
    ]
    assert scored(InterPodAffinityScore, pod("p", **preferring("podAffinity", 5)), state(objects)) == {
        "a": 100,
        "b": 50,
        "c": 0,
    }
    assert scored(InterPodAffinityScore, pod("p", **preferring("podAntiAffinity", 5)), state(objects)) == {
        "a": 0,
        "b": 50,
        "c": 100,
    }


def test_what_existing_pods_prefer_or_require_counts_for_the_pod() -> None:
    required = {"topologyKey": ZONE, "labelSelector": {"matchLabels": WEB}}
    requiring: JSON = {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [required]}}}
    objects = [
        node("a", "z1"),
        node("b", "z2"),
        node("c", "z3"),
        pod("x", "a", **preferring("podAffinity", 4)),
        pod("y", "b", **requiring),
    ]
    # The required term counts 1, the preferred one 4.
    assert scored(InterPodAffinityScore, pod("p", labels=WEB), state(objects)) == {"a": 100, "b": 25, "c": 0}
    assert made(InterPodAffinityScore, pod("p", labels={"app": "db"}), state(objects)).skipped


def test_images_on_the_node_count_by_size_and_spread() -> None:
    def having(*names: str) -> list[JSON]:
        return [{"names": [name], "sizeBytes": 1000 << 20} for name in names]

    cluster = state([node("a", images=having("example.com/i:latest")), node("b", images=having("other:1"))])
    raw = pod("p", containers=[{"name": "c", "image": "example.com/i"}])
    # One of two nodes has it: half its size counts. (500 - 23) / (1000 - 23)
    assert scored(ImageLocality, raw, cluster) == {"a": 48, "b": 0}
    assert made(ImageLocality, pod("p", containers=[{"name": "c", "image": "x@sha256:1"}]), cluster).skipped


@pytest.mark.parametrize(("release", "score"), [("1.36", 98), ("1.37", 49)])
def test_images_of_volumes_count_as_places_since_1_37(release: str, score: int) -> None:
    images = [{"names": ["i:1"], "sizeBytes": 984 << 20}]
    raw = pod(
        "p",
        containers=[{"name": "c", "image": "none:1"}],
        volumes=[{"name": "v", "image": {"reference": "i:1"}}],
    )
    got = scored(ImageLocality, raw, state([node("a", images=images)], release))
    assert got == {"a": 100 * (984 - 23) // (1000 * (1 if release == "1.36" else 2) - 23)}
    assert abs(got["a"] - score) <= 1


def test_storage_that_is_left_counts_since_1_37() -> None:
    objects = [
        node("a", "z1"),
        node("b", "z2"),
        storage_class("local", provisioner="kubernetes.io/no-provisioner"),
        claim("data", size="5Gi", storage_class="local"),
        volume("v1", "20Gi", zone="z1", storage_class="local"),
        volume("v2", "10Gi", zone="z2", storage_class="local"),
    ]
    assert scored(VolumeBindingScore, pod("p", **using("data")), state(objects, "1.37")) == {"a": 75, "b": 50}
    assert made(VolumeBindingScore, pod("p", **using("data")), state(objects, "1.36")).skipped


def test_earlier_subrequests_are_preferred() -> None:
    own = ResourceClaim.from_json(
        {
            "metadata": {"name": "c", "namespace": "default"},
            "spec": {
                "devices": {
                    "requests": [
                        {
                            "name": "r",
                            "firstAvailable": [
                                {"name": "big", "deviceClassName": "x"},
                                {"name": "small", "deviceClassName": "y"},
                            ],
                        },
                        {"name": "plain", "exactly": {"deviceClassName": "x"}},
                    ]
                }
            },
        }
    )

    def preferred(*requests: str) -> int:
        results = [{"request": request, "driver": "d", "pool": "p", "device": "x"} for request in requests]
        return preference(replace(own, allocation=Allocation.from_json({"devices": {"results": results}})))

    assert preferred("r/big", "plain") == 8
    assert preferred("r/small", "plain") == 7
    assert preferred("plain") == 0


def test_the_highest_sum_wins_and_equals_tie() -> None:
    cluster = state([node(name, allocatable=ROOM) for name in "abc"] + [pod("x", "a", **asking("1", "1Gi"))])
    best = best_nodes(Pod.from_json(pod("p", **asking("1", "2Gi"))), cluster, list(cluster.nodes.values()))
    assert best.nodes == ("b", "c") and not best.enough
    assert best.scores["b"][PluginName.TAINT_TOLERATION] == 300
    assert sum(best.scores["b"].values()) > sum(best.scores["a"].values())


def test_devices_decide_between_equal_nodes_since_1_35() -> None:
    raw = Pod.from_json(pod("p", **asking()))
    for release, expected in (("1.34", ("a", "b")), ("1.35", ("b",))):
        cluster = state([node(name, allocatable=ROOM) for name in "ab"], release)
        best = best_nodes(raw, cluster, list(cluster.nodes.values()), {"a": 7, "b": 8})
        assert best.nodes == expected


def test_one_node_and_a_nominated_node_are_not_scored() -> None:
    cluster = state([node(name, allocatable=ROOM) for name in "ab"])
    nodes = list(cluster.nodes.values())
    assert best_nodes(Pod.from_json(pod("p")), cluster, nodes[:1]).nodes == ("a",)
    assert best_nodes(Pod.from_json(pod("p")), cluster, []).nodes == ()
    nominated = Pod.from_json(pod("p", status={"nominatedNodeName": "b"}))
    assert best_nodes(nominated, cluster, nodes).nodes == ("b",)


@pytest.mark.parametrize(("count", "sampled"), [(99, False), (100, False), (300, True)])
def test_in_large_clusters_not_all_nodes_are_looked_at(count: int, sampled: bool) -> None:
    cluster = state([node(f"n{number}", allocatable=ROOM) for number in range(count)])
    assert best_nodes(Pod.from_json(pod("p")), cluster, list(cluster.nodes.values())).enough == (144 if sampled else 0)
