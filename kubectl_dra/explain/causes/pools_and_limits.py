"""Pools that the scheduler does not use, or uses by accident, and limits at which its search ends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from msgspec.structs import replace

from kubectl_dra.allocation.attempt import AttemptVerdict
from kubectl_dra.allocation.errors import AllocationCheck
from kubectl_dra.allocation.pools import Pool
from kubectl_dra.api.claims import DeviceConstraint, ResourceClaim
from kubectl_dra.api.limits import MAX_RESULTS
from kubectl_dra.api.slices import PoolID
from kubectl_dra.explain.analysis import Analysis
from kubectl_dra.explain.cause_kinds import CauseKind, Family, Look, NextStep, slices_step
from kubectl_dra.explain.causes.registry import FailedAttempt, Finder, When
from kubectl_dra.explain.clock import Clock, UnderWay, all_under_way
from kubectl_dra.explain.diagnosis import Evidence, Finding, Remedy
from kubectl_dra.explain.funnel.blocked import MAX_EVIDENCE, Blocked
from kubectl_dra.explain.funnel.device_view import DeviceView
from kubectl_dra.explain.funnel.shown import StageName
from kubectl_dra.explain.phrase import ObjectName, Subject, named, say, the_node
from kubectl_dra.explain.remedies.candidates import MAX_POOLS, completing
from kubectl_dra.explain.remedies.proof_result import Proof, Tried
from kubectl_dra.explain.remedies.prove import WhatIf

INCOMPLETE = CauseKind(code="pool-incomplete", family=Family.POOLS, look=Look.SLICES)
OBSOLETE = CauseKind(code="pool-obsolete-for-node", family=Family.POOLS, look=Look.SLICES)
INVALID = CauseKind(code="pool-invalid", family=Family.POOLS, look=Look.SLICES)


def _pool(blocked: Blocked) -> Iterator[Finding]:
    seen = sorted({item.slice.pool for item in blocked.lost})
    known = [pool for pool_id in seen if (pool := blocked.view.pool_seen.get(pool_id))]
    evidence: list[Evidence] = []
    for pool in known:
        if pool.incomplete:
            field = say("slices of generation {generation}", generation=pool.generation)
            text = "{found} exist, spec.pool.resourceSliceCount says {expected}"
            value = say(text, found=pool.found, expected=pool.expected)
            evidence.append(Evidence(Subject("pool", pool.id), field, value))
    evidence += [Evidence(Subject("pool", pool.id), "problem", pool.invalid) for pool in known if pool.invalid]
    evidence.extend(line for pool in known if (line := _disagreement(pool)))
    kind = INVALID if known else OBSOLETE
    if any(pool.incomplete for pool in known):
        kind = INCOMPLETE
    only, look = known[0] if len(known) == 1 else None, slices_of(known)
    # A driver may have just begun to publish each of the pools anew.
    begun = ((pool.id.driver, _newest(pool)) for pool in known)
    waiting = all_under_way(begun, blocked.analysis.snapshot) if kind is INCOMPLETE else None
    remedy = _wait(waiting, next(_completed(blocked, known), None))
    if kind is INCOMPLETE and remedy is None:
        remedy = _overdue(blocked, known)
    text = "{lost:device} on {nodes:some else no node} cannot be used for {where}: {reason}"
    summary = blocked.say(text, nodes=blocked.nodes, reason=blocked.reason)
    if kind is INCOMPLETE and only is not None and only.found < only.expected:
        text = (
            "the driver has published only {found} of {expected} ResourceSlices of pool {pool}; until it is done "
            "the scheduler ignores the pool ({lost:device})"
        )
        summary = blocked.say(text, found=only.found, expected=only.expected, pool=only.id.name)
    yield Finding(kind, summary, tuple(evidence[:MAX_EVIDENCE]), remedy, next=look, under_way=waiting)


def slices_of(pools: Sequence[Pool]) -> NextStep:
    """Where the slices of some pools are seen: those of their node, else of their driver."""
    return slices_step([slice_ for pool in pools for slice_ in (*pool.slices, *pool.other_slices)])


def _wait(waiting: UnderWay | None, completed: Remedy | None) -> Remedy | None:
    """What to do while a driver publishes; afterwards what is proved to help."""
    if waiting is None:
        return completed
    text = "Wait: {by} has had {seconds:second} to publish the rest."
    words = say(text, by=waiting.by, seconds=waiting.seconds)
    return Remedy(words) if completed is None else replace(completed, change=words)


def _overdue(blocked: Blocked, pools: Sequence[Pool]) -> Remedy | None:
    """Remedy for overdue slices, by the age of those that exist; None while they may still come."""
    clock, since = Clock(blocked.analysis.snapshot), max(map(_newest, pools))
    if not clock.lasting(since):
        return None
    text = "Restart the driver on that node, or delete the slices of a dead one: the newest came {ago}."
    return Remedy(say(text, ago=clock.ago(since)))


def _newest(pool: Pool) -> str:
    """When the newest slice of a pool was created."""
    return max(slice_.creation_timestamp for slice_ in (*pool.slices, *pool.other_slices))


def _completed(blocked: Blocked, pools: Sequence[Pool]) -> Iterator[Remedy]:
    """What is proved to help once a pool is complete, with the slices that exist."""
    for pool in [pool for pool in pools if pool.incomplete][:MAX_POOLS]:
        change = completing(blocked.view, pool)
        if (proof := blocked.what_if.proof_with(change)) is not None:
            text = "Wait until pool {name} is complete ({lacking:slice} {state}), or {else_}."
            else_ = "restart its driver" if change.missing > 0 else "delete left-over slices of a dead driver"
            words = say(text, name=pool.id.name, lacking=change.lacking, state=change.state, else_=else_)
            yield Remedy(words, proof, offers=(change,))


def _disagreement(pool: Pool) -> Evidence | None:
    """The numbers of slices that a pool's slices announce, if they differ."""
    counts = {slice_.name: slice_.slice_count for slice_ in (*pool.slices, *pool.other_slices)}
    if len(set(counts.values())) < 2:
        return None
    pairs = ((ObjectName("ResourceSlice", name), count) for name, count in sorted(counts.items()))
    said = [say("{name}: {count}", name=name, count=count) for name, count in pairs]
    field = "slices disagree on spec.pool.resourceSliceCount"
    return Evidence(Subject("pool", pool.id), field, say("{said}", said=said))


def _ends_attempt(failed: FailedAttempt) -> Iterator[Finding]:
    pool = failed.error.detail.pool
    if isinstance(pool, Pool):
        text = "pool {pool} on node {node} is invalid ({problem}): the scheduler of this release gives up on the pod"
        summary = say(text, pool=pool.id, node=failed.node, problem=pool.invalid)
        facts = (_refused(pool, failed), Evidence(Subject("pool", pool.id), "problem", pool.invalid))
        yield Finding(INVALID, summary, facts, next=slices_of([pool]))


def _refused(pool: Pool, failed: FailedAttempt) -> Evidence:
    return Evidence(pool.id, "scheduler", failed.error.message)


# A request for all devices meets an unusable pool, or a slice is invalid: the attempt ends on all nodes.

ALL_BLOCKED = CauseKind(code="all-blocked-by-pool", family=Family.POOLS, look=Look.SLICES)
BAD_NODE_SELECTOR = CauseKind(code="slice-node-selector-invalid", family=Family.POOLS, look=Look.SLICES)


def _all_blocked_by_pool(failed: FailedAttempt) -> Iterator[Finding]:
    pool = failed.error.detail.pool
    if not isinstance(pool, Pool):
        return
    problem = say("invalid ({problem})", problem=pool.invalid)
    if pool.incomplete:
        text = "incomplete (generation {generation} has {found} of {expected} slices)"
        problem = say(text, generation=pool.generation, found=pool.found, expected=pool.expected)
    request = failed.error.detail.request
    text = 'request "{request}" asks for all devices, and pool {pool} on node {node} is {problem}'
    summary = say(text, request=request, pool=pool.id, node=failed.node, problem=problem)
    facts = (_refused(pool, failed), Evidence(Subject("pool", pool.id), "slices", problem))
    yield Finding(ALL_BLOCKED, summary, facts, request=request, next=slices_of([pool]))


# Whether the claims fit depends on the order in which the scheduler happens to try pools.

ORDER = CauseKind(code="pool-order-decides", family=Family.DEVICES, fixed_at=Look.VERSION)


def _unsure(analysis: Analysis) -> Iterator[Finding]:
    first = next((attempt for attempt in analysis.attempts.values() if attempt.order_decides), None)
    if first is None or first.pools is None:
        return
    node = the_node(first.node)
    pools = ", ".join(str(pool.id) for pool in first.pools.pools)
    summary = say("on {node} the order in which the scheduler tries pools decides, and it is random", node=node)
    yield Finding(ORDER, summary, (Evidence(node, "pools", pools),), Remedy(ORDER.fix))


# Two drivers use one pool name, and the scheduler mixes up their counters.

_DEFECT = "counters_keyed_by_pool_name"
POOL_NAME_SHARED = CauseKind(code="pool-name-shared", family=Family.RELEASE, fixed_at=Look.VERSION)


def shared_pool_names(view: DeviceView) -> dict[str, list[str]]:
    """Pool names that several drivers with shared counters use, with the drivers."""
    drivers: dict[str, set[str]] = {}
    for pool in view.pool_seen.values():
        if pool.counter_sets:
            drivers.setdefault(pool.id.name, set()).add(pool.id.driver)
    return {name: sorted(users) for name, users in drivers.items() if len(users) > 1}


def finding(view: DeviceView, what_if: WhatIf) -> Finding | None:
    """The cause if the claims fit without the defect; None if the defect does not decide."""
    defects, shared = view.cycle.defects, shared_pool_names(view)
    if not defects.counters_keyed_by_pool_name or not shared:
        return None
    proof = what_if.looking(defects=defects.without(_DEFECT)).proof()
    if proof is None:
        return None
    name, drivers = next(iter(shared.items()))
    text = "drivers {drivers} both use the pool name {name}, and the scheduler mixes up their shared counters"
    facts = (Evidence(Subject("pool", PoolID(driver, name)), "sharedCounters", "in use") for driver in drivers)
    remedy = Remedy(POOL_NAME_SHARED.fix, proof)
    return Finding(POOL_NAME_SHARED, say(text, drivers=drivers, name=name), tuple(facts), remedy)


# A limit is exceeded: by the claim itself, its configs, its alternatives, or the time of the search.

TOO_MANY_DEVICES = CauseKind(code="too-many-devices", family=Family.REQUEST, look=Look.AS_WRITTEN)
FEATURE_OFF = CauseKind(code="feature-disabled", family=Family.REQUEST, look=Look.VERSION)
UNSUPPORTED = CauseKind(code="unsupported-request", family=Family.REQUEST, look=Look.AS_WRITTEN)


def plain(kind: CauseKind, failed: FailedAttempt) -> Iterator[Finding]:
    """A cause that the scheduler's own text explains."""
    error = failed.error
    fact = Evidence(error.subject, "scheduler", error.message)
    yield Finding(kind, error.message, (fact,), request=error.detail.request, object=error.detail.claim)


def _feature_off(failed: FailedAttempt) -> Iterator[Finding]:
    message = failed.error.message
    text = "Turn the feature gate {gate} on in kube-apiserver and kube-scheduler, or do without the field."
    fact = Evidence(failed.error.subject, "scheduler", message)
    yield Finding(FEATURE_OFF, message, (fact,), Remedy(say(text, gate=failed.error.detail.gate)))


# Every allocation that fits has more configurations than the API server accepts.

MAX_CONFIGS = 64
TOO_MANY_CONFIGS = CauseKind(code="too-many-configs", family=Family.CLAIM, look=Look.POD, never_binds=True)


def _overfull(analysis: Analysis) -> Iterator[Finding]:
    attempts = [analysis.attempts[name] for name in analysis.fitting if name not in analysis.unavailable]
    largest = [max((len(each.config) for each in attempt.allocations), default=0) for attempt in attempts]
    if analysis.pod is None or not largest or min(largest) <= MAX_CONFIGS:
        return
    most = min(largest)
    text = "the claims fit, but the allocation would hold {most} configurations, and {limit} is the maximum"
    about = say("allocation on node {node}", node=ObjectName("Node", attempts[0].node))
    fact = Evidence(about, "devices.config", say("{most} entries", most=most))
    yield Finding(TOO_MANY_CONFIGS, say(text, most=most, limit=MAX_CONFIGS), (fact,))


# The alternatives that fit have more devices in total than one allocation can hold.

TOO_MANY_TOGETHER = CauseKind(code="alternatives-too-large", family=Family.REQUEST, look=Look.AS_WRITTEN)


def _too_large(analysis: Analysis) -> Iterator[Finding]:
    for index, claim in enumerate(analysis.claims):
        counts = ([spec.count for spec in request.alternatives()] for request in claim.requests)
        largest = [max(counts_of_request) for counts_of_request in counts if counts_of_request]
        if not any(request.first_available for request in claim.requests) or sum(largest) <= MAX_RESULTS:
            continue
        parts = [_only(claim, number) for number in range(len(claim.requests))]
        proof = analysis.what_if.in_several(index, parts).proof()
        if proof is None:
            continue
        evidence = []
        for request in claim.requests:
            counts_of_specs = [(spec.name or request.name, spec.count) for spec in request.alternatives()]
            counted = [say("{name}: {count}", name=name, count=count) for name, count in counts_of_specs]
            about, field = Subject("claim", named("ResourceClaim", claim)), say('request "{name}"', name=request.name)
            evidence.append(Evidence(about, field, say("{alternatives}", alternatives=counted)))
        text = "claim {claim} fits only with alternatives of more than {most} devices in all"
        keys = {part.key for part in parts}
        own = tuple(replace(given, metadata=claim.metadata) if given.key in keys else given for given in proof.claims)
        how = replace(proof, tried=Tried.CLAIM_PER_REQUEST, claims=own)
        summary, remedy = say(text, claim=claim.key, most=MAX_RESULTS), Remedy(TOO_MANY_TOGETHER.fix, how)
        yield Finding(TOO_MANY_TOGETHER, summary, tuple(evidence), remedy, claim=claim.key)
        return


def _only(claim: ResourceClaim, number: int) -> ResourceClaim:
    """A claim of its own with only one of the requests, and the constraints that concern only that one."""
    request = claim.requests[number]
    own = tuple(
        constraint
        for constraint in claim.constraints
        if constraint.requests and all(name.split("/")[0] == request.name for name in constraint.requests)
    )
    named = replace(claim.metadata, name=f"{claim.metadata.name}-{number}")
    return replace(claim, metadata=named, requests=(request,), constraints=own)


# The scheduler's search would not finish in time.

SLOW = CauseKind(code="search-too-slow", family=Family.DEVICES)


def _slow(analysis: Analysis) -> Iterator[Finding]:
    first = next(
        (
            attempt
            for attempt in analysis.attempts.values()
            if (attempt.verdict is AttemptVerdict.UNDETERMINED and not attempt.order_decides)
            or analysis.would_time_out(attempt)
        ),
        None,
    )
    if first is None:
        return
    steps = "more combinations than can be tried device by device in 10 s"
    if first.verdict is AttemptVerdict.UNDETERMINED:
        steps = "stopped without an answer: too many combinations"
    node = the_node(first.node)
    text = "there are too many combinations of devices on {node} to try them all"
    yield Finding(SLOW, say(text, node=node), (Evidence(node, "search", steps),), _without_constraint(analysis))


def _where_all_are_slow(analysis: Analysis) -> Iterator[Finding]:
    """The claims fit, but the search would finish too late on every node."""
    fitting = [analysis.attempts[name] for name in analysis.fitting]
    if analysis.pod is not None and fitting and all(analysis.would_time_out(attempt) for attempt in fitting):
        yield from _slow(analysis)


def _without_constraint(analysis: Analysis) -> Remedy | None:
    for _, constraint, proof in without_constraint(analysis):
        text = "Drop or loosen the constraint {constraint}, or narrow the selectors."
        return Remedy(say(text, constraint=constraint), proof)
    return None


def without_constraint(analysis: Analysis) -> Iterator[tuple[int, DeviceConstraint, Proof]]:
    """The constraints without which the claims fit, each with the number of its claim and the proof."""
    for claim, constraint in analysis.what_if.constraints():
        proof = analysis.what_if.with_constraint(claim, constraint, None).proof()
        if proof is not None:
            yield claim, constraint, proof


FINDERS = (
    Finder(When.STAGE, _pool, of=StageName.POOL),
    Finder(When.ERROR, _ends_attempt, of=AllocationCheck.POOL_INVALID),
    Finder(When.ERROR, _all_blocked_by_pool, of=AllocationCheck.ALL_POOL),
    Finder(When.ERROR, partial(plain, BAD_NODE_SELECTOR), of=AllocationCheck.SLICE_NODE_SELECTOR),
    Finder(When.ERROR, partial(plain, BAD_NODE_SELECTOR), of=AllocationCheck.DEVICE_NODE_SELECTOR),
    Finder(When.ERROR, partial(plain, BAD_NODE_SELECTOR), of=AllocationCheck.NODE_SELECTOR_TERMS),
    Finder(When.ERROR, partial(plain, TOO_MANY_DEVICES), of=AllocationCheck.TOO_MANY_DEVICES),
    Finder(When.ERROR, _feature_off, of=AllocationCheck.FEATURE_DISABLED),
    Finder(When.ERROR, partial(plain, UNSUPPORTED), rank=99),
    Finder(When.FITS, _overfull, 40),
    Finder(When.TOGETHER, _too_large, 30),
    Finder(When.OPEN, _slow),
    Finder(When.FAILS_TOO, _slow, 10),
    Finder(When.FITS, _where_all_are_slow, 20),
    Finder(When.OPEN, _unsure),
    Finder(When.FAILS_TOO, _unsure, 10),
)
