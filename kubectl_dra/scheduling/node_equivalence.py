"""Nodes that an attempt cannot tell apart: it reads the same from their devices, so one stands for all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from contextlib import suppress
from functools import cached_property
from typing import Final

from msgspec import json

from kubectl_dra.allocation.attempt import Attempt, AttemptVerdict, Cycle
from kubectl_dra.allocation.budgets import Budget
from kubectl_dra.allocation.capacity import decides_nothing
from kubectl_dra.allocation.constraints import attribute_of, values_of
from kubectl_dra.allocation.errors import AllocationError
from kubectl_dra.allocation.pools import NodePools, Pool, scope_matches
from kubectl_dra.api.claims import ALL, DeviceRequest, ResourceClaim
from kubectl_dra.api.labels import InvalidNodeSelector
from kubectl_dra.api.nodes import Node
from kubectl_dra.api.quantity import Quantity
from kubectl_dra.api.slices import Device, DeviceID, ResourceSlice
from kubectl_dra.api.taints import blocking_taint
from kubectl_dra.by_identity import ByIdentity

_NEVER_TAKEN: Final = 0
"""The kind of a device that every request skips without an error."""


class NodeAttempts:
    """Attempts on nodes with the claims of one pod. Nodes from which they read the same share the first of them.

    ``unlike``: whoever asks has left out nodes that are like others, so none is compared.
    """

    def __init__(self, cycle: Cycle, budget: Budget, *, unlike: bool = False) -> None:
        self._cycle = cycle
        self._unlike = unlike
        self._budget = budget
        self._equivalence: dict[frozenset[str], NodeEquivalence] = {}
        self._known: dict[Hashable, Attempt] = {}
        # Where only one node is asked, nobody needs to know what was read from it.
        self._first: tuple[Node, Sequence[ResourceClaim], frozenset[str], Attempt] | None = None

    def on(self, node: Node, claims: Sequence[ResourceClaim], delegated: frozenset[str] = frozenset()) -> Attempt:
        """The attempt on a node. ``delegated``: the extended resources that the claims ask for there."""
        try:
            pools = self._cycle.pools_of(node)
        except AllocationError:
            pools = None
        if self._unlike:
            return self._made(node, claims, pools)
        if self._first is None:
            attempt = self._made(node, claims, pools)
            self._first = node, claims, delegated, attempt
            return attempt
        if not self._equivalence:
            first_node, own, others, attempt = self._first
            self._remember(self._key(first_node, own, others, attempt.pools), attempt)
        key = self._key(node, claims, delegated, pools)
        known = self._known.get(key) if key is not None else None
        if known is None or pools is None:
            attempt = self._made(node, claims, pools)
            self._remember(key, attempt)
            return attempt
        if known.verdict is AttemptVerdict.ALLOCATED:
            return self._cycle.repeated(known, node, claims, pools)
        return known

    def _made(self, node: Node, claims: Sequence[ResourceClaim], pools: NodePools | None) -> Attempt:
        return self._cycle.attempt(node, claims, budget=self._budget.search(), pools=pools)

    def _key(
        self, node: Node, claims: Sequence[ResourceClaim], delegated: frozenset[str], pools: NodePools | None
    ) -> Hashable:
        """What is equal for nodes that share an attempt; None for a node that shares none."""
        if delegated not in self._equivalence:
            self._equivalence[delegated] = NodeEquivalence(self._cycle, claims)
        read = self._equivalence[delegated].of(node, pools) if pools is not None else None
        return None if read is None else (delegated, read)

    def _remember(self, key: Hashable, attempt: Attempt) -> None:
        if key is not None and attempt.verdict in (AttemptVerdict.REJECTED, AttemptVerdict.ALLOCATED):
            self._known[key] = attempt


def judge_at_once(cycle: Cycle, nodes: Iterable[Node], claims: Iterable[ResourceClaim]) -> None:
    """Judge the devices of many nodes by all that claims select, which is faster than one by one."""
    devices: list[Device] = []
    for node in nodes:
        with suppress(AllocationError):
            for pool in cycle.pools_of(node).pools:
                devices += [device for slice_ in pool.slices for device in slice_.devices]
    specs = [spec for claim in claims for spec in claim.alternatives()]
    for expression in {text for spec in specs for text in _expressions(cycle, spec) or () if text}:
        cycle.selectors.prefetch(expression, devices)


class NodeEquivalence:
    """What attempts with these claims read from a node.

    That is less than what is published: of a device's attributes only the verdicts of selectors and the
    values that constraints compare, of its taints whether they are tolerated, and nothing from a device that
    nobody can take.
    """

    def __init__(self, cycle: Cycle, claims: Sequence[ResourceClaim]) -> None:
        self._cycle = cycle
        self._specs = [spec for claim in claims for spec in claim.alternatives()]
        self._compared = [constraint.attribute for claim in claims for constraint in claim.constraints]
        self._derives = any(spec.derived_attributes for spec in self._specs)
        self._amounts = any(spec.capacity for spec in self._specs)
        self._expressions = [_expressions(cycle, spec) for spec in self._specs]
        self._all = any(spec.allocation_mode == ALL for spec in self._specs)
        # Mode All lists devices that are held as well, and admin access takes them.
        self._passes_held = not self._all and not any(spec.admin_access for spec in self._specs)
        state = cycle.state
        self._held = state.exclusive_by_pool
        self._used = {device[:2] for devices in (state.shared, state.consumed) for device in devices}
        selectors = self._cycle.selectors
        of_each = [selectors.refused_by(texts or ()) for texts in self._expressions]
        self._refused = set.intersection(*of_each) if of_each else set()
        self._kinds: dict[Hashable, int] = {}
        self._of_device = ByIdentity[Device, int]()
        self._of_list = ByIdentity[tuple[Device, ...], tuple[int, ...]]()

    @cached_property
    def _names(self) -> Set[str]:
        """Names of pools of several drivers, whose counters the scheduler may confuse."""
        if not self._cycle.defects.counters_keyed_by_pool_name:
            return frozenset()
        times = Counter(pool.name for pool in self._cycle.index.by_pool)
        return frozenset(name for name, number in times.items() if number > 1)

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
                if not (
                    pool.id.name not in self._names
                    and all(slice_.scope.node_name == node.name for slice_ in self._cycle.index.by_pool[pool.id])
                ):
                    return None
                seen.append(tuple((name, _amounts(counters)) for name, counters in pool.counter_sets.items()))
            for slice_ in pool.slices:
                kinds = self._of_slice(slice_, pool, node)
                if kinds is None:
                    return None
                seen.append((kinds, node.skips_operations) if slice_.skip_node_operations else kinds)
        return tuple(seen)

    def _of_slice(self, slice_: ResourceSlice, pool: Pool, node: Node) -> Hashable:
        kinds: Sequence[Hashable] | None = self._of_list.get(slice_.devices)
        if kinds is None:
            never, kind = self._refused, self._kind
            kinds = self._of_list.put(
                slice_.devices,
                tuple(
                    [
                        _NEVER_TAKEN if id(device) in never and not device.consumes_counters else kind(device)
                        for device in slice_.devices
                    ]
                ),
            )
        if slice_.per_device_node_selection:
            try:
                kinds = [
                    kind and (kind, scope_matches(device.scope, node))
                    for kind, device in zip(kinds, slice_.devices, strict=True)
                ]
            except InvalidNodeSelector:
                return None
        if self._passes_held and pool.id not in self._used and not pool.counter_sets:
            if held := self._held.get(pool.id):
                kinds = [_NEVER_TAKEN if name in held else kind for kind, name in zip(kinds, slice_.names, strict=True)]
        elif pool.id in self._used or pool.id in self._held:
            kinds = [
                self._with_use(kind, DeviceID(*pool.id, name), counted=bool(pool.counter_sets))
                for kind, name in zip(kinds, slice_.names, strict=True)
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
        known = self._of_device.get(device)
        if known is None:
            key = self._read(device)
            known = self._of_device.put(device, self._kinds.setdefault(key, len(self._kinds) + 1) if key else 0)
        return known

    def _read(self, device: Device) -> tuple[Hashable, ...]:
        """What an attempt reads from a device itself; nothing if no request can take it."""
        features = self._cycle.features
        # Where others hold a device, what it takes of the counters is read in any case.
        counters = tuple(
            (consumption.counter_set, _amounts(consumption.counters), consumption.groups)
            for consumption in device.consumes_counters
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
            json.encode(device.capacity)
            if features.consumable_capacity and (self._amounts or not decides_nothing(device))
            else None,
            bool(device.binding_conditions),
        )

    def _verdict(self, expressions: Sequence[str], device: Device) -> Hashable:
        """True, False, or which error a selector raises."""
        selectors = self._cycle.selectors
        for expression in expressions:
            verdict = selectors.verdict(expression, device)
            if verdict is not True:
                return verdict
        return True


def _expressions(cycle: Cycle, spec: DeviceRequest) -> list[str] | None:
    """The selectors of the class and of the request, in evaluation order."""
    device_class = cycle.classes.get(spec.device_class)
    if device_class is None:
        return None
    expressions = [text for text in (*device_class.selectors, *spec.selectors) if text is not None]
    return expressions if len(expressions) == len(device_class.selectors) + len(spec.selectors) else None


def _amounts(amounts: Mapping[str, Quantity]) -> Hashable:
    return tuple([(name, amount.nanos) for name, amount in amounts.items()])
