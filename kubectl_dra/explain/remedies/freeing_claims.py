"""Claims that give their devices back: who has to end for it, and which holder's end is enough."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from heapq import nsmallest
from typing import Final, NamedTuple

from msgspec.structs import replace

from kubectl_dra.allocation.budgets import HOLDERS_COUNTED, HOLDERS_TRIED
from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.nodes import Node
from kubectl_dra.api.pods import MAKES_AGAIN, Owner, Pod, owner_of
from kubectl_dra.cluster.cluster import Cluster
from kubectl_dra.cluster.snapshot import Key
from kubectl_dra.explain.funnel.blocked import Blocked
from kubectl_dra.explain.funnel.device_view import MAX_NEAR, DeviceView, PublishedDevice
from kubectl_dra.explain.holders import ClaimHolder, HolderIndex, HolderState, scaled_by
from kubectl_dra.explain.phrase import Joined, Phrase, Words, say
from kubectl_dra.explain.question.what_if_flag import WhatIfChange
from kubectl_dra.explain.remedies.ending_pods import FewerReplicas, fewer_replicas
from kubectl_dra.explain.remedies.proof_result import ChangeStep, Price, Proof, StepHolder, StepKind, StepTarget
from kubectl_dra.explain.remedies.prove import Change, WhatIf
from kubectl_dra.scheduling.default_preemption import fewest

_PRICES: Final = {
    HolderState.UNUSED: Price.NOTHING,
    HolderState.ENDED: Price.WAIT,
    HolderState.ENDING: Price.WAIT,
    HolderState.FOREIGN: Price.END_IDLE,
    HolderState.PENDING: Price.END_IDLE,
    HolderState.RUNNING: Price.END_RUNNING,
}

USED: Final = (HolderState.PENDING, HolderState.RUNNING)
"""States of pods that end only if they are ended."""


class Free(Change, frozen=True):
    """Claims that give their devices back, because their ``holders`` end; ``near`` are nodes where to try it.

    ``fewer``: how the owners of their pods end them for good, and with them the pods of other holders among these.
    """

    TEXT = "{what}"
    ASIDE = frozenset(("holders", "near", "fewer"))
    keys: tuple[str, ...]
    holders: tuple[ClaimHolder, ...]
    near: tuple[Node, ...] = ()
    fewer: tuple[FewerReplicas, ...] = ()

    @classmethod
    def of(cls, holders: Sequence[ClaimHolder], near: Sequence[Node]) -> Free:
        """The claims of these holders."""
        return cls(tuple(holder.claim.key for holder in holders), tuple(holders), tuple(near))

    @property
    def what(self) -> Words:
        """What has to be done."""
        several = [fewer for fewer in self.fewer if len(fewer.ended) > 1]
        replicas = {fewer.owner: fewer.replicas for fewer in self.fewer}
        alone = (_ending(holder, replicas) for holder in self.beside(several))
        return Joined((*(fewer.what for fewer in several), *alone), " and ")

    def beside(self, fewer: Iterable[FewerReplicas]) -> list[ClaimHolder]:
        """The holders of which these end no pod."""
        ended = {pod.key for change in fewer for pod in change.ended}
        return [holder for holder in self.holders if not any(pod.key in ended for pod in holder.pods)]

    @property
    def by_command(self) -> bool:
        """Whether commands do it: each pod is nobody's, or its owner has a number of replicas without it."""
        by_owner = {pod.key for fewer in self.fewer for pod in fewer.ended}
        used = [pod for holder in self.holders if holder.standing in USED for pod in holder.pods]
        seen = not by_owner or all(len(holder.pods) == len(holder.claim.reserved_for) for holder in self.holders)
        return seen and all(pod.key in by_owner or owner_of(pod) is None for pod in used)

    @property
    def devices(self) -> int:
        """Number of devices that are given back."""
        return sum(len(holder.claim.results) for holder in self.holders)

    @property
    def about(self) -> Hashable:
        return "free", self.keys

    @property
    def price(self) -> Price:
        return max(_PRICES[holder.standing] for holder in self.holders)

    @property
    def cost(self) -> int:
        return 2 * self.price + self.devices

    @property
    def what_if(self) -> WhatIfChange | None:
        return WhatIfChange("", "free", ",".join(self.keys))

    @property
    def ended_pods(self) -> tuple[Pod, ...]:
        return tuple(pod for holder in self.holders for pod in holder.pods if not pod.finished)

    def made_in(self, what_if: WhatIf) -> WhatIf:
        return what_if.for_all(self).also_on(self.near)

    def made_for_all(self, cluster: Cluster, keep: Key | None) -> Cluster | None:
        # Of an unused claim no end of a pod gives anything back: the claim itself has to go.
        metas = [holder.claim.metadata for holder in self.holders if holder.standing is HolderState.UNUSED]
        gone = [(meta.namespace, meta.name) for meta in metas]
        return cluster.freeing([holder.claim for holder in self.holders], keep, gone)

    def step(self, what_if: WhatIf) -> ChangeStep:
        return ChangeStep(
            StepKind.RELEASE_CLAIMS,
            StepTarget(self.keys),
            frees=tuple(device for holder in self.holders for device in holder.claim.devices),
            holders=tuple(_holder(holder) for holder in self.holders),
        )


def _holder(holder: ClaimHolder) -> StepHolder:
    """A holder as data; its priority only where all its pods are known."""
    known = holder.pods and len(holder.pods) == len(holder.claim.reserved_for)
    return StepHolder(
        holder.claim.key,
        holder.standing.name.lower(),
        tuple(consumer.name for consumer in holder.claim.reserved_for if consumer.resource == "pods"),
        holder.owner.kind if holder.owner is not None else "",
        holder.owner.name if holder.owner is not None else "",
        holder.priority if known else None,
    )


def _ending(holder: ClaimHolder, replicas: Mapping[Owner, int]) -> Phrase:
    """What has to become of one holder, and how many ``replicas`` its owner has without it."""
    claim = holder.claim
    text = _TEXTS[holder.standing]
    if holder.standing is HolderState.ENDED and not holder.pods:
        text = "wait until kube-controller-manager releases claim {key}: {pods} {users:does|do} not exist any more"
    if holder.late:
        text = (
            "get {pods} to end (Terminating, {users:its|their} grace period ended {late}, {users:holds|hold} "
            "{held:device})"
        )
    known = len(holder.pods) == len(claim.reserved_for)
    unseen = "; the pod was not seen" if len(claim.reserved_for) == 1 else "; not all were seen"
    return say(
        text,
        key=claim.key,
        pods=holder.users,
        users=len(claim.reserved_for),
        held=holder.holding or len(claim.results),
        holding=say("{users:has|have} held" if holder.lasting else "{users:holds|hold}", users=len(claim.reserved_for)),
        lasting=holder.lasting,
        late=holder.late,
        since=next((pod.metadata.deleted_at for pod in holder.pods if pod.metadata.deletion_timestamp), ""),
        priority=say(", priority {priority}", priority=holder.priority) if known else unseen,
        owner=_owner(holder, replicas),
    )


_TEXTS: Final = {
    HolderState.UNUSED: "delete unused claim {key} if nobody needs it",
    HolderState.ENDED: "wait until kube-controller-manager releases claim {key}: {pods} {users:has|have} ended",
    HolderState.ENDING: (
        "wait until {pods} {users:has|have} ended (Terminating since {since}, {users:holds|hold} {held:device})"
    ),
    HolderState.FOREIGN: "release claim {key}, which is reserved for {pods}: nothing else releases it",
    HolderState.PENDING: "end {pods} (Pending{lasting}, {users:holds|hold} {held:device}{owner})",
    HolderState.RUNNING: "end {pods} ({holding} {held:device}{lasting}{priority}{owner})",
}


def _owner(holder: ClaimHolder, replicas: Mapping[Owner, int]) -> Words:
    """What makes the pod again, and what keeps it from that, or what it belongs to."""
    if holder.owner is None:
        return ""
    text = "; it belongs to {owner}"
    if holder.owner.kind in MAKES_AGAIN:
        text = "; {owner} recreates it"
    if holder.owner in replicas:
        text += " unless suspended" if holder.owner.kind == "Job" else " unless scaled to {replicas}"
    return say(text, owner=str(holder.owner), replicas=replicas.get(holder.owner, 0))


def freeing(claim: ResourceClaim, view: DeviceView, holders: HolderIndex) -> Free | None:
    """One claim that gives its devices back; None where nothing ends its pods for good."""
    return for_good([holders.holder(claim)], holders, view.held_near(claim))


def for_good(asked: Sequence[ClaimHolder], holders: HolderIndex, near: Sequence[Node] = ()) -> Free | None:
    """These holders end, and with pods that their owner would make again those that end with fewer replicas of it.

    None where no number of replicas is without them, or the pod that waits would end as well.
    """
    pods = {pod.key: pod for holder in asked if holder.standing in USED for pod in holder.pods}
    of_owner: dict[Owner, list[Pod]] = {}
    for pod in pods.values():
        owner, scaled = owner_of(pod), scaled_by(pod)
        if owner is not None and owner.kind in MAKES_AGAIN and scaled is not None:
            of_owner.setdefault(scaled, []).append(pod)
    fewer = [fewer_replicas(owner, own, holders.scaled_with(own[0])) for owner, own in of_owner.items()]
    found = [change for change in fewer if change is not None]
    ended = {**pods, **{pod.key: pod for change in found for pod in change.ended}}
    if len(found) < len(fewer) or (holders.asking is not None and holders.asking.key in ended):
        return None
    claims = {holder.claim.key: holder for holder in asked}
    more = ended.keys() != pods.keys()
    for pod in ended.values() if more else ():
        space = pod.metadata.namespace
        for name in pod.claim_names:
            claim = holders.cluster.snapshot.claims.get((space, name))
            if claim is None or claim.allocation is None or claim.key in claims:
                continue
            if all(f"{space}/{use.name}" in ended for use in claim.reserved_for):
                claims[claim.key] = holders.holder(claim)
    # Whoever of them is asked first, it is the same change.
    ordered = [claims[key] for key in sorted(claims)] if more else list(claims.values())
    return replace(Free.of(ordered, near), fewer=tuple(found))


class HolderSearch(NamedTuple):
    """What came of looking for holders whose end is enough: the first that is, and how many of all were tried."""

    found: tuple[Free, Proof] | None
    tried: int
    of: int


def first_enough(what_if: WhatIf, frees: Sequence[Free]) -> HolderSearch:
    """The first of these changes that is proved to be enough."""
    tried = 0
    for free in frees[:HOLDERS_TRIED]:
        tried += 1
        if (proof := free.made_in(what_if).proof(free.near or None)) is not None:
            return HolderSearch((free, proof), tried, len(frees))
    return HolderSearch(None, tried, len(frees))


# Whose end would leave a node with enough devices for a request, one holder or several, by counting alone.

NODES_OF_SETS: Final = 5


class Spot(NamedTuple):
    """A node that lacks ``lacking`` devices, and those that it loses because they are held."""

    lacking: int
    node: str
    lost: Sequence[PublishedDevice]


class InTheWay(NamedTuple):
    """``single``: holders of whom each one alone is enough, in the order in which to ask them.

    ``spots`` are the nodes, the nearest to having enough first; ``every``: no node and no holder was left out.
    """

    single: list[Free]
    spots: list[Spot]
    every: bool


def in_the_way(blocked: Blocked) -> InTheWay:
    """The holders in the way of a request that falls short at the stage of devices that are held."""
    spots = nsmallest(HOLDERS_COUNTED, _spots(blocked), lambda spot: spot.lacking)
    holders = blocked.analysis.holders
    claims: dict[int, ResourceClaim] = {}
    where: dict[int, list[Spot]] = {}
    for spot in spots:
        for claim in _claims(spot, holders):
            if len(_freed(spot, [claim], holders)) >= spot.lacking:
                claims[id(claim)] = claim
                where.setdefault(id(claim), []).append(spot)

    def order(claim: ResourceClaim) -> tuple[object, ...]:
        return holders.holder(claim).order, where[id(claim)][0].lacking, len(claim.results), claim.key

    first = nsmallest(HOLDERS_TRIED, claims.values(), order)
    single = [for_good([holders.holder(claim)], holders, _nodes(blocked, where[id(claim)])) for claim in first]
    every = len(spots) == len(blocked.nodes) and None not in single and len(single) == len(claims)
    return InTheWay(fewest_first(single), spots, every)


def fewest_first(frees: Iterable[Free | None]) -> list[Free]:
    """Each change once; of holders to ask alike, first the one with whom the fewest pods end."""
    distinct = dict.fromkeys(free for free in frees if free is not None)
    return sorted(distinct, key=lambda free: (free.holders[0].duty, len(free.ended_pods)))


def sets_of_holders(blocked: Blocked, spots: Sequence[Spot]) -> Iterator[Free]:
    """One set of holders for each of the nearest nodes: those who are asked first, and none too many."""
    holders = blocked.analysis.holders
    for spot in spots[:NODES_OF_SETS]:

        def enough(claims: Sequence[ResourceClaim], spot: Spot = spot) -> bool:
            return len(_freed(spot, claims, holders)) >= spot.lacking

        ranked = sorted(_claims(spot, holders), key=lambda claim: holders.holder(claim).order)
        first = next((ranked[:number] for number in range(1, len(ranked) + 1) if enough(ranked[:number])), None)
        if first is None:
            continue
        claims = fewest(first, enough, last_first=True)
        free = for_good([holders.holder(claim) for claim in claims], holders, _nodes(blocked, [spot]))
        if free is not None:
            yield free


def _spots(blocked: Blocked) -> Iterator[Spot]:
    position = blocked.funnel.stages.index(blocked.stage)
    for name in blocked.nodes:
        lost, _, remaining = blocked.funnel.lost_on([name], position)
        yield Spot(blocked.funnel.needed_on(name) - remaining, name, lost)


def _nodes(blocked: Blocked, spots: Sequence[Spot]) -> list[Node]:
    return [blocked.view.node_by_name[spot.node] for spot in spots[:MAX_NEAR]]


def _claims(spot: Spot, holders: HolderIndex) -> list[ResourceClaim]:
    return list({id(claim): claim for item in spot.lost for claim in holders.claims(item.id)}.values())


def _freed(spot: Spot, ended: Sequence[ResourceClaim], holders: HolderIndex) -> list[PublishedDevice]:
    """The devices that are free when these claims are given back, and with them what else only their pods use."""
    given = holders.cluster.freed_with(ended, _claims(spot, holders))
    free = {id(claim) for claim in given}
    return [item for item in spot.lost if all(id(claim) in free for claim in holders.claims(item.id))]
