"""Nodes that an attempt cannot tell apart: it reads the same from their devices, so it rejects all of them or none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence, Set
from functools import cached_property
from typing import TYPE_CHECKING, Final

from msgspec import json

from kubectl_dra.allocation.attempt import Cycle
from kubectl_dra.allocation.capacity import decides_nothing
from kubectl_dra.allocation.constraints import attribute_of, values_of
from kubectl_dra.allocation.pools import NodePools, Pool, scope_matches
from kubectl_dra.api.claims import ALL, DeviceRequest, ResourceClaim
from kubectl_dra.api.labels import InvalidNodeSelector
from kubectl_dra.api.nodes import Node
from kubectl_dra.api.quantity import Quantity
from kubectl_dra.api.slices import Device, DeviceID, OwnColumn, ResourceSlice
from kubectl_dra.api.taints import blocking_taint
from kubectl_dra.cel import CompileError, Environment, Program, compile_expression
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.explain.question.resolve import Question, about_pod
from kubectl_dra.explain.scene.prepare import Settings
from kubectl_dra.scheduling.gang_scheduling import members
from kubectl_dra.text import nearest

if TYPE_CHECKING:
    from kubectl_dra.cel.column_comparisons import KeyAnswer

    _Reads = tuple[OwnColumn | None, KeyAnswer | None]
    "An attribute or capacity without its domain, None if it could be any, and how its reader answers from it."

_NEVER_TAKEN: Final = 0
"""The kind of a device that every request skips without an error."""


class Likeness:
    """What attempts with these claims read from a node.

    That is less than what is published: of a device's attributes only the verdicts of selectors and the
    values that constraints compare, of its taints whether they are tolerated, and nothing from a device that
    nobody can take.
    """

    def __init__(self, cycle: Cycle, claims: Sequence[ResourceClaim]) -> None:
        self._cycle = cycle
        self._specs = [spec for claim in claims for request in claim.requests for spec in request.alternatives()]
        self._compared = [
            entry.match_attribute or entry.distinct_attribute for claim in claims for entry in claim.constraints
        ]
        self._derives = any(spec.derived_attributes for spec in self._specs)
        self._amounts = any(spec.capacity for spec in self._specs)
        self._expressions = [_expressions(cycle, spec) for spec in self._specs]
        self._all = any(spec.allocation_mode == ALL for spec in self._specs)
        # Mode All lists devices that are held as well, and admin access takes them.
        self._passes_held = not self._all and not any(spec.admin_access for spec in self._specs)
        state = cycle.state
        self._held = state.exclusive_by_pool
        self._used = {device[:2] for devices in (state.shared, state.consumed) for device in devices}
        self._refused = self._refused_by_all()
        self._kinds: dict[Hashable, int] = {}
        self._of_device: dict[int, int] = {}
        self._of_list: dict[int, tuple[int, ...]] = {}

    @cached_property
    def _names(self) -> Set[str]:
        """Names of pools whose counters the scheduler may confuse."""
        return _names_of_several(self._cycle) if self._cycle.quirks.counters_keyed_by_pool_name else frozenset()

    def _refused_by_all(self) -> Set[int]:
        """The devices, by their identity, that selectors of every request are known to be false on."""
        selectors = self._cycle.selectors
        of_each = [selectors.refused_by(texts or ()) for texts in self._expressions]
        return set.intersection(*of_each) if of_each else set()

    def of(self, node: Node, pools: NodePools) -> Hashable:
        """What an attempt reads from the node; None if that is too much."""
        if self._derives or any(expressions is None for expressions in self._expressions):
            return None
        seen: list[Hashable] = []
        for pool in pools.pools:
            if not pool.usable:
                if self._all:
                    return None
                seen.append(bool(pool.invalid))
                continue
            if pool.counter_sets:
                if not self._counts_alone(pool, node):
                    return None
                seen.append(tuple((name, _amounts(counters)) for name, counters in pool.counter_sets.items()))
            for entry in pool.slices:
                kinds = self._of_slice(entry, pool, node)
                if kinds is None:
                    return None
                seen.append((kinds, node.skips_operations) if entry.skip_node_operations else kinds)
        return tuple(seen)

    def _counts_alone(self, pool: Pool, node: Node) -> bool:
        """Whether the pool's counters belong to this node, and no other pool reads them."""
        return pool.id.name not in self._names and all(
            entry.scope.node_name == node.name for entry in self._cycle.index.by_pool[pool.id]
        )

    def _of_slice(self, entry: ResourceSlice, pool: Pool, node: Node) -> Hashable:
        kinds: Sequence[Hashable] | None = self._of_list.get(id(entry.devices))
        if kinds is None:
            never, kind = self._refused, self._kind
            kinds = self._of_list[id(entry.devices)] = tuple(
                [
                    _NEVER_TAKEN if id(device) in never and not device.consumes_counters else kind(device)
                    for device in entry.devices
                ]
            )
        if entry.per_device_node_selection:
            try:
                kinds = [
                    kind and (kind, scope_matches(device.scope, node))
                    for kind, device in zip(kinds, entry.devices, strict=True)
                ]
            except InvalidNodeSelector:
                return None
        if self._passes_held and pool.id not in self._used and not pool.counter_sets:
            if held := self._held.get(pool.id):
                kinds = [_NEVER_TAKEN if name in held else kind for kind, name in zip(kinds, entry.names, strict=True)]
        elif pool.id in self._used or pool.id in self._held:
            kinds = [
                self._with_use(kind, DeviceID(*pool.id, name), counted=bool(pool.counter_sets))
                for kind, name in zip(kinds, entry.names, strict=True)
            ]
        return tuple(kinds)

    def _with_use(self, kind: Hashable, device: DeviceID, *, counted: bool) -> Hashable:
        """The kind of a device, with what others hold of it."""
        state = self._cycle.state
        if not state.in_use(device):
            return kind
        held = device in state.exclusive
        if not counted:
            if kind == _NEVER_TAKEN:
                return kind
            if held and self._passes_held:
                return _NEVER_TAKEN
        consumed = state.consumed.get(device)
        return kind, held, device in state.shared, None if consumed is None else _amounts(consumed)

    def _kind(self, device: Device) -> int:
        known = self._of_device.get(id(device))
        if known is None:
            key = self._read(device)
            known = self._of_device[id(device)] = self._kinds.setdefault(key, len(self._kinds) + 1) if key else 0
        return known

    def _read(self, device: Device) -> tuple[Hashable, ...]:
        """What an attempt reads from a device itself; nothing if no request can take it."""
        features = self._cycle.features
        # Where others hold a device, what it takes of the counters is read in any case.
        counters = tuple(
            (entry.counter_set, _amounts(entry.counters), entry.groups) for entry in device.consumes_counters
        )
        verdicts = tuple([self._verdict(expressions or (), device) for expressions in self._expressions])
        if not any(verdicts) and not counters:
            return ()
        taints = device.taints if features.device_taints else ()
        return (
            verdicts,
            counters,
            tuple([not taints or blocking_taint(taints, spec.tolerations) is None for spec in self._specs]),
            tuple([(attribute_of(device, name), values_of(device, name)) for name in self._compared]),
            device.allow_multiple_allocations,
            json.encode(device.capacity) if self._reads_capacity(device) else None,
            bool(device.binding_conditions),
        )

    def _reads_capacity(self, device: Device) -> bool:
        return self._cycle.features.consumable_capacity and (self._amounts or not decides_nothing(device))

    def _verdict(self, expressions: Sequence[str], device: Device) -> Hashable:
        """True, False, or which error a selector raises."""
        selectors = self._cycle.selectors
        for expression in expressions:
            verdict = selectors.verdict(expression, device)
            if verdict is not True:
                return False if verdict is False else id(verdict)
        return True


def _expressions(cycle: Cycle, spec: DeviceRequest) -> list[str] | None:
    """The selectors of the class and of the request, in evaluation order."""
    device_class = cycle.classes.get(spec.device_class)
    if device_class is None:
        return None
    found = [text for text in (*device_class.selectors, *spec.selectors) if text is not None]
    return found if len(found) == len(device_class.selectors) + len(spec.selectors) else None


def _names_of_several(cycle: Cycle) -> frozenset[str]:
    """Names shared by pools of several drivers."""
    times = Counter(pool.name for pool in cycle.index.by_pool)
    return frozenset(name for name, number in times.items() if number > 1)


def _amounts(amounts: Mapping[str, Quantity]) -> Hashable:
    return tuple([(name, amount.nanos) for name, amount in amounts.items()])


# What of each device's own an answer can depend on: only that is restored to the devices of a large snapshot.


def complete(question: Question | None, snapshot: Snapshot, settings: Settings) -> Snapshot:
    """The snapshot with every value that a selector or constraint of the question, or a class, can tell apart.

    Individual attributes and capacities (``Snapshot.individual``) that are read, or have a similar name, are restored
    to the devices; all if only evaluation tells what is read. Where selectors only compare one with constants,
    devices that get the same answers stay shared (``Snapshot.judged``). Names stay where they are. Without a question,
    classes count alone.
    """
    if not snapshot.individual:
        return snapshot
    answers: dict[OwnColumn, list[KeyAnswer | None]] = {}
    for read, answer in _read(question, snapshot, settings):
        if read is None:
            return snapshot.exact()
        answers.setdefault(read, []).append(answer)
    whole: set[OwnColumn] = set()
    compared: dict[OwnColumn, Callable[[str], Hashable]] = {}
    for own in snapshot.individual:
        known = [every for read, every in answers.items() if _alike(read, _without_domain(own))]
        told = _together(answers.get(_without_domain(own), ())) if len(known) == 1 else None
        if told is not None:
            compared[own] = told
        elif known:
            whole.add(own)
    exact = snapshot.exact(whole) if whole else snapshot
    return exact.told_apart(compared) if compared else exact


def _together(answers: Sequence[KeyAnswer | None]) -> Callable[[str], Hashable] | None:
    """What all readers of an attribute answer to a text; the text itself where one of them has to evaluate."""
    told = [answer for answer in answers if answer is not None]
    if not told or len(told) < len(answers):
        return None

    if len(told) == 1:
        (only,) = told
        return lambda text: text if (found := only(text)) is None else found

    def answered(text: str) -> Hashable:
        found = tuple([answer(text) for answer in told])
        return text if None in found else found

    return answered


def _read(question: Question | None, snapshot: Snapshot, settings: Settings) -> Iterator[_Reads]:
    """What is read of devices."""
    expressions = {text for entry in snapshot.classes.values() for text in entry.selectors}
    derived: set[str] = set()
    for claim in _claims(question, snapshot):
        for constraint in claim.constraints:
            name = constraint.match_attribute or constraint.distinct_attribute
            yield _without_domain(OwnColumn("attribute", name)), None
        for request in claim.requests:
            for spec in request.alternatives():
                expressions.update(spec.selectors)
                derived.update(spec.derived_attributes.values())
                for name in spec.capacity or ():
                    yield _without_domain(OwnColumn("capacity", name)), None
    environment = Environment.for_release(settings.scheduler.release, features=settings.scheduler.gates, stored=True)
    asked = [(text, False) for text in expressions if text] + [(text, True) for text in derived]
    for expression, derives in sorted(asked):
        try:
            program = compile_expression(environment, expression, derived=derives)
        except CompileError:
            yield None, None
            return
        # Terms of an expression that may cost too much are not evaluated by themselves.
        yield from _read_by((program,) if derives or not program.cheap else program.terms())


def _claims(question: Question | None, snapshot: Snapshot) -> Iterator[ResourceClaim]:
    """The claims of the question, and of all pods of its pod's group, which may be placed together.

    A group is placed with the claims that the cluster has, also where the question is about changed ones.
    """
    if question is None:
        return
    yield from question.existing_claims
    pod = question.pod
    if pod is not None and (pod.pod_group or pod.spec.workload_ref):
        for member in members(pod, snapshot):
            yield from about_pod(member, snapshot, exists=True).existing_claims


def _read_by(programs: Sequence[Program]) -> Iterator[_Reads]:
    for program in programs:
        if program.columns is None:
            yield None, None
            return
        for column in program.columns:
            if column.kind == "attribute" or column.kind == "capacity":
                yield OwnColumn(column.kind, column.id) if column.id is not None else None, program.by_key


def _without_domain(column: OwnColumn) -> OwnColumn:
    return column._replace(name=column.name.rpartition("/")[2])


def _alike(read: OwnColumn, own: OwnColumn) -> bool:
    """Whether what is read is an individual column, or may be meant to be."""
    return read.kind == own.kind and (read.name == own.name or bool(nearest(read.name, [own.name])))
