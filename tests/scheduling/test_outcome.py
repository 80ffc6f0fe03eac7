"""One attempt as a whole: the chain, preemption, the queue, and the condition's message."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_dra.allocation.budgets import Budget
from kubectl_dra.api.pods import Pod
from kubectl_dra.api.releases import default_features, parse_release
from kubectl_dra.cluster.cluster import Cluster
from kubectl_dra.scheduling.binding import bound
from kubectl_dra.scheduling.dynamic_resources import ClaimsAlone
from kubectl_dra.scheduling.framework import ClusterState
from kubectl_dra.scheduling.gang_scheduling import kept_out
from kubectl_dra.scheduling.outcome import Outcome
from kubectl_dra.scheduling.scheduler import Scheduler
from tests.taint.world import DRIVER, claim, device_class, gpu, slice_of, world
from tests.taint.world import pod as pending
from tools.scheduling.small_clusters import JSON, node, pod, state

ROOM = {"cpu": "4", "pods": "10"}


def asking(cpu: str) -> list[JSON]:
    return [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]


def outcome(objects: list[JSON], release: str = "1.36", **spec: Any) -> Outcome:
    spec.setdefault("containers", asking("2"))
    return Outcome(Pod.from_json(pod("p", **spec)), state(objects, release))


def scheduler(release: str = "1.36.4") -> Scheduler:
    parsed = parse_release(release)
    return Scheduler(parsed, frozenset(default_features(parsed)), parsed.patch)


def test_the_first_filter_that_refuses_names_the_reason() -> None:
    tainted = node("a", allocatable={"cpu": "1", "pods": "1"}, taints=[{"key": "k", "effect": "NoSchedule"}])
    found = outcome([tainted, node("b", allocatable={"cpu": "1", "pods": "9"})])
    assert found.message == (
        "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint(s). no new claims to deallocate, "
        "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
    )


def test_releases_from_1_37_on_do_not_speak_of_claims() -> None:
    found = outcome([node("a", allocatable={"cpu": "1", "pods": "9"})], "1.37")
    assert found.message == (
        "0/1 nodes are available: 1 Insufficient cpu. "
        "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
    )


def test_no_nodes() -> None:
    assert outcome([]).message == "no nodes available to schedule pods"


def test_counts_are_sorted_as_text() -> None:
    objects = [node(f"n{i}", allocatable={"cpu": "1", "pods": "9"}) for i in range(10)]
    objects += [node(f"m{i}", taints=[{"key": "k", "effect": "NoSchedule"}]) for i in range(2)]
    message = outcome(objects).message
    assert message.startswith("0/12 nodes are available: 10 Insufficient cpu, 2 node(s) had untolerated taint(s). ")


def test_named_nodes_leave_the_others_unasked() -> None:
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    small = {"cpu": "1", "pods": "9"}
    found = outcome([node(name, allocatable=small) for name in ("a", "b", "c")], affinity=affinity)
    assert found.message.startswith(
        "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't satisfy plugin(s) [NodeAffinity]. "
    )


def test_a_missing_volume_claim_refuses_the_pod_before_devices_are_looked_at() -> None:
    volumes = [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]
    found = outcome([node("a")], volumes=volumes)
    assert found.message == '0/1 nodes are available: persistentvolumeclaim "data" not found. not found'


def lower(name: str, on: str, cpu: str = "3", priority: int = 1, **spec: Any) -> JSON:
    return pod(name, on, priority=priority, containers=asking(cpu), **spec)


def best(found: Outcome) -> dict[str, list[str]]:
    assert found.preemption is not None
    return {entry.node: [victim.metadata.name for victim in entry.victims] for entry in found.preemption.best}


def test_the_least_important_and_fewest_pods_are_evicted() -> None:
    nodes = [node("a", allocatable=ROOM), node("b", allocatable=ROOM)]
    held = [lower("x", "a", priority=5), lower("y", "b", priority=3)]
    found = outcome([*nodes, *held], priority=10)
    assert best(found) == {"b": ["y"]}
    assert found.message == "0/2 nodes are available: 2 Insufficient cpu."
    assert not found.fits


def test_1_37_says_where_it_will_evict() -> None:
    found = outcome([node("a", allocatable=ROOM), lower("x", "a")], "1.37", priority=10)
    assert found.message == (
        "0/1 nodes are available: 1 Insufficient cpu. "
        "preemption: found a potential placement for pod on node a, preempting 1 victims"
    )


def test_1_37_names_any_of_those_that_it_likes_equally() -> None:
    objects = [node("a", allocatable=ROOM), node("b", allocatable=ROOM), lower("x", "a"), lower("y", "b")]
    found = outcome(objects, "1.37", priority=10)
    assert [text.partition(" on node ")[2] for text in found.messages] == [
        "a, preempting 1 victims",
        "b, preempting 1 victims",
    ]
    assert not found.certain
    assert outcome([node("a", allocatable=ROOM), lower("x", "a")], "1.37", priority=10).certain


@pytest.mark.parametrize(("count", "enough"), [(100, 0), (101, 100), (1200, 120)])
def test_of_many_nodes_where_evictions_help_a_part_is_looked_at(count: int, enough: int) -> None:
    objects = [node(f"n{index}", allocatable=ROOM) for index in range(count)]
    found = outcome([*objects, *(lower(f"x{index}", f"n{index}") for index in range(count))], priority=10)
    assert found.preemption is not None and found.preemption.enough == enough
    # Up to 1.36 the message does not say where.
    assert found.certain


def test_pods_that_need_not_go_stay() -> None:
    held = [lower("x", "a", "1"), lower("y", "a", "1", priority=2), lower("z", "a", "2")]
    assert best(outcome([node("a", allocatable=ROOM), *held], priority=10)) == {"a": ["z"]}


def test_a_budget_is_broken_only_where_nothing_else_helps() -> None:
    budget = {
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "b", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "kept"}}},
        "status": {"disruptionsAllowed": 0},
    }
    nodes = [node("a", allocatable=ROOM), node("b", allocatable=ROOM)]
    held = [lower("x", "a", labels={"app": "kept"}), lower("y", "b", priority=9)]
    assert best(outcome([*nodes, *held, budget], priority=10)) == {"b": ["y"]}
    found = outcome([nodes[0], held[0], budget], priority=10)
    assert found.preemption is not None and found.preemption.best[0].violations == 1


def test_equals_are_not_evicted() -> None:
    found = outcome([node("a", allocatable=ROOM), lower("x", "a", priority=10)], priority=10)
    assert "1 No preemption victims found for incoming pod." in found.message


def test_a_pod_may_be_forbidden_to_evict() -> None:
    found = outcome([node("a", allocatable=ROOM), lower("x", "a")], priority=10, preemptionPolicy="Never")
    assert found.message.endswith("preemption: not eligible due to preemptionPolicy=Never.")


def test_while_victims_end_nobody_else_is_evicted() -> None:
    evicted = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    victim = lower("x", "a", ending=True, status={"conditions": [evicted]})
    found = outcome(
        [node("a", allocatable=ROOM), victim], priority=10, status={"nominatedNodeName": "a", "phase": "Pending"}
    )
    assert found.message.endswith("preemption: not eligible due to a terminating pod on the nominated node.")


def test_room_that_others_are_promised_is_taken() -> None:
    promised = pod("other", priority=10, containers=asking("3"), status={"nominatedNodeName": "a"})
    assert not outcome([node("a", allocatable=ROOM), promised], priority=10).fits
    assert outcome([node("a", allocatable=ROOM), promised], priority=11).fits


def test_a_nominated_node_that_fits_is_taken() -> None:
    nodes = [node("a", allocatable=ROOM), node("b", allocatable=ROOM)]
    assert outcome(nodes, status={"nominatedNodeName": "b"}).feasible == ("b",)


def group(minimum: int) -> JSON:
    policy = {"schedulingPolicy": {"gang": {"minCount": minimum}}}
    return {"kind": "PodGroup", "metadata": {"name": "g", "namespace": "default"}, "spec": policy}


@pytest.mark.parametrize(
    ("spec", "objects", "expected"),
    [
        ({}, [], ""),
        ({"schedulingGates": [{"name": "g"}]}, [], "Scheduling is blocked due to non-empty scheduling gates"),
        (
            {"resourceClaims": [{"name": "c", "resourceClaimName": "none"}]},
            [],
            'could not find ResourceClaim "default/none"',
        ),
        (
            {"resourceClaims": [{"name": "c", "resourceClaimTemplateName": "t"}]},
            [],
            'pod "default/p": ResourceClaim not created yet',
        ),
        (
            {"schedulingGroup": {"podGroupName": "g"}},
            [],
            'waiting for pods\'s pod group "g" to appear in scheduling queue',
        ),
        (
            {"schedulingGroup": {"podGroupName": "g"}},
            [group(2)],
            "waiting for minCount pods from a gang to appear in scheduling queue",
        ),
        (
            {"schedulingGroup": {"podGroupName": "g"}},
            [group(2), pod("q", schedulingGroup={"podGroupName": "g"})],
            "",
        ),
    ],
)
def test_what_keeps_a_pod_out_of_the_queue(spec: JSON, objects: list[JSON], expected: str) -> None:
    cluster: ClusterState = state(objects)
    rejection = kept_out(Pod.from_json(pod("p", **spec)), cluster)
    assert (rejection.reasons[0].words if rejection is not None else "") == expected


def test_of_errors_on_several_nodes_any_may_be_the_message() -> None:
    """The scheduler asks nodes in parallel, and the first error ends the attempt. Since 1.37 it names the device."""
    fails = [{"cel": {"expression": f'device.attributes["{DRIVER}"].model == "a"'}}]

    def found(*names: str) -> Outcome:
        room = [{"apiVersion": "v1", **node(name, allocatable=ROOM)} for name in names]
        slices = [slice_of(name, gpu("gpu-0")) for name in names]
        snapshot = world(device_class(), *room, *slices, claim("gpu", selectors=fails)).snapshot
        asking = Pod.from_json(pending("p", "gpu", node_name=""))
        return Outcome(asking, scheduler("1.37.1").sees(Cluster(snapshot)))

    both = found("a", "b")
    assert both.reason == "SchedulerError" and not both.certain
    named = [[name for name in "ab" if f"{DRIVER}/{name}/gpu-0" in message] for message in both.messages]
    assert named == [["a"], ["b"]]
    assert found("a").certain


GPUS = st.lists(st.integers(0, 3), min_size=1, max_size=6)
WANTED = st.lists(
    st.tuples(st.integers(1, 3), st.sampled_from(("1", "2")), *(st.booleans() for _ in range(3))),
    min_size=1,
    max_size=6,
)


@given(GPUS, WANTED)
def test_asking_changed_nodes_is_asking_all(gpus: list[int], wanted: list[tuple[int, str, bool, bool, bool]]) -> None:
    """Pods get nodes one after the other, some of them nominated, and some end; an attempt for another one is brought
    up to date now and then, or made anew.
    """
    objects = [device_class(), claim("mine")]
    for number, count in enumerate(gpus):
        objects += [{"apiVersion": "v1", **node(f"n{number}", allocatable=ROOM)}]
        objects += [slice_of(f"n{number}", *(gpu(f"gpu-{index}") for index in range(count)))] if count else []
    objects += [claim(f"c{number}", count=count) for number, (count, *_) in enumerate(wanted)]
    waiting: list[JSON] = []
    for number, (_, cpu, _, _, nominated) in enumerate(wanted):
        raw = pending(f"p{number}", f"c{number}", node_name="")
        raw["spec"]["containers"] = asking(cpu)
        raw["status"] = {**raw.get("status", {}), **({"nominatedNodeName": "n0"} if nominated else {})}
        waiting.append(raw)
    objects += waiting
    cluster = Cluster(world(*objects).snapshot)
    here = scheduler().sees(cluster)
    # A claim that others may use as well decides about all nodes at once: this one was made for the pod.
    raw = pending("mine", node_name="", uid="")
    raw["spec"] |= {
        "containers": asking("3"),
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}],
    }
    raw["status"]["resourceClaimStatuses"] = [{"name": "gpu", "resourceClaimName": "mine"}]
    mine = Pod.from_json(raw)
    kept = Outcome(mine, here)
    assert kept.local
    for entry, (_, _, ends, looks, _) in zip(waiting, wanted, strict=True):
        tried = Outcome(Pod.from_json(entry), here)
        if not tried.feasible:
            continue
        chosen = tried.feasible[-1]
        here = bound(tried.pod, chosen, here, tried.attempts.get(chosen))
        if ends:
            running = [entry for entry in here.snapshot.pods.values() if entry.node_name]
            here = here.moved(here.cluster.ending(running[:1]))
        if not looks:
            continue
        kept = kept.after(here)
        fresh = Outcome(mine, here)
        assert list(kept.accepting) == list(fresh.accepting) and kept.feasible == fresh.feasible
        assert dict(kept.rejected) == dict(fresh.rejected)
        assert dict(kept.filtered) == dict(fresh.filtered)
        assert {at: kept.attempts[at].devices for at in kept.accepting} == {
            at: fresh.attempts[at].devices for at in fresh.accepting
        }
        assert kept.message == fresh.message and kept.preemption == fresh.preemption


@given(GPUS, st.lists(st.integers(1, 3), min_size=1, max_size=3))
def test_claims_alone_get_what_a_pod_with_them_gets(gpus: list[int], counts: list[int]) -> None:
    objects = [device_class(), *(claim(f"c{number}", count=count) for number, count in enumerate(counts))]
    for number, count in enumerate(gpus):
        objects += [{"apiVersion": "v1", **node(f"n{number}", allocatable=ROOM)}]
        objects += [slice_of(f"n{number}", *(gpu(f"gpu-{index}") for index in range(count)))] if count else []
    cluster = Cluster(world(*objects).snapshot)
    raw = pending("p", "c0", node_name="")
    names = [f"c{number}" for number in range(len(counts))]
    raw["spec"]["resourceClaims"] = [{"name": name, "resourceClaimName": name} for name in names]
    space = raw["metadata"]["namespace"]
    alone = scheduler().attempt(ClaimsAlone(tuple((space, name) for name in names)), cluster)
    with_pod = scheduler().attempt(Pod.from_json(raw), cluster)
    for entry in cluster.nodes:
        ours, theirs = alone.try_on(entry), with_pod.try_on(entry)
        assert (ours.verdict, ours.message, ours.devices) == (theirs.verdict, theirs.message, theirs.devices)
    assert set(alone.accepting) == {name for name, attempt in with_pod.attempts.items() if attempt.devices}


def test_an_attempt_takes_its_steps_from_the_budget() -> None:
    nodes = [{"apiVersion": "v1", **node(name, allocatable=ROOM)} for name in "abc"]
    slices = [slice_of(name, *(gpu(f"gpu-{index}") for index in range(number))) for number, name in enumerate("abc", 2)]
    cluster = Cluster(world(device_class(), *nodes, *slices, claim("c", count=4)).snapshot)
    asking_pod = Pod.from_json(pending("p", "c", node_name=""))
    whole = Budget(1_000)
    outcome = scheduler().attempt(asking_pod, cluster, whole.part())
    assert outcome.feasible == ("c",) and outcome.budget.steps == whole.steps > 0
    whole.charge(whole.left)
    late = scheduler().attempt(asking_pod, cluster, whole.part())
    assert late.feasible == () and late.undetermined == ("a", "b", "c")
