"""Small changes that might make claims fit: to a request, a constraint, a holder, a pool, a node."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from heapq import nsmallest
from typing import NamedTuple

from kubectl_dra.allocation.capacity import NOTHING, amount_taken, shortage
from kubectl_dra.allocation.constraints import attribute_of
from kubectl_dra.allocation.selection import SelectorVerdict
from kubectl_dra.api.claims import ALL, EXACT_COUNT, DeviceRequest, ResourceClaim
from kubectl_dra.api.nodes import Node
from kubectl_dra.api.quantity import Quantity
from kubectl_dra.api.slices import ResourceSlice
from kubectl_dra.api.taints import DeviceTaint, DeviceToleration, blocking_taint
from kubectl_dra.explain.blocked import Located, lower, serves_extended
from kubectl_dra.explain.funnel.stages import StageResult
from kubectl_dra.explain.remedies.other_class import fitting_classes, of_class
from kubectl_dra.explain.remedies.prove import Remedy, WhatIf, changing, tolerating
from kubectl_dra.explain.remedies.selector_values import distinct, loosened, with_term
from kubectl_dra.explain.remedies.way_in import can_end, said, way_in
from kubectl_dra.explain.scene.holders import HolderIndex
from kubectl_dra.explain.scene.view import Published, View
from kubectl_dra.wording import amount

MAX_TERMS = 6
MAX_HOLDERS = 6
MAX_POOLS = 3
MAX_NODE_REASONS = 3
_ZERO = Quantity.parse("0")
_BROKEN = re.compile(r"health|fail|fault|error|broken|fatal|lost|dead|xid|ecc|offline|unavailable|not-?ready", re.I)
"""Words in a driver's taint that say that the device does not work."""


class Change(NamedTuple):
    """One change. ``text`` is a sentence without full stop, ``key`` what it is about: two of one key exclude
    each other. ``weight`` orders by what it costs; ``said`` is a part of a cause's fix that says the same.
    ``selectors_of`` is the place (claim, request, alternative) whose selectors it changes: several changes of one
    place are one --what-if.
    """

    text: str
    key: str
    weight: int
    remedy: Remedy
    said: str
    what_if: str = ""
    selectors_of: tuple[int, int, int] | None = None


def changes(
    view: View,
    claims: Sequence[ResourceClaim],
    funnels: Sequence[Located],
    holders: HolderIndex,
    nodes: Mapping[str, Sequence[str]],
) -> list[Change]:
    """All changes that are worth a try, the cheapest first.

    ``nodes`` are names of nodes that are one reason away from running the pod, by this reason.
    """
    found = [
        *_constraints(claims),
        *(change for located in funnels for change in _of_request(view, located)),
        *_holders(view, funnels, holders),
        *_pools(view, funnels),
        *_nodes(nodes),
    ]
    return sorted(found, key=lambda change: change.weight)


def _of_request(view: View, located: Located) -> Iterator[Change]:
    for stage in located.funnel.stages:
        if stage.name == "taint" and stage.failed:
            yield from _tolerations(located, stage)
        elif stage.name == "capacity" and stage.failed:
            yield from _less_capacity(view, located, stage)
    yield from _terms(view, located)
    yield from _classes(view, located)
    yield from _counts(view, located)


def _on(
    located: Located,
    text: str,
    weight: int,
    change: object,
    said: str,
    what_if: str = "",
    key: str = "",
    near: Sequence[Node] = (),
) -> Change:
    assert callable(change)
    place = (located.claim_index, located.request_index, located.alternative)
    name = located.funnel.name
    if serves_extended(located.claim):
        what_if = ""
    return Change(
        f'in request "{name}" {text}',
        f"{place} {key}",
        weight,
        changing(*place, change, near),
        said,
        f"{name}:{what_if}" if what_if else "",
        place if what_if.startswith("selector=") else None,
    )


def _terms(view: View, located: Located) -> Iterator[Change]:
    """Another value in a term, or the term dropped: for every term that refuses a device, be it not the first."""
    selectors, spec = view.cycle.selectors, located.funnel.spec
    stages = [stage for stage in located.funnel.stages if stage.name == "request-selector"]
    items = [item for stage in stages for item in stage.failed]
    lost = [item.device for item in items]
    different = distinct(lost)
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
            false = {id(device) for device, verdict in zip(different, verdicts, strict=True) if verdict is not True}
            refused = [device for device in lost if id(device) in false]
            if not refused or tried == MAX_TERMS:
                continue
            tried += 1
            key = f"selector {index} {number}"
            for offer in loosened(selectors, expression or "", number, refused):
                if listed and not offer.amount:
                    continue
                change = partial(with_term, selectors, index, offer.old_term, offer.term)
                carriers = {id(device) for device in offer.carriers}
                near = view.near(item for item in items if id(item.device) in carriers)
                yield _on(located, str(offer), 0, change, str(offer), selector_text(change(spec)), key, near)
            change = partial(with_term, selectors, index, term.expression, "true")
            text = f"drop {' '.join(term.expression.split())}"
            yield _on(located, text, 1, change, "or drop the term", selector_text(change(spec)), key)


def selector_text(spec: DeviceRequest) -> str:
    """All selectors of a request as one, in the form of --what-if; terms that were dropped are left out."""
    texts = [" ".join(text.split()) for text in spec.selectors if text and text.strip() != "true"]
    joined = texts[0] if len(texts) == 1 else " && ".join(f"({text})" for text in texts)
    return f"selector={joined or 'none'}"


def _classes(view: View, located: Located) -> Iterator[Change]:
    """Classes whose devices the request's selectors take, where its own class and its selectors have none in common."""
    spec, stage = located.funnel.spec, located.funnel.blocking_stage()
    if not any(spec.selectors) or stage is None or stage.passed:
        return
    if stage.name not in ("class-selector", "request-selector"):
        return
    for name in fitting_classes(view, spec):
        change = partial(of_class, name)
        yield _on(located, f"use class {name}", 1, change, f"use class {name}", f"class={name}", "class")


def _tolerations(located: Located, stage: StageResult) -> Iterator[Change]:
    """Taints to tolerate: those of DeviceTaintRules, and such of the driver's as do not say that a device is broken."""
    taints: dict[str, DeviceTaint] = {}
    for item in stage.failed:
        taint = blocking_taint(item.device.taints, located.funnel.spec.tolerations)
        if taint is not None and (taint.rule or _may_be_tolerated(taint)):
            taints.setdefault(str(taint), taint)
    for text, taint in taints.items():
        toleration = DeviceToleration(key=taint.key, value=taint.value, effect=taint.effect)
        change = partial(_tolerating, toleration)
        said, weight = f"tolerate {text}", 2
        if not taint.rule:
            said, weight = f"{said} (the driver set this taint for a reason: find out first what it means)", 4
        yield _on(located, said, weight, change, "tolerate the taint", f"toleration={text}", text)


def _may_be_tolerated(taint: DeviceTaint) -> bool:
    """Whether a driver's taint leaves a device to those who know about it: nobody is evicted, nothing is broken."""
    return taint.effect == "NoSchedule" and not _BROKEN.search(f"{taint.key} {taint.value}")


def _tolerating(toleration: DeviceToleration, spec: DeviceRequest) -> DeviceRequest:
    return tolerating(spec, [toleration])


def _less_capacity(view: View, located: Located, stage: StageResult) -> Iterator[Change]:
    """What the devices have left of a capacity that is asked for, the two largest amounts."""
    spec = located.funnel.spec
    offers: dict[tuple[str, Quantity], None] = {}
    for item in stage.failed:
        short = shortage(item.device, spec.capacity, view.cycle.state.consumed.get(item.id, NOTHING), NOTHING)
        if short is None or short.value is None or short.used is None:
            continue
        left = short.value - short.used
        if left > _ZERO and amount_taken(left, item.device.capacity[short.capacity]) <= left:
            offers[short.capacity, left] = None
    for name, most in sorted(offers, key=lambda offer: -offer[1].nanos)[:2]:
        change = partial(_with_capacity, name, most)
        said = f"at most {most} of {name}"
        yield _on(located, f"ask for {said}", 1, change, said, f"capacity={name}={most}", name)


def _with_capacity(name: str, most: Quantity, spec: DeviceRequest) -> DeviceRequest:
    return replace(spec, capacity={**(spec.capacity or {}), name: most})


def _counts(view: View, located: Located) -> Iterator[Change]:
    spec = located.funnel.spec
    best = max((len(located.funnel.usable_on(node.name)) for node in view.nodes), default=0)
    every = spec.allocation_mode == ALL
    counts = {best, 1, _alike(view, located)} if every else {best, spec.count - 1, 1, _alike(view, located)}
    for count in sorted(counts, reverse=True):
        if not count > 0 or (not every and count >= spec.count):
            continue
        change = partial(_with_count, count)
        text = f"ask for {amount(count)} instead of all" if every else lower(located.claim, count)
        said = f"{lower(located.claim, count)[1:]}."
        yield _on(located, text, 2, change, said, f"count={count}", "count")


def _alike(view: View, located: Located) -> int:
    """The most devices of one node that agree in the attribute of a constraint over the request; 0 without one."""
    main, _, sub = located.funnel.name.partition("/")
    names = [
        entry.match_attribute
        for entry in located.claim.constraints
        if entry.match_attribute and entry.covers(main, sub)
    ]
    most = 0
    for name in names:
        for node in view.different_nodes():
            values = (attribute_of(item.device, name) for item in located.funnel.usable_on(node.name))
            most = max(most, *Counter(str(value) for value in values if value is not None).values(), 0)
    return most


def _with_count(count: int, spec: DeviceRequest) -> DeviceRequest:
    return replace(spec, allocation_mode=EXACT_COUNT, count=count)


def _constraints(claims: Sequence[ResourceClaim]) -> Iterator[Change]:
    for index, claim in enumerate(claims):
        for constraint in claim.constraints:
            yield Change(
                f"drop the constraint {constraint} of claim {claim.key}",
                f"{index} {constraint}",
                1,
                lambda world, index=index, constraint=constraint: world.without(index, constraint),  # type: ignore[misc]
                f"constraint {constraint}.",
                "constraints=none" if sum(len(entry.constraints) for entry in claims) == 1 else "",
            )


def _holders(view: View, funnels: Sequence[Located], holders: HolderIndex) -> Iterator[Change]:
    """Claims that hold devices which a request lost: those that nobody uses first, then the smallest."""
    found: dict[int, ResourceClaim] = {}
    for located in funnels:
        for stage in located.funnel.stages:
            for item in stage.failed if stage.name in ("held", "capacity", "counters") else ():
                for claim in _in_the_way(stage.name, item, located, holders):
                    found[id(claim)] = claim
    ranked = nsmallest(MAX_HOLDERS, found.values(), lambda claim: (holders.rank(claim), holders.size(claim), claim.key))
    for claim in ranked:
        text = f"free the devices of {holders.describe_claim(claim)}"
        if not claim.reserved_for:
            text = f"delete claim {claim.key}, which nobody uses"
        weight = 2 + 2 * holders.rank(claim) + holders.size(claim)
        said = f"{claim.metadata.namespace} {claim.metadata.name}" if not claim.reserved_for else f"claim {claim.key} ("
        yield Change(
            text, f"free {claim.key}", weight, _freeing(claim, view.held_near(claim)), said, f"free={claim.key}"
        )


def _in_the_way(stage: str, item: Published, located: Located, holders: HolderIndex) -> Sequence[ResourceClaim]:
    if stage != "counters":
        return holders.claims(item.id)
    sets = {consumption.counter_set for consumption in item.device.consumes_counters}
    pool = located.funnel.view.pool_seen.get(item.slice.pool)
    if pool is None:
        return ()
    return [
        claim
        for entry in (*pool.slices, *pool.other_slices)
        for device in entry.devices
        if any(consumption.counter_set in sets for consumption in device.consumes_counters)
        for claim in holders.claims(item.id._replace(device=device.name))
    ]


def _freeing(claim: ResourceClaim, near: Sequence[Node]) -> Remedy:
    return lambda world: world.freeing([claim]).also_on(near)


def _pools(view: View, funnels: Sequence[Located]) -> Iterator[Change]:
    """Incomplete pools whose missing slices would come: only devices that are published already count."""
    seen: dict[str, None] = {}
    for located in funnels:
        for stage in located.funnel.stages:
            for item in stage.failed if stage.name == "pool" else ():
                pool = view.pool_seen.get(item.slice.pool)
                if pool is None or not pool.incomplete or str(pool.id) in seen or len(seen) == MAX_POOLS:
                    continue
                seen[str(pool.id)] = None
                own = [entry for entry in view.cycle.index.by_pool[pool.id] if entry.generation == pool.generation]
                near = view.seeing([pool.id])
                whole = [replace(entry, slice_count=len(own)) for entry in own]
                names = frozenset(entry.name for entry in own)
                missing = pool.expected - pool.found
                what = amount(abs(missing), "slice")
                text = f"wait until pool {pool.id} is complete ({what} {'missing' if missing > 0 else 'too many'})"
                yield Change(
                    text,
                    f"pool {pool.id}",
                    1,
                    _publishing(whole, names, near),
                    str(pool.id),
                )


def _publishing(whole: Sequence[ResourceSlice], names: frozenset[str], near: Sequence[Node]) -> Remedy:
    return lambda world: world.publishing(whole, names).also_on(near)


def _nodes(nodes: Mapping[str, Sequence[str]]) -> Iterator[Change]:
    """Nodes that one reason keeps the pod from."""
    ending = [(reason, names) for reason, names in nodes.items() if can_end(reason)]
    for reason, names in ending[:MAX_NODE_REASONS]:
        yield Change(way_in(reason, names), f"nodes {reason}", 2, _allowing(frozenset(names)), said(reason, names))


def _allowing(names: frozenset[str]) -> Remedy:
    def remedy(world: WhatIf) -> WhatIf:
        return world.allowing(names)

    return remedy
