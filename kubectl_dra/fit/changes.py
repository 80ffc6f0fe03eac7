"""Changes of the cluster that let more pods fit, each proved by placing the remaining pods with it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence, Set
from itertools import chain, islice
from typing import Final, NamedTuple, TypeVar

from msgspec.structs import replace

from kubectl_dra.allocation.budgets import HOLDERS_TRIED, NODE_KINDS_TRIED, ROOM_STEPS, Budget
from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.pods import Pod, owner_of, replaced_by
from kubectl_dra.cluster.cluster import NodeCopy
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.explain.causes.devices_published import NOT_FOR_NODE
from kubectl_dra.explain.causes.node_filters import AFFINITY, ELSEWHERE, SECOND_CLAIM
from kubectl_dra.explain.clock import Clock
from kubectl_dra.explain.diagnosis import Diagnosis, Finding, Remedy
from kubectl_dra.explain.holders import ClaimHolder, HolderIndex, late, scaled_by
from kubectl_dra.explain.node_reasons import KeptApart, of_spread
from kubectl_dra.explain.not_starting import broken_nodes, troubled_nodes
from kubectl_dra.explain.remedies.ending_pods import EndPods, all_ending, can_end, fewer_replicas
from kubectl_dra.explain.remedies.freeing_claims import Free, for_good
from kubectl_dra.explain.remedies.proof_result import Price
from kubectl_dra.explain.remedies.prove import Change
from kubectl_dra.fit.place import PlacedPod, Placement, Placer, Unplaced, attempt
from kubectl_dra.fit.pod_factory import NewPod
from kubectl_dra.fit.rests_on import PodsWaiting
from kubectl_dra.fit.result import ChangeSort, ClusterChange, EndRule, More, OneMoreNode
from kubectl_dra.fit.starting import starting
from kubectl_dra.scheduling.default_preemption import fewest
from kubectl_dra.scheduling.framework import ClusterState
from kubectl_dra.scheduling.node_copy import node_copies
from kubectl_dra.scheduling.reasons import PluginName

MAX_SHOWN: Final = 3
"""Of either sort: holders and nodes."""


class Again(NamedTuple):
    """Placement of all pods of all workloads in a cluster, and the ``start``: the cluster before them."""

    start: ClusterState
    place: Callable[[ClusterState], Placement]


class Changes:
    """Looks for changes. ``found`` are those that help: first what ends the cause that is named and no pod, then what
    takes nothing from anybody. Of holders the first to ask comes first, and of those to ask alike who makes most room,
    as of nodes.

    ``tried`` counts all, by what was changed.
    """

    def __init__(
        self,
        placement: Placement,
        refused: Sequence[Unplaced],
        wanted: Sequence[NewPod],
        budget: Budget,
        own: Set[str],
        cause: Finding | None = None,
        waiting: PodsWaiting | None = None,
        again: Again | None = None,
    ) -> None:
        """``refused`` are the pods that do not fit, ``wanted`` those to place with each change, or all ``again``.

        ``own`` are the keys of pods of the workloads that exist already; none of them is asked to end. ``cause`` is
        what stops the first pod that does not fit, ``waiting`` are other pods that may be placed first.
        """
        self._budget = budget
        self._snapshot = placement.state.snapshot
        self._own = own | {placed_pod.new.pod.key for placed_pod in placement.placed_pods}
        denied = {
            id(unplaced.new)
            for unplaced in refused
            if unplaced.denied is not None or unplaced.new.held or unplaced.new.pod.scheduling_gates
        }
        self._offered = _offered(cause)
        self._wanted = wanted
        self._waiting = waiting
        self._again = again
        self._placed = placement.placed_pods
        self._left = [new for new in wanted if id(new) not in denied]
        self.tried: Counter[ChangeSort] = Counter()
        self.found: tuple[More, ...] = ()
        first = next((unplaced for unplaced in refused if id(unplaced.new) not in denied), None)
        if self._left and first is not None:
            # What makes a replica whole is worth more than what does not.
            holders = sorted(
                self._holders(placement, first),
                key=lambda gain: (not gain.replicas, bool(gain.not_starting), *_asked(gain), -gain.pods),
            )
            nodes = sorted(self._nodes(placement.state), key=lambda gain: -gain.pods)
            rules = sorted(self._rules(placement.state), key=lambda gain: -gain.pods)
            self.found = tuple(
                sorted((*rules, *holders, *nodes), key=lambda gain: (not self._mends(gain), _destroys(gain)))
            )

    def _mends(self, gain: More) -> bool:
        """Whether a change ends the cause that is named, and no pod that works or waits for that."""
        change = gain.change
        if not isinstance(change, Free | EndPods) or self._offered.isdisjoint(change.keys):
            return False
        return change.price <= Price.WAIT

    def _rules(self, state: ClusterState) -> Iterator[More]:
        for rule in state.snapshot.taint_rules[:MAX_SHOWN]:
            self.tried[ChangeSort.RULES] += 1
            change = EndRule(rule.metadata.name)
            if helped := self._with(change, _changed(state, change)):
                yield helped

    def _holders(self, placement: Placement, first: Unplaced) -> list[More]:
        gains: list[More] = []
        end = self._budget.steps + ROOM_STEPS
        for room in _MakingRoom(placement.state, self._own, self._helps).ways(first, self._offered):
            if more := self._with(room.change, room.state):
                gains.append(more)
            if len(gains) == MAX_SHOWN or self._budget.steps > end:
                break
        return gains

    def _nodes(self, state: ClusterState) -> list[More]:
        gains: list[More] = []
        troubled, broken = troubled_nodes(state.snapshot), broken_nodes(state.snapshot)
        for more in islice(node_copies(state, troubled, broken), NODE_KINDS_TRIED):
            self.tried[ChangeSort.NODES] += 1
            change = OneMoreNode(more.like, more.exist)
            there = _changed(state, change, more)
            if self._takes(there) and (helped := self._with(change, there, more)):
                gains.append(helped)
        return gains[:MAX_SHOWN]

    def _helps(self, room: WithRoom) -> bool:
        self.tried[ChangeSort.CLAIMS if isinstance(room.change, Free) else ChangeSort.PODS] += 1
        return self._takes(room.state)

    def _takes(self, state: ClusterState) -> bool:
        """Whether a changed node takes any remaining sort of pod; groups are tried as a whole later."""
        if any(new.group[2] for new in self._left):
            return True
        kinds, nodes = {new.likeness: new for new in self._left}, state.cluster.touched()
        return any(attempt(new, state, self._budget, nodes).taking for new in kinds.values())

    def _with(self, change: ClusterChange, state: ClusterState, more: NodeCopy | None = None) -> More | None:
        """Number of pods more that fit with a change; None if none does or starts. ``more`` is its new node."""
        if self._again is not None:
            state = _changed(self._again.start, change, more)
        after = self._placement(state)
        gained = self._gained(after)
        begin = starting(gained, self._snapshot, after.state)
        if begin.lost == len(gained):
            return None
        number = self._wanted[0].workload
        still = {unplaced.new.ordinal.replica for unplaced in after.refused if unplaced.new.workload == number}
        if self._again is None:
            placed = {id(placed_pod.new) for placed_pod in after.placed_pods}
            still = {new.ordinal.replica for new in self._wanted if id(new) not in placed}
        whole = {new.ordinal.replica for new in self._wanted} - still
        rivals = self._rivals(state, len(gained))
        return More(change, len(gained), len(whole), begin.nodes, rivals)

    def _placement(self, state: ClusterState) -> Placement:
        if self._again is not None:
            return self._again.place(state)
        return Placer(state, self._budget, avoid=troubled_nodes(self._snapshot)).place_all(self._left)

    def _gained(self, after: Placement) -> Sequence[PlacedPod]:
        """The pods of the workload that are placed with a change, beside as many as without it."""
        if self._again is None:
            return after.placed_pods
        number = self._wanted[0].workload
        before = {placed_pod.new.pod.key for placed_pod in self._placed if placed_pod.new.workload == number}
        own = [placed_pod for placed_pod in after.placed_pods if placed_pod.new.workload == number]
        more = len(own) - len(before)
        # Those that were placed before come last: they may have another node now.
        own.sort(key=lambda placed_pod: placed_pod.new.pod.key in before)
        return own[: max(0, more)]

    def _rivals(self, state: ClusterState, fit: int) -> tuple[str, ...]:
        """The pods that wait and get a node with a change, if not so many of these fit after them."""
        takers, there = self._waiting.placed_in(state) if self._waiting is not None else ((), state)
        if not takers or len(self._gained(self._placement(there))) >= fit:
            return ()
        return tuple(taker.key for taker in takers)


def _changed(state: ClusterState, change: ClusterChange, more: NodeCopy | None = None) -> ClusterState:
    """A cluster with a change."""
    if isinstance(change, EndRule):
        return state.moved(state.cluster.tainting((), {change.rule}))
    if isinstance(change, Free):
        return state.moved(state.cluster.freeing([holder.claim for holder in change.holders]))
    if isinstance(change, EndPods):
        return state.moved(state.cluster.ending(change.ended))
    assert more is not None
    return state.moved(state.cluster.adding_node(more))


def _destroys(gain: More) -> bool:
    """Whether a change deletes something or ends a pod, and not only waits for it, or adds a node."""
    if isinstance(gain.change, EndRule):
        return True
    return isinstance(gain.change, Free | EndPods) and gain.change.price is not Price.WAIT


def _offered(cause: Finding | None) -> frozenset[str]:
    """The claims and pods whose end is the fix of a cause."""
    offers = cause.remedy.offers if cause is not None and cause.remedy is not None else ()
    return frozenset(key for offer in offers[:1] if isinstance(offer, Free | EndPods) for key in offer.keys)


def _asked(gain: More) -> tuple[object, ...]:
    """When to ask the holders of a change, whatever they have done so far; pods without claims come after them."""
    change = gain.change
    if isinstance(change, OneMoreNode | EndRule):
        return (True,)
    if isinstance(change, EndPods):
        return True, change.fewer is None and owner_of(change.ended[0]) is not None, len(change.ended)
    # What commands do comes first, then whom to ask first.
    asked = change.holders if not change.fewer else change.holders[:1]
    return False, not change.by_command, len(asked), max(holder.duty for holder in asked), len(change.ended_pods)


# Who could make room for a pod: claims that are given back, and pods that end, in the order in which to ask them.


NODES_OF_SETS: Final = 8


class WithRoom(NamedTuple):
    """The cluster after somebody has ended."""

    change: Free | EndPods
    state: ClusterState


_T = TypeVar("_T")


class _MakingRoom:
    """Who makes room in the cluster after what was placed.

    ``own`` are the keys of the workloads' pods; none of them is asked to end. ``helps``: whether a node takes a pod
    with a change.
    """

    def __init__(self, state: ClusterState, own: Set[str], helps: Callable[[WithRoom], bool]) -> None:
        self._state = state
        self._own = own
        self._helps = helps
        self._index = HolderIndex(state.cycle.state, state.cluster)

    def ways(self, first: Unplaced, offered: Set[str]) -> Iterator[WithRoom]:
        """The cluster after one holder has ended, the first to ask first; where none alone helps, after several have.

        ``first`` is the pod that does not fit, ``offered`` are the claims whose holders are tried before all others.
        """
        rejected = first.outcome.rejected if first.outcome is not None else {}
        full = {name for name, rejection in rejected.items() if rejection.resolvable}
        lacking = [name for name, rejection in rejected.items() if rejection.plugin is PluginName.DYNAMIC_RESOURCES]
        holders = sorted(self._holders({*full, *lacking}), key=lambda holder: holder.claim.key not in offered)
        freeing = (self._freeing([holder]) for holder in holders[:HOLDERS_TRIED])
        ending = (self._ending([pod]) for pod in self._without_claims(full)[:HOLDERS_TRIED])
        helped = False
        for room in chain(freeing, ending):
            if room is not None and self._helps(room):
                helped = True
                yield room
        if helped:
            return
        of_node: dict[str, list[ClaimHolder]] = defaultdict(list)
        for holder in holders:
            for home in self._homes(holder.claim):
                if home is not None:
                    of_node[home].append(holder)
        nodes = [*lacking, *sorted(full.difference(lacking))]
        yield from self._together([of_node[name] for name in nodes], self._freeing)
        pods = sorted((self._without_claims({name}) for name in sorted(full)), key=len)
        yield from self._together([few[:HOLDERS_TRIED] for few in pods], self._ending)

    def _holders(self, nodes: Set[str]) -> list[ClaimHolder]:
        """Holders of devices of these nodes, or of no node of their own, but the workload's and the system's pods."""
        there = {None, *nodes}
        claim_holders = []
        for claim in self._state.snapshot.claims.values():
            if claim.allocation is None or there.isdisjoint(self._homes(claim)) or _made_for(claim, self._own):
                continue
            holder = self._index.holder(claim)
            if self._spares(holder.pods):
                claim_holders.append(holder)
        return sorted(claim_holders, key=lambda holder: (holder.order, len(holder.claim.results), holder.claim.key))

    def _homes(self, claim: ResourceClaim) -> set[str | None]:
        """The nodes of the claim's devices; None for devices that several nodes can use."""
        return {self._state.cluster.homes.get(device.pool) for device in claim.devices}

    def _freeing(self, holders: Sequence[ClaimHolder]) -> WithRoom | None:
        """The cluster without these; None where they do not end for good, or end pods of the workloads as well."""
        return self._after(for_good(holders, self._index))

    def _ending(self, pods: Sequence[Pod]) -> WithRoom | None:
        """The same of pods without claims on one node: for good where a single owner makes them anew."""
        first = pods[0]
        owners = {replaced_by(pod) if not pod.metadata.deletion_timestamp else None for pod in pods}
        owner = next(iter(owners)) if len(owners) == 1 else None
        if owner is not None:
            fewer = fewer_replicas(scaled_by(first) or owner, pods, self._index.scaled_with(first))
            return self._after(EndPods.by(fewer) if fewer is not None else None)
        late_since = late(pods, Clock(self._state.snapshot)) if all_ending(pods) else ""
        keys = tuple(pod.key for pod in pods)
        return self._after(EndPods(first.node_name, keys, tuple(pods), (first.node_name,), late_since))

    def _after(self, change: Free | EndPods | None) -> WithRoom | None:
        if change is None or not self._spares(change.ended_pods):
            return None
        return WithRoom(change, _changed(self._state, change))

    def _spares(self, pods: Sequence[Pod]) -> bool:
        return all(can_end(pod) and pod.key not in self._own for pod in pods)

    def _without_claims(self, full: Set[str]) -> list[Pod]:
        """Pods without claims on nodes that are full of something else, the least important first."""
        there = (pod for pod in self._state.snapshot.pods.values() if pod.node_name in full)
        pods = [pod for pod in there if not pod.claims and not pod.finished and self._spares([pod])]
        pods.sort(key=lambda pod: pod.metadata.creation_timestamp, reverse=True)
        return sorted(pods, key=lambda pod: (pod.phase == "Running", pod.priority))

    def _together(
        self, of_nodes: Sequence[Sequence[_T]], without: Callable[[Sequence[_T]], WithRoom | None]
    ) -> Iterator[WithRoom]:
        """For a few nodes those of them who together are enough, and none too many; the fewest first."""

        def enough(some: Sequence[_T]) -> bool:
            return bool(some) and (room := without(some)) is not None and self._helps(room)

        rooms: list[WithRoom] = []
        for some in sorted((some for some in of_nodes if len(some) > 1), key=len)[:NODES_OF_SETS]:
            first = next(filter(enough, (some[:number] for number in range(2, len(some) + 1))), None)
            room = without(fewest(first, enough, last_first=True)) if first is not None else None
            if room is not None:
                rooms.append(room)
        yield from sorted(rooms, key=lambda room: len(room.change.keys))


def _made_for(claim: ResourceClaim, own: Set[str]) -> bool:
    """Whether the claim was made for one of these pods, and so again for its successor."""
    space = claim.metadata.namespace
    return any(owner.kind == "Pod" and f"{space}/{owner.name}" in own for owner in claim.metadata.owners)


# A diagnosis without remedies that end pods of the workload, or those which were placed to see whether they fit.

_EVEN_LESS: Final = "Raise maxSkew, use ScheduleAnyway, or make room in the emptiest domain."


def without_own(diagnosis: Diagnosis, own: Set[str], snapshot: Snapshot) -> Diagnosis:
    """The diagnosis without what asks for the end of these pods, each as ``namespace/name``."""
    ways = tuple(way for way in diagnosis.ways if not any(_ends(change, own) for change in way.changes))
    findings = [_finding(finding, own, snapshot) for finding in diagnosis.findings]
    affinity = next((at for at, finding in enumerate(findings) if finding.kind is AFFINITY), None)
    for at, finding in enumerate(findings):
        changed = finding.kind is NOT_FOR_NODE and finding is not diagnosis.findings[at]
        if changed and finding.evidence and all(of_spread(fact.field) for fact in finding.evidence):
            findings[at] = replace(finding, remedy=Remedy(_EVEN_LESS))
        by_rule = finding.kind is NOT_FOR_NODE and all(isinstance(fact.field, KeptApart) for fact in finding.evidence)
        if affinity is not None and by_rule and finding is not diagnosis.findings[at]:
            # Pods of the workload keep the others off free devices: what helps against their rule helps here.
            findings[at] = replace(finding, remedy=findings[affinity].remedy)
            findings[affinity] = replace(findings[affinity], remedy=None)
            break
    return replace(diagnosis, ways=ways, findings=tuple(findings))


def _finding(finding: Finding, own: Set[str], snapshot: Snapshot) -> Finding:
    remedy = finding.remedy
    if finding.kind is ELSEWHERE and remedy is None:
        space, _, name = finding.claim.partition("/")
        claim = snapshot.claims.get((space, name))
        users = claim.reserved_for if claim is not None else ()
        if all(user.is_pod and f"{space}/{user.name}" in own for user in users):
            return replace(finding, remedy=Remedy(SECOND_CLAIM))
    if remedy is None or not any(_ends(change, own) for change in remedy.offers):
        return finding
    return replace(finding, remedy=Remedy(finding.kind.fix))


def _ends(change: Change, own: Set[str]) -> bool:
    if isinstance(change, Free):
        return any(
            _made_for(holder.claim, own) or any(pod.key in own for pod in holder.pods) for holder in change.holders
        )
    return isinstance(change, EndPods) and bool(own & set(change.keys))
