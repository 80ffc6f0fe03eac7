"""Which devices the rest of a search cannot tell apart, and which traces a failed part of a search leaves.

Two devices are interchangeable from a request on if every later alternative treats them alike: it takes both or
neither, at the same values of constrained attributes, the same counters and the same capacity. Selectors are pure, so
all are evaluated ahead. A device on which one fails differs from the others; the search itself meets the failure.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from copy import copy

from msgspec import Struct, field
from msgspec.structs import replace

from kubectl_dra.allocation.budgets import Budget
from kubectl_dra.allocation.capacity import NOTHING
from kubectl_dra.allocation.constraints import attribute_of
from kubectl_dra.allocation.counters import CounterLedger, CounterTableKey, Table
from kubectl_dra.allocation.errors import AllocationError
from kubectl_dra.allocation.search import Search
from kubectl_dra.allocation.search_context import Alternative, CandidateDevice, PreparedClaim, SearchContext
from kubectl_dra.api.claims import DeviceConstraint, ResourceClaim
from kubectl_dra.api.limits import MAX_RESULTS
from kubectl_dra.api.quantity import Quantity

NEVER, USABLE, CHARGED, FAILS = range(4)
"""What an alternative does with a device that nothing else has taken: refuses it and leaves no trace; takes it; refuses
it, but its counters stay charged; cannot judge it because a selector fails."""

IRRELEVANT = -1
Component = tuple[Hashable, Hashable]
"""Devices that share something nobody else has a part in: (counter table, counter set) where they consume only
that, or ("", attribute value) where no device counts and all constraints look at one attribute. Components of the
same shape can be exchanged for each other as a whole."""


class SearchStage(Struct):
    """One request. ``uses`` has a list for each alternative.

    Devices with equal numbers in ``classes[n]`` are alike once alternative n is chosen, those with equal numbers in
    the last list from this request on. IRRELEVANT: nobody can use the device.
    """

    claim: int
    alternatives: tuple[Alternative, ...]
    uses: list[list[int]]
    classes: list[list[int]] = field(default_factory=list)


class _Probe(Search):
    """Tries single devices, without counters and constraints: a device that a constraint refuses may leave traces."""

    def _counts(self, candidate: CandidateDevice) -> bool:
        return False

    def use(self, alternative: Alternative, candidate: CandidateDevice) -> int:
        """Best outcome of a device for an alternative."""
        if alternative.listed is not None and candidate.position not in alternative.listed:
            return NEVER
        try:
            if not self._eligible(alternative, candidate):
                return NEVER
        except AllocationError:
            return FAILS
        if self._place(alternative, candidate, must=False):
            self._undo(alternative)
            return USABLE
        return CHARGED if candidate.device.consumes_counters and self.context.defects.counters_leak else NEVER


class Problem:
    """An attempt, with one stage per request in the order of the search.

    ``restores``: a failed part of the search leaves nothing behind. ``traceable``: it leaves traces only in the charged
    counters and in the constraints. ``fails``: an error can end the search.
    """

    def __init__(
        self,
        context: SearchContext,
        claims: Sequence[ResourceClaim],
        prepared: Sequence[PreparedClaim],
        ledger: CounterLedger,
    ) -> None:
        self.context = context
        self.claims = claims
        self.prepared = prepared
        self.stages: list[SearchStage] = []
        self.index: list[int] = []
        probe = _Probe(context, [replace(claim, constraints=()) for claim in claims], prepared, ledger)
        for claim, requests in enumerate(prepared):
            self.index.append(len(self.stages))
            for alternatives in requests:
                uses = [
                    [probe.use(alternative, candidate) for candidate in context.candidates]
                    for alternative in alternatives
                ]
                self.stages.append(SearchStage(claim, alternatives, uses))
        self._relevant = [
            candidate
            for candidate in context.candidates
            if any(uses[candidate.position] != NEVER for stage in self.stages for uses in stage.uses)
        ]
        self.alternatives = [
            (alternative, uses)
            for stage in self.stages
            for alternative, uses in zip(stage.alternatives, stage.uses, strict=True)
        ]
        self.admin = any(alternative.spec.admin_access for alternative, _ in self.alternatives)
        self.fails = any(
            FAILS in uses or (alternative.listed and self.covering(alternative))
            for alternative, uses in self.alternatives
        )
        self.components: list[Component | None] = [None] * len(context.candidates)
        self.by_value = False
        self.tables: dict[CounterTableKey, Table] = {}
        self._find_components(ledger)
        self._find_traces()
        self._find_classes()

    def within(self, steps: int) -> Problem:
        """The same problem with a budget of its own, not larger than what is left."""
        other = copy(self)
        other.context = replace(self.context, budget=Budget(min(steps, self.context.budget.left)))
        return other

    def covering(self, alternative: Alternative) -> list[DeviceConstraint]:
        """The constraints of the claim that cover the alternative's devices."""
        return [
            constraint
            for constraint in self.claims[alternative.claim].constraints
            if constraint.covers(alternative.parent.name, alternative.subrequest)
        ]

    def _find_components(self, ledger: CounterLedger) -> None:
        counting = [candidate for candidate in self._relevant if candidate.device.consumes_counters]
        for candidate in counting:
            key = ledger.key(candidate.pool)
            if key not in self.tables:
                self.tables[key] = ledger.peek(candidate.pool)
        if counting:
            if all(len(candidate.device.consumes_counters) == 1 for candidate in counting):
                for candidate in counting:
                    consumed = candidate.device.consumes_counters[0]
                    self.components[candidate.position] = (ledger.key(candidate.pool), consumed.counter_set)
            return
        names = {
            constraint.attribute for alternative, _ in self.alternatives for constraint in self.covering(alternative)
        }
        if len(names) != 1:
            return
        self.by_value = True
        (name,) = names
        for candidate in self._relevant:
            value = attribute_of(candidate.device, name)
            if value is not None and value[0]:
                self.components[candidate.position] = ("", value)

    def _find_traces(self) -> None:
        features, defects = self.context.features, self.context.defects
        counting = [candidate for candidate in self._relevant if candidate.device.consumes_counters]
        shares = any(candidate.shareable for candidate in counting)
        covered = [(alternative, self.covering(alternative)) for alternative, _ in self.alternatives]
        refused = any(CHARGED in uses for _, uses in self.alternatives) or any(entries for _, entries in covered)
        # Refused devices stay charged.
        charges = defects.counters_leak and bool(counting) and (shares or refused)
        # A distinctAttribute forgets values.
        forgets = defects.distinct_remembers_one and any(
            alternative.needed > 1 and any(not constraint.match_attribute for constraint in entries)
            for alternative, entries in covered
        )
        # Mode All fails half-way without giving back.
        halfway = features.consumable_capacity and any(
            self.context.candidates[position].shareable or (alternative.spec.capacity and uses[position] == NEVER)
            for alternative, uses in self.alternatives
            for position in alternative.listed or ()
        )
        # Two pools share a counter table.
        pools = {candidate.pool.id for candidate in counting}
        self.shares_table = defects.counters_keyed_by_pool_name and len(pools) > len({pool.name for pool in pools})
        # More than 32 results end several levels of the search.
        self.too_long = any(
            sum(max(alternative.needed for alternative in alternatives) for alternatives in requests) > MAX_RESULTS
            for requests in self.prepared
        )
        # Whether a shareable device charges counters depends on who came first.
        self.traceable = not (shares or halfway)
        self.restores = self.traceable and not (charges or forgets or self.shares_table or self.too_long)

    def _find_classes(self) -> None:
        always = [self._always(candidate) for candidate in self.context.candidates]
        later = [IRRELEVANT] * len(always)
        for stage in reversed(self.stages):
            numbers: dict[Hashable, int] = {}
            for alternative, uses in zip(stage.alternatives, stage.uses, strict=True):
                names = [constraint.attribute for constraint in self.covering(alternative)]
                stage.classes.append(
                    [
                        IRRELEVANT
                        if use == NEVER and later[position] == IRRELEVANT
                        else numbers.setdefault(
                            (use, self._told_by(alternative, names, use, position), later[position], always[position]),
                            len(numbers),
                        )
                        for position, use in enumerate(uses)
                    ]
                )
            together: dict[Hashable, int] = {}
            rows = list(zip(*stage.classes, strict=True))
            later = [
                IRRELEVANT if set(row) == {IRRELEVANT} else together.setdefault(row, len(together)) for row in rows
            ]
            stage.classes.append(later)

    def _told_by(self, alternative: Alternative, names: Sequence[str], use: int, position: int) -> Hashable:
        """What an alternative sees of a device besides how it treats it."""
        device = self.context.candidates[position].device
        # Which value it is, is told by the component.
        hidden = self.by_value and self.components[position] is not None
        values = tuple(hidden or attribute_of(device, name) for name in names) if use != NEVER else ()
        listed = alternative.listed is not None and position in alternative.listed
        return values, position if listed and names else listed

    def _always(self, candidate: CandidateDevice) -> Hashable:
        """What distinguishes a device whatever is requested: counters, and its capacity if it is shareable."""
        device, state = candidate.device, self.context.state
        counters = self._counters(candidate) if device.consumes_counters else None
        if not candidate.shareable:
            return counters, None
        consumed = _nanos(state.consumed.get(candidate.id, NOTHING))
        capacity = json.dumps(device.capacity, sort_keys=True)
        return counters, (capacity, consumed, candidate.id in state.consumed, candidate.id in state.shared)

    def _counters(self, candidate: CandidateDevice) -> Hashable:
        component = self.components[candidate.position]
        wanted = tuple(
            (consumption.counter_set, _nanos(consumption.counters))
            for consumption in candidate.device.consumes_counters
        )
        if component is None or self.shares_table:
            return (candidate.pool.id, wanted)
        # Sets of one shape are alike; which of them a device is in is told by its component.
        key, counter_set = component
        table = self.tables[key]  # type: ignore[index]
        blocked = any(amount.nanos < 0 for counters in table.values() for amount in counters.values())
        return (blocked, _nanos(table.get(counter_set, {})), wanted[0][1])  # type: ignore[call-overload]


def _nanos(amounts: Mapping[str, Quantity]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted((name, amount.nanos) for name, amount in amounts.items()))


def values_of(problem: Problem, constraint: DeviceConstraint, positions: Iterable[int]) -> dict[int, Hashable]:
    """The value that a constraint compares, for devices that have one, by position."""
    candidates, name = problem.context.candidates, constraint.attribute
    values = {position: attribute_of(candidates[position].device, name) for position in positions}
    return {position: value for position, value in values.items() if value is not None}
