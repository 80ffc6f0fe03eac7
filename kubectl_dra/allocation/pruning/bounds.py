"""Arithmetic that proves that the rest of a search cannot succeed.

Each test answers an easier question: are there enough devices for all remaining requests at once (a maximal
flow from requests over kinds of devices, where counter sets admit only as many as fit), enough with one value
of a matchAttribute, enough different values of a distinctAttribute, enough of each counter and capacity in
total? "No" to the easier question means "no" to the real one. "Yes" proves nothing.

A prioritized list needs at least its smallest alternative, and can use what any alternative can use. Requests
with admin access are left out, because they take nothing away.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from kubectl_dra.allocation.budgets import EDGES_PER_STEP, FLOW
from kubectl_dra.allocation.constraints import ConstraintState
from kubectl_dra.allocation.counters import CounterLedger
from kubectl_dra.allocation.pruning.problem import USABLE, Component, Problem, value_of
from kubectl_dra.allocation.request import Alternative
from kubectl_dra.allocation.search_context import CandidateDevice
from kubectl_dra.api.claims import DeviceConstraint

# A maximal flow through a small graph.


class Flow:
    """A maximal flow between two nodes, by shortest augmenting paths; for graphs of a few hundred edges."""

    def __init__(self) -> None:
        self._room: dict[Hashable, dict[Hashable, int]] = {}
        self.edges = 0

    def edge(self, start: Hashable, end: Hashable, limit: int) -> None:
        """Add an edge, once per pair of nodes."""
        self.edges += 1
        self._room.setdefault(start, {})[end] = limit
        self._room.setdefault(end, {}).setdefault(start, 0)

    def maximum(self, source: Hashable, sink: Hashable) -> int:
        """The value of the maximal flow. Use once."""
        total = 0
        while source in self._room:
            came: dict[Hashable, Hashable] = {source: source}
            queue = deque([source])
            while queue and sink not in came:
                node = queue.popleft()
                for end, room in self._room[node].items():
                    if room > 0 and end not in came:
                        came[end] = node
                        queue.append(end)
            if sink not in came:
                break
            path: list[tuple[Hashable, Hashable]] = []
            node = sink
            while node != source:
                path.append((came[node], node))
                node = came[node]
            amount = min(self._room[start][end] for start, end in path)
            for start, end in path:
                self._room[start][end] -= amount
                self._room[end][start] += amount
            total += amount
        return total


MANY = 10**6
MAX_VALUES = 64


class Demand(Struct, frozen=True):
    """What a request still needs: ``need`` devices for one of the alternatives."""

    stage: int
    need: int
    alternatives: tuple[Alternative, ...]


class Supply(Struct):
    """Devices that are alike: their number, the position of one, and whether the current request may take them."""

    position: int
    ahead: bool
    component: Component | None
    count: int = 0


Allowed = Callable[[Alternative, Supply], bool]


class SearchState(Protocol):
    """What the tests read from the search that they judge. Amounts are in nano units."""

    @property
    def status(self) -> Sequence[Hashable]:
        """What later requests see of each device; None if it is free."""

    def constraints(self, claim: int) -> Sequence[ConstraintState]:
        """The constraints of a claim, in the search's current state."""

    def counts(self, position: int) -> bool:
        """Whether the device at a position is charged for counters."""

    def amounts(self, chosen: Alternative, candidate: CandidateDevice) -> Mapping[str, tuple[int, int]]:
        """For each capacity of a device: what a share takes, and what the cluster leaves."""

    def capacity_left(self, candidate: CandidateDevice) -> Mapping[str, int]:
        """What the cluster leaves of each capacity of a device."""


class Bounds:
    """The tests, for the current state of a search."""

    def __init__(self, problem: Problem, ledger: CounterLedger, search: SearchState) -> None:
        self._problem = problem
        self._ledger = ledger
        self._search = search
        self._values: dict[tuple[DeviceConstraint, int], Hashable] = {}

    def hopeless(self, stage: int, chosen: Alternative | None, placed: int, start: int) -> bool:
        """Whether no success can follow from this step of the search.

        Looks at all requests when one begins or has just fixed a value, otherwise only at the current one.
        """
        demands = self._demands(stage, chosen, placed)
        if placed > 1:
            demands = demands[:1]
        if not demands:
            return False
        supplies = self._supplies(stage, chosen, start)
        fixed = self._fixed(stage)
        usable = self._usable(stage, fixed)
        if self._too_few(demands, supplies, usable) or self._too_little(demands, supplies, usable):
            return True
        return any(
            self._no_value(constraint, state, claim, demands, supplies, usable)
            for claim, constraint, state in self._open(demands, stage)
        )

    def _demands(self, number: int, chosen: Alternative | None, placed: int) -> list[Demand]:
        out: list[Demand] = []
        for index, stage in enumerate(self._problem.stages[number:], number):
            alternatives = stage.alternatives
            if index == number and chosen is not None:
                alternatives = (chosen,)
            if any(entry.spec.admin_access for entry in alternatives):
                continue
            need = min(entry.needed for entry in alternatives) - (placed if index == number else 0)
            if need > 0:
                out.append(Demand(index, need, alternatives))
        return out

    def _supplies(self, number: int, chosen: Alternative | None, start: int) -> list[Supply]:
        problem, status = self._problem, self._search.status
        classes = problem.stages[number].classes
        listed = chosen is not None and chosen.listed is not None
        out: dict[Hashable, Supply] = {}
        for position, number_of in enumerate(classes):
            if number_of < 0 or (status[position] is not None and not problem.context.candidates[position].shareable):
                continue
            ahead = position >= start or listed
            component = problem.components[position]
            kind = (number_of, ahead, component, status[position])
            supply = out.get(kind)
            if supply is None:
                supply = out[kind] = Supply(position, ahead, component)
            supply.count += 1
        return list(out.values())

    def _fixed(self, number: int) -> list[tuple[DeviceConstraint, Hashable, bool]]:
        """Constraints of the current claim that already have a value: (constraint, seen, is match)."""
        claim = self._problem.stages[number].claim
        return [
            (state.constraint, seen, bool(state.constraint.match_attribute))
            for state in self._search.constraints(claim)
            if (seen := state.seen())
        ]

    def _usable(self, current: int, fixed: Sequence[tuple[DeviceConstraint, Hashable, bool]]) -> Allowed:
        problem = self._problem
        claim = problem.stages[current].claim
        known: dict[tuple[int, int, int], bool] = {}

        def usable(alternative: Alternative, supply: Supply) -> bool:
            stage = problem.index[alternative.claim] + alternative.request
            if stage == current and not supply.ahead:
                return False
            key = (stage, alternative.position, supply.position)
            answer = known.get(key)
            if answer is None:
                answer = known[key] = problem.stages[stage].uses[alternative.position][supply.position] == USABLE and (
                    alternative.claim != claim or self._agrees(alternative, supply.position, fixed)
                )
            return answer

        return usable

    def _agrees(
        self, alternative: Alternative, position: int, fixed: Sequence[tuple[DeviceConstraint, Hashable, bool]]
    ) -> bool:
        for constraint, seen, match in fixed:
            if not constraint.covers(alternative.parent.name, alternative.subrequest):
                continue
            value = self._value(constraint, position)
            if match and value != seen:
                return False
            if not match and isinstance(seen, frozenset) and value in seen:
                return False
        return True

    def _value(self, constraint: DeviceConstraint, position: int) -> Hashable:
        key = (constraint, position)
        if key not in self._values:
            device = self._problem.context.candidates[position].device
            self._values[key] = value_of(device, constraint)
        return self._values[key]

    def _open(self, demands: Sequence[Demand], number: int) -> Iterable[tuple[int, DeviceConstraint, bool]]:
        """Constraints that can still choose their value: (claim, constraint, is match)."""
        for claim in sorted({self._problem.stages[demand.stage].claim for demand in demands}):
            for state in self._search.constraints(claim):
                match = bool(state.constraint.match_attribute)
                if not (match and claim == self._problem.stages[number].claim and state.seen()):
                    yield claim, state.constraint, match

    def _no_value(
        self,
        constraint: DeviceConstraint,
        match: bool,
        claim: int,
        demands: Sequence[Demand],
        supplies: Sequence[Supply],
        usable: Allowed,
    ) -> bool:
        """Whether an open constraint of a claim cannot be met."""

        def covered(alternative: Alternative) -> bool:
            return alternative.claim == claim and constraint.covers(alternative.parent.name, alternative.subrequest)

        own = [demand for demand in demands if all(covered(entry) for entry in demand.alternatives)]
        if not own:
            return False
        values: dict[Hashable, list[Supply]] = {}
        for supply in supplies:
            if any(usable(entry, supply) for demand in own for entry in demand.alternatives):
                values.setdefault(self._value(constraint, supply.position), []).append(supply)
        values.pop(None, None)
        if not match:
            return self._too_few_values(own, values, usable)
        tried = 0
        for value, holders in values.items():
            if any(sum(supply.count for supply in holders) < demand.need for demand in own):
                continue
            tried += 1
            if tried > MAX_VALUES:
                return False

            def with_value(alternative: Alternative, supply: Supply, value: Hashable = value) -> bool:
                if covered(alternative) and self._value(constraint, supply.position) != value:
                    return False
                return usable(alternative, supply)

            if not self._too_few(demands, supplies, with_value):
                return False
        return True

    def _too_few_values(self, own: Sequence[Demand], values: dict[Hashable, list[Supply]], usable: Allowed) -> bool:
        """Whether the covered requests find fewer different values than the devices they need."""
        flow = Flow()
        for number, demand in enumerate(own):
            flow.edge("source", number, demand.need)
            for value, holders in values.items():
                if any(usable(entry, supply) for entry in demand.alternatives for supply in holders):
                    flow.edge(number, ("value", value), 1)
        for value in values:
            flow.edge(("value", value), "sink", 1)
        return self._maximum(flow) < sum(demand.need for demand in own)

    def _too_few(self, demands: Sequence[Demand], supplies: Sequence[Supply], usable: Allowed) -> bool:
        """Whether there are not enough devices for all demands at once, ignoring everything else."""
        flow = Flow()
        offered: dict[int, Supply] = {}
        for number, demand in enumerate(demands):
            flow.edge("source", number, demand.need)
            for index, supply in enumerate(supplies):
                if any(usable(entry, supply) for entry in demand.alternatives):
                    flow.edge(number, ("supply", index), supply.count)
                    offered[index] = supply
        inside: dict[Component, list[Supply]] = {}
        for index, supply in offered.items():
            limit = supply.count * self._shares(supply, demands)
            if supply.component is None or not self._counts(supply):
                flow.edge(("supply", index), "sink", limit)
            else:
                flow.edge(("supply", index), supply.component, limit)
                inside.setdefault(supply.component, []).append(supply)
        for component, members in inside.items():
            flow.edge(component, "sink", self._room(component, members))
        return self._maximum(flow) < sum(demand.need for demand in demands)

    def _maximum(self, flow: Flow) -> int:
        self._problem.context.budget.charge(FLOW + flow.edges // EDGES_PER_STEP)
        return flow.maximum("source", "sink")

    def _counts(self, supply: Supply) -> bool:
        return self._search.counts(supply.position)

    def _room(self, component: Component, members: Sequence[Supply]) -> int:
        """At most how many of the devices fit into what a counter set has left."""
        key, counter_set = component
        left = self._left(key, counter_set)
        total = sum(member.count for member in members)
        best = total
        for counter, amount in left.items():
            wanted = sorted((self._wanted(member.position, counter), member.count) for member in members)
            room, fits = amount, 0
            for size, count in wanted:
                some = count if size <= 0 else min(count, max(room, 0) // size)
                fits += some
                room -= some * size
                if some < count:
                    break
            best = min(best, fits)
        return best

    def _left(self, key: Hashable, counter_set: Hashable) -> dict[str, int]:
        """What a counter set has left, in nano units."""
        table = self._problem.tables.get(key)  # type: ignore[call-overload]
        if not table or counter_set not in table:
            return {}
        left = {counter: amount.nanos for counter, amount in table[counter_set].items()}
        for counter, amount in self._ledger.charged(key, counter_set).items():  # type: ignore[arg-type]
            if counter in left:
                left[counter] -= amount.nanos
        return left

    def _wanted(self, position: int, counter: str) -> int:
        device = self._problem.context.candidates[position].device
        return sum(
            consumption.counters[counter].nanos
            for consumption in device.consumes_counters
            if counter in consumption.counters
        )

    def _shares(self, supply: Supply, demands: Sequence[Demand]) -> int:
        """At most how many requests a device can serve."""
        candidate = self._problem.context.candidates[supply.position]
        if not candidate.shareable:
            return 1
        best = MANY
        if not candidate.device.capacity:
            return best
        held = dict(self._search.status[supply.position] or ())  # type: ignore[call-overload]
        least: dict[str, int] = {}
        left: dict[str, int] = {}
        for demand in demands:
            for entry in demand.alternatives:
                stage = self._problem.stages[demand.stage]
                if stage.uses[entry.position][supply.position] != USABLE:
                    continue
                for name, (amount, rest) in self._search.amounts(entry, candidate).items():
                    least[name] = min(least.get(name, amount), amount)
                    left[name] = rest - held.get(name, 0)
        for name, amount in least.items():
            if amount > 0:
                best = min(best, max(left[name], 0) // amount)
        return best

    def _too_little(self, demands: Sequence[Demand], supplies: Sequence[Supply], usable: Allowed) -> bool:
        """Whether the smallest total consumption of a counter or capacity exceeds what is left of it."""
        least: dict[Hashable, int] = {}
        for demand in demands:
            lowest: dict[Hashable, int] = {}
            names: set[Hashable] | None = None
            for supply in supplies:
                for entry in demand.alternatives:
                    if not usable(entry, supply):
                        continue
                    amounts = self._consumes(entry, supply)
                    names = set(amounts) if names is None else names & amounts.keys()
                    for name, amount in amounts.items():
                        lowest[name] = min(lowest.get(name, amount), amount)
            if names is None:
                return True
            for name in names:
                # A list may take more devices than its smallest alternative, never fewer.
                least[name] = least.get(name, 0) + demand.need * max(lowest[name], 0)
        if not any(least.values()):
            return False
        totals = self._totals(supplies)
        return any(amount > totals.get(name, amount) for name, amount in least.items())

    def _consumes(self, alternative: Alternative, supply: Supply) -> dict[Hashable, int]:
        candidate = self._problem.context.candidates[supply.position]
        out: dict[Hashable, int] = {}
        if supply.component is not None and self._counts(supply):
            for consumption in candidate.device.consumes_counters:
                for counter, amount in consumption.counters.items():
                    out["counter", counter] = amount.nanos
        if candidate.shareable:
            for name, (taken, _) in self._search.amounts(alternative, candidate).items():
                out["capacity", name] = taken
        return out

    def _totals(self, supplies: Sequence[Supply]) -> dict[Hashable, int]:
        """What is left of each counter and capacity, summed over all devices."""
        totals: dict[Hashable, int] = {}
        for component in {supply.component for supply in supplies if supply.component is not None}:
            for counter, amount in self._left(*component).items():
                totals["counter", counter] = totals.get(("counter", counter), 0) + max(amount, 0)
        for supply in supplies:
            candidate = self._problem.context.candidates[supply.position]
            if not candidate.shareable:
                continue
            held = dict(self._search.status[supply.position] or ())  # type: ignore[call-overload]
            for name, left in self._search.capacity_left(candidate).items():
                rest = max(left - held.get(name, 0), 0)
                totals["capacity", name] = totals.get(("capacity", name), 0) + rest * supply.count
        return totals
