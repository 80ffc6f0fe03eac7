"""Runs the allocation of one question again with something changed, to prove that the change helps."""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Sequence
from typing import ClassVar, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from kubectl_dra.allocation.attempt import Attempt, Cycle, Verdict
from kubectl_dra.allocation.features import Features, Quirks
from kubectl_dra.allocation.pools import SliceIndex
from kubectl_dra.allocation.search import Budget
from kubectl_dra.allocation.state import allocated_state
from kubectl_dra.api.claims import EXACT_COUNT, DeviceConstraint, DeviceRequest, Request, ResourceClaim
from kubectl_dra.api.nodes import Node
from kubectl_dra.api.slices import DeviceID, ResourceSlice
from kubectl_dra.explain.funnel.search_refusals import Refusals
from kubectl_dra.explain.phrase import Phrase, Statement, say
from kubectl_dra.explain.question.what_if_flag import Supposition
from kubectl_dra.explain.remedies.released_state import released

MAX_NODES = 200
STEPS = 200_000
_THEN = say("then")


class Proof(Struct, frozen=True):
    """A run of the allocation with a change: the first node that then works, and the devices there.

    ``how`` says with which change, where that is not plain. ``others`` tells what was done about other requests
    that fail by themselves: False where they were left aside, True where their changes were made as well.
    """

    node: str
    devices: tuple[str, ...] = ()
    how: Phrase = _THEN
    others: bool | None = None


class RequestPlace(NamedTuple):
    """One request or subrequest: indices of claim, request and alternative, and its name.

    ``extended``: it is of the claim that the scheduler makes for extended resources, which nobody writes.
    """

    claim: int
    request: int
    alternative: int
    name: str
    extended: bool


class Change(Statement, frozen=True, eq=False):
    """One change. Two that are ``about`` the same thing exclude each other; ``cost`` orders them.

    ``ASIDE`` names fields that do not tell two changes apart, such as the nodes where to try them.
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
    def cost(self) -> int:
        """The larger, the later it is tried."""
        return 1

    @property
    def what_if(self) -> Supposition | None:
        """The same as ``--what-if`` takes it, where it does."""
        return None

    def made_in(self, world: World) -> World:
        """The world with the change."""
        raise NotImplementedError


class Tries:
    """How many nodes may still be tried; a search for changes ends where none are left."""

    def __init__(self, left: int) -> None:
        self.left = left


class World(Struct, frozen=True):
    """A cluster and claims, as they are or as they would be.

    ``nodes`` are those that are tried, ``other_nodes`` those where the pod may not run, ``all_claims`` everything
    that may hold devices. Each change gives a new world.
    """

    cycle: Cycle
    claims: tuple[ResourceClaim, ...]
    nodes: tuple[Node, ...]
    all_claims: tuple[ResourceClaim, ...]
    other_nodes: tuple[Node, ...] = ()

    def request(self, place: RequestPlace) -> DeviceRequest:
        """One request or subrequest as it is here."""
        return self.claims[place.claim].requests[place.request].alternatives()[place.alternative]

    def proof(self, nodes: Iterable[Node] | None = None) -> Proof | None:
        """The first node on which the claims fit, with the devices."""
        cycle = self.cycle.changed()
        for node in self.nodes if nodes is None else nodes:
            attempt = cycle.attempt(node, self.claims, budget=Budget(max_steps=STEPS))
            if attempt.verdict is Verdict.ALLOCATED:
                return Proof(node.name, tuple(device_names(attempt)))
        return None

    def proof_with(self, change: Change) -> Proof | None:
        """The proof that the claims fit with a change."""
        return change.made_in(self).proof()

    def quick_proof(self, changes: Iterable[Change], tries: Tries) -> Proof | None:
        """The proof that the claims fit with all these changes; none either where the tries do not suffice."""
        world = self
        for change in changes:
            world = change.made_in(world)
        cycle = world.cycle.changed()
        for node in world.nodes:
            if not tries.left:
                return None
            tries.left -= 1
            attempt = cycle.attempt(node, world.claims, budget=Budget(max_steps=STEPS // 10))
            if attempt.verdict is Verdict.ALLOCATED:
                return Proof(node.name)
        return None

    def proof_with_slice(self, entry: ResourceSlice, node: Node) -> Proof | None:
        """The proof that the claims fit on one node when a further slice is published for it."""
        index = self.cycle.index
        near = {id(other): other for seen in index.candidates(node.name) for other in index.by_pool[seen.pool]}
        return replace(self, cycle=self.cycle.changed(index=SliceIndex((*near.values(), entry)))).proof([node])

    def proof_elsewhere(self, names: Container[str] | None = None) -> Proof | None:
        """The proof that the claims fit on a node (of those named) where the pod may not run."""
        nodes = [node for node in self.other_nodes if names is None or node.name in names]
        return self.proof(nodes[:MAX_NODES])

    def refusals(self) -> Refusals:
        """What the search refuses on the nodes because of devices that it picked before."""
        seen = Refusals()
        cycle = self.cycle.changed()
        for node in self.nodes:
            cycle.attempt(node, self.claims, budget=Budget(max_steps=STEPS // 10), observer=seen)
        return seen

    def asking(self, claims: Iterable[ResourceClaim]) -> World:
        """The same cluster, asked about other claims."""
        return replace(self, claims=tuple(claims))

    def _with_claim(self, index: int, claim: ResourceClaim) -> World:
        return self.asking((*self.claims[:index], claim, *self.claims[index + 1 :]))

    def editing(self, place: RequestPlace, edit: Callable[[DeviceRequest], DeviceRequest]) -> World:
        """With one request or subrequest changed."""
        claim = self.claims[place.claim]
        return self._with_claim(place.claim, _edited(claim, place.request, place.alternative, edit))

    def setting_aside(self, requests: Container[tuple[int, int]]) -> World:
        """Without the requests at these (claim, request) indices: they need nothing."""
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
        """With one request written as several of count 1; None for a prioritized list."""
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
        """With a selector, of a request or a class, that reads otherwise."""

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
        return replace(self, cycle=self.cycle.changed(classes=classes), claims=tuple(claims))

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

    def freeing(self, holders: Iterable[ResourceClaim]) -> World:
        """With other claims that have given their devices back."""
        freed = tuple(holders)
        gone = {id(holder) for holder in freed}
        kept = tuple(claim for claim in self.all_claims if id(claim) not in gone)
        state = released(self.cycle.state, freed, self.cycle.features)
        return replace(self, cycle=self.cycle.changed(state=state), all_claims=kept)

    def publishing(self, slices: Iterable[ResourceSlice], instead_of: Container[str] = ()) -> World:
        """With further slices published, perhaps in place of some by name."""
        kept = (entry for entry in self.cycle.index.slices if entry.name not in instead_of)
        return replace(self, cycle=self.cycle.changed(index=SliceIndex((*kept, *slices))))

    def with_features(self, features: Features) -> World:
        """With an allocator of other features."""
        state = allocated_state(self.all_claims, features)
        return replace(self, cycle=self.cycle.changed(features=features, state=state))

    def with_quirks(self, quirks: Quirks) -> World:
        """With an allocator of other defects."""
        return replace(self, cycle=self.cycle.changed(quirks=quirks))

    def allowing(self, names: Container[str]) -> World:
        """With a pod that may run on further nodes."""
        return self.also_on([node for node in self.other_nodes if node.name in names][:MAX_NODES])

    def also_on(self, more: Sequence[Node]) -> World:
        """The same question, tried on further nodes as well."""
        if not more:
            return self
        known = {node.name for node in self.nodes}
        return replace(self, nodes=(*self.nodes, *(node for node in more if node.name not in known)))


def device_names(attempt: Attempt) -> Iterator[str]:
    """The devices of an allocation, in order, as ``driver/pool/device``."""
    for result in attempt.results:
        for device in result.devices:
            yield str(DeviceID(device["driver"], device["pool"], device["device"]))


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


def _needless(entry: Request) -> Request:
    """A request that is satisfied by nothing."""
    spec = entry.alternatives()[0]
    return replace(entry, exactly=replace(spec, allocation_mode=EXACT_COUNT, count=0), first_available=())
