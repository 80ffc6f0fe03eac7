"""Runs the scheduler's attempt again with a change, to prove that the change helps."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Container, Hashable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, ClassVar

from msgspec import Struct
from msgspec.structs import replace

from kubectl_dra.allocation.attempt import Attempt, AttemptVerdict, Cycle
from kubectl_dra.allocation.budgets import PROOF_NODES, PROOF_STEPS, QUICK_STEPS, REREAD_PER_STEP, Budget
from kubectl_dra.allocation.extended_resources import CLAIM_NAME, ExtendedRequests, extended_requests
from kubectl_dra.allocation.features import Features, Quirks
from kubectl_dra.allocation.pools import SliceIndex
from kubectl_dra.allocation.state import allocated_state
from kubectl_dra.api.claims import DeviceConstraint, DeviceRequest, ResourceClaim
from kubectl_dra.api.nodes import Node
from kubectl_dra.api.pods import Pod
from kubectl_dra.api.slices import ResourceSlice
from kubectl_dra.cluster.cluster import Cluster
from kubectl_dra.cluster.relation import relation_of
from kubectl_dra.cluster.snapshot import Key
from kubectl_dra.explain.phrase import Statement
from kubectl_dra.explain.question.what_if_flag import WhatIfChange
from kubectl_dra.explain.remedies.claim_edits import (
    RequestPlace,
    in_single_requests,
    limiting,
    needing_nothing,
    with_request,
    with_selector,
)
from kubectl_dra.explain.remedies.proof import ChangeStep, Price, Proof, placed_devices
from kubectl_dra.scheduling.chain import Chain
from kubectl_dra.scheduling.framework import after
from kubectl_dra.scheduling.memory import judge_at_once
from kubectl_dra.scheduling.outcome import Outcome
from kubectl_dra.scheduling.reasons import Rejection

if TYPE_CHECKING:
    from kubectl_dra.explain.eviction import Evictions
    from kubectl_dra.explain.funnel.search_refusals import Refusals


class Change(Statement, frozen=True, eq=False):
    """One change. Two that are ``about`` the same thing exclude each other.

    ``ASIDE`` names fields that do not distinguish changes, such as the nodes on which to try them. ``PRICE`` is what
    a change asks of people, and larger ``COST`` is tried later; both as far as its fields do not decide.
    """

    ASIDE: ClassVar[frozenset[str]] = frozenset()
    PRICE: ClassVar[Price] = Price.EDIT
    COST: ClassVar[int] = 1

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._told() == other._told()

    def __hash__(self) -> int:
        return hash(self._told())

    def _told(self) -> tuple[object, ...]:
        return tuple(getattr(self, name) for name in self.__struct_fields__ if name not in self.ASIDE)

    @property
    def about(self) -> Hashable:
        """What is changed."""
        raise NotImplementedError

    @property
    def price(self) -> Price:
        """What it asks of people."""
        return self.PRICE

    @property
    def cost(self) -> int:
        """Larger costs are tried later."""
        return self.COST

    @property
    def what_if(self) -> WhatIfChange | None:
        """The change as a value of ``--what-if``, if possible."""
        return None

    def made_in(self, world: WhatIf) -> WhatIf:
        """The world with the change."""
        raise NotImplementedError

    def step(self, world: WhatIf) -> ChangeStep:
        """The change as data, with what is in this world before it."""
        raise NotImplementedError


class Tries:
    """How many nodes may still be tried, without limit by default; a search ends if none are left."""

    def __init__(self, left: int = sys.maxsize) -> None:
        self.left = left


class WhatIf(Struct, frozen=True, dict=True):
    """A cluster and claims, as they are or as they would be.

    ``nodes`` are those that are tried: of those where the pod may run one of each kind. ``alike`` are all that the
    question is about. ``outcome`` is the attempt for the pod, of which the other filters than that for devices are
    asked; None where no pod waits for a node. Each change gives a new world; ``changed``: one that they may read.

    ``claims`` are those of the question that need devices. ``others`` are those that have some as things are, each
    with the number of ``claims`` before it: one that has given them back is asked for as well. ``lacking``: a claim
    that the pod names is gone, so it is not tried at all. ``extended`` is what devices may serve of the pod's extended
    resources; the claim for them asks on each node for what no device plugin serves there. ``ends``: the devices of
    the real cluster whose taints end pods; None if there are none.
    """

    cluster: Cluster
    cycle: Cycle
    claims: tuple[ResourceClaim, ...]
    nodes: tuple[Node, ...]
    outcome: Outcome | None = None
    changed: bool = False
    others: tuple[tuple[int, ResourceClaim], ...] = ()
    lacking: bool = False
    extended: ExtendedRequests | None = None
    ends: Evictions | None = None
    alike: tuple[Node, ...] = ()

    def request(self, place: RequestPlace) -> DeviceRequest:
        """One request or subrequest as it is here."""
        return self.claims[place.claim].requests[place.request].alternatives()[place.alternative]

    def proof(self, nodes: Sequence[Node] | None = None) -> Proof | None:
        """The first node that accepts the pod with its claims, and the devices; none if an error ends the attempt."""
        tried = self.nodes if nodes is None else nodes
        proof = next(self._proofs(self.cycle.changed(), tried, Tries(), PROOF_STEPS), None)
        return proof if proof is not None and self.ends_without_error(proof) else None

    def asked_on(self, node: Node) -> tuple[ResourceClaim, ...]:
        """The claims that need devices on a node, in the order in which they get them."""
        if self.extended is None:
            return self._asked
        served = self.extended.claim(self.extended.amounts.keys() - self.extended.delegated(node))
        if served is None:
            return self._asked
        names = {entry.name for entry in served.requests}
        out: list[ResourceClaim] = []
        for claim in self._asked:
            if claim.metadata.name == CLAIM_NAME:
                claim = replace(claim, requests=tuple(entry for entry in claim.requests if entry.name not in names))
            if claim.requests or claim.metadata.name != CLAIM_NAME:
                out.append(claim)
        return tuple(out)

    @property
    def _asked(self) -> tuple[ResourceClaim, ...]:
        """The claims that need devices."""
        claims = list(self.claims)
        for place, claim in reversed(self.others):
            if claim.allocation is None:
                claims.insert(place, claim)
        return tuple(claims)

    def proof_with(self, change: Change) -> Proof | None:
        """The proof that the pod fits with a change."""
        return change.made_in(self).proof()

    def with_all(self, changes: Iterable[Change]) -> WhatIf:
        """The world with all these changes."""
        world = self
        for change in changes:
            world = change.made_in(world)
        return world

    def quick_proof(self, changes: Iterable[Change], tries: Tries) -> Proof | None:
        """The proof that the pod fits with all these changes; also none if the tries do not suffice."""
        world = self.with_all(changes)
        return next(world._proofs(world.cycle.changed(), world.nodes, tries, QUICK_STEPS), None)

    def _proofs(self, cycle: Cycle, nodes: Sequence[Node], tries: Tries, steps: int) -> Iterator[Proof]:
        """A proof for each node that accepts the pod: the devices exist, and no filter refuses it."""
        if self.lacking or self._taken_by_no_pod:
            return
        if cycle.exact is not None:
            judge_at_once(cycle, nodes, self._asked)
        refused = False
        for node in self._tried(nodes, tries):
            attempt = self._attempt(cycle, node, steps)
            refused = refused or _allocates(attempt)
            if (proof := self._shown(cycle, node, attempt)) is not None:
                yield proof
        if not refused or not self.changed:
            return
        # Nodes with the same devices may differ in what the filters say.
        done = {node.name for node in nodes}
        others = (node for node in self.alike if node.name not in done and self._refusal(node) is None)
        for node in self._tried(islice(others, PROOF_NODES), tries):
            if (proof := self._shown(cycle, node, self._attempt(cycle, node, steps))) is not None:
                yield proof

    def _shown(self, cycle: Cycle, node: Node, attempt: Attempt) -> Proof | None:
        """What an attempt shows if the pod is taken."""
        if not _allocates(attempt):
            return None
        claims = self.asked_on(node)
        if self._never_binds(node) or not self._takes(attempt, cycle, claims):
            return None
        if self._ended_at_once(claims, attempt):
            return None
        return Proof(node.name, tuple(placed_devices(claims, attempt.results)), filters=self.outcome is not None)

    def _tried(self, nodes: Iterable[Node], tries: Tries) -> Iterator[Node]:
        for node in nodes:
            if not tries.left or self.cycle.exhausted:
                return
            tries.left -= 1
            yield node

    def ends_without_error(self, proof: Proof) -> bool:
        """Whether nothing on another node ends the pod's attempts: an error, or that it is taken and never binds.

        A search that gets further than before, or a node that was refused, may come to a device on which a selector
        fails.
        """
        cycle = self.cycle.changed()
        nodes = list(self.nodes)
        if self.changed:
            known = {node.name for node in nodes}
            nodes += islice((node for node in self.alike if node.name not in known), PROOF_NODES)
        for node in nodes:
            if node.name == proof.node or self._refusal(node) is not None:
                continue
            attempt = self._attempt(cycle, node, QUICK_STEPS)
            if attempt.verdict is AttemptVerdict.ERROR:
                return False
            if self._never_binds(node) and _allocates(attempt):
                return False
            if cycle.index.takes_of_nodes and _allocates(attempt):
                rejection = self._rejection(attempt, cycle, self.asked_on(node))
                if rejection is not None and rejection.error:
                    return False
        return not cycle.exhausted

    @cached_property
    def _others(self) -> Chain | None:
        """The filters but that for devices."""
        if self.outcome is None:
            return None
        if self.changed:
            read = self.cluster.snapshot
            self.cycle.budget.charge((len(read.nodes) + len(read.pods)) // REREAD_PER_STEP)
        return self.outcome.others

    def _refusal(self, node: Node) -> Rejection | None:
        """Why filters other than that for devices refuse the node."""
        if self._others is None or self.outcome is None or node.name not in self.outcome.state.nodes:
            return None
        return self._others.filter(self.outcome.state.nodes[node.name])

    def _takes(self, attempt: Attempt, cycle: Cycle, claims: Sequence[ResourceClaim]) -> bool:
        """Whether all filters accept the pod on a node where its claims, as they would be, are allocated like this."""
        return self._rejection(attempt, cycle, claims) is None

    def _rejection(self, attempt: Attempt, cycle: Cycle, claims: Sequence[ResourceClaim]) -> Rejection | None:
        """Why a filter refuses the pod where its claims are allocated like this."""
        if self._others is None or self.outcome is None:
            return None
        state = self.outcome.state
        node = state.nodes.get(attempt.node)
        if node is None:
            return None
        moved = state.moved(state.cluster.editing(*claims))
        # The scheduler deletes what an earlier attempt has left, and tries again.
        return self.outcome.given({node.name: attempt}, state=moved, cycle=cycle, retried=True).chain.filter(node)

    def _never_binds(self, node: Node) -> bool:
        return self.extended is not None and self.extended.never_binds(node)

    @property
    def _taken_by_no_pod(self) -> bool:
        """Whether the scheduler fails to add the pod to a claim that has its devices already."""
        pod = self.outcome.pod if self.outcome is not None else None
        if pod is None or not self.others:
            return False
        from kubectl_dra.scheduling.binding import takes_no_pod

        found = (claim for _, claim in self.others if takes_no_pod(claim, self.cycle.features))
        return any(not relation_of(claim, pod).listed for claim in found)

    def _ended_at_once(self, claims: Sequence[ResourceClaim], attempt: Attempt) -> bool:
        """Whether the pod would be evicted as soon as it has these devices."""
        if self.ends is None:
            return False
        from kubectl_dra.explain.eviction import held, placed

        had = held(claim for _, claim in self.others)
        first = self.ends.first([*had, *placed(claims, attempt.results)])
        return first is not None and not first.seconds

    def refusals(self) -> Refusals:
        """What the search refuses on the nodes because of devices that it picked before."""
        from kubectl_dra.explain.funnel.search_refusals import Refusals

        seen = Refusals()
        cycle = self.cycle.changed()
        for node in self.nodes:
            self._attempt(cycle, node, QUICK_STEPS, seen)
        return seen

    def _attempt(self, cycle: Cycle, node: Node, steps: int, observer: Refusals | None = None) -> Attempt:
        return cycle.attempt(node, self.asked_on(node), budget=Budget(max_steps=steps), observer=observer)

    def asking(self, claims: Iterable[ResourceClaim]) -> WhatIf:
        """The same cluster with other claims."""
        return replace(self, claims=tuple(claims))

    def _with_claim(self, index: int, claim: ResourceClaim) -> WhatIf:
        return self.asking((*self.claims[:index], claim, *self.claims[index + 1 :]))

    def editing(self, place: RequestPlace, edit: Callable[[DeviceRequest], DeviceRequest]) -> WhatIf:
        """One request or subrequest changed."""
        claim = self.claims[place.claim]
        return self._with_claim(place.claim, with_request(claim, place.request, place.alternative, edit))

    def limiting(self, container: str, resource: str, amount: int) -> WhatIf:
        """With another limit of an extended resource in one container, and the claim that the scheduler makes then."""
        if self.outcome is None:
            return self
        pod = limiting(self.outcome.pod, container, resource, amount)
        extended = extended_requests(pod, self.cycle.classes)
        made = extended.claim(extended.amounts) if extended is not None else None
        claims = (made if claim.metadata.name == CLAIM_NAME and made else claim for claim in self.claims)
        return replace(self.with_pod(pod), claims=tuple(claims), extended=extended)

    def setting_aside(self, requests: Container[tuple[int, int]]) -> WhatIf:
        """Without the requests at these (claim, request) indices, which then need nothing."""
        return self.asking(
            needing_nothing(claim, [number for number in range(len(claim.requests)) if (index, number) in requests])
            for index, claim in enumerate(self.claims)
        )

    def without_request(self, claim: int, request: int) -> WhatIf:
        """Without one whole request."""
        old = self.claims[claim]
        return self._with_claim(claim, replace(old, requests=(*old.requests[:request], *old.requests[request + 1 :])))

    def splitting(self, claim: int, request: int) -> WhatIf | None:
        """One request written as several of count 1; None for a prioritized list."""
        parted = in_single_requests(self.claims[claim], request)
        return self._with_claim(claim, parted) if parted is not None else None

    def with_selector(self, old: str, new: str) -> WhatIf:
        """A selector of a request or class replaced."""
        claims = tuple(with_selector(claim, old, new) for claim in self.claims)
        classes = {
            name: replace(entry, selectors=tuple(new if text == old else text for text in entry.selectors))
            for name, entry in self.cycle.classes.items()
        }
        return replace(self, cycle=self.cycle.changed(classes=classes), claims=claims)

    def constraints(self) -> Iterator[tuple[int, DeviceConstraint]]:
        """The constraints of all claims, each with the index of its claim."""
        for index, claim in enumerate(self.claims):
            for constraint in claim.constraints:
                yield index, constraint

    def without_constraint(self, claim: int, constraint: DeviceConstraint) -> WhatIf:
        """Without a constraint of one claim."""
        old = self.claims[claim]
        return self._with_claim(
            claim, replace(old, constraints=tuple(entry for entry in old.constraints if entry is not constraint))
        )

    def with_constraint(self, claim: int, old: DeviceConstraint, new: DeviceConstraint) -> WhatIf:
        """With a constraint replaced."""
        changed = tuple(new if entry is old else entry for entry in self.claims[claim].constraints)
        return self._with_claim(claim, replace(self.claims[claim], constraints=changed))

    def freeing(self, holders: Collection[ResourceClaim], deleted: Collection[Key] = ()) -> WhatIf:
        """Claims have given back their devices: the pods that use them have ended, or the claims are ``deleted``."""
        pod = self.outcome.pod.metadata if self.outcome is not None else None
        keep = (pod.namespace, pod.name) if pod is not None else None
        return self.moved(self.cluster.freeing(holders, keep, deleted))

    def moved(self, cluster: Cluster) -> WhatIf:
        """The same question in another cluster, which was made of this one by a change."""
        claims, was = cluster.snapshot.claims, self.outcome
        others = [(place, claims.get((claim.metadata.namespace, claim.metadata.name))) for place, claim in self.others]
        return replace(
            self,
            cluster=cluster,
            cycle=after(self.cycle, cluster.delta),
            outcome=was.changed(cluster) if was is not None else None,
            changed=was is not None,
            others=tuple((place, claim) for place, claim in others if claim is not None),
            lacking=self.lacking or any(claim is None for _, claim in others),
        )

    def with_pod(self, pod: Pod) -> WhatIf:
        """With another pod that waits."""
        was = self.outcome
        return replace(self, outcome=was.changed(pod=pod), changed=True) if was is not None else self

    def on_named(self, names: Container[str]) -> WhatIf:
        """The same question, also tried on those of these nodes that it concerns."""
        return self.also_on([node for node in self.alike if node.name in names][:PROOF_NODES])

    def publishing(self, slices: Iterable[ResourceSlice], instead_of: Container[str] = ()) -> WhatIf:
        """Further slices published, possibly replacing some by name."""
        kept = (entry for entry in self.cycle.index.slices if entry.name not in instead_of)
        return replace(self, cycle=self.cycle.changed(index=SliceIndex((*kept, *slices))))

    def with_features(self, features: Features) -> WhatIf:
        """An allocator with other features."""
        state = allocated_state(self.cluster.snapshot.claims.values(), features)
        return replace(self, cycle=self.cycle.changed(features=features, state=state))

    def with_quirks(self, quirks: Quirks) -> WhatIf:
        """An allocator with other defects."""
        return replace(self, cycle=self.cycle.changed(quirks=quirks))

    def also_on(self, more: Sequence[Node]) -> WhatIf:
        """The same question, tried on further nodes as well."""
        if not more:
            return self
        known = {node.name for node in self.nodes}
        return replace(self, nodes=(*self.nodes, *(node for node in more if node.name not in known)))


def _allocates(attempt: Attempt) -> bool:
    """Whether an attempt finds devices, none with what may keep the scheduler from giving it out (``unmodelled``)."""
    return attempt.verdict is AttemptVerdict.ALLOCATED and not any(
        picked.candidate.device.unmodelled for placed in attempt.placements for picked in placed
    )
