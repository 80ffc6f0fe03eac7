"""Whether the pods of a gang fit together. The cases are what a 1.36.4 scheduler did with such groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from kubectl_dra.allocation.budgets import GANG_WORK, PLACED_POD
from kubectl_dra.scheduling.gang_scheduling import (
    UNSCHEDULABLE_GROUP,
    Gang,
    Obstacle,
    Placed,
    gang_of,
    message_of,
    placed_together,
)
from tools.scheduling.small_clusters import JSON, ZONE, claim, node, pod, state, using

ROOM = {"cpu": "4", "memory": "8Gi", "pods": "110"}
NODES = [
    node("n1", "a", allocatable=ROOM),
    node("n2", "b", allocatable=ROOM),
    node("n3", "b", allocatable=ROOM, taints=[{"key": "k", "effect": "NoSchedule"}]),
]


def group(minimum: int, topology: str = "") -> JSON:
    spec: JSON = {"schedulingPolicy": {"gang": {"minCount": minimum}}}
    if topology:
        spec["schedulingConstraints"] = {"topology": [{"key": topology}]}
    return {"kind": "PodGroup", "metadata": {"name": "g", "namespace": "default"}, "spec": spec}


def member(name: str, cpu: str, on: str = "", **spec: Any) -> JSON:
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    return pod(name, on, containers=[container], schedulingGroup={"podGroupName": "g"}, **spec)


def outcome(asked: str, objects: list[JSON], release: str = "1.36") -> tuple[Placed | Obstacle, str]:
    cluster = state(objects, release)
    one = cluster.snapshot.pods["default", asked]
    gang = gang_of(one, cluster)
    assert isinstance(gang, Gang)
    found = placed_together(gang, one, cluster)
    return found, message_of(one, found, cluster) if isinstance(found, Placed) else ""


def fits(asked: str, *objects: JSON) -> bool:
    found, _ = outcome(asked, [*NODES, *objects])
    assert isinstance(found, Placed)
    return found.fits


def test_too_few_fit_together() -> None:
    members = [member(f"p{index}", "3") for index in range(3)]
    found, message = outcome("p0", [*NODES, group(3), *members])
    assert isinstance(found, Placed)
    assert (found.fits, found.count, len(found.refused)) == (False, 2, 1)
    # Which of equal pods is refused is chance, and with it what is written of this one.
    assert (found.alike, message) == (False, "")


def test_what_is_written_of_pods_that_fare_the_same_in_any_order() -> None:
    objects = [*NODES, group(2), member("small", "1"), member("large", "9")]
    assert outcome("small", objects)[1] == UNSCHEDULABLE_GROUP
    assert outcome("large", objects)[1].startswith(
        "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu."
    )
    # Other releases, and groups with a topology constraint, say it otherwise.
    assert outcome("small", objects, "1.37")[1] == ""


def test_a_pod_that_does_not_fit_is_left_out() -> None:
    members = [member("p0", "3"), member("p1", "1"), member("p2", "9")]
    found, _ = outcome("p0", [*NODES, group(2), *members])
    assert isinstance(found, Placed) and found.fits
    assert list(found.refused) == ["default/p2"]


def test_which_of_equal_pods_is_left_out_is_chance() -> None:
    members = [member(f"p{index}", "3") for index in range(3)]
    assert outcome("p0", [*NODES, group(2), *members])[0] is Obstacle.LEFT_OUT


def test_whether_the_group_fits_can_be_chance() -> None:
    # The small pod takes the only node with room for the large one, if it is tried first and put there.
    nodes = [node("n1", allocatable=ROOM), node("n2", allocatable={**ROOM, "cpu": "1"})]
    low = {"name": "c", "resources": {"requests": {"cpu": "1"}}}
    small = pod("small", schedulingGroup={"podGroupName": "g"}, containers=[low])
    assert outcome("small", [*nodes, group(2), small, member("large", "4")])[0] is Obstacle.CHANCE


def test_the_more_important_pods_are_tried_first() -> None:
    nodes = [node("n1", allocatable=ROOM), node("n2", allocatable={**ROOM, "cpu": "1"})]
    found, _ = outcome("small", [*nodes, group(2), member("small", "1"), member("large", "4", priority=5)])
    assert isinstance(found, Placed) and found.fits


def test_pods_that_have_a_node_count() -> None:
    assert fits("p1", group(2), member("p0", "3", "n1"), member("p1", "3"))
    assert not fits("p1", group(3), member("p0", "3", "n1"), member("p1", "3"), member("p2", "9"))


@pytest.mark.parametrize(("cpu", "expected"), [("3", False), ("1", True)])
def test_all_in_one_domain(cpu: str, expected: bool) -> None:
    objects = [group(2, ZONE), member("p0", cpu), member("p1", cpu)]
    found, message = outcome("p0", [*NODES, *objects])
    assert isinstance(found, Placed)
    assert (found.fits, found.domains, message) == (expected, ("a", "b"), "")
    assert len({NODE_ZONES[name] for name in found.nodes.values()}) == 1


NODE_ZONES: Mapping[str, str] = {"n1": "a", "n2": "b", "n3": "b"}


def test_which_of_several_domains_is_taken_can_decide_about_a_pod() -> None:
    """As a real scheduler did: the group had all it wants in one domain, and the pod's selector was for the other."""
    there = member("p2", "1", nodeSelector={ZONE: "b"})
    objects = [*NODES, group(2, ZONE), member("p0", "1"), member("p1", "1"), there]
    assert outcome("p2", objects)[0] is Obstacle.LEFT_OUT
    found, _ = outcome("p0", objects)
    assert isinstance(found, Placed) and found.fits


def test_a_group_of_a_group() -> None:
    nested = group(2)
    nested["spec"]["parentCompositePodGroupName"] = "all"
    assert outcome("p0", [*NODES, nested, member("p0", "1"), member("p1", "1")])[0] is Obstacle.NESTED


def test_in_the_domain_of_those_that_run() -> None:
    found, _ = outcome("p1", [*NODES, group(2, ZONE), member("p0", "1", "n2"), member("p1", "1")])
    assert isinstance(found, Placed)
    assert found.nodes == {"default/p1": "n2"}
    apart = [member("p0", "1", "n1"), member("p1", "1", "n2"), member("p2", "1")]
    assert outcome("p2", [*NODES, group(3, ZONE), *apart])[0] is Obstacle.DOMAIN


def test_no_node_has_the_key() -> None:
    found, _ = outcome("p0", [*NODES, group(2, "rack"), member("p0", "1"), member("p1", "1")])
    assert isinstance(found, Placed)
    assert (found.fits, found.count, found.domains) == (False, 0, ())


def test_what_cannot_be_tried() -> None:
    late = claim("data", phase="Pending")
    objects = [*NODES, group(2), late, member("p0", "1", **using("data")), member("p1", "1")]
    assert outcome("p0", objects)[0] is Obstacle.VOLUMES
    uncreated: JSON = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}]}
    objects = [*NODES, group(2), member("p0", "1"), member("p1", "1", **uncreated)]
    assert outcome("p0", objects)[0] is Obstacle.CLAIMS
    many = [member(f"p{index}", "1") for index in range(GANG_WORK // len(NODES) + 1)]
    assert outcome("p0", [*NODES, group(2), *many])[0] is Obstacle.TOO_LARGE


def test_a_group_that_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    objects = [*NODES, group(2), member("p0", "1"), member("p1", "1")]
    assert isinstance(outcome("p0", objects)[0], Placed)
    monkeypatch.setattr("kubectl_dra.scheduling.gang_scheduling.GANG_STEPS", PLACED_POD)
    assert outcome("p0", objects)[0] is Obstacle.TOO_LONG


def test_gated_pods_are_not_tried() -> None:
    gated = member("p1", "1", schedulingGates=[{"name": "wait"}])
    assert not fits("p0", group(2), member("p0", "1"), gated)


def test_pods_that_may_be_evicted_for_a_member() -> None:
    objects = [*NODES, group(2), member("p0", "3", priority=9), member("p1", "3", priority=9)]
    low: JSON = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "3"}}}]}
    found, message = outcome("p0", [*objects, pod("low", "n1", priority=1, **low)])
    assert isinstance(found, Placed) and not found.fits
    assert found.evicting is not None and found.evicting.preemption is not None
    assert [victim.metadata.name for victim in found.evicting.preemption.best[0].victims] == ["low"]
    assert message == ""
