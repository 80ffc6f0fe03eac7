"""Holders of devices: the claims, and the pods that consume them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from enum import IntEnum, auto
from typing import Final

from msgspec import Struct

from kubectl_dra.allocation.pools import Pool
from kubectl_dra.allocation.state import AllocatedState
from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.meta import OwnerReference
from kubectl_dra.api.pods import MAKES_AGAIN, Owner, Pod, owner_of
from kubectl_dra.api.slices import DeviceID
from kubectl_dra.by_identity import ByIdentity
from kubectl_dra.cluster.claim_relation import ClaimRelation, Consumers, ListedConsumer, all_pods_known, consumers_of
from kubectl_dra.cluster.cluster import Cluster
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.explain.clock import GIVEN, Clock
from kubectl_dra.explain.phrase import Joined, ObjectName, Phrase, Words, named, say
from kubectl_dra.neighbours.gangs import JOBSET_NAME

STARTING: Final = timedelta(minutes=10)
"""A pod that does not run for longer than this does more than start."""


class HolderState(IntEnum):
    """What the consumers of a claim do, in the order in which people would take devices from them."""

    UNUSED = auto()
    """There are none."""
    ENDED = auto()
    """Pods that have finished or are gone, and the claim is reserved for them all the same."""
    ENDING = auto()
    """Pods in Terminating."""
    FOREIGN = auto()
    """Something other than a pod, which nothing releases by itself."""
    PENDING = auto()
    """Pods that do not run (yet)."""
    RUNNING = auto()
    """Pods that run, or that were not seen."""


_STANDING: Final = {
    ClaimRelation.BINDING: HolderState.PENDING,
    ClaimRelation.STARTING: HolderState.PENDING,
    ClaimRelation.RUNNING: HolderState.RUNNING,
    ClaimRelation.UNSEEN: HolderState.RUNNING,
    ClaimRelation.ENDING: HolderState.ENDING,
    ClaimRelation.FINISHED: HolderState.ENDED,
    ClaimRelation.NEVER_RAN: HolderState.ENDED,
    ClaimRelation.REPLACED: HolderState.ENDED,
    ClaimRelation.GONE: HolderState.ENDED,
    ClaimRelation.GROUP: HolderState.FOREIGN,
    ClaimRelation.FOREIGN: HolderState.FOREIGN,
}


class ClaimHolder(Struct, frozen=True):
    """Holder of a claim, with what matters for the order in which to ask for its devices.

    ``pods`` are the consumers that are known, ``owner`` what makes the first again, and ``alike`` how many pods of this
    owner there are. ``related``: the pod that waits has the same owner. ``holding`` is how many devices the pods give
    back when they end, those of other claims among them. ``age`` is how long the devices are held at
    least, ``lasting`` the same in words with a blank before, empty where it is not known. ``late`` is how long ago the
    grace period of pods in Terminating ended, in words; empty where they still have time.
    """

    claim: ResourceClaim
    standing: HolderState
    pods: tuple[Pod, ...] = ()
    owner: Owner | None = None
    alike: tuple[Pod, ...] = ()
    related: bool = False
    holding: int = 0
    age: timedelta = timedelta()
    lasting: Words = ""
    late: Words = ""

    @property
    def priority(self) -> int:
        """The highest priority among the pods."""
        return max((pod.priority for pod in self.pods), default=0)

    @property
    def users(self) -> Phrase:
        """The consumers by their names."""
        entries, space = self.claim.reserved_for, self.claim.metadata.namespace
        if any(entry.resource != "pods" for entry in entries):
            return say("{users:some}", users=[str(entry) for entry in entries])
        names = [f"{space}/{entry.name}" for entry in entries]
        return say("pod {names}" if len(names) == 1 else "pods {names:some 3}", names=names)

    @property
    def who(self) -> Phrase:
        """The holder and why it does not need the devices, as the subject of a sentence."""
        text = _WHO[self.standing]
        if self.standing is HolderState.ENDED and not self.pods:
            text = "claim {claim}, whose {users} {count:is|are} gone,"
        since = next((pod.metadata.deleted_at for pod in self.pods if pod.metadata.deletion_timestamp), "")
        return say(
            text,
            claim=named("ResourceClaim", self.claim),
            users=self.users,
            count=len(self.claim.reserved_for),
            since=since,
            lasting=self.lasting,
        )

    @property
    def replica(self) -> bool:
        """Whether it is a sibling of the pod that waits, and their owner makes another one if it ends."""
        return self.related and self.owner is not None and self.owner.kind in _REPLICATED

    @property
    def ends(self) -> bool:
        """Whether the pods may end by themselves: they run, and nothing keeps that many of them running for good."""
        kept = self.owner is not None and (self.owner.kind in _REPLICATED or self.owner.kind == "DaemonSet")
        return self.standing is HolderState.RUNNING and not kept

    @property
    def slow(self) -> bool:
        """Whether the pods do not run, and have had the time to start."""
        return self.standing is HolderState.PENDING and self.age >= STARTING

    @property
    def duty(self) -> tuple[HolderState, bool, bool, int]:
        """Order in which to ask: those that do not need them, those that are not made again, by priority."""
        kind = self.owner.kind if self.owner is not None else ""
        returning = kind in ("DaemonSet", "Node")
        return self.standing, self.related or returning, kind in MAKES_AGAIN, self.priority

    @property
    def order(self) -> tuple[object, ...]:
        """Sort key of the holders to ask: by duty, and among equals the youngest first."""
        return *self.duty, self.age


_REPLICATED: Final = frozenset(("Deployment", "ReplicaSet", "StatefulSet", "ReplicationController", "Rollout"))
_WHO: Final = {
    HolderState.UNUSED: "unused claim {claim}",
    HolderState.ENDED: "{users}, which {count:has|have} ended,",
    HolderState.ENDING: "{users}, Terminating since {since},",
    HolderState.FOREIGN: "claim {claim}, reserved for {users},",
    HolderState.PENDING: "{users}, Pending{lasting},",
    HolderState.RUNNING: "{users}",
}


def late(pods: Iterable[Pod], clock: Clock) -> Words:
    """Time since the grace period of the deleted pods ended; empty if one of them has time left."""
    due = [pod.metadata.deletion_timestamp for pod in pods if pod.metadata.deletion_timestamp]
    last = max(due, default="")
    return clock.ago(last) if last and clock.age(last) >= GIVEN else ""


def replicas_of_one(pod: Pod, asking: Pod) -> bool:
    """Whether pods have the same owner, which makes another one in the place of one that ends."""
    owner, made = pod.metadata.controller(), owner_of(pod)
    return owner is not None and owner == asking.metadata.controller() and made is not None and made.kind in _REPLICATED


def scaled_by(pod: Pod) -> Owner | None:
    """What says how many such pods there are: the owner, or the JobSet of its Job, which resumes a Job of its own."""
    owner = owner_of(pod)
    name = pod.metadata.labels.get(JOBSET_NAME, "") if owner is not None and owner.kind == "Job" else ""
    return Owner("JobSet", name) if name else owner


class HolderIndex:
    """Holders of devices, as the pod that asks for them sees them.

    A pod that is not known is named all the same. Where all pods of its namespace are known, it is gone.
    """

    def __init__(
        self,
        state: AllocatedState,
        cluster: Cluster,
        asking: Pod | None = None,
    ) -> None:
        self._state = state
        self.cluster = cluster
        self._pods = cluster.snapshot.pods
        self._clock = Clock(cluster.snapshot)
        self.asking = asking
        self._known = ByIdentity[ResourceClaim, ClaimHolder]()
        self._by_owner: dict[OwnerReference, list[Pod]] | None = None
        self._by_scale: dict[tuple[str, Owner], list[Pod]] | None = None
        self._described = ByIdentity[ResourceClaim, Phrase]()

    def claims(self, device: DeviceID) -> tuple[ResourceClaim, ...]:
        """The claims that hold a device."""
        return self._state.holders.get(device, ())

    def holder(self, claim: ResourceClaim) -> ClaimHolder:
        """The holder of a claim."""
        return self._known.of(claim, self._holder)

    def _holder(self, claim: ResourceClaim) -> ClaimHolder:
        uses = self.uses(claim)
        standing = max((_STANDING[use.relation] for use in uses.entries), default=HolderState.UNUSED)
        pods = uses.pods
        since = claim.allocation.timestamp if claim.allocation is not None else ""
        since = since or min((pod.status.start_time or pod.metadata.creation_timestamp for pod in pods), default="")
        owner = owner_of(pods[0]) if pods else None
        return ClaimHolder(
            claim,
            standing,
            pods,
            owner,
            self.alike(pods[0]) if owner is not None else (),
            related=self._related(pods),
            holding=self._holding(claim, pods),
            age=self._clock.age(since),
            lasting=self._clock.lasting(since),
            late=late(pods, self._clock) if standing is HolderState.ENDING else "",
        )

    def uses(self, claim: ResourceClaim) -> Consumers:
        """The consumers of a claim."""
        space = claim.metadata.namespace
        return consumers_of(claim, self._pods, complete=all_pods_known(self.cluster.snapshot, space))

    def alike(self, pod: Pod) -> tuple[Pod, ...]:
        """The pods of the same owner that have not ended."""
        if self._by_owner is None:
            self._by_owner = {}
            for other in self._pods.values():
                if not other.finished and (owner := other.metadata.controller()) is not None:
                    self._by_owner.setdefault(owner, []).append(other)
        own = pod.metadata.controller()
        return tuple(self._by_owner.get(own, ())) if own is not None else ()

    def scaled_with(self, pod: Pod) -> tuple[Pod, ...]:
        """The pods of the same Deployment, JobSet or other owner that says how many there are, that have not ended."""
        if self._by_scale is None:
            self._by_scale = {}
            for other in self._pods.values():
                if not other.finished and (owner := scaled_by(other)) is not None:
                    self._by_scale.setdefault((other.metadata.namespace, owner), []).append(other)
        scaled = scaled_by(pod)
        return tuple(self._by_scale.get((pod.metadata.namespace, scaled), ())) if scaled is not None else ()

    def _holding(self, claim: ResourceClaim, pods: tuple[Pod, ...]) -> int:
        """The devices of the claim, and of others that only its pods use."""
        if all(len(pod.claims) < 2 for pod in pods):
            return len(claim.results)
        return sum(len(freed.results) for freed in self.cluster.freed_with([claim]))

    def _related(self, pods: tuple[Pod, ...]) -> bool:
        asking = self.asking.metadata.controller() if self.asking is not None else None
        return asking is not None and any(pod.metadata.controller() == asking for pod in pods)

    def describe(self, device: DeviceID) -> Joined:
        """The holders of a device."""
        return Joined(tuple(self.describe_claim(claim) for claim in self.claims(device)), " and ")

    def users(self, claim: ResourceClaim) -> Words:
        """The users of a claim: its pods, or else the claim itself."""
        space = claim.metadata.namespace
        pods = [entry for entry in claim.reserved_for if entry.resource == "pods"]
        if len(pods) != len(claim.reserved_for) or not pods:
            return say("claim {key}", key=claim.key)
        return say("pod {names}", names=[f"{space}/{entry.name}" for entry in pods])

    def describe_claim(self, claim: ResourceClaim) -> Phrase:
        """A claim and its consumers: pods with phase, other kinds by name, or none."""
        return self._described.of(claim, self._describe)

    def _describe(self, claim: ResourceClaim) -> Phrase:
        consumers = [_consumer(claim, use) for use in self.uses(claim).entries]
        if not consumers:
            return say("claim {key} (unused)", key=named("ResourceClaim", claim))
        if not claim.metadata.deletion_timestamp:
            return say("claim {key} ({consumers:some 3})", key=named("ResourceClaim", claim), consumers=consumers)
        return say(
            "claim {key} ({consumers:some 3}; the claim is being deleted since {since})",
            key=named("ResourceClaim", claim),
            consumers=consumers,
            since=claim.metadata.deleted_at,
        )

    def of_counter_set(self, pool: Pool, counter_set: str) -> tuple[Phrase, ...]:
        """The allocated devices of a pool that draw on a counter set, with their claims."""
        drawing = {
            name
            for entry in (*pool.slices, *pool.other_slices)
            for device, name in zip(entry.devices, entry.names, strict=True)
            if any(consumption.counter_set == counter_set for consumption in device.consumes_counters)
        }
        return tuple(
            say("{device:bare} (claim {key})", device=device, key=named("ResourceClaim", claims[0]))
            for device, claims in sorted(self._state.holders.items())
            if device[:2] == pool.id and device.device in drawing
        )


def _consumer(claim: ResourceClaim, use: ListedConsumer) -> Phrase:
    """A consumer and what it does."""
    pod, name = use.pod, ObjectName("Pod", use.entry.name, claim.metadata.namespace)
    if not use.relation.of_pod:
        text = "{resource} {name}, which is not a pod: nothing releases it by itself"
        return say(text, resource=use.entry.resource, name=use.entry.name)
    if use.relation is ClaimRelation.GONE:
        return say("pod {name}, which does not exist any more", name=use.entry.name)
    if use.relation is ClaimRelation.REPLACED:
        return say("pod {name:bare}, an earlier one of that name", name=name)
    if pod is None:
        return say("pod {name}", name=use.entry.name)
    if pod.only_placed:
        return say("pod {name:bare}, placed before it", name=name)
    if pod.metadata.deletion_timestamp and not pod.finished:
        return say("pod {name:bare}, Terminating since {since}", name=name, since=pod.metadata.deleted_at)
    return say("pod {name:bare}, {phase}" if pod.phase else "pod {name:bare}", name=name, phase=pod.phase)


_KINDS: Final = {"pods": "Pod", "podgroups": "PodGroup"}


def consumers_named(claim: ResourceClaim) -> list[Phrase]:
    """The consumers for which a claim is reserved, according to its status."""
    out: list[Phrase] = []
    for entry in claim.reserved_for:
        kind = _KINDS.get(entry.resource)
        name = ObjectName(kind, entry.name, claim.metadata.namespace) if kind else entry.name
        out.append(say("{resource} {name:bare}", resource=entry.resource, name=name))
    return out


def owner_of_all(claim: ResourceClaim, pod: Pod | None, snapshot: Snapshot) -> Owner | None:
    """What controls a pod and all others for which its claim is reserved; None where that is not one."""
    owner = owner_of(pod) if pod is not None else None
    pods = (snapshot.pods.get((claim.metadata.namespace, user.name)) for user in claim.reserved_for if user.is_pod)
    users = [owner_of(user) if user is not None else None for user in pods]
    return owner if len(users) == len(claim.reserved_for) and all(user == owner for user in users) else None
