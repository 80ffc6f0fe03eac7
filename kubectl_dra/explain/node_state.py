"""A node with its drivers, its devices and the pods that use them: who is at fault, and who acts next."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import timedelta
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kubectl_dra.allocation.budgets import ANSWER_STEPS, STEPS_PER_NODE, Budget
from kubectl_dra.api.nodes import Node
from kubectl_dra.api.pods import Pod
from kubectl_dra.api.slices import DeviceID, PoolID
from kubectl_dra.cluster.claim_relation import waiting_for
from kubectl_dra.cluster.cluster import Cluster
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.command import CommandLine
from kubectl_dra.drivers.drain_check import awaiting
from kubectl_dra.drivers.drivers_on_nodes import joined
from kubectl_dra.drivers.hardware import PluginShare, plugin_offer, plugin_shares
from kubectl_dra.drivers.health import DriverState, NodeDriver
from kubectl_dra.explain.cause_kinds import Look, NextStep
from kubectl_dra.explain.causes.on_node import unready_since, unserved
from kubectl_dra.explain.clock import Clock
from kubectl_dra.explain.devices.device_state import DeviceState, Unpublished, unpublished
from kubectl_dra.explain.devices.inventory import DeviceRow, take_inventory
from kubectl_dra.explain.devices.wanted import Wanted
from kubectl_dra.explain.diagnosis import Diagnosis
from kubectl_dra.explain.driver_repair import ending_taints, labelling, repair, uncordoning
from kubectl_dra.explain.driver_words import at_fault, next_look
from kubectl_dra.explain.holders import ClaimHolder, HolderIndex, HolderState
from kubectl_dra.explain.next_step import to_see_more
from kubectl_dra.explain.phrase import ObjectName, Words, say
from kubectl_dra.explain.pipeline import diagnose
from kubectl_dra.explain.question.resolve import about_pod
from kubectl_dra.explain.remedies.freeing_claims import Free
from kubectl_dra.explain.settings import Settings
from kubectl_dra.explain.unread_kind import Stake, Unread, unread_of

BOOTING: Final = timedelta(seconds=30)
_READ: Final = {
    "Pod": "which pods use devices of the node is unknown",
    "ResourceClaim": "which devices are held is unknown",
    "ResourceSlice": "which devices its drivers publish is unknown",
}


class HeldHere(Struct, frozen=True):
    """A claim that holds devices of the node, the devices, and its pods. ``awaited``: pods are going to use it."""

    holder: ClaimHolder
    devices: tuple[DeviceID, ...]
    awaited: bool = False

    @property
    def freeing(self) -> Free | None:
        """The change that gives the devices back; None where pods use them, or are going to."""
        unused = self.holder.standing is HolderState.UNUSED and not self.awaited
        return Free.of([self.holder], ()) if unused else None


class NodeAnswer(Struct, frozen=True):
    """A node as far as devices are concerned.

    ``object`` is None where the cluster has no such node. ``drivers`` are those on it, worst first; ``pods`` the
    answers about its pods that need devices and have not ended; ``others`` the claims that hold devices of it for none
    of these pods; ``held`` its devices that are held and not published, ``tainted`` those that taints keep from new
    claims, of so many ``published`` ones; ``plugins`` what device plugins offer. ``fault`` is what is wrong first,
    empty if nothing is, ``of`` the driver that is at fault, ``commands`` make the ``fix``, and ``next`` is what to look
    at for that or for what is unknown. ``awaiting`` are the pods without a node that ask for devices of that driver.
    """

    name: str
    object: Node | None
    drivers: tuple[NodeDriver, ...]
    pods: tuple[Diagnosis, ...]
    held: tuple[Unpublished, ...]
    others: tuple[HeldHere, ...] = ()
    tainted: tuple[DeviceRow, ...] = ()
    published: int = 0
    plugins: tuple[PluginShare, ...] = ()
    of: NodeDriver | None = None
    fault: Words = ""
    fix: Words = ""
    commands: tuple[CommandLine, ...] = ()
    next: NextStep | None = None
    unread: tuple[Unread, ...] = ()
    awaiting: tuple[ObjectName, ...] = ()

    @property
    def troubled(self) -> tuple[Diagnosis, ...]:
        """The pods that are kept from starting, running or ending."""
        return tuple(pod for pod in self.pods if pod.exit_code == 1)

    @property
    def unclear(self) -> tuple[Diagnosis, ...]:
        """The pods of which it is unknown whether they are kept, or which devices they have."""
        return tuple(pod for pod in self.pods if pod.exit_code == 3)

    @property
    def unseen(self) -> tuple[NodeDriver, ...]:
        """The drivers that publish devices, and of which nothing else was found that tells how they are."""
        return tuple(row for row in self.drivers if row.state is DriverState.UNKNOWN)

    @property
    def out_of_service(self) -> bool:
        """Whether taints keep all of its devices from new claims."""
        return bool(self.tainted) and len(self.tainted) == self.published

    @property
    def cordoned(self) -> bool:
        """Whether it has devices and takes no new pods."""
        return self.object is not None and self.object.unschedulable and bool(self.published)

    @property
    def rules(self) -> tuple[str, ...]:
        """The DeviceTaintRules that taint its devices."""
        return tuple(dict.fromkeys(taint.rule for row in self.tainted for taint in row.taints if taint.rule))

    @property
    def exit_code(self) -> int:
        """1 if anything is wrong or none of its devices is available, 3 if that is unknown."""
        if self.fault or self.troubled or self.out_of_service or self.cordoned:
            return 1
        return 3 if self.unread or self.unclear or self.unseen else 0


def node_state(name: str, snapshot: Snapshot, settings: Settings) -> NodeAnswer:
    """What is the case on a node, which exists or to which pods are bound."""
    settings = replace(settings, with_ways=False)
    budget = Budget(ANSWER_STEPS + STEPS_PER_NODE * len(snapshot.nodes))
    pods = tuple(
        diagnose(about_pod(pod, snapshot, exists=True), snapshot, settings, budget) for pod in _users(name, snapshot)
    )
    drivers = tuple(row for row in joined(snapshot).rows if row.node == name)
    lost = tuple(group for group in unpublished(snapshot) if group.node == name)
    unread = tuple(unread_of((Stake(kind, "", say(what)) for kind, what in _READ.items()), snapshot))
    others = tuple(_others(name, pods, snapshot, settings))
    rows = _devices(name, snapshot, settings)
    tainted = tuple(row for row in rows if row.also_tainted or row.state is DeviceState.TAINTED)
    node = snapshot.nodes.get(name)
    plugins = plugin_shares(node, snapshot) if node is not None else ()
    state = NodeAnswer(
        name, node, drivers, pods, lost, others, tainted, published=len(rows), plugins=plugins, unread=unread
    )
    for fault, fix, look, driver in _faults(state, snapshot):
        commands = labelling(driver) if driver is not None else ()
        waiting = awaiting((driver,), snapshot).get(driver.driver, ()) if driver is not None else ()
        pods_named = tuple(ObjectName("Pod", pod, namespace) for namespace, pod in waiting)
        return replace(state, fault=fault, fix=fix, commands=commands, next=look, of=driver, awaiting=pods_named)
    if state.out_of_service and not state.troubled:
        look = NextStep(Look.TAINTS) if state.rules else NextStep(Look.TAINTED_DEVICES)
        own = {(row.id.driver, taint.key) for row in state.tainted for taint in row.taints}
        taken = ending_taints(state.rules, own)
        return replace(state, fix=taken.change, commands=taken.commands, next=look)
    if state.cordoned and not state.troubled:
        ended = uncordoning(name)
        return replace(state, fix=ended.change, commands=ended.commands)
    unclear = (why for pod in state.unclear for why in pod.unclear)
    more = to_see_more((*unread, *unclear)) or next((next_look(row) for row in state.unseen), None)
    return replace(state, next=more)


def known(name: str, snapshot: Snapshot) -> bool:
    """Whether there is such a node, or something that names it."""
    return name in snapshot.nodes or any(pod.node_name == name for pod in snapshot.pods.values())


def _users(name: str, snapshot: Snapshot) -> Iterator[Pod]:
    for pod in snapshot.pods.values():
        uses = pod.claims or pod.extended_resource_claim or unserved(pod, snapshot)
        if pod.node_name == name and uses and not pod.finished:
            yield pod


def _others(name: str, pods: Sequence[Diagnosis], snapshot: Snapshot, settings: Settings) -> Iterator[HeldHere]:
    """The claims with devices of the node that none of these pods uses."""
    shown = {(pod.namespace, pod.name) for pod in pods}
    own = {slice_.pool for slice_ in snapshot.slices if slice_.scope.node_name == name}
    published = {slice_.pool for slice_ in snapshot.slices}
    index = HolderIndex(settings.scheduler.cycle(snapshot).state, Cluster(snapshot))
    for claim in snapshot.claims.values():
        devices = tuple(device for device in claim.devices if _is_here(PoolID(*device[:2]), name, own, published))
        space = claim.metadata.namespace
        awaited = waiting_for(claim, snapshot) if devices else []
        users = {(space, consumer.name) for consumer in claim.reserved_for}
        users |= {(space, pod.metadata.name) for pod in awaited}
        if devices and not users & shown:
            yield HeldHere(index.holder(claim), devices, awaited=bool(awaited))


def _devices(name: str, snapshot: Snapshot, settings: Settings) -> Sequence[DeviceRow]:
    """The devices that the node can use."""
    if name not in snapshot.nodes or snapshot.is_gap("ResourceSlice"):
        return ()
    return take_inventory(snapshot, settings.scheduler.cycle(snapshot), Wanted(nodes=(name,))).rows


def _is_here(pool: PoolID, node: str, own: Collection[PoolID], published: Collection[PoolID]) -> bool:
    """Whether a pool is a node's; an unpublished pool is if it is called like the node."""
    return pool in own or (pool not in published and pool.name == node)


_GONE: Final = (
    "See whether the machine is off: a Node can be deleted while its containers run on. If it is, delete its pods by "
    "force: they hold devices."
)


def _faults(state: NodeAnswer, snapshot: Snapshot) -> Iterator[tuple[Words, Words, NextStep, NodeDriver | None]]:
    """What is wrong with the node itself, its drivers, and its devices. Of a pod its own answer says that."""
    words = {"node": ObjectName("Node", state.name)}
    look = NextStep(Look.ONE_NODE, state.name)
    since = unready_since(state.name, snapshot)
    if state.object is None and not snapshot.is_gap("Node"):
        text = "there is no node {node} any more, and pods are bound to it"
        yield say(text, **words), say(_GONE), look, None
    elif since is not None and not _boots(state, snapshot):
        text = "it has not been ready since {since}" if since else "it is not ready"
        bring = "Bring node {node} and its kubelet back: until then nobody starts, ends or unprepares pods there."
        yield say(text, since=since, **words), say(bring, **words), look, None
    for row in state.drivers:
        # Of what the kubelet does not reach the pod that waits says more.
        if row.state.broken and row.state is not DriverState.NODE_DOWN and row.failing is None:
            yield at_fault(row), repair(row), next_look(row), row
    there = {row.driver for row in state.drivers if row.pod is not None}
    for group in state.held:
        # Where its pod runs, the kubelet has just started: it deletes all slices of the node, and they come back.
        if group.silent and group.driver not in there:
            text = "driver {driver} is away, and {count:device} of it {count:is|are} held there: {devices:some 3}"
            start = "Start driver {driver} on node {node}: its ResourceSlices come back with it."
            fault = say(text, driver=group.driver, count=len(group.devices), devices=group.devices)
            yield fault, say(start, driver=group.driver, **words), NextStep(Look.DAEMON_SETS), None
    for row in joined(snapshot).rows if not state.troubled else ():
        if state.name in row.hardware and not row.node:
            text = "driver {driver} does not run here, and DeviceClass {classes:some 2} wants it: {there}"
            has = _hardware_here(state, row.driver)
            fault = say(text, driver=row.driver, classes=row.wanted_by, there=has)
            yield fault, repair(row), NextStep(Look.EXPLAIN_DRIVER, row.driver), row


def _hardware_here(state: NodeAnswer, driver: str) -> Words:
    """What says that a node has the hardware of a driver."""
    offer = plugin_offer(state.object, driver) if state.object is not None else None
    if offer is None:
        return "labels of the node say that it has its hardware"
    return say("a device plugin offers its hardware ({count} {resource})", resource=offer[0], count=offer[1])


def _boots(state: NodeAnswer, snapshot: Snapshot) -> bool:
    """Whether the node is so new that its kubelet need not have said yet that it is ready."""
    if state.object is None or Clock(snapshot).age(state.object.metadata.creation_timestamp) >= BOOTING:
        return False
    return any(
        condition.type == "Ready" and condition.status == "False" for condition in state.object.status.conditions
    )
