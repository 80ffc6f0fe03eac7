"""Up to 1.36 pools with shared counters are seen on all nodes: a broken one of another node does harm on each.

That would be so for other tests as well, so this has a control plane of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.controlplane.cluster import Cluster, wait
from tools.controlplane.objects import device, request
from tools.controlplane.plane import gates_asked, own_plane, release_of
from tools.controlplane.program import Program
from tools.live.command import Command
from tools.live.referee import Referee
from tools.live.releases import PARTITIONS, needs
from tools.live.tables import CARD, HALVES, partition


@pytest.fixture
def alone(control_plane_program: Program, command: Command, tmp_path: Path) -> Iterator[Referee]:
    """A control plane without other tests."""
    if not control_plane_program.built:
        pytest.skip("ready-made programs have no scheduler")
    with own_plane(control_plane_program, ["--profile=full", *gates_asked()], tmp_path) as plane:
        cluster = Cluster(plane, "alone")
        yield Referee(cluster, command, tmp_path)
        cluster.api.close()


def test_broken_pool_of_another_node(alone: Referee) -> None:
    cluster = alone.cluster
    needs(cluster.plane, PARTITIONS)
    here, there = cluster.node("here"), cluster.node("there")
    has_model = f'"model" in device.attributes["{cluster.driver}"]'
    gpu = cluster.device_class(selectors=[f'device.driver == "{cluster.driver}" && {has_model}'])
    cluster.publish([device("gpu-0", {"model": "a"})], pool="good", node=here)
    one = cluster.claim([request(gpu)], "one")
    two = cluster.claim([request(gpu, count=2)], "two")
    every = cluster.claim([request(gpu, allocationMode="All")], "all")
    on_here = {"kubernetes.io/hostname": here}

    # 1.37 sees slices with counters where their devices are, as 1.34 does.
    everywhere = release_of(cluster.plane).minor in (35, 36)

    unknown = [{"name": "other", "counters": {"memory": {"value": "1"}}}]
    invalid = cluster.publish(HALVES, pool="invalid", node=there, shared_counters=unknown)
    alone.rejected("too-few-on-one-node", "two", claims={"gpu": two}, nodeSelector=on_here)
    assert ("1 invalid resource pools were encountered" in alone.scheduling("two")["message"]) is everywhere
    if everywhere:
        text = f"request gpu: asks for all devices, but resource pool {cluster.driver}/invalid is currently invalid"
        alone.fails("all-blocked-by-pool", text, "all", claims={"gpu": every}, nodeSelector=on_here)
        cluster.withdraw(invalid)
        alone.same(alone.explain("pod/all"), cluster.scheduled("all"))
    else:
        alone.fits("all", claims={"gpu": every}, nodeSelector=on_here)
        cluster.withdraw(invalid)
    _end(cluster, "all", every)

    cluster.publish(HALVES, pool="half", node=there, shared_counters=CARD, slice_count=3)
    again = cluster.claim([request(gpu, allocationMode="All")], "again")
    if everywhere:
        text = f"resource pool {cluster.driver}/half is currently being updated"
        alone.fails("all-blocked-by-pool", text, "again", claims={"gpu": again}, nodeSelector=on_here)
    else:
        alone.fits("again", claims={"gpu": again}, nodeSelector=on_here)
        _end(cluster, "again", again)
    alone.fits("one", claims={"gpu": one}, nodeSelector=on_here)


def _end(cluster: Cluster, pod: str, claim: str) -> None:
    """Delete a pod, and wait until its claim has given its devices back."""
    cluster.api.delete(cluster.get("Pod", pod, "v1"), grace_seconds=0)
    wait(lambda: "allocation" not in cluster.get("ResourceClaim", claim)["status"] or None, f"{claim} to be free")


def test_two_drivers_with_one_pool_name(alone: Referee) -> None:
    cluster = alone.cluster
    needs(cluster.plane, PARTITIONS)
    node = cluster.node()
    other = Cluster(cluster.plane, "zother")
    small = [{"name": "card", "counters": {"memory": {"value": "40Gi"}}}]
    cluster.publish([partition("part-0", "40Gi")], pool="same", node=node, shared_counters=small)
    other.publish(HALVES, pool="same", node=node, shared_counters=CARD)
    gpu, whole = cluster.device_class(), other.device_class()
    claims = {name: cluster.claim([request(kind)], name) for name, kind in (("a", gpu), ("b", whole))}
    cluster.pod("both", claims=claims, schedulingGates=[{"name": "example.com/wait"}])
    answer = alone.explain("pod/both")
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "both", "namespace": cluster.namespace}}
    cluster.api.patch(pod, {"spec": {"schedulingGates": None}})
    if answer.report["placements"]:
        alone.same(answer, cluster.scheduled("both"))
    else:
        cluster.unschedulable("both")
        assert alone.explain("pod/both").code == 1
    other.api.close()
