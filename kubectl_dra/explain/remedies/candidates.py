"""Small changes that might make claims fit: to a request, a constraint, a holder, a pool, a node; and which few do."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from heapq import nsmallest
from itertools import combinations, islice

from msgspec.structs import replace

from kubectl_dra.allocation.budgets import NODE_KINDS_TRIED, TRIES_ALONE, TRIES_TOGETHER, Budget
from kubectl_dra.allocation.capacity import NOTHING, CapacityShortage, amount_taken, shortage
from kubectl_dra.allocation.constraints import attribute_of
from kubectl_dra.allocation.pools import Pool
from kubectl_dra.allocation.selectors import SelectorVerdict
from kubectl_dra.api.claims import ALL, DeviceRequest, ResourceClaim
from kubectl_dra.api.quantity import Quantity
from kubectl_dra.api.slices import Device, DeviceID
from kubectl_dra.api.taints import DeviceTaint, blocking_taint
from kubectl_dra.cluster.cluster import Cluster, NodeCopy
from kubectl_dra.cluster.snapshot import Key
from kubectl_dra.explain.analysis import Analysis
from kubectl_dra.explain.diagnosis import Finding, RemedyPlan
from kubectl_dra.explain.funnel.device_view import DeviceView, PublishedDevice, distinct, in_slices
from kubectl_dra.explain.funnel.located import Located
from kubectl_dra.explain.funnel.shown import StageName
from kubectl_dra.explain.holders import HolderIndex
from kubectl_dra.explain.not_starting import broken_nodes, troubled_nodes
from kubectl_dra.explain.phrase import ObjectName
from kubectl_dra.explain.question.what_if_flag import WITH_NODE, WhatIfChange
from kubectl_dra.explain.remedies.change import (
    CompletePool,
    DropConstraint,
    LessCapacity,
    LowerCount,
    ReplaceTerm,
    Tolerate,
    UseClass,
    selector_of,
)
from kubectl_dra.explain.remedies.freeing_claims import Free, fewest_first, freeing
from kubectl_dra.explain.remedies.proof_result import NEW_NODE, ChangeStep, Price, Proof, StepKind, StepTarget
from kubectl_dra.explain.remedies.prove import Change, WhatIf
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
            offers = loosened_term(view, located.place, index, spec, number, refused)
            yield from (offer for offer in offers if not listed or offer.amount)
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


# The fewest changes with which claims fit: one, else two, else three together, each proved.

MAX_WAYS = 4
MAX_FREEING = 2
MAX_TOGETHER = 3


def ways(what_if: WhatIf, changes: Sequence[Change], findings: Sequence[Finding]) -> list[RemedyPlan]:
    """The smallest sets of changes that help, except those that the findings already offer, the cheapest
    first.

    Larger sets are tried only if no smaller one helps, and only within a number of tries.
    """
    tries = Budget(TRIES_ALONE)
    proofs: dict[tuple[Change, ...], Proof] = {
        (change,): proof for change in changes if (proof := what_if.quick_proof([change], tries)) is not None
    }
    if proofs:
        return list(_distinct(what_if, proofs, findings))
    tries = Budget(TRIES_TOGETHER)
    for size in range(2, MAX_TOGETHER + 1):
        proved: dict[tuple[Change, ...], Proof] = {}
        for group in _groups(changes, size):
            if not tries.left or what_if.exhausted or len(proved) == MAX_WAYS:
                break
            if (proof := what_if.quick_proof(group, tries)) is not None:
                proved[group] = proof
        if proved:
            return list(_distinct(what_if, proved, findings))
    return []


def _groups(changes: Sequence[Change], size: int) -> Iterator[tuple[Change, ...]]:
    """Groups of changes about different things, the cheapest first."""
    groups = (group for group in combinations(changes, size) if len({change.about for change in group}) == size)
    return iter(sorted(groups, key=lambda group: sum(change.cost for change in group)))


def _distinct(
    what_if: WhatIf, proofs: Mapping[tuple[Change, ...], Proof], findings: Sequence[Finding]
) -> Iterator[RemedyPlan]:
    """The best change of each kind, without those that a finding offers and proves."""
    offered = [change for finding in findings if finding.remedy and finding.proof for change in finding.remedy.offers]
    seen: set[tuple[object, ...]] = set()
    shown = holders = 0
    for group, proof in proofs.items():
        about = tuple(change.about for change in group)
        if about in seen or shown == MAX_WAYS:
            continue
        seen.add(about)
        if len(group) == 1 and (group[0] in offered or _ends_more(group[0], offered)):
            continue
        offered += group if len(group) == 1 else ()
        frees = any(isinstance(change, Free) for change in group)
        holders += frees
        if frees and holders > MAX_FREEING:
            continue
        if not what_if.with_all(group).ends_without_error(proof):
            continue
        shown += 1
        yield RemedyPlan(group, proof, as_what_if(what_if, group), as_steps(what_if, group))


def _ends_more(change: Change, offered: Sequence[Change]) -> bool:
    """Whether one that is offered already ends fewer pods, all of which this one ends as well."""
    ended = {pod.key for pod in change.ended_pods}
    return any(own < ended for offer in offered if (own := {pod.key for pod in offer.ended_pods}))


def as_steps(what_if: WhatIf, group: Sequence[Change]) -> tuple[ChangeStep, ...]:
    """The changes as data, each with what is there before any of them."""
    return tuple(change.step(what_if) for change in group)


def as_what_if(what_if: WhatIf, group: Sequence[Change]) -> tuple[WhatIfChange, ...]:
    """The changes as values of --what-if, those of one request's selectors as one; empty if one cannot be written."""
    for change in group:
        what_if = change.made_in(what_if)
    out: dict[WhatIfChange, None] = {}
    for change in group:
        supposed = change.what_if
        if supposed is None:
            return ()
        if isinstance(change, ReplaceTerm):
            supposed = supposed._replace(value=selector_of(what_if.request(change.place)))
        out[supposed] = None
    return tuple(out)


# One more node like one that exists: of the kinds of nodes with devices, the first on which the pod would fit.


class AddNode(Change, frozen=True):
    """One more node like another one, with the devices that this one publishes by itself."""

    TEXT = "add one more node like {node}"
    ASIDE = frozenset(("copy",))
    PRICE = Price.BUY
    like: str
    copy: NodeCopy

    @property
    def node(self) -> ObjectName:
        """The node that the new one is like."""
        return ObjectName("Node", self.like)

    @property
    def about(self) -> Hashable:
        return "new node"

    def made_in(self, what_if: WhatIf) -> WhatIf:
        return what_if.for_all(self)

    def made_for_all(self, cluster: Cluster, keep: Key | None) -> Cluster | None:
        return cluster.adding_node(self.copy)

    def step(self, what_if: WhatIf) -> ChangeStep:
        return ChangeStep(StepKind.ADD_NODE, StepTarget(nodes=(self.like,)))


def one_more_node(analysis: Analysis) -> RemedyPlan | None:
    """One more node with which the claims fit, proved with a copy of a node and of its slices; None without one."""
    from kubectl_dra.scheduling.node_copy import node_copies

    what_if = analysis.what_if
    troubled, broken = troubled_nodes(analysis.snapshot), broken_nodes(analysis.snapshot)
    with_devices = (more for more in node_copies(what_if.outcome.state, troubled, broken) if more.slices)
    for more in islice(with_devices, NODE_KINDS_TRIED):
        change = AddNode(more.like, more)
        if proof := change.made_in(what_if).proof([more.node]):
            there = replace(proof, node=NEW_NODE, like=more.like, claims=())
            supposed = WhatIfChange("", WITH_NODE, more.like)
            return RemedyPlan((change,), there, (supposed,), (change.step(what_if),))
    return None
