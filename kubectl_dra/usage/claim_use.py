"""Claims one by one: the devices that each holds, its pods, and what it waits for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from kubectl_dra.api.claims import DeviceResult, ResourceClaim
from kubectl_dra.api.labels import LabelSelector
from kubectl_dra.api.meta import EMPTY, FAILED_PREPARE, ObjectMeta
from kubectl_dra.api.pods import Owner, Pod, owner_of
from kubectl_dra.cluster.claim_relation import (
    ClaimRelation,
    Consumers,
    ListedConsumer,
    all_pods_known,
    consumers_of,
    placed_unreserved,
)
from kubectl_dra.cluster.snapshot import ABSENT, FORBIDDEN, Gap, Snapshot
from kubectl_dra.errors import UndeterminedError
from kubectl_dra.explain.phrase import Statement, Words, say
from kubectl_dra.explain.unread_kind import Stake, Unread, unread_of
from kubectl_dra.grouped import grouped
from kubectl_dra.usage.choices import ClaimSort, ClaimState

_NODE_NAME = "metadata.name"


class WaitsForNode(Statement, frozen=True):
    """The scheduler has not placed the pod; ``reason`` is that of its condition."""

    TEXT = "a node for pod {pod} ({reason})"
    pod: str
    reason: str


class WaitsForStart(Statement, frozen=True):
    """The pod has a node and does not run."""

    TEXT = "pod {pod} to start ({phase})"
    pod: str
    phase: str


class WaitsForEnd(Statement, frozen=True):
    """The pod is being deleted."""

    TEXT = "pod {pod} to end (terminating since {since})"
    pod: str
    since: str


class WaitsForPrepare(Statement, frozen=True):
    """The pod has a node, and the kubelet has said why its devices are not prepared."""

    TEXT = "node {node} to prepare the devices of pod {pod} (failing since {since})"
    pod: str
    node: str
    since: str


class WaitsForReservation(Statement, frozen=True):
    """The pod was given a node before the claim was reserved for it, and it is not reserved afterwards."""

    TEXT = "its reservation for pod {pod}, which is on node {node} without one"
    pod: str
    node: str


class LostByPod(Statement, frozen=True):
    """The pod was started with devices that the claim has lost."""

    TEXT = "pod {pod} to be deleted: it runs on node {node} with devices that the claim has lost"
    pod: str
    node: str


class WaitsForRelease(Statement, frozen=True):
    """The pod does not use the devices any more, and the reservation is still there."""

    TEXT = "its reservation for pod {pod} to be removed ({why})"
    pod: str
    why: str


class WaitsForDriver(Statement, frozen=True):
    """A condition that the driver has to set before the pod is bound."""

    TEXT = "condition {condition} of device {device}"
    condition: str
    device: str


class ClaimUse(Struct, frozen=True):
    """One claim. ``waits_for`` is empty where nothing is to come.

    ``pods`` are the names of those that use it or will, ``node`` is where its devices are used, as far as that is one
    node. ``results`` leaves out admin access, which holds nothing.
    """

    claim: ResourceClaim
    state: ClaimState
    results: tuple[DeviceResult, ...]
    node: str
    pods: tuple[str, ...]
    owner: Owner | None
    waits_for: Words


class ClaimUses(Struct, frozen=True):
    """Claims by namespace and name. ``unread`` are the kinds without which claims or their states are unknown."""

    items: tuple[ClaimUse, ...]
    unread: tuple[Unread, ...] = ()

    def states(self) -> dict[ClaimState, int]:
        """The number of claims per state, only those that occur."""
        counts = Counter(item.state for item in self.items)
        return {state: counts[state] for state in ClaimState if counts[state]}


def claim_uses(
    snapshot: Snapshot, namespace: str = "", states: Iterable[ClaimState] = (), labels: LabelSelector | None = None
) -> ClaimUses:
    """All claims, or those of a namespace, with these labels and in one of these states.

    Raises:
        UndeterminedError: no claims could be read.
    """
    gap = snapshot.missing("ResourceClaim", namespace)
    if gap is not None and gap.reason == FORBIDDEN and not gap.read_in:
        raise UndeterminedError(f"{gap}, so which claims there are is unknown{gap.help}")
    users = _users(snapshot)
    wanted = frozenset(states)
    lacking = _pods_lacking(snapshot)
    claim_uses = [
        _use(claim, users.get(key, []), snapshot, hidden=key[0] in lacking)
        for key, claim in sorted(snapshot.claims.items())
        if namespace in ("", key[0]) and (labels is None or labels.matches(claim.metadata.labels))
    ]
    unread = tuple(_unread(snapshot, namespace, claim_uses, lacking))
    return ClaimUses(tuple(claim_use for claim_use in claim_uses if not wanted or claim_use.state in wanted), unread)


_SORTS: Final[Mapping[ClaimSort, Callable[[ClaimUse], Any]]] = {
    ClaimSort.state: lambda use: [*ClaimState].index(use.state),
    ClaimSort.devices: lambda use: -len(use.results),
    # A manifest has no time; it comes last, as the youngest.
    ClaimSort.age: lambda use: use.claim.metadata.creation_timestamp or "~",
}


def sorted_claims(uses: ClaimUses, sort: ClaimSort) -> ClaimUses:
    """The claims in another order; those that are equal in it stay sorted by namespace and name."""
    return replace(uses, items=tuple(sorted(uses.items, key=_SORTS[sort]))) if sort in _SORTS else uses


def _pods_lacking(snapshot: Snapshot) -> Mapping[str, Gap]:
    """By namespace: that a pod was not read, and which, of those for which claims are reserved, that files lack."""
    lacking: dict[str, Gap] = {}
    for (space, _), claim in snapshot.claims.items():
        for use in consumers_of(claim, snapshot.pods, complete=all_pods_known(snapshot, space)).entries:
            if use.relation is ClaimRelation.UNSEEN:
                text = f"pod {space}/{use.entry.name} is not in what was read"
                lacking.setdefault(space, snapshot.missing("Pod", space) or Gap("Pod", ABSENT, space, text))
    return lacking


def _unread(
    snapshot: Snapshot, namespace: str, uses: Iterable[ClaimUse], lacking: Mapping[str, Gap]
) -> Iterator[Unread]:
    yield from unread_of((Stake("ResourceClaim", namespace, "which claims there are is unknown"),), snapshot)
    if any(claim_use.state in (ClaimState.UNKNOWN, ClaimState.RESERVED) for claim_use in uses):
        unknown = "which pods use the claims is unknown"
        gaps = dict.fromkeys(gap for space, gap in lacking.items() if namespace in ("", space))
        gaps |= dict.fromkeys(snapshot.unread(("Pod",), namespace))
        yield from (Unread(gap, unknown) for gap in gaps)


def _users(snapshot: Snapshot) -> dict[tuple[str, str], list[Pod]]:
    """The pods that name each claim, or for which it was made."""
    return grouped(((space, name), pod) for (space, _), pod in snapshot.pods.items() for name in pod.claim_names)


def _use(claim: ResourceClaim, users: list[Pod], snapshot: Snapshot, *, hidden: bool) -> ClaimUse:
    listed = consumers_of(claim, snapshot.pods, complete=all_pods_known(snapshot, claim.metadata.namespace))
    pods = list(listed.pods) if listed.entries else users
    hidden = hidden or bool(snapshot.unread(("Pod",), claim.metadata.namespace))
    state, waits_for = _state(claim, users, listed, hidden=hidden)
    waits_for = _on_node(claim, waits_for, snapshot) or waits_for
    results = tuple(result for result in claim.results if not result.admin_access)
    names = tuple([use.entry.name for use in listed.entries] or [pod.metadata.name for pod in users])
    return ClaimUse(claim, state, results, _node(claim, pods), names, _owner(claim.metadata, pods), waits_for)


def _owner(metadata: ObjectMeta, pods: list[Pod]) -> Owner | None:
    """What controls the pods that use a claim, else the claim's own controller unless that is a pod."""
    for pod in pods:
        if (owner := owner_of(pod)) is not None:
            return owner
    own = metadata.controller()
    return None if own is None or own.own_kind == "Pod" else Owner(own.own_kind, own.name)


def _node(claim: ResourceClaim, pods: list[Pod]) -> str:
    """The node of the pods, else the one that the allocation names."""
    nodes = {pod.node_name for pod in pods if pod.node_name and not pod.finished}
    if len(nodes) == 1:
        return nodes.pop()
    selector = claim.allocation.node_selector if claim.allocation else None
    terms = selector.terms if selector is not None else ()
    fields = [field for term in terms for field in term.fields if field.key == _NODE_NAME and len(field.values) == 1]
    return fields[0].values[0] if len(terms) == len(fields) == 1 else ""


def _state(claim: ResourceClaim, users: list[Pod], listed: Consumers, *, hidden: bool) -> tuple[ClaimState, Words]:
    """The state and what it waits for. ``hidden``: there may be pods that were not read."""
    deleted = claim.metadata.deletion_timestamp
    if claim.allocation is None:
        if deleted:
            return ClaimState.TERMINATING, _finalizers(claim)
        waiting = [pod for pod in users if not pod.finished]
        if not waiting:
            if hidden:
                return ClaimState.UNKNOWN, ""
            return ClaimState.NO_POD, "a pod that uses it"
        lost = next((pod for pod in waiting if pod.node_name and pod.phase == "Running"), None)
        if lost is not None:
            return ClaimState.PENDING, LostByPod(lost.metadata.name, lost.node_name)
        return ClaimState.PENDING, _placing(waiting[0])
    if deleted and not claim.reserved_for:
        return ClaimState.TERMINATING, _finalizers(claim)
    if (condition := _unset_condition(claim)) is not None:
        return ClaimState.BINDING, condition
    if not claim.reserved_for:
        return _unreserved(claim, [pod for pod in users if not pod.finished])
    return _of_consumers(listed)


def _unreserved(claim: ResourceClaim, users: Sequence[Pod]) -> tuple[ClaimState, Words]:
    """The state of a claim that holds devices and is reserved for no one."""
    if placed := placed_unreserved(claim, users):
        return ClaimState.STARTING, WaitsForReservation(placed[0].metadata.name, placed[0].node_name)
    if users:
        return ClaimState.UNUSED, _placing(users[0])
    return ClaimState.UNUSED, "a pod that uses it, or somebody who deletes it"


_STATES: Final = {
    ClaimRelation.RUNNING: ClaimState.IN_USE,
    ClaimRelation.STARTING: ClaimState.STARTING,
    ClaimRelation.BINDING: ClaimState.STARTING,
    ClaimRelation.UNSEEN: ClaimState.RESERVED,
    ClaimRelation.GROUP: ClaimState.RESERVED,
    ClaimRelation.FOREIGN: ClaimState.RESERVED,
    ClaimRelation.ENDING: ClaimState.TERMINATING,
}
"""The states by what a consumer does, that of any other is ``ENDED``; of several consumers the first here decides."""


def _of_consumers(listed: Consumers) -> tuple[ClaimState, Words]:
    """The state by the pods that the claim is reserved for."""
    order = list(_STATES)
    first = min(listed.entries, key=lambda use: order.index(use.relation) if use.relation in _STATES else len(order))
    return _STATES.get(first.relation, ClaimState.ENDED), _awaited(first)


def _on_node(claim: ResourceClaim, waits_for: Words, snapshot: Snapshot) -> Words:
    """The controller that acts on the node of the awaited pod; empty if unknown."""
    if not isinstance(waits_for, WaitsForStart | WaitsForEnd):
        return ""
    from kubectl_dra.explain.causes.terminating import waits_for_driver
    from kubectl_dra.explain.clock import Clock
    from kubectl_dra.explain.holders import late

    pod = snapshot.pods.get((claim.metadata.namespace, waits_for.pod))
    if pod is None:
        return ""
    if isinstance(waits_for, WaitsForEnd):
        stuck, overdue = waits_for_driver(pod, (claim,), snapshot), late((pod,), Clock(snapshot))
        if stuck is not None:
            return say("pod {pod} to end: {why}", pod=waits_for.pod, why=stuck.summary)
        return say("pod {pod} to end: its grace period ended {ago}", pod=waits_for.pod, ago=overdue) if overdue else ""
    failed = snapshot.events_of(pod, FAILED_PREPARE)
    return WaitsForPrepare(waits_for.pod, pod.node_name, failed[0].first or failed[0].last) if failed else ""


def _awaited(use: ListedConsumer) -> Words:
    name, pod = use.entry.name, use.pod
    if use.relation is ClaimRelation.REPLACED:
        return WaitsForRelease(name, "an earlier pod of that name")
    if use.relation is ClaimRelation.GONE:
        return WaitsForRelease(name, "the pod does not exist any more")
    if pod is None or use.relation is ClaimRelation.RUNNING:
        return ""
    if use.relation is ClaimRelation.FINISHED:
        return WaitsForRelease(name, f"it is {pod.phase}")
    if use.relation is ClaimRelation.NEVER_RAN:
        return WaitsForRelease(name, "it was deleted before it had a node")
    if use.relation is ClaimRelation.ENDING:
        return WaitsForEnd(name, pod.metadata.deleted_at)
    return WaitsForStart(name, pod.phase or "no phase") if pod.node_name else _placing(pod)


def _placing(pod: Pod) -> Words:
    condition = pod.condition("PodScheduled")
    if pod.scheduling_gates:
        return WaitsForNode(pod.metadata.name, f"scheduling gates: {', '.join(pod.scheduling_gates)}")
    reason = condition.reason if condition.status == "False" else ""
    return WaitsForNode(pod.metadata.name, reason or pod.phase or "not looked at yet")


def _finalizers(claim: ResourceClaim) -> Words:
    return say("finalizers to be removed: {names:some}", names=list(claim.metadata.finalizers))


def _unset_condition(claim: ResourceClaim) -> WaitsForDriver | None:
    """The first binding condition that no driver has set yet."""
    for result in claim.results:
        reported = claim.reported(result)
        for condition in result.binding_conditions:
            if reported.get(condition, EMPTY).get("status") != "True":
                return WaitsForDriver(condition, str(result.device))
    return None
