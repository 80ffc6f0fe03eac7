"""Small changes that might make claims fit: to a request, a constraint, a holder, a pool, a node."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from heapq import nsmallest
from typing import NamedTuple

from msgspec.structs import replace

from kubectl_dra.allocation.capacity import NOTHING, CapacityShortage, amount_taken, shortage
from kubectl_dra.allocation.constraints import attribute_of
from kubectl_dra.allocation.pools import Pool
from kubectl_dra.allocation.selectors import SelectorVerdict
from kubectl_dra.api.claims import ALL, DeviceRequest, ResourceClaim
from kubectl_dra.api.nodes import Node
from kubectl_dra.api.quantity import Quantity
from kubectl_dra.api.slices import Device, DeviceID
from kubectl_dra.api.taints import DeviceTaint, blocking_taint
from kubectl_dra.explain.diagnosis import Evidence
from kubectl_dra.explain.driver_words import TURN_ON
from kubectl_dra.explain.funnel.device_view import DeviceView, PublishedDevice, distinct, in_slices
from kubectl_dra.explain.funnel.located import Located
from kubectl_dra.explain.funnel.shown import StageName
from kubectl_dra.explain.holders import HolderIndex
from kubectl_dra.explain.phrase import Subject, Words, nodes_named, say
from kubectl_dra.explain.remedies.change import (
    CompletePool,
    DropConstraint,
    LessCapacity,
    LowerCount,
    ReplaceTerm,
    Tolerate,
    UseClass,
)
from kubectl_dra.explain.remedies.freeing_claims import fewest_first, freeing
from kubectl_dra.explain.remedies.prove import Change
from kubectl_dra.explain.remedies.selector_values import loosened_term

MAX_TERMS = 6
MAX_HOLDERS = 6
MAX_POOLS = 3
MAX_CAPACITIES = 2
MAX_CLASSES = 40
_ZERO = Quantity.parse("0")
_BROKEN = re.compile(r"health|fail|fault|error|broken|fatal|lost|dead|xid|ecc|offline|unavailable|not-?ready", re.I)
"""Words in a driver's taint that mean that the device does not work."""


def candidates(
    view: DeviceView,
    claims: Sequence[ResourceClaim],
    funnels: Sequence[Located],
    holders: HolderIndex,
) -> list[Change]:
    """All changes of claims, their holders and pools that are worth trying, the cheapest first."""
    changes: list[Change] = [
        *_constraints(claims),
        *(change for located in funnels for change in _of_request(view, located)),
        *_holders(view, funnels, holders),
        *_pools(view, funnels),
    ]
    return sorted(changes, key=lambda change: change.cost)


def _of_request(view: DeviceView, located: Located) -> Iterator[Change]:
    yield from _less_capacity(view, located)
    yield from _tolerations(located)
    yield from _terms(view, located)
    yield from _classes(view, located)
    yield from _counts(view, located)


def _terms(view: DeviceView, located: Located) -> Iterator[Change]:
    """Another value in a term, or the term dropped, for every term that rejects a device, not only the first."""
    selectors, spec = view.cycle.selectors, located.funnel.spec
    items = located.funnel.lost_at(StageName.REQUEST_SELECTOR)
    different = [item.device for item in distinct(items)]
    # A list has its own way to ask for devices of another kind: one more alternative.
    listed = bool(located.claim.requests[located.request_index].first_available)
    tried = 0
    for index, expression in enumerate(spec.selectors):
        terms = selectors.terms(expression or "")
        for number, term in enumerate(terms):
            verdicts: Sequence[SelectorVerdict]
            if len(terms) == 1:
                verdicts = selectors.verdicts(expression or "", different)
            else:
                verdicts = term.evaluate_devices(selectors.table(different))
            true = {id(device) for device, verdict in zip(different, verdicts, strict=True) if verdict is True}
            refused = [item for item in items if id(item.device) not in true] if true else items
            if not refused or tried == MAX_TERMS:
                continue
            tried += 1
            for offer in loosened_term(view, located.place, index, spec, number, refused):
                if not listed or offer.amount:
                    yield offer.change
            yield ReplaceTerm(located.place, selectors, index, number, term.expression)


def _classes(view: DeviceView, located: Located) -> Iterator[Change]:
    """Classes whose devices the request's selectors accept, if its own class has none of these."""
    spec, stage = located.funnel.spec, located.funnel.blocking_stage
    if not any(spec.selectors) or stage is None or stage.passed:
        return
    if stage.name.selects:
        for name in fitting_classes(view, spec):
            yield UseClass(located.place, name)


def fitting_classes(
    view: DeviceView, spec: DeviceRequest, among: Sequence[PublishedDevice] | None = None
) -> Iterator[str]:
    """Classes, other than the request's own, that admit devices which its selectors accept, by name.

    ``among``: of these devices; None means all.
    """
    selectors = view.cycle.selectors
    wanted = [text for text in spec.selectors if text]
    kinds = [item.device for item in (view.kinds if among is None else distinct(among))]
    for name in sorted(view.cycle.classes)[:MAX_CLASSES]:
        devices: Sequence[Device] = kinds if name != spec.device_class else ()
        if selectors.accepted((*view.cycle.classes[name].selectors, *wanted), devices):
            yield name


def _tolerations(located: Located) -> Iterator[Change]:
    """Taints to tolerate: those of DeviceTaintRules, and those of the driver that do not mark a device as broken."""
    taints: dict[str, DeviceTaint] = {}
    # Nobody writes tolerations for an extended resource.
    for item in located.funnel.lost_at(StageName.TAINT) if not located.place.extended else ():
        taint = blocking_taint(item.device.taints, located.funnel.spec.tolerations)
        if taint is not None and str(taint) not in taints and (taint.rule or _may_be_tolerated(taint)):
            taints[str(taint)] = blocking_taint(item.exact.taints, located.funnel.spec.tolerations) or taint
    for taint in taints.values():
        yield Tolerate(located.place, (taint,))


def _may_be_tolerated(taint: DeviceTaint) -> bool:
    """Whether a driver's taint leaves a device to users who know about it: nobody is evicted, nothing is broken."""
    return taint.effect == "NoSchedule" and not marks_broken(taint)


def marks_broken(taint: DeviceTaint) -> bool:
    """Whether a driver's taint says that its device does not work, judging by its words."""
    return bool(_BROKEN.search(f"{taint.key} {taint.value}"))


def capacity_shortage(view: DeviceView, item: PublishedDevice, spec: DeviceRequest) -> CapacityShortage | None:
    """Why a device does not give the requested capacity; None if it does."""
    return shortage(
        item.device,
        spec.capacity,
        view.cycle.state.consumed.get(item.id, NOTHING),
        NOTHING,
        fractional=view.cycle.features.fractional_capacity,
    )


def capacities_left(item: PublishedDevice, short: CapacityShortage) -> Iterator[tuple[str, Quantity]]:
    """What the device still gives of the missing capacity, if that may be requested."""
    if short.value is not None and short.used is not None:
        remaining = short.value - short.used
        if remaining > _ZERO and amount_taken(remaining, item.device.capacity[short.capacity]) <= remaining:
            yield short.capacity, remaining


def _less_capacity(view: DeviceView, located: Located) -> Iterator[Change]:
    """What the devices have left of a requested capacity, the largest amounts."""
    offers: dict[tuple[str, Quantity], None] = {}
    for item in located.funnel.lost_at(StageName.CAPACITY):
        short = capacity_shortage(view, item, located.funnel.spec)
        if short is not None:
            offers.update(dict.fromkeys(capacities_left(item, short)))
    for name, most in sorted(offers, key=lambda offer: -offer[1].nanos)[:MAX_CAPACITIES]:
        yield LessCapacity(located.place, name, most)


def _counts(view: DeviceView, located: Located) -> Iterator[Change]:
    spec = located.funnel.spec
    best = max((len(located.funnel.usable_on(node.name)) for node in view.nodes), default=0)
    every = spec.allocation_mode == ALL
    counts = {best, 1, _alike(view, located), _others_free(located)} | (set() if every else {spec.count - 1})
    for count in sorted(counts, reverse=True):
        if count > 0 and (every or count < spec.count):
            yield LowerCount(located.place, count, every)


def _others_free(located: Located) -> int:
    """The most devices of one node that only a selector of the request refuses, and that nobody holds: enough of
    another kind, for a count that is lowered together with that selector.
    """
    refused = located.funnel.lost_at(StageName.REQUEST_SELECTOR)
    held = located.funnel.pools_held
    free: Counter[str] = Counter()
    for slice_, items in in_slices(refused):
        if slice_.pool in held:
            names = slice_.names
            ids = (DeviceID(*slice_.pool, names[item.position]) for item in items)
            free[slice_.scope.node_name] += sum(1 for device in ids if not located.funnel.holders_of(device))
        else:
            free[slice_.scope.node_name] += len(items)
    del free[""]
    return max(free.values(), default=0)


def _alike(view: DeviceView, located: Located) -> int:
    """The most devices of one node that agree in the attribute of a constraint over the request; 0 without one."""
    names = [
        constraint.match_attribute
        for constraint in located.claim.constraints
        if constraint.match_attribute and constraint.covers(*located.names)
    ]
    most = 0
    for name in names:
        for node in view.different_nodes:
            values = (attribute_of(item.device, name) for item in located.funnel.usable_on(node.name))
            most = max(most, *Counter(str(value) for value in values if value is not None).values(), 0)
    return most


def _constraints(claims: Sequence[ResourceClaim]) -> Iterator[Change]:
    only = sum(len(claim.constraints) for claim in claims) == 1
    for index, claim in enumerate(claims):
        for constraint in claim.constraints:
            yield DropConstraint(index, claim.key, constraint, only)


def _holders(view: DeviceView, funnels: Sequence[Located], holders: HolderIndex) -> Iterator[Change]:
    """Claims that hold devices which a request lost: unused ones first, then the smallest."""
    claims: dict[int, ResourceClaim] = {}
    for located in funnels:
        for name in (StageName.CAPACITY, StageName.HELD, StageName.GROUPS, StageName.COUNTERS):
            for item in located.funnel.lost_at(name):
                claims.update((id(claim), claim) for claim in _in_the_way(name, item, view, holders))
    # Who ends a replica of the pod's own owner makes another one wait.
    others = [claim for claim in claims.values() if not holders.holder(claim).replica]
    ranked = nsmallest(MAX_HOLDERS, others, lambda claim: (holders.holder(claim).order, len(claim.results), claim.key))
    yield from fewest_first(freeing(claim, view, holders) for claim in ranked)


def _in_the_way(
    stage: StageName, item: PublishedDevice, view: DeviceView, holders: HolderIndex
) -> Sequence[ResourceClaim]:
    if stage not in (StageName.GROUPS, StageName.COUNTERS):
        return holders.claims(item.id)
    sets = {consumption.counter_set for consumption in item.device.consumes_counters}
    pool = view.pool_seen.get(item.slice.pool)
    if pool is None:
        return ()
    return [
        claim
        for slice_ in (*pool.slices, *pool.other_slices)
        for device, name in zip(slice_.devices, slice_.names, strict=True)
        if any(consumption.counter_set in sets for consumption in device.consumes_counters)
        for claim in holders.claims(item.id._replace(device=name))
    ]


def _pools(view: DeviceView, funnels: Sequence[Located]) -> Iterator[Change]:
    """Incomplete pools, as if their missing slices arrived."""
    lost = (item for located in funnels for item in located.funnel.lost_at(StageName.POOL))
    seen = dict.fromkeys(item.slice.pool for item in lost)
    known = [pool for pool_id in seen if (pool := view.pool_seen.get(pool_id)) is not None and pool.incomplete]
    for pool in known[:MAX_POOLS]:
        yield completing(view, pool)


def completing(view: DeviceView, pool: Pool) -> CompletePool:
    """A pool as if it had the slices that it announces."""
    own = [slice_ for slice_ in view.cycle.index.by_pool[pool.id] if slice_.generation == pool.generation]
    whole = [replace(slice_, slice_count=len(own)) for slice_ in own]
    return CompletePool(pool.id, pool.expected - pool.found, whole, view.seeing([pool.id]))


# Signs that a vendor's driver is installed without the part that publishes the requested devices.

_OFF = "The GPU part of NVIDIA's driver is off"


class TurnOn(NamedTuple):
    """What shows that a part is off, how to turn it on, and the nodes that have its devices."""

    evidence: tuple[Evidence, ...]
    fix: Words
    nodes: tuple[str, ...] = ()


def turn_on(wanted: str, nodes: Iterable[Node], drivers: Collection[str]) -> TurnOn | None:
    """Advice to turn on the driver's part that is off; None if none is: see ``part_off``."""
    from kubectl_dra.drivers.hardware import NVIDIA, part_off

    off = part_off(wanted, nodes, drivers)
    if off is None:
        return None
    evidence: list[Evidence] = []
    if off.nodes:
        about = say("nodes {have:some}", have=nodes_named(off.nodes))
        field = f"label {off.label} or allocatable {off.resource}"
        evidence.append(Evidence(about, field, f"they have GPUs, and no ResourceSlice of {NVIDIA}"))
    if off.other:
        text = "its other part runs, so the driver is installed"
        evidence.append(Evidence(Subject("driver", off.other), "publishes ResourceSlices", text))
    missing = "" if off.other else ", or the driver is not installed"
    fix = say("{off}{missing}. {turn_on}", off=_OFF, missing=missing, turn_on=say(TURN_ON, part="it"))
    return TurnOn(tuple(evidence), fix, off.nodes)
