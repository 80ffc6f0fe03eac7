"""Which devices the rest of a search cannot tell apart, and what in a search depends on its history.

Two devices are interchangeable from a request on if every later alternative treats them alike: selected or
not, refused by a taint or not, the same values of constrained attributes, the same counters, the same
capacity. Selectors are pure, so all are evaluated ahead. A device on which one fails differs from the others;
the search itself finds the failure.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Sequence
from copy import copy

from msgspec import Struct, field
from msgspec.structs import replace

from kubectl_dra.allocation.budgets import Budget
from kubectl_dra.allocation.capacity import NOTHING, shortage
from kubectl_dra.allocation.constraints import attribute_of
from kubectl_dra.allocation.counters import CounterLedger, Key, Table
from kubectl_dra.allocation.errors import AllocationError
from kubectl_dra.allocation.request import Alternative, PreparedClaim
from kubectl_dra.allocation.search_context import CandidateDevice, SearchContext
from kubectl_dra.api.claims import MAX_RESULTS, DeviceConstraint, ResourceClaim
from kubectl_dra.api.quantity import Quantity
from kubectl_dra.api.slices import Device
from kubectl_dra.api.taints import blocking_taint

NEVER, USABLE, TAINTED, FAILS = range(4)
"""How an alternative treats a device at best: never takes it and leaves no trace; may take it; is refused by a
taint but charges counters before; cannot judge it because a selector fails."""

IRRELEVANT = -1
Component = tuple[Hashable, Hashable]
"""Devices that share something nobody else has a part in: (counter table, counter set) where they consume only
that, or ("", attribute value) where no device counts and all constraints look at one attribute. Components of the
same shape can be exchanged for each other as a whole."""


class SearchStage(Struct):
    """One request. Devices with equal numbers in ``classes`` are alike from this request on, those with equal
    numbers in ``classes_of[alternative]`` once that alternative is chosen. IRRELEVANT: nobody can use the
    device.
    """

    claim: int
    request: int
    alternatives: tuple[Alternative, ...]
    uses: list[list[int]]
    classes: list[int] = field(default_factory=list)
    classes_of: list[list[int]] = field(default_factory=list)


class History(Struct, frozen=True):
    """What makes the outcome of a search depend on what it tried before.

    ``charges``: refused devices stay charged. ``distinct``: distinctAttribute forgets values. ``shares``:
    whether shareable devices charge counters depends on who came first. ``listed``: mode All may fail
    half-way without giving back. ``tables``: two pools share one counter table. ``size``: lists whose
    alternatives can exceed 32 results, which ends levels of the search early.
    """

    charges: bool
    distinct: bool
    shares: bool
    listed: bool
    tables: bool
    size: bool

    @property
    def none(self) -> bool:
        """Whether a failed part of the search restores everything."""
        return not (self.charges or self.distinct or self.shares or self.listed or self.tables or self.size)

    @property
    def traceable(self) -> bool:
        """Whether a failed part leaves traces only in the charged counters and the constraints."""
        return not (self.shares or self.listed)


class Problem:
    """The attempt as the pruned search sees it: one stage per request, in the order of the search."""

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
        for claim, requests in enumerate(prepared):
            self.index.append(len(self.stages))
            for request, alternatives in enumerate(requests):
                uses = [[self._use(entry, candidate) for candidate in context.candidates] for entry in alternatives]
                self.stages.append(SearchStage(claim, request, alternatives, uses))
        self.admin = any(entry.spec.admin_access for stage in self.stages for entry in stage.alternatives)
        self.components: list[Component | None] = [None] * len(context.candidates)
        self.by_value = False
        self.tables: dict[Key, Table] = {}
        self._find_components(ledger)
        self.fails = self._fails()
        self.history = self._history()
        base = self._base()
        later = [IRRELEVANT] * len(context.candidates)
        for stage in reversed(self.stages):
            self._classify(stage, base, later)
            later = stage.classes

    def within(self, budget: Budget) -> Problem:
        """The same problem with another budget."""
        other = copy(self)
        other.context = replace(self.context, budget=budget)
        return other

    def covering(self, alternative: Alternative) -> list[DeviceConstraint]:
        """The constraints of the claim that cover the alternative's devices."""
        return [
            constraint
            for constraint in self.claims[alternative.claim].constraints
            if constraint.covers(alternative.parent.name, alternative.subrequest)
        ]

    def _use(self, alternative: Alternative, candidate: CandidateDevice) -> int:
        """The checks of the search in its order, as far as they do not depend on earlier placements."""
        context, spec, device = self.context, alternative.spec, candidate.device
        if alternative.listed is not None and candidate.position not in alternative.listed:
            return NEVER
        if not spec.admin_access and candidate.id in context.state.exclusive:
            return NEVER
        try:
            if not context.selectable(alternative, candidate):
                return NEVER
        except AllocationError:
            return FAILS
        if candidate.slice.skip_node_operations and context.lacks_node_operations:
            return NEVER
        if context.features.consumable_capacity:
            consumed = context.state.consumed.get(candidate.id, NOTHING)
            if (
                shortage(device, spec.capacity, consumed, NOTHING, fractional=context.features.fractional_capacity)
                is not None
            ):
                return NEVER
        if device.consumes_counters and not context.features.partitionable_devices:
            return NEVER
        if not context.features.device_taints or blocking_taint(device.taints, spec.tolerations) is None:
            return USABLE
        return TAINTED if device.consumes_counters and context.quirks.counters_leak else NEVER

    def _relevant(self) -> list[CandidateDevice]:
        return [
            candidate
            for candidate in self.context.candidates
            if any(uses[candidate.position] != NEVER for stage in self.stages for uses in stage.uses)
        ]

    def _find_components(self, ledger: CounterLedger) -> None:
        relevant = self._relevant()
        counting = [candidate for candidate in relevant if candidate.device.consumes_counters]
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
            constraint.match_attribute or constraint.distinct_attribute
            for stage in self.stages
            for entry in stage.alternatives
            for constraint in self.covering(entry)
        }
        if len(names) != 1:
            return
        self.by_value = True
        (name,) = names
        for candidate in relevant:
            value = attribute_of(candidate.device, name)
            if value is not None and value[0]:
                self.components[candidate.position] = ("", value)

    def _fails(self) -> bool:
        """Whether an error can end the search: a failing selector, or a constraint over mode All."""
        return any(
            FAILS in uses or (alternative.listed and self.covering(alternative))
            for stage in self.stages
            for alternative, uses in zip(stage.alternatives, stage.uses, strict=True)
        )

    def _history(self) -> History:
        context = self.context
        relevant = self._relevant()
        counting = [candidate for candidate in relevant if candidate.device.consumes_counters]
        shareable = any(candidate.shareable for candidate in counting)
        pools = {id(candidate.pool): candidate.pool.id.name for candidate in counting}
        alternatives = [entry for stage in self.stages for entry in stage.alternatives]
        tainted = any(TAINTED in uses for stage in self.stages for uses in stage.uses)
        constrained = any(self.covering(entry) for entry in alternatives)
        return History(
            charges=context.quirks.counters_leak and bool(counting) and (shareable or tainted or constrained),
            distinct=context.quirks.distinct_remembers_one
            and any(
                entry.needed > 1 and any(not constraint.match_attribute for constraint in self.covering(entry))
                for entry in alternatives
            ),
            shares=shareable,
            listed=context.features.consumable_capacity
            and any(
                context.candidates[position].shareable or position in refused
                for entry in alternatives
                for refused in [self._refused_late(entry)]
                for position in entry.listed or ()
            ),
            tables=context.quirks.counters_keyed_by_pool_name and len(pools) > len(set(pools.values())),
            size=any(
                sum(max(entry.needed for entry in alternatives) for alternatives in requests) > MAX_RESULTS
                for requests in self.prepared
            ),
        )

    def _refused_late(self, alternative: Alternative) -> set[int]:
        """Listed devices whose capacity is refused only after they are marked as taken."""
        context = self.context
        return {
            position
            for position in alternative.listed or ()
            for candidate in [context.candidates[position]]
            if shortage(
                candidate.device,
                alternative.spec.capacity,
                context.state.consumed.get(candidate.id, NOTHING),
                NOTHING,
                fractional=context.features.fractional_capacity,
            )
            is not None
        }

    def _base(self) -> list[Hashable]:
        """What distinguishes devices whatever is requested: counters, and the capacity of shareable ones."""
        out: list[Hashable] = []
        for candidate in self.context.candidates:
            counters = None
            if candidate.device.consumes_counters:
                counters = self._counter_signature(candidate)
            shares = None
            if candidate.shareable:
                consumed = self.context.state.consumed.get(candidate.id, NOTHING)
                shares = (
                    json.dumps(candidate.device.capacity, sort_keys=True),
                    tuple(sorted((name, amount.nanos) for name, amount in consumed.items())),
                    candidate.id in self.context.state.consumed,
                    candidate.id in self.context.state.shared,
                )
            out.append((counters, shares))
        return out

    def _counter_signature(self, candidate: CandidateDevice) -> Hashable:
        component = self.components[candidate.position]
        wanted = tuple(
            (consumption.counter_set, _amounts(consumption.counters))
            for consumption in candidate.device.consumes_counters
        )
        if component is None or self.history.tables:
            return (candidate.pool.id, wanted)
        # Sets of one shape are alike; which of them a device is in is told by its component.
        key, counter_set = component
        table = self.tables[key]  # type: ignore[index]
        blocked = any(amount.nanos < 0 for counters in table.values() for amount in counters.values())
        return (blocked, _amounts(table.get(counter_set, {})), wanted[0][1])  # type: ignore[call-overload]

    def _classify(self, stage: SearchStage, base: list[Hashable], later: list[int]) -> None:
        numbers: dict[Hashable, int] = {}
        for alternative, uses in zip(stage.alternatives, stage.uses, strict=True):
            names = [entry.match_attribute or entry.distinct_attribute for entry in self.covering(alternative)]
            exact = bool(alternative.listed) and bool(names)
            classes: list[int] = []
            for position, use in enumerate(uses):
                if use == NEVER and later[position] == IRRELEVANT:
                    classes.append(IRRELEVANT)
                    continue
                device = self.context.candidates[position].device
                # Which value it is, is told by the component.
                hidden = self.by_value and self.components[position] is not None
                values = tuple(hidden or attribute_of(device, name) for name in names) if use != NEVER else ()
                listed = alternative.listed is not None and position in alternative.listed
                which = position if listed and exact else listed
                seen = (use, values, which, later[position], base[position])
                classes.append(numbers.setdefault(seen, len(numbers)))
            stage.classes_of.append(classes)
        together: dict[Hashable, int] = {}
        for position in range(len(later)):
            row = tuple(classes[position] for classes in stage.classes_of)
            known = all(number == IRRELEVANT for number in row)
            stage.classes.append(IRRELEVANT if known else together.setdefault(row, len(together)))


def _amounts(counters: dict[str, Quantity] | object) -> tuple[tuple[str, int], ...]:
    assert isinstance(counters, dict)
    return tuple(sorted((name, amount.nanos) for name, amount in counters.items()))


def value_of(device: Device, constraint: DeviceConstraint) -> Hashable:
    """The value that a constraint compares, or None if the device lacks the attribute."""
    return attribute_of(device, constraint.match_attribute or constraint.distinct_attribute)
