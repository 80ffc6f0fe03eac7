"""DynamicResources: the pod's ResourceClaims, allocated by ``allocation``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kubectl_dra.allocation.attempt import Attempt, AttemptVerdict
from kubectl_dra.allocation.budgets import Budget, unlimited
from kubectl_dra.allocation.extended_resources import CLAIM_NAME, MADE_FOR_EXTENDED, ExtendedRequests, extended_requests
from kubectl_dra.allocation.search_context import Observer
from kubectl_dra.api.behaviour import DEVICE_SCORES, NODE_RESOURCES_OF_DEVICES
from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.limits import MAX_CONSUMERS
from kubectl_dra.api.nodes import Node
from kubectl_dra.api.pods import Pod, PodClaim
from kubectl_dra.cluster.claim_relation import made_for, relation_of
from kubectl_dra.cluster.snapshot import Key
from kubectl_dra.scheduling.framework import ClusterState, NodeState, Plugin, ScorePlugin, share_of_best
from kubectl_dra.scheduling.node_equivalence import NodeAttempts
from kubectl_dra.scheduling.node_resources import Insufficient
from kubectl_dra.scheduling.node_resources_of_devices import (
    GATE,
    NOTHING,
    CannotTell,
    MappedClaimInUse,
    PublishedTwice,
    Taken,
    is_mapped,
    refusals,
    taken_on,
)
from kubectl_dra.scheduling.reasons import PluginName, Reason, Rejection

WORKLOAD_CLAIMS: Final = "DRAWorkloadResourceClaims"


class ClaimNotCreated(Reason, frozen=True):
    """The claim for an entry with a template does not exist yet."""

    TEXT = 'pod "{pod}": ResourceClaim not created yet'
    pod: str
    entry: str


class ClaimMissing(Reason, frozen=True):
    """A claim that the pod names does not exist."""

    TEXT = 'could not find ResourceClaim "{claim}"'
    claim: str


class ClaimDeleting(Reason, frozen=True):
    """A claim of the pod is being deleted."""

    claim: str

    @property
    def words(self) -> str:
        return f'resourceclaim "{self.claim.rpartition("/")[2]}" is being deleted'


class ClaimOfOther(Reason, frozen=True):
    """The claim generated for an entry of the pod has another owner."""

    TEXT = "ResourceClaim {claim} was not created for pod {pod} (pod is not owner)"
    pod: str
    claim: str


class ClaimInUse(Reason, frozen=True):
    """An allocated claim already has the maximum number of consumers."""

    TEXT = "resourceclaim in use"
    claim: str


class ClassMissing(Reason, frozen=True):
    """A request names a DeviceClass that does not exist."""

    TEXT = "request {request}: device class {device_class} does not exist"
    claim: str
    request: str
    device_class: str


class ClaimElsewhere(Reason, frozen=True):
    """Claims of the pod are allocated for other nodes."""

    TEXT = "resourceclaim not available on the node"
    claims: tuple[str, ...]


class LeftoverClaim(Reason, frozen=True):
    """An earlier attempt left its claim for extended resources; the scheduler deletes it and retries."""

    TEXT = "cannot schedule extended resource claim"
    claim: str


class NotAllocatable(Reason, frozen=True):
    """The allocator finds no devices on this node; ``message`` is its text."""

    message: str

    @property
    def words(self) -> str:
        return self.message


class AllocationFailed(Reason, frozen=True):
    """The allocator stops with an error, which ends the pod's attempt on all nodes."""

    message: str

    @property
    def words(self) -> str:
        return self.message


class SearchNotEnded(Reason, frozen=True):
    """Our search did not end within its steps, so the answer for this node is unknown."""

    TEXT = "cannot allocate all claims"


class ClaimsAlone(Struct, frozen=True):
    """Claims, by namespace and name, that are asked about without a pod that waits for a node.

    ``extended``: what devices may serve of a pod's extended resources.
    """

    claims: tuple[Key, ...]
    extended: ExtendedRequests | None = None


class DynamicResources(Plugin):
    """Refuses nodes on which the pod's claims cannot be satisfied together.

    ``attempts`` are those made here, by node, ``made`` those made before. ``unavailable`` are allocated claims that
    some node could not use; the scheduler gives back one that has no consumer (``freed``). ``alone``: these claims are
    asked about, and no pod. ``retried``: what an earlier attempt left behind is gone. ``unlike``: see ``NodeAttempts``.
    """

    name = PluginName.DYNAMIC_RESOURCES

    def __init__(
        self,
        pod: Pod,
        state: ClusterState,
        budget: Budget | None = None,
        *,
        made: Mapping[str, Attempt] = {},
        alone: ClaimsAlone | None = None,
        retried: bool = False,
        unlike: bool = False,
    ) -> None:
        super().__init__(pod, state)
        self.attempts: dict[str, Attempt] = {}
        self._made = made
        self.unavailable: dict[str, ResourceClaim] = {}
        # By the allocator's text: one object for all nodes that it refuses with it.
        self._refusals: dict[str, Rejection] = {}
        self.cycle = state.cycle.changed()
        self._budget = budget or unlimited()
        self._on_nodes = NodeAttempts(self.cycle, self._budget, unlike=unlike)
        self.claims: tuple[ResourceClaim, ...] = ()
        self.extended: ExtendedRequests | None = None
        self._alone = alone is not None
        self._retried = retried
        if alone is not None:
            known = (state.snapshot.claims.get(key) for key in alone.claims)
            self.claims = tuple(claim for claim in known if claim is not None)
            self.extended = alone.extended
            return
        resolved = list(resolve(pod, state))
        if reasons := tuple(refusal for refusal in resolved if isinstance(refusal, Reason)):
            self.rejection = Rejection(self.name, reasons[:1])
            return
        self.claims = tuple(claim for claim in resolved if isinstance(claim, ResourceClaim))
        if self.cycle.features.extended_resources:
            self.extended = extended_requests(pod, state.snapshot.classes)
        self.skipped = not self.claims and self.extended is None
        if reason := next(self._hopeless(), None):
            self.rejection = Rejection(self.name, (reason,))

    @cached_property
    def leftover(self) -> ResourceClaim | None:
        """The claim for extended resources that an earlier attempt made for this pod."""
        uid = self.pod.metadata.uid
        if self.extended is None or self._retried or not uid:
            return None
        for claim in self.state.snapshot.claims.values():
            if claim.metadata.name == CLAIM_NAME or claim.metadata.annotations.get(MADE_FOR_EXTENDED) != "true":
                continue
            if any(owner.uid == uid for owner in claim.metadata.owners):
                return claim
        return None

    def on(self, node: str) -> Attempt | None:
        """The attempt on a node; None if none was made."""
        return self.attempts.get(node) or self._made.get(node)

    @property
    def unallocated(self) -> list[ResourceClaim]:
        """The claims of the pod that need devices, in order, without the one for extended resources."""
        return [claim for claim in self.claims if claim.allocation is None]

    @property
    def allocated(self) -> list[ResourceClaim]:
        """The claims of the pod that have devices already."""
        return [claim for claim in self.claims if claim.allocation is not None]

    def given_on(self, node: Node) -> list[ResourceClaim]:
        """The claims to allocate on a node, with the devices that the attempt found; none where it found none."""
        attempt = self.on(node.name)
        if attempt is None or not attempt.allocations:
            return []
        pairs = zip(self.claims_on(node), attempt.allocations, strict=True)
        return [replace(claim, allocation=allocation) for claim, allocation in pairs]

    def claims_on(self, node: Node) -> list[ResourceClaim]:
        """The claims to allocate on a node, including one for the extended resources that the node does not offer."""
        if self.extended is None:
            return self.unallocated
        own = self.extended.claim(self.extended.delegated(node))
        return [*self.unallocated, own] if own else self.unallocated

    def filter(self, node: NodeState) -> Rejection | None:
        if self.leftover is not None:
            return Rejection(self.name, (LeftoverClaim(self.leftover.key),))
        elsewhere: list[ResourceClaim] = []
        for claim in self.claims:
            if claim.allocation and not claim.allocation.usable_on(node.node):
                elsewhere.append(claim)
            elif claim.key in self._mapped_of_others:
                return Rejection(self.name, (MappedClaimInUse(claim.key),))
        if claims := self.claims_on(node.node):
            attempt = self.attempt(node.node, claims)
            if attempt.verdict is not AttemptVerdict.ALLOCATED:
                return self._refused(attempt)
        if self.takes_of_nodes and (rejection := self._short(node)) is not None:
            return rejection
        if elsewhere:
            self.unavailable.update((claim.key, claim) for claim in elsewhere)
            return Rejection(self.name, (ClaimElsewhere(tuple(claim.key for claim in elsewhere)),))
        return None

    @cached_property
    def takes_of_nodes(self) -> bool:
        """Whether what devices take of their nodes counts: by the gate, and where any device takes something."""
        if self._alone or GATE not in self.state.gates or self.state.release not in NODE_RESOURCES_OF_DEVICES:
            return False
        return self.cycle.index.takes_of_nodes

    def taken_on(self, node: Node) -> Taken:
        """What the devices of the pod's claims, as they are or were just allocated on a node, take of it.

        Raises:
            CannotTell: the scheduler cannot compute it, or we do not know.
        """
        if not self.takes_of_nodes:
            return NOTHING
        claims = (*self.allocated, *self.given_on(node))
        return taken_on(node, self.pod, claims, self._names, self.cycle.index.by_pool)

    def _short(self, node: NodeState) -> Rejection | None:
        try:
            taken = self.taken_on(node.node)
        except CannotTell as error:
            return Rejection(self.name, (error.reason,), error=not isinstance(error.reason, PublishedTwice))
        reasons = refusals(self.pod, node, taken, self.state.rules) if taken.claims else ()
        if not reasons:
            return None
        resolvable = all(isinstance(reason, Insufficient) and not reason.never for reason in reasons)
        return Rejection(self.name, reasons, resolvable=resolvable)

    @property
    def _names(self) -> Mapping[str, str]:
        """The claim's name for each entry of the pod that has one."""
        pairs = ((claim.name, _claim_name(self.pod, claim)[0]) for claim in self.pod.claims)
        return {pod_claim: name for pod_claim, name in pairs if name is not None}

    @cached_property
    def _mapped_of_others(self) -> frozenset[str]:
        """The claims that other pods use and whose devices stand for resources of a node: those are for one pod."""
        if not self.takes_of_nodes:
            return frozenset()
        return frozenset(
            claim.key
            for claim in self.claims
            if claim.allocation is not None
            and claim.reserved_for
            and not self._listed(claim, groups=WORKLOAD_CLAIMS in self.state.gates)
            and is_mapped(claim, self.cycle.index.by_pool)
        )

    def _listed(self, claim: ResourceClaim, *, groups: bool) -> bool:
        """Whether the claim is reserved for the pod, or with ``groups`` for its PodGroup."""
        return relation_of(claim, self.pod, groups=groups).listed

    @property
    def freed(self) -> ResourceClaim | None:
        """The unused claim that the scheduler gives back because its devices are where the pod cannot run."""
        for claim in self.unavailable.values():
            users = len(claim.reserved_for)
            if not users or (users == 1 and self._listed(claim, groups=False)):
                return claim
        return None

    def _hopeless(self) -> Iterator[Reason]:
        groups = WORKLOAD_CLAIMS in self.state.gates
        for claim in self.claims:
            if claim.allocation is not None:
                if len(claim.reserved_for) >= MAX_CONSUMERS and not self._listed(claim, groups=groups):
                    yield ClaimInUse(claim.key)
                continue
            for request in claim.requests:
                for spec in request.alternatives():
                    if spec.device_class not in self.cycle.classes:
                        yield ClassMissing(claim.key, request.result_name(spec), spec.device_class)

    def attempt(self, node: Node, claims: Sequence[ResourceClaim]) -> Attempt:
        """The attempt on a node with the claims to allocate there."""
        known = self.on(node.name)
        if known is None:
            delegated = frozenset() if self.extended is None else self.extended.delegated(node)
            known = self.attempts[node.name] = self._on_nodes.on(node, claims, delegated)
        return known

    def watched(self, node: Node, observer: Observer) -> None:
        """An attempt on a node of which somebody sees every step."""
        self.cycle.attempt(node, self.claims_on(node), budget=self._budget.search(), observer=observer)

    def _refused(self, attempt: Attempt) -> Rejection:
        if attempt.verdict is AttemptVerdict.ERROR:
            return Rejection(self.name, (AllocationFailed(attempt.message),), error=True)
        if attempt.verdict is AttemptVerdict.UNDETERMINED:
            return Rejection(self.name, (SearchNotEnded(),))
        known = self._refusals.get(attempt.message)
        if known is None:
            known = self._refusals[attempt.message] = Rejection(self.name, (NotAllocatable(attempt.message),))
        return known


def resolve(pod: Pod, state: ClusterState) -> Iterator[ResourceClaim | Reason]:
    """The claims of the pod's entries in order, or the reason why one is unavailable. Entries without need of
    a claim are skipped.
    """
    for pod_claim in pod.claims:
        name, generated = _claim_name(pod, pod_claim)
        if name is None:
            if not generated:
                yield ClaimNotCreated(pod.key, pod_claim.name)
            continue
        key = (pod.metadata.namespace, name)
        claim = state.snapshot.claims.get(key)
        if claim is None:
            yield ClaimMissing("/".join(key))
        elif claim.metadata.deletion_timestamp:
            yield ClaimDeleting(claim.key)
        elif generated and not made_for(claim, pod, pod.pod_group):
            yield ClaimOfOther(pod.key, claim.key)
        else:
            yield claim


def _claim_name(pod: Pod, pod_claim: PodClaim) -> tuple[str | None, bool]:
    """The claim of an entry (None if there is none), and whether the controller has decided about the entry."""
    if pod_claim.claim_name:
        return pod_claim.claim_name, False
    statuses = pod.claim_statuses
    return statuses.get(pod_claim.name), pod_claim.name in statuses


# DynamicResources: nodes that can serve earlier subrequests (firstAvailable) score higher.

_MOST_SUBREQUESTS: Final = 8


class DynamicResourcesScore(ScorePlugin):
    """The plugin for one pod. ``preference`` maps each node to the ``preference`` of its allocation."""

    name = PluginName.DYNAMIC_RESOURCES

    def __init__(
        self, pod: Pod, state: ClusterState, nodes: Sequence[NodeState], preference: Mapping[str, int]
    ) -> None:
        super().__init__(pod, state, nodes)
        self._preference = preference
        self.skipped = not preference or state.release not in DEVICE_SCORES

    def scores(self) -> Mapping[str, int]:
        return share_of_best({node.name: self._preference.get(node.name, 0) for node in self.nodes})


def preference(claim: ResourceClaim) -> int:
    """Score of its allocation by the claim's choices: 8 per first subrequest, 7 per second …"""
    chosen = {result.request for result in claim.results}
    return sum(
        _MOST_SUBREQUESTS - place
        for request in claim.requests
        for place, spec in enumerate(request.first_available)
        if f"{request.name}/{spec.name}" in chosen
    )
