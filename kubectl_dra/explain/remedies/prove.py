"""Runs the scheduler's attempt again with a change, to prove that the change helps."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Container, Hashable, Iterable, Iterator, Mapping, Sequence
from enum import IntEnum, auto
from itertools import islice
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from kubectl_dra.allocation.attempt import Attempt, AttemptVerdict, Cycle
from kubectl_dra.allocation.budgets import COPIED_PER_STEP, PROOF_NODES, PROOF_STEPS, QUICK_STEPS, Budget
from kubectl_dra.allocation.features import Features, Quirks
from kubectl_dra.allocation.pools import SliceIndex
from kubectl_dra.allocation.state import allocated_state, released
from kubectl_dra.api.claims import EXACT_COUNT, DeviceConstraint, DeviceRequest, Request, ResourceClaim
from kubectl_dra.api.nodes import Node
from kubectl_dra.api.pods import Pod
from kubectl_dra.api.slices import ResourceSlice
from kubectl_dra.cluster.snapshot import Key
from kubectl_dra.explain.phrase import Statement
from kubectl_dra.explain.question.giving_back import GivingBack, of_claims, of_pods
from kubectl_dra.explain.question.what_if_flag import Supposition
from kubectl_dra.explain.remedies.proof import Proof, placed_devices
from kubectl_dra.explain.remedies.step import ChangeStep
from kubectl_dra.explain.remedies.surroundings import Surroundings

if TYPE_CHECKING:
    from kubectl_dra.explain.funnel.search_refusals import Refusals
    from kubectl_dra.explain.remedies.exact_pools import ExactPools


class RequestPlace(NamedTuple):
    """One request or subrequest: indices of claim, request and alternative, and its name.

    ``extended``: it belongs to the claim that the scheduler makes for extended resources, which nobody
    writes; ``container`` asks for ``resource`` then, as far as they are known.
    """

    claim: int
    request: int
    alternative: int
    name: str
    extended: bool
    resource: str = ""
    container: str = ""


class Price(IntEnum):
    """What a change asks of people, the least first: the order in which changes are offered."""

    NOTHING = auto()
    """Nobody misses what goes."""
    EDIT = auto()
    """A line of what was asked for."""
    TOLERATE = auto()
    """To accept what somebody keeps others away from."""
    WAIT = auto()
    """It comes, or ends, by itself or by somebody else's repair."""
    OTHER_DEVICES = auto()
    """A line of what was asked for, and with it devices of another kind."""
    END_IDLE = auto()
    """A pod that does no work ends."""
    END_RUNNING = auto()
    """A pod that works ends."""
    BUY = auto()
    """More hardware."""


class Change(Statement, frozen=True, eq=False):
    """One change. Two that are ``about`` the same thing exclude each other; ``cost`` orders them.

    ``ASIDE`` names fields that do not distinguish changes, such as the nodes on which to try them.
    """

    ASIDE: ClassVar[frozenset[str]] = frozenset()

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
        return Price.EDIT

    @property
    def cost(self) -> int:
        """Larger costs are tried later."""
        return 1

    @property
    def what_if(self) -> Supposition | None:
        """The change as a value of ``--what-if``, if possible."""
        return None

    def made_in(self, world: World) -> World:
        """The world with the change."""
        raise NotImplementedError

    def step(self, world: World) -> ChangeStep:
        """The change as data, with what is in this world before it."""
        raise NotImplementedError


class Tries:
    """How many nodes may still be tried, without limit by default; a search ends if none are left."""

    def __init__(self, left: int = sys.maxsize) -> None:
        self.left = left


class World(Struct, frozen=True):
    """A cluster and claims, as they are or as they would be.

    ``nodes`` are those that are tried: of those where the pod may run one of each kind. ``alike`` are all that the
    question is about. ``exact`` gives the pools that are tried where devices share what the question cannot tell apart.
    ``all_claims`` is everything that may hold devices. ``surroundings`` is the pod with what
    filters read; None where no pod waits for a node. ``rereads``: selectors see devices that they did not see before,
    so that they may fail on some. Each change gives a new world.
    """

    cycle: Cycle
    claims: tuple[ResourceClaim, ...]
    nodes: tuple[Node, ...]
    all_claims: tuple[ResourceClaim, ...]
    surroundings: Surroundings | None = None
    alike: tuple[Node, ...] = ()
    rereads: bool = False
    exact: ExactPools | None = None

    def request(self, place: RequestPlace) -> DeviceRequest:
        """One request or subrequest as it is here."""
        return self.claims[place.claim].requests[place.request].alternatives()[place.alternative]

    def proof(self, nodes: Sequence[Node] | None = None) -> Proof | None:
        """The first node that accepts the pod with its claims, and the devices; none if an error ends the attempt."""
        cycle = self.cycle.changed()
        for attempt in self._taken(cycle, self.nodes if nodes is None else nodes, Tries(), PROOF_STEPS):
            proof = self._shown(attempt)
            return proof if self.ends_without_error(proof) else None
        return None

    def proof_with(self, change: Change) -> Proof | None:
        """The proof that the pod fits with a change."""
        return change.made_in(self).proof()

    def with_all(self, changes: Iterable[Change]) -> World:
        """The world with all these changes."""
        world = self
        for change in changes:
            world = change.made_in(world)
        return world

    def quick_proof(self, changes: Iterable[Change], tries: Tries) -> Proof | None:
        """The proof that the pod fits with all these changes; also none if the tries do not suffice."""
        world = self.with_all(changes)
        cycle = world.cycle.changed()
        return next((world._shown(found) for found in world._taken(cycle, world.nodes, tries, QUICK_STEPS)), None)

    def _shown(self, attempt: Attempt) -> Proof:
        """What an attempt that takes the pod shows."""
        devices = tuple(placed_devices(self.claims, attempt.results))
        return Proof(attempt.node, devices, filters=self.surroundings is not None)

    def _taken(self, cycle: Cycle, nodes: Sequence[Node], tries: Tries, steps: int) -> Iterator[Attempt]:
        """The attempts on nodes that accept the pod: the devices exist, and no filter refuses it."""
        refused = False
        if self.exact is not None:
            self.exact.judge(cycle, nodes, self.claims)
        for node in self._tried(nodes, tries):
            attempt = self._attempt(cycle, node, steps)
            if attempt.verdict is not AttemptVerdict.ALLOCATED or _beyond_the_model(attempt):
                continue
            if self.surroundings is None or self.surroundings.takes(attempt, cycle, self.claims):
                yield attempt
            refused = True
        if not refused or self.surroundings is None or not self.surroundings.changed:
            return
        # Nodes with the same devices may differ in what the filters say.
        done = {node.name for node in nodes}
        others = (node for node in self.alike if node.name not in done and self.surroundings.refusal(node) is None)
        for node in self._tried(islice(others, PROOF_NODES), tries):
            attempt = self._attempt(cycle, node, steps)
            if attempt.verdict is not AttemptVerdict.ALLOCATED or _beyond_the_model(attempt):
                continue
            if self.surroundings.takes(attempt, cycle, self.claims):
                yield attempt

    def _tried(self, nodes: Iterable[Node], tries: Tries) -> Iterator[Node]:
        for node in nodes:
            if not tries.left or self.cycle.exhausted:
                return
            tries.left -= 1
            yield node

    def ends_without_error(self, proof: Proof) -> bool:
        """Whether no attempt on another node ends with an error, which would end the attempt for the pod.

        Only selectors that see other devices than before can newly fail.
        """
        if not self.rereads:
            return True
        cycle = self.cycle.changed()
        for node in self.nodes:
            if node.name == proof.node:
                continue
            attempt = self._attempt(cycle, node, QUICK_STEPS)
            if attempt.verdict is not AttemptVerdict.ERROR:
                continue
            if self.surroundings is None or self.surroundings.refusal(node) is None:
                return False
        return not cycle.exhausted

    def refusals(self) -> Refusals:
        """What the search refuses on the nodes because of devices that it picked before."""
        from kubectl_dra.explain.funnel.search_refusals import Refusals

        seen = Refusals()
        cycle = self.cycle.changed()
        for node in self.nodes:
            self._attempt(cycle, node, QUICK_STEPS, seen)
        return seen

    def _attempt(self, cycle: Cycle, node: Node, steps: int, observer: Refusals | None = None) -> Attempt:
        pools = self.exact.of(cycle, node) if self.exact is not None else None
        return cycle.attempt(node, self.claims, budget=Budget(max_steps=steps), observer=observer, pools=pools)

    def asking(self, claims: Iterable[ResourceClaim]) -> World:
        """The same cluster with other claims."""
        return replace(self, claims=tuple(claims))

    def _with_claim(self, index: int, claim: ResourceClaim) -> World:
        return self.asking((*self.claims[:index], claim, *self.claims[index + 1 :]))

    def editing(self, place: RequestPlace, edit: Callable[[DeviceRequest], DeviceRequest]) -> World:
        """One request or subrequest changed."""
        claim, old = self.claims[place.claim], self.request(place)
        made = self._with_claim(place.claim, _edited(claim, place.request, place.alternative, edit))
        new = made.request(place)
        rereads = (new.selectors, new.device_class) != (old.selectors, old.device_class)
        return replace(made, rereads=True) if rereads else made

    def setting_aside(self, requests: Container[tuple[int, int]]) -> World:
        """Without the requests at these (claim, request) indices, which then need nothing."""
        return self.asking(
            replace(
                claim,
                requests=tuple(
                    _needless(entry) if (index, number) in requests else entry
                    for number, entry in enumerate(claim.requests)
                ),
            )
            for index, claim in enumerate(self.claims)
        )

    def without_request(self, claim: int, request: int) -> World:
        """Without one whole request."""
        old = self.claims[claim]
        return self._with_claim(claim, replace(old, requests=(*old.requests[:request], *old.requests[request + 1 :])))

    def splitting(self, claim: int, request: int) -> World | None:
        """One request written as several of count 1; None for a prioritized list."""
        old = self.claims[claim]
        entry = old.requests[request]
        if entry.exactly is None:
            return None
        one = replace(entry.exactly, count=1)
        names = [f"{entry.name}-{number}" for number in range(entry.exactly.count)]
        parts = tuple(replace(entry, name=name, exactly=one) for name in names)
        constraints = tuple(
            replace(kept, requests=tuple(n for own in kept.requests for n in (names if own == entry.name else (own,))))
            for kept in old.constraints
        )
        requests = (*old.requests[:request], *parts, *old.requests[request + 1 :])
        return self._with_claim(claim, replace(old, requests=requests, constraints=constraints))

    def with_selector(self, old: str, new: str) -> World:
        """A selector of a request or class replaced."""

        def reworded(spec: DeviceRequest) -> DeviceRequest:
            return replace(spec, selectors=tuple(new if text == old else text for text in spec.selectors))

        claims = []
        for claim in self.claims:
            for index, entry in enumerate(claim.requests):
                for alternative in range(len(entry.alternatives())):
                    claim = _edited(claim, index, alternative, reworded)
            claims.append(claim)
        classes = {
            name: replace(entry, selectors=tuple(new if text == old else text for text in entry.selectors))
            for name, entry in self.cycle.classes.items()
        }
        return replace(self, cycle=self.cycle.changed(classes=classes), claims=tuple(claims), rereads=True)

    def constraints(self) -> Iterator[tuple[int, DeviceConstraint]]:
        """The constraints of all claims, each with the index of its claim."""
        for index, claim in enumerate(self.claims):
            for constraint in claim.constraints:
                yield index, constraint

    def without_constraint(self, claim: int, constraint: DeviceConstraint) -> World:
        """Without a constraint of one claim."""
        old = self.claims[claim]
        return self._with_claim(
            claim, replace(old, constraints=tuple(entry for entry in old.constraints if entry is not constraint))
        )

    def with_constraint(self, claim: int, old: DeviceConstraint, new: DeviceConstraint) -> World:
        """With a constraint replaced."""
        changed = tuple(new if entry is old else entry for entry in self.claims[claim].constraints)
        return self._with_claim(claim, replace(self.claims[claim], constraints=changed))

    def freeing(self, holders: Collection[ResourceClaim]) -> World:
        """Other claims have given back their devices, because the pods that use them have ended."""
        return self._given_back(of_claims(holders, self.all_claims, self._pods))

    def ending(self, pods: Iterable[Pod]) -> World:
        """Other pods have ended, and given back what only they used."""
        return self._given_back(of_pods(pods, self.all_claims))

    def _given_back(self, given: GivingBack) -> World:
        self.cycle.budget.charge((len(self.all_claims) + len(self._pods)) // COPIED_PER_STEP)
        gone = {id(claim) for claim in given.claims}
        kept = tuple(claim for claim in self.all_claims if id(claim) not in gone)
        state = released(self.cycle.state, given.claims, self.cycle.features)
        around = self.surroundings
        if around is not None:
            around = around.without_pods(given.pods - {(around.pod.metadata.namespace, around.pod.metadata.name)})
        return replace(self, cycle=self.cycle.changed(state=state), all_claims=kept, surroundings=around)

    @property
    def _pods(self) -> Mapping[Key, Pod]:
        return self.surroundings.state.snapshot.pods if self.surroundings is not None else {}

    def among(self, change: Callable[[Surroundings], Surroundings], names: Container[str]) -> World:
        """With other surroundings, tried on these nodes as well."""
        if self.surroundings is None:
            return self
        return replace(self, surroundings=change(self.surroundings)).on_named(names)

    def on_named(self, names: Container[str]) -> World:
        """The same question, also tried on those of these nodes that it concerns."""
        return self.also_on([node for node in self.alike if node.name in names][:PROOF_NODES])

    def publishing(self, slices: Iterable[ResourceSlice], instead_of: Container[str] = ()) -> World:
        """Further slices published, possibly replacing some by name."""
        kept = (entry for entry in self.cycle.index.slices if entry.name not in instead_of)
        return replace(self, cycle=self.cycle.changed(index=SliceIndex((*kept, *slices))))

    def with_features(self, features: Features) -> World:
        """An allocator with other features."""
        state = allocated_state(self.all_claims, features)
        return replace(self, cycle=self.cycle.changed(features=features, state=state))

    def with_quirks(self, quirks: Quirks) -> World:
        """An allocator with other defects."""
        return replace(self, cycle=self.cycle.changed(quirks=quirks))

    def also_on(self, more: Sequence[Node]) -> World:
        """The same question, tried on further nodes as well."""
        if not more:
            return self
        known = {node.name for node in self.nodes}
        return replace(self, nodes=(*self.nodes, *(node for node in more if node.name not in known)))


def _edited(
    claim: ResourceClaim, request: int, alternative: int, edit: Callable[[DeviceRequest], DeviceRequest]
) -> ResourceClaim:
    requests = list(claim.requests)
    old = requests[request]
    if old.first_available:
        subrequests = list(old.first_available)
        subrequests[alternative] = edit(subrequests[alternative])
        requests[request] = replace(old, first_available=tuple(subrequests))
    elif old.exactly is not None:
        requests[request] = replace(old, exactly=edit(old.exactly))
    return replace(claim, requests=tuple(requests))


def _beyond_the_model(attempt: Attempt) -> bool:
    """Whether a device has something that may keep the scheduler from giving it out, such as resources of the node."""
    return any(picked.candidate.device.unmodelled for placed in attempt.placements for picked in placed)


def _needless(entry: Request) -> Request:
    """A request that is satisfied by nothing."""
    spec = entry.alternatives()[0]
    return replace(entry, exactly=replace(spec, allocation_mode=EXACT_COUNT, count=0), first_available=())
