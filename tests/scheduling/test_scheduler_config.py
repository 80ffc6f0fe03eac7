"""A KubeSchedulerConfiguration: which plugins run with it, what they are told, and what the scheduler refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kubectl_dra.api.pods import Pod
from kubectl_dra.api.releases import default_features, parse_release
from kubectl_dra.errors import FileError
from kubectl_dra.scheduling.binding import best_nodes
from kubectl_dra.scheduling.framework import ClusterState
from kubectl_dra.scheduling.outcome import Outcome
from kubectl_dra.scheduling.profile import Effect, Point, Profile, default_profile
from kubectl_dra.scheduling.scheduler import Scheduler
from kubectl_dra.scheduling.scheduler_config import SchedulerConfig, read_config
from tools.scheduling.small_clusters import JSON, ZONE, node, pod, state, within

RELEASE = parse_release("1.36")
ROOM = {"cpu": "4", "memory": "8Gi", "pods": "110"}


def config(tmp_path: Path, *profiles: JSON, **fields: Any) -> SchedulerConfig:
    raw: JSON = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": list(profiles),
        **fields,
    }
    path = tmp_path / "scheduler.yaml"
    path.write_text(json.dumps(raw))
    return read_config(str(path), RELEASE)


def profile(tmp_path: Path, plugins: JSON | None = None, args: JSON | None = None, **fields: Any) -> Profile:
    written = [{"name": name, "args": value} for name, value in (args or {}).items()]
    found = config(tmp_path, {"plugins": plugins or {}, "pluginConfig": written}, **fields).profiles
    return found["default-scheduler"]


def with_profile(objects: list[JSON], used: Profile, *unread: str) -> ClusterState:
    made = state(objects, unread=unread)
    gates = frozenset(default_features(RELEASE))
    return ClusterState(made.cluster, RELEASE, gates, None, used, Scheduler(RELEASE, gates).cycle)


def attempt(raw: JSON, objects: list[JSON], used: Profile, *unread: str) -> Outcome:
    return Outcome(Pod.from_json(raw), with_profile(objects, used, *unread))


def disabled(*names: str) -> JSON:
    return {"disabled": [{"name": name} for name in names]}


def enabled(*names: str, weight: int = 0) -> JSON:
    return {"enabled": [{"name": name, **({"weight": weight} if weight else {})} for name in names]}


def test_an_empty_configuration_is_the_default_profile(tmp_path: Path) -> None:
    assert profile(tmp_path) == default_profile(RELEASE)
    assert config(tmp_path).profiles == {"default-scheduler": default_profile(RELEASE)}


def test_several_profiles_by_scheduler_name(tmp_path: Path) -> None:
    found = config(tmp_path, {"schedulerName": "a"}, {"schedulerName": "b", "percentageOfNodesToScore": 7})
    assert (found.profiles["a"].percentage, found.profiles["b"].percentage) == (0, 7)
    assert found.profile_of(Pod.from_json(pod("p"))) is None
    asks = found.profile_of(Pod.from_json(pod("p", schedulerName="b")))
    assert asks is not None and asks.scheduler == "b"


def test_a_filter_that_is_off_refuses_nothing(tmp_path: Path) -> None:
    asked = pod("p", nodeSelector={"a": "b"})
    nodes = [node("n", allocatable=ROOM, taints=[{"key": "k", "effect": "NoSchedule"}])]
    both = profile(tmp_path, {"filter": disabled("NodeAffinity", "TaintToleration")})
    assert attempt(asked, nodes, both).feasible == ("n",)
    one = profile(tmp_path, {"multiPoint": disabled("TaintToleration")})
    assert "didn't match Pod's node affinity" in attempt(asked, nodes, one).message


def test_pre_filter_still_narrows_where_only_the_filter_is_off(tmp_path: Path) -> None:
    term = {"matchFields": [within("metadata.name", "b")]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    used = profile(tmp_path, {"filter": disabled("NodeAffinity")})
    found = attempt(pod("p", affinity=affinity), [node("a", allocatable=ROOM), node("b", allocatable=ROOM)], used)
    assert found.feasible == ("b",)


def test_everything_off_but_what_is_enabled(tmp_path: Path) -> None:
    kept = enabled("PrioritySort", "DefaultBinder", "NodeName")
    used = profile(tmp_path, {"multiPoint": {**kept, **disabled("*")}})
    assert used.plugins[Point.FILTER] == ("NodeName",)
    assert used.plugins[Point.POST_FILTER] == ()
    # Without any PostFilter plugin nothing is said after the counts.
    found = attempt(pod("p", nodeName="x"), [node("n")], used)
    assert found.message == "0/1 nodes are available: 1 node(s) didn't match the requested node name."


def test_the_order_follows_the_configuration(tmp_path: Path) -> None:
    used = profile(tmp_path, {"filter": enabled("NodePorts", "Mine", "TaintToleration")})
    order = used.plugins[Point.FILTER]
    assert order[:2] == ("NodePorts", "TaintToleration")
    assert order[-1] == "Mine"
    assert len(order) == len(default_profile(RELEASE).plugins[Point.FILTER]) + 1
    (unknown,) = used.unmodelled
    assert (unknown.subject, unknown.effect, unknown.point) == ("Mine", Effect.FILTERS, "filter")


def test_the_first_filter_by_the_profile_names_the_reason(tmp_path: Path) -> None:
    asked = pod("p", nodeSelector={"a": "b"})
    nodes = [node("n", allocatable=ROOM, taints=[{"key": "k", "effect": "NoSchedule"}])]
    assert "untolerated taint" in attempt(asked, nodes, default_profile(RELEASE)).message
    first = profile(tmp_path, {"filter": enabled("NodeAffinity")})
    assert "didn't match Pod's node affinity" in attempt(asked, nodes, first).message


def test_without_preemption_nobody_is_evicted(tmp_path: Path) -> None:
    cpu: JSON = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "3"}}}]}
    objects = [node("n", allocatable=ROOM), pod("low", "n", **cpu)]
    asked = pod("p", priority=10, **cpu)
    preempting = attempt(asked, objects, default_profile(RELEASE)).preemption
    assert preempting is not None and preempting.best
    found = attempt(asked, objects, profile(tmp_path, {"postFilter": disabled("DefaultPreemption")}))
    assert found.preemption is None
    assert found.message == "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate"


def test_added_affinity_counts_for_every_pod(tmp_path: Path) -> None:
    term = {"matchExpressions": [within("pool", "gpu")]}
    added = {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]},
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 5, "preference": term}],
    }
    used = profile(tmp_path, args={"NodeAffinity": {"addedAffinity": added}})
    found = attempt(pod("p"), [node("n", allocatable=ROOM), node("g", labels={"pool": "x"})], used)
    assert "2 node(s) didn't match scheduler-enforced node affinity" in found.message


def test_ignored_resources(tmp_path: Path) -> None:
    requests = {"example.com/a": "1", "other.com/b": "1", "third.com/c": "1", "example.com/d": "0"}
    asked = pod("p", containers=[{"name": "c", "resources": {"requests": requests, "limits": requests}}])
    args = {"ignoredResources": ["example.com/a"], "ignoredResourceGroups": ["other.com"]}
    extender = {"urlPrefix": "http://x", "managedResources": [{"name": "third.com/c", "ignoredByScheduler": True}]}
    nodes = [node("n", allocatable=ROOM)]
    used = profile(tmp_path, args={"NodeResourcesFit": args})
    assert attempt(asked, nodes, used).message.startswith("0/1 nodes are available: 1 Insufficient third.com/c.")
    assert attempt(asked, nodes, profile(tmp_path, args={"NodeResourcesFit": args}, extenders=[extender])).fits


def test_default_constraints_that_must_hold(tmp_path: Path) -> None:
    constraint = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
    args = {"defaultingType": "List", "defaultConstraints": [constraint]}
    used = profile(tmp_path, args={"PodTopologySpread": args})
    service = {"kind": "Service", "metadata": {"name": "s", "namespace": "default"}, "spec": {"selector": {"app": "x"}}}
    nodes = [node("a", "za", allocatable=ROOM), node("b", "zb", allocatable=ROOM)]
    objects = [*nodes, service, pod("one", "a", {"app": "x"})]
    assert attempt(pod("p", labels={"app": "x"}), objects, used).feasible == ("b",)
    assert attempt(pod("p", labels={"app": "y"}), objects, used).feasible == ("a", "b")
    assert attempt(pod("p", labels={"app": "x"}), objects, default_profile(RELEASE)).feasible == ("a", "b")


def test_default_constraints_by_services_that_nobody_read(tmp_path: Path) -> None:
    constraint = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
    args = {"defaultingType": "List", "defaultConstraints": [constraint]}
    used = profile(tmp_path, args={"PodTopologySpread": args})
    found = attempt(pod("p", labels={"app": "x"}), [node("a", "za", allocatable=ROOM)], used, "Service")
    assert found.undetermined == ("a",)
    # What another filter refuses before is refused whatever the Services select.
    asked = pod("p", labels={"app": "x"}, nodeSelector={"a": "b"})
    assert attempt(asked, [node("a", "za", allocatable=ROOM)], used, "Service").undetermined == ()
    assert attempt(pod("p"), [node("a", "za", allocatable=ROOM)], used, "Service").fits


@pytest.mark.parametrize(
    ("strategy", "winner"),
    [
        ({"type": "LeastAllocated"}, "empty"),
        ({"type": "MostAllocated"}, "used"),
        (
            {
                "type": "RequestedToCapacityRatio",
                "requestedToCapacityRatio": {
                    "shape": [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]
                },
            },
            "used",
        ),
        ({"type": "MostAllocated", "resources": [{"name": "memory", "weight": 3}]}, "empty"),
    ],
)
def test_scoring_strategies(strategy: JSON, winner: str, tmp_path: Path) -> None:
    plugins = {"score": {**enabled("NodeResourcesFit"), **disabled("*")}}
    used = profile(tmp_path, plugins, {"NodeResourcesFit": {"scoringStrategy": strategy}})
    cpu: JSON = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "2", "memory": "1Mi"}}}]}
    nodes = [node("empty", allocatable={**ROOM, "memory": "6Gi"}), node("used", allocatable=ROOM)]
    cluster = with_profile([*nodes, pod("x", "used", **cpu)], used)
    asked = Pod.from_json(pod("p", containers=[{"name": "c"}]))
    assert best_nodes(asked, cluster, list(cluster.nodes.values())).nodes == (winner,)


def test_weights_and_scores_that_are_off(tmp_path: Path) -> None:
    used = profile(tmp_path, {"score": {**enabled("ImageLocality", weight=9), **disabled("NodeAffinity")}})
    assert used.weights["ImageLocality"] == 9
    assert used.weights["TaintToleration"] == 3
    assert "NodeAffinity" not in used.plugins[Point.SCORE]
    # Enabled again without a weight, a plugin has 1, whatever it had by default.
    assert profile(tmp_path, {"multiPoint": enabled("NodeAffinity")}).weights["NodeAffinity"] == 1


def test_how_many_nodes_are_scored(tmp_path: Path) -> None:
    cluster = with_profile([node(f"n{index}") for index in range(300)], profile(tmp_path))
    nodes = list(cluster.nodes.values())
    asked = Pod.from_json(pod("p"))
    assert best_nodes(asked, cluster, nodes).enough == 144
    all_of_them = with_profile([node(f"n{i}") for i in range(300)], profile(tmp_path, percentageOfNodesToScore=100))
    assert best_nodes(asked, all_of_them, nodes).exact


def test_what_is_not_modelled_by_its_effect(tmp_path: Path) -> None:
    plugins = {"score": enabled("Cost"), "postFilter": enabled("Evict"), "queueSort": {}, "postBind": enabled("Tell")}
    extenders = [
        {"urlPrefix": "http://all", "filterVerb": "f", "prioritizeVerb": "p", "weight": 1},
        {"urlPrefix": "http://some", "filterVerb": "f", "managedResources": [{"name": "example.com/x"}]},
    ]
    used = profile(tmp_path, plugins, extenders=extenders)
    asked = Pod.from_json(pod("p"))
    assert used.unknown(Effect.SCORES, asked) == ("Cost", "http://all")
    assert used.unknown(Effect.EVICTS, asked) == ("Evict",)
    assert used.unknown(Effect.FILTERS, asked) == ("http://all",)


def test_extension_points_that_need_each_other(tmp_path: Path) -> None:
    used = profile(tmp_path, {"preFilter": disabled("NodePorts"), "reserve": disabled("DynamicResources")})
    assert used.unknown(Effect.FILTERS, Pod.from_json(pod("p"))) == (
        "NodePorts without its preFilter",
        "DynamicResources without its reserve",
    )


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        ({"kind": "ConfigMap"}, "is a ConfigMap; give the KubeSchedulerConfiguration in it as a file of its own"),
        ({"kind": "Pod"}, "is Pod, not a KubeSchedulerConfiguration"),
        (
            {"apiVersion": "kubescheduler.config.k8s.io/v1beta3"},
            "is KubeSchedulerConfiguration kubescheduler.config.k8s.io/v1beta3; "
            "kubescheduler.config.k8s.io/v1 is known",
        ),
        ({"profiles": 1}, "profiles: Expected `array`, got `int`"),
        ({"profile": []}, "Object contains unknown field `profile`"),
        ({"percentageOfNodesToScore": 101}, "percentageOfNodesToScore: 101 is not from 0 to 100"),
        ({"profiles": [{}, {}]}, "profiles[0].schedulerName: is needed where there are several profiles"),
        (
            {"profiles": [{"schedulerName": "a"}, {"schedulerName": "a"}]},
            "profiles[1].schedulerName: a has a profile already",
        ),
        (
            {"profiles": [{"plugins": {"filter": {"enabled": [{"name": "ImageLocality"}]}}}]},
            "profiles[0].plugins: ImageLocality takes no part in filter",
        ),
        (
            {"profiles": [{"plugins": {"filter": {"enabled": [{"name": "A"}, {"name": "A"}]}}}]},
            "profiles[0].plugins: A is enabled twice at filter",
        ),
        ({"profiles": [{"plugins": {"bind": disabled("*")}}]}, "profiles[0].plugins: no bind plugin is left"),
        (
            {"profiles": [{"plugins": {"multiPoint": disabled("*")}}]},
            "profiles[0].plugins: one queueSort plugin is needed, not 0",
        ),
    ],
)
def test_what_the_scheduler_does_not_start_with(raw: JSON, problem: str, tmp_path: Path) -> None:
    with pytest.raises(FileError) as error:
        config(tmp_path, **raw)
    assert str(error.value) == f"{tmp_path}/scheduler.yaml: {problem}".replace("`", '"')


@pytest.mark.parametrize(
    ("plugin", "args", "problem"),
    [
        ("NodeName", {"x": 1}, ".args: NodeName takes no arguments"),
        ("NodeAffinity", {"kind": "FitArgs"}, ".args.kind: is FitArgs, not NodeAffinityArgs"),
        ("InterPodAffinity", {"hardPodAffinityWeight": 101}, ".args.hardPodAffinityWeight: 101 is not from 0 to 100"),
        ("InterPodAffinity", {"hard": 1}, '.args: Object contains unknown field "hard"'),
        (
            "DefaultPreemption",
            {"minCandidateNodesAbsolute": -1},
            ".args.minCandidateNodesAbsolute: -1 is not at least 0",
        ),
        ("DynamicResources", {"filterTimeout": "soon"}, '.args.filterTimeout: "soon" is no duration such as 10s'),
        ("DynamicResources", {"bindingTimeout": "5ms"}, ".args.bindingTimeout: 5ms is less than 1s"),
        ("PodTopologySpread", {"defaultingType": "Some"}, '.args.defaultingType: "Some" is none of System, List'),
        (
            "PodTopologySpread",
            {"defaultConstraints": [{"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}]},
            ".args.defaultingType: must be List where there are defaultConstraints",
        ),
        (
            "PodTopologySpread",
            {"defaultingType": "List", "defaultConstraints": [{"maxSkew": 1, "topologyKey": "z"}]},
            '.args.defaultConstraints[0].whenUnsatisfiable: "" is none of DoNotSchedule, ScheduleAnyway',
        ),
        (
            "NodeResourcesFit",
            {"scoringStrategy": {"type": "Least"}},
            '.args.scoringStrategy.type: "Least" is none of LeastAllocated, MostAllocated, RequestedToCapacityRatio',
        ),
        (
            "NodeResourcesFit",
            {"scoringStrategy": {"type": "RequestedToCapacityRatio"}},
            ".args.scoringStrategy.requestedToCapacityRatio.shape: at least one point is needed",
        ),
        (
            "NodeResourcesBalancedAllocation",
            {"resources": [{"name": "cpu", "weight": 2}]},
            ".args.resources[0].weight: must be 1",
        ),
    ],
)
def test_arguments_that_a_plugin_refuses(plugin: str, args: JSON, problem: str, tmp_path: Path) -> None:
    with pytest.raises(FileError) as error:
        profile(tmp_path, args={plugin: args})
    assert str(error.value) == f"{tmp_path}/scheduler.yaml: profiles[0].pluginConfig[0]{problem}"


@pytest.mark.parametrize(("timeout", "endless"), [("0", True), ("0s", True), ("10s", False), ("1m0s", False)])
def test_a_search_for_devices_without_end(timeout: str, endless: bool, tmp_path: Path) -> None:
    used = profile(tmp_path, args={"DynamicResources": {"filterTimeout": timeout}})
    assert used.args.dynamic_resources.takes_its_time is endless


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="cannot be read: No such file"):
        read_config(str(tmp_path / "none.yaml"), RELEASE)
    empty = tmp_path / "two.yaml"
    empty.write_text("a: 1\n---\nb: 2\n")
    with pytest.raises(FileError, match="holds 2 documents instead of one KubeSchedulerConfiguration"):
        read_config(str(empty), RELEASE)
