"""A cluster after any changes is the same as one that is read afresh from the objects that are there then."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kubectl_dra.allocation.state import AllocatedState
from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.nodes import Node
from kubectl_dra.api.pods import Pod
from kubectl_dra.api.policy import ResourceQuota
from kubectl_dra.api.releases import Release
from kubectl_dra.api.slices import DeviceID, ResourceSlice
from kubectl_dra.api.taints import DeviceTaint, DeviceTaintRule
from kubectl_dra.cluster.cluster import Cluster, NodeCopy
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.layered_table import layered
from kubectl_dra.scheduling.framework import ClusterState
from kubectl_dra.scheduling.scheduler import Scheduler

PODS = ("a", "b", "c", "d")
NODES = ("n1", "n2", "n3")
RELEASE = Release(1, 36)
GATES = frozenset(("DRAConsumableCapacity", "DRADeviceTaints", "DRADeviceTaintRules"))
CHOICES = st.sampled_from
Change = Callable[[Cluster], Cluster]

SCHEDULER = Scheduler(RELEASE, GATES)


def pod(name: str, node: str = "", phase: str = "Pending", uid: str = "") -> Pod:
    spec = {"nodeName": node, "resourceClaims": [{"name": "own", "resourceClaimName": name}], "containers": []}
    meta = {"name": name, "namespace": "ml", "uid": uid or f"uid-{name}"}
    return Pod.from_json({"metadata": meta, "spec": spec, "status": {"phase": phase}})


def claim(name: str, users: list[str], devices: list[tuple[str, int, bool]], owner: str = "") -> ResourceClaim:
    results = [
        {"request": "r", "driver": "d", "pool": pool, "device": f"gpu-{number}", **({"shareID": "s"} if share else {})}
        for pool, number, share in devices
    ]
    owners = [{"kind": "Pod", "name": owner, "uid": f"uid-{owner}", "controller": True}] if owner else []
    status: dict[str, Any] = {"allocation": {"devices": {"results": results}}} if devices else {}
    status["reservedFor"] = [{"resource": "pods", "name": user, "uid": f"uid-{user}"} for user in users]
    meta = {"name": name, "namespace": "ml", "ownerReferences": owners}
    return ResourceClaim.from_json({"metadata": meta, "spec": {}, "status": status})


def slice_of(node: str, name: str = "") -> ResourceSlice:
    spec = {
        "driver": "d",
        "nodeName": node,
        "pool": {"name": name or node, "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": f"gpu-{number}"} for number in range(3)],
    }
    return ResourceSlice.from_json({"metadata": {"name": f"{node}-{name}"}, "spec": spec})


def rule(name: str, **selector: str) -> DeviceTaintRule:
    spec = {"deviceSelector": selector, "taint": {"key": "k", "effect": "NoSchedule"}}
    return DeviceTaintRule.from_json({"metadata": {"name": name}, "spec": spec})


DEVICES = st.lists(st.tuples(CHOICES(NODES), st.integers(0, 2), st.booleans()), max_size=3)
A_POD = st.builds(pod, CHOICES(PODS), CHOICES(("", *NODES, "gone")), CHOICES(("Pending", "Running", "Succeeded")))
A_CLAIM = st.builds(
    claim, CHOICES(PODS), st.lists(CHOICES(PODS), max_size=2, unique=True), DEVICES, CHOICES(("", *PODS))
)


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    pods, claims = draw(st.lists(A_POD, max_size=4)), draw(st.lists(A_CLAIM, max_size=4))
    return Snapshot(
        pods={("ml", each.metadata.name): each for each in pods},
        claims={("ml", resource_claim.metadata.name): resource_claim for resource_claim in claims},
        nodes={name: Node.named(name) for name in draw(st.sets(CHOICES(NODES)))},
        slices=tuple(slice_of(name, draw(CHOICES(("", "common")))) for name in draw(st.sets(CHOICES(NODES)))),
        taint_rules=(rule("all", driver="d"), rule("one", driver="d", pool="n1", device="gpu-0")),
        quotas=(ResourceQuota.from_json({"metadata": {"name": "q", "namespace": "ml"}}),),
        release_source="server",
    )


@st.composite
def changes(draw: st.DrawFn) -> Change:
    """One change of whatever is there then."""
    kind, chosen = draw(st.integers(0, 8)), draw(st.sets(CHOICES(PODS)))
    number, taint = draw(st.integers(0, 99)), DeviceTaint("t", "", "NoExecute", "", "new")

    def change(cluster: Cluster) -> Cluster:
        read = cluster.snapshot
        pods = [each for each in read.pods.values() if each.metadata.name in chosen]
        claims = [resource_claim for resource_claim in read.claims.values() if resource_claim.metadata.name in chosen]
        device = DeviceID("d", NODES[number % 3], f"gpu-{number % 2}")
        made: dict[int, Change] = {
            0: partial(Cluster.ending, pods=pods),
            1: partial(Cluster.freeing, claims=claims, keep=("ml", PODS[number % 4])),
            2: partial(Cluster.tainting, taints=[(device, taint)], rules={"one"}),
            3: partial(Cluster.untainting, device=device),
        }
        if kind in made:
            return made[kind](cluster)
        if kind == 4 and claims:
            return cluster.editing(claims[0].deallocated())
        if kind == 5 and pods:
            return cluster.unbinding(replace(pods[0], node_name=""))
        if kind == 6:
            name = f"more-{number}"
            own = claim(f"of-{name}", [name], [(name, 0, False)], name)
            return cluster.adding_node(NodeCopy("n1", 1, Node.named(name), [pod(name, name)], [slice_of(name)], [own]))
        return cluster.editing(*edited, *read.quotas)

    edited = draw(st.lists(st.one_of(A_POD, A_CLAIM, CHOICES(NODES).map(Node.named)), max_size=3))
    return change


def indexes(cluster: Cluster) -> object:
    """The indexes; in which order a node lists its pods, and a pod its claims, is that of the changes."""
    on = {node: {id(on_node) for on_node in pods} for node, pods in cluster.places.on.items() if pods}
    claims = {key: set(claims) for key, claims in cluster.claims_of.items()}
    return on, dict(cluster.places.waiting), claims, dict(cluster.homes)


def held(state: AllocatedState) -> object:
    holders = {device: {id(resource_claim) for resource_claim in claims} for device, claims in state.holders.items()}
    by_pool = {pool: set(names) for pool, names in state.exclusive_by_pool.items()}
    return set(state.exclusive), set(state.shared), dict(state.consumed), holders, by_pool


def seen(state: ClusterState) -> object:
    """What plugins and the allocator read."""
    nodes = {
        name: (id(node_state.node), {id(there) for there in node_state.pods})
        for name, node_state in state.nodes.items()
    }
    nominated = {node: list(pods) for node, pods in state.nominated.items()}
    return list(nodes.items()), nominated, held(state.cycle.state), [slice_.name for slice_ in state.cycle.index.slices]


@given(snapshots(), st.lists(changes(), max_size=6), st.data())
def test_any_changes_are_the_same_as_reading_afresh(read: Snapshot, made: list[Change], data: st.DataObject) -> None:
    state = SCHEDULER.sees(Cluster(read))
    for change in made:
        # What was indexed before a change is carried over, the rest is made anew.
        if data.draw(st.booleans(), label="indexed"):
            seen(state), indexes(state.cluster)
        state = state.moved(change(state.cluster))
    after = state.snapshot
    plain = replace(after, pods=dict(after.pods.items()), claims=dict(after.claims.items()))
    assert indexes(state.cluster) == indexes(Cluster(plain))
    fresh = SCHEDULER.sees(Cluster(plain))
    assert seen(state) == seen(fresh)
    assert [slice_.devices for slice_ in state.cycle.index.slices] == [
        slice_.devices for slice_ in fresh.cycle.index.slices
    ]


TABLES = st.dictionaries(st.integers(0, 200), st.integers(0, 9), max_size=150)
STEPS = st.lists(st.dictionaries(st.integers(0, 200), st.none() | st.integers(0, 9), max_size=30), max_size=8)


@given(TABLES, STEPS)
def test_a_layered_table_is_a_dict_with_the_changes(base: dict[int, int], steps: list[dict[int, int | None]]) -> None:
    """In its order as well: what is replaced keeps its place, what comes back has lost it."""
    table, plain = layered(base, {}), dict(base)
    for step in steps:
        before, was = table, dict(plain)
        table = layered(table, step)
        for key, value in step.items():
            if value is None:
                plain.pop(key, None)
            else:
                plain[key] = value
        assert list(before.items()) == list(was.items())
    assert list(table) == list(plain) and list(table.items()) == list(plain.items())
    assert list(table.values()) == list(plain.values()) and len(table) == len(plain)
    assert all(table.get(key, -1) == plain.get(key, -1) and (key in table) == (key in plain) for key in range(202))
    assert {key: table[key] for key in plain} == plain
