"""Runs the scheduler's attempt again with a change, to prove that the change helps."""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Sequence
from functools import cached_property, reduce
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar

from msgspec import Struct
from msgspec.structs import replace

from kubectl_dra.allocation.attempt import AttemptVerdict
from kubectl_dra.allocation.budgets import (
    COUNTING_NODES_STEPS,
    NODES_COUNTED,
    PROOF_NODES,
    PROOF_STEPS,
    QUICK_STEPS,
    REREAD_PER_STEP,
    Budget,
    unlimited,
)
from kubectl_dra.allocation.extended_resources import CLAIM_NAME
from kubectl_dra.allocation.features import Features
from kubectl_dra.allocation.pools import SliceIndex
from kubectl_dra.allocation.state import allocated_state
from kubectl_dra.api.claims import DeviceConstraint, DeviceRequest, ResourceClaim, devices_of
from kubectl_dra.api.nodes import Node
from kubectl_dra.api.pods import Pod
from kubectl_dra.api.slices import ResourceSlice
from kubectl_dra.cluster.claim_relation import relation_of
from kubectl_dra.cluster.cluster import Cluster, key_of
from kubectl_dra.cluster.snapshot import Key, Snapshot
from kubectl_dra.drivers.refused_claims import refusals
from kubectl_dra.explain.phrase import Statement
from kubectl_dra.explain.question.what_if_flag import WhatIfChange
from kubectl_dra.explain.remedies.claim_edits import (
    RequestPlace,
    in_single_requests,
    limiting,
    needing_nothing,
    with_claims,
    with_request,
    with_selector,
)
from kubectl_dra.explain.remedies.proof_result import ChangeStep, Price, Proof, shown_on
from kubectl_dra.scheduling.chain import Chain
from kubectl_dra.scheduling.node_equivalence import judge_at_once
from kubectl_dra.scheduling.outcome import Outcome
from kubectl_dra.scheduling.reasons import Rejection

if TYPE_CHECKING:
    from kubectl_dra.explain.eviction import Evictions
    from kubectl_dra.explain.funnel.stages import Refusals


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

    @property
    def ended_pods(self) -> tuple[Pod, ...]:
        """The pods that end."""
        return ()

    def made_in(self, what_if: WhatIf) -> WhatIf:
        """The cluster with the change."""
        raise NotImplementedError

    def in_template(self, pod: Pod) -> Pod:
        """The pod, or one from the same template, with what the change edits in it; unchanged where that is nothing."""
        return pod

    def made_for_all(self, cluster: Cluster, keep: Key | None) -> Cluster | None:
        """The cluster with the change, where other pods than ``keep``, which waits, may profit; None elsewhere."""
        return None

    def step(self, what_if: WhatIf) -> ChangeStep:
        """The change as data, with what is in the cluster before it."""
        raise NotImplementedError


class WhatIf(Struct, frozen=True, dict=True):
    """A question in the cluster as it is, or as it would be. Each change gives another one.

    ``outcome`` is the attempt there, for the pod or with claims alone. ``asked`` are the claims that lacked devices
    before any change. ``nodes`` are those that are tried: of those where the pod may run one of each kind. ``alike``
    are all that the question is about. ``changed``: something that other filters may read. ``ends``: the devices of the
    real cluster whose taints end pods; None if there are none.
    """

    outcome: Outcome
    asked: tuple[ResourceClaim, ...]
    nodes: tuple[Node, ...]
    alike: tuple[Node, ...] = ()
    ends: Evictions | None = None
    changed: bool = False

    @property
    def cluster(self) -> Cluster:
        """The cluster as it would be."""
        return self.outcome.state.cluster

    @property
    def pod(self) -> Pod | None:
        """The pod that waits for a node; None if only claims are asked about."""
        return self.outcome.pod if self.outcome.alone is None else None

    @property
    def exhausted(self) -> bool:
        """Whether no steps are left, so that attempts end without an answer."""
        return not self.outcome.budget.left

    @cached_property
    def claims(self) -> tuple[ResourceClaim, ...]:
        """The claims of ``asked`` as they are here."""
        extended, known = self.outcome.devices.extended, self.cluster.snapshot.claims
        out: list[ResourceClaim] = []
        for claim in self.asked:
            of_scheduler = claim.metadata.name == CLAIM_NAME
            here = extended and extended.claim(extended.amounts) if of_scheduler else known.get(key_of(claim))
            out.append(here or claim)
        return tuple(out)

    def request(self, place: RequestPlace) -> DeviceRequest:
        """One request or subrequest as it is here."""
        return self.claims[place.claim].requests[place.request].alternatives()[place.alternative]

    def proof(self, nodes: Sequence[Node] | None = None) -> Proof | None:
        """The first node that accepts the pod with its claims, and the devices; none if an error ends the attempt."""
        tried = self.nodes if nodes is None else nodes
        proof = next(self._proofs(self._attempt(PROOF_STEPS), tried, unlimited()), None)
        return proof if proof is not None and self.ends_without_error(proof) else None

    def proof_with(self, change: Change) -> Proof | None:
        """The proof that the pod fits with a change."""
        return change.made_in(self).proof()

    def with_all(self, changes: Iterable[Change]) -> WhatIf:
        """The cluster with all these changes."""
        return reduce(lambda what_if, change: change.made_in(what_if), changes, self)

    def quick_proof(self, changes: Iterable[Change], tries: Budget) -> Proof | None:
        """The proof that the pod fits with all these changes; also none if the tries, of one node each, do not
        suffice."""
        what_if = self.with_all(changes)
        return next(what_if._proofs(what_if._attempt(QUICK_STEPS), what_if.nodes, tries), None)

    def _attempt(self, steps: int) -> Outcome:
        """A fresh attempt, with so many steps for each node."""
        return self.outcome.on(self.outcome.state, budget=self.outcome.budget.part(each=steps), unlike=True)

    def _proofs(self, outcome: Outcome, nodes: Sequence[Node], tries: Budget) -> Iterator[Proof]:
        """A proof for each node that accepts the pod: the devices exist, and no filter refuses it."""
        if outcome.devices.rejection is not None or self._taken_by_no_pod:
            return
        cycle = outcome.devices.cycle
        if cycle.exact is not None:
            judge_at_once(cycle, nodes, outcome.devices.unallocated)
        refused = False
        for node in self._tried(nodes, tries):
            refused = refused or outcome.try_on(node).certain
            if (proof := self._shown(outcome, node)) is not None:
                yield proof
        if not refused or not self.changed:
            return
        # Nodes with the same devices may differ in what the filters say.
        done = {node.name for node in nodes}
        others = (node for node in self.alike if node.name not in done and self._refusal(node) is None)
        for node in self._tried(islice(others, PROOF_NODES), tries):
            if (proof := self._shown(outcome, node)) is not None:
                yield proof

    def _shown(self, outcome: Outcome, node: Node) -> Proof | None:
        """What the attempt on a node shows if the pod is taken, and no driver is known to refuse what it gets."""
        attempt = outcome.try_on(node)
        if not attempt.certain or self._never_binds(node) or self._rejection(outcome, node) is not None:
            return None
        claims, state = tuple(outcome.devices.given_on(node)), outcome.state
        if self._ended_at_once(claims):
            return None
        if any(refusals(claims, node.name, state.snapshot, state.cycle.index.candidates(node.name))):
            return None
        return Proof(node.name, claims, filters=self.pod is not None)

    def _tried(self, nodes: Iterable[Node], tries: Budget) -> Iterator[Node]:
        for node in nodes:
            if not tries.left or self.exhausted:
                return
            tries.charge(1)
            yield node

    def counted(self, proof: Proof, real: Snapshot) -> Proof:
        """The proof with all nodes that accept the pod, as far as they can be tried; ``real`` as in ``shown_on``."""
        every = {node.name: node for node in (*self.nodes, *self.alike)}
        if proof.node not in every:
            return proof
        nodes = [every.pop(proof.node), *every.values()]
        budget = Budget(COUNTING_NODES_STEPS, each=QUICK_STEPS)
        outcome = self.outcome.on(self.outcome.state, budget=budget, unlike=True)
        found: list[Proof] = []
        tried = 0
        for node in nodes[:NODES_COUNTED]:
            if not budget.left:
                break
            tried += outcome.try_on(node).verdict is not AttemptVerdict.UNDETERMINED
            if (shown := self._shown(outcome, node)) is not None:
                found.append(shown)
        if not found or found[0].node != proof.node:
            # It rests on more than this cluster.
            return proof
        held = {device.driver for device in devices_of(self.outcome.devices.allocated)}
        return shown_on(found, proof, self.cluster.snapshot, real, held, more=tried < len(nodes))

    def ends_without_error(self, proof: Proof) -> bool:
        """Whether nothing on another node ends the pod's attempts: an error, or that it is taken and never binds.

        A search that gets further than before, or a node that was refused, may come to a device on which a selector
        fails.
        """
        outcome = self._attempt(QUICK_STEPS)
        nodes = list(self.nodes)
        if self.changed:
            known = {node.name for node in nodes}
            nodes += islice((node for node in self.alike if node.name not in known), PROOF_NODES)
        for node in nodes:
            if node.name == proof.node or self._refusal(node) is not None:
                continue
            attempt = outcome.try_on(node)
            if attempt.verdict is AttemptVerdict.ERROR:
                return False
            if not attempt.certain:
                continue
            rejection = self._rejection(outcome, node) if outcome.devices.takes_of_nodes else None
            if self._never_binds(node) or (rejection is not None and rejection.error):
                return False
        return not self.exhausted

    @cached_property
    def _others(self) -> Chain:
        """The filters but that for devices."""
        if self.changed:
            read = self.cluster.snapshot
            self.outcome.budget.charge((len(read.nodes) + len(read.pods)) // REREAD_PER_STEP)
        return self.outcome.others

    def _refusal(self, node: Node) -> Rejection | None:
        """Why filters other than that for devices refuse the node."""
        if self.pod is None or node.name not in self.outcome.state.nodes:
            return None
        return self._others.filter(self.outcome.state.nodes[node.name])

    def _rejection(self, outcome: Outcome, node: Node) -> Rejection | None:
        """Why a filter refuses the pod on a node."""
        if self.pod is None or node.name not in outcome.state.nodes:
            return None
        return self._others.rejection or outcome.chain.filter(outcome.state.nodes[node.name])

    def _never_binds(self, node: Node) -> bool:
        extended = self.outcome.devices.extended
        return extended is not None and extended.never_binds(node)

    @property
    def _taken_by_no_pod(self) -> bool:
        """Whether the scheduler fails to add the pod to a claim that has its devices already."""
        pod, allocated = self.pod, self.outcome.devices.allocated
        if pod is None or not allocated:
            return False
        from kubectl_dra.scheduling.binding import takes_no_pod

        refusing = (claim for claim in allocated if takes_no_pod(claim, self.outcome.state.cycle.features))
        return any(not relation_of(claim, pod).listed for claim in refusing)

    def _ended_at_once(self, claims: Sequence[ResourceClaim]) -> bool:
        """Whether the pod would be evicted as soon as it has the devices of these claims."""
        if self.ends is None:
            return False
        first = self.ends.first((*self.outcome.devices.allocated, *claims))
        return first is not None and not first.seconds

    def refusals(self) -> Refusals:
        """What the search refuses on the nodes because of devices that it picked before."""
        from kubectl_dra.explain.funnel.stages import Refusals

        seen, devices = Refusals(), self._attempt(QUICK_STEPS).devices
        for node in self.nodes:
            devices.watched(node, seen)
        return seen

    def asking(self, claims: Sequence[ResourceClaim]) -> WhatIf:
        """The same cluster with the claims that need devices as they would be."""
        supposed = next((claim for claim in claims if claim.metadata.name == CLAIM_NAME), None)
        known = self.cluster.snapshot.claims
        stored = [claim for claim in claims if claim is not supposed and known.get(key_of(claim)) is not claim]
        state = self.outcome.state.moved(self.cluster.editing(*stored))
        return replace(self, outcome=self.outcome.on(state, supposed=supposed))

    def _with_claim(self, index: int, claim: ResourceClaim) -> WhatIf:
        return self.asking((*self.claims[:index], claim, *self.claims[index + 1 :]))

    def editing(self, place: RequestPlace, edit: Callable[[DeviceRequest], DeviceRequest]) -> WhatIf:
        """One request or subrequest changed."""
        claim = self.claims[place.claim]
        return self._with_claim(place.claim, with_request(claim, place.request, place.alternative, edit))

    def limiting(self, container: str, resource: str, amount: int) -> WhatIf:
        """With another limit of an extended resource in one container, and the claim that the scheduler makes then."""
        if self.pod is None:
            return self
        pod = limiting(self.pod, container, resource, amount)
        return replace(self, outcome=self.outcome.changed(pod=pod, supposed=None), changed=True)

    def setting_aside(self, requests: Container[tuple[int, int]]) -> WhatIf:
        """Without the requests at these (claim, request) indices, which then need nothing."""
        return self.asking(
            [
                needing_nothing(claim, [number for number in range(len(claim.requests)) if (index, number) in requests])
                for index, claim in enumerate(self.claims)
            ]
        )

    def without_request(self, claim: int, request: int) -> WhatIf:
        """Without one whole request."""
        old = self.claims[claim]
        return self._with_claim(claim, replace(old, requests=(*old.requests[:request], *old.requests[request + 1 :])))

    def in_several(self, claim: int, parts: Sequence[ResourceClaim]) -> WhatIf:
        """With several claims, which have names of their own, in place of one."""
        names, old, was = [part.metadata.name for part in parts], self.claims[claim], self.outcome
        state = was.state.moved(self.cluster.editing(*parts))
        if was.alone is None:
            return replace(self, outcome=was.on(state, pod=with_claims(was.pod, old.metadata.name, names)))
        own = (key for part in was.alone.claims for key in (map(key_of, parts) if part == key_of(old) else (part,)))
        return replace(self, outcome=was.on(state, alone=replace(was.alone, claims=tuple(own))))

    def splitting(self, claim: int, request: int) -> WhatIf | None:
        """One request written as several of count 1; None for a prioritized list."""
        parted = in_single_requests(self.claims[claim], request)
        return self._with_claim(claim, parted) if parted is not None else None

    def with_selector(self, old: str, new: str) -> WhatIf:
        """A selector of a request or class replaced."""
        classes = [
            replace(device_class, selectors=tuple(new if text == old else text for text in device_class.selectors))
            for device_class in self.cluster.snapshot.classes.values()
            if old in device_class.selectors
        ]
        state = self.outcome.state.moved(self.cluster.editing(*classes))
        edited = [with_selector(claim, old, new) for claim in self.claims]
        return replace(self, outcome=self.outcome.on(state)).asking(edited)

    def constraints(self) -> Iterator[tuple[int, DeviceConstraint]]:
        """The constraints of all claims, each with the index of its claim."""
        for index, claim in enumerate(self.claims):
            for constraint in claim.constraints:
                yield index, constraint

    def with_constraint(self, claim: int, old: DeviceConstraint, new: DeviceConstraint | None) -> WhatIf:
        """With a constraint of one claim replaced, or left out."""
        changed = (new if constraint is old else constraint for constraint in self.claims[claim].constraints)
        kept = tuple(constraint for constraint in changed if constraint is not None)
        return self._with_claim(claim, replace(self.claims[claim], constraints=kept))

    def for_all(self, change: Change) -> WhatIf:
        """With a change of the cluster from which other pods may profit."""
        cluster = change.made_for_all(self.cluster, key_of(self.pod) if self.pod is not None else None)
        assert cluster is not None
        return self.moved(cluster)

    def moved(self, cluster: Cluster) -> WhatIf:
        """The same question in another cluster, which was made of this one by a change."""
        return replace(self, outcome=self.outcome.changed(cluster), changed=self.pod is not None)

    def with_pod(self, pod: Pod) -> WhatIf:
        """With another pod that waits."""
        return replace(self, outcome=self.outcome.changed(pod=pod), changed=True)

    def looking(self, **changes: Any) -> WhatIf:
        """A scheduler that looks at devices in another way; ``changes``: see ``Cycle.changed``."""
        return replace(self, outcome=self.outcome.on(self.outcome.state.looking(**changes)))

    def publishing(self, slices: Iterable[ResourceSlice], instead_of: Container[str] = ()) -> WhatIf:
        """Further slices published, possibly replacing some by name."""
        kept = (slice_ for slice_ in self.outcome.state.cycle.index.slices if slice_.name not in instead_of)
        return self.looking(index=SliceIndex((*kept, *slices)))

    def with_features(self, features: Features) -> WhatIf:
        """An allocator with other features."""
        return self.looking(features=features, state=allocated_state(self.cluster.snapshot.claims.values(), features))

    def on_named(self, names: Container[str]) -> WhatIf:
        """The same question, also tried on those of these nodes that it concerns."""
        return self.also_on([node for node in self.alike if node.name in names][:PROOF_NODES])

    def also_on(self, more: Sequence[Node]) -> WhatIf:
        """The same question, tried on further nodes as well."""
        if not more:
            return self
        known = {node.name for node in self.nodes}
        return replace(self, nodes=(*self.nodes, *(node for node in more if node.name not in known)))
