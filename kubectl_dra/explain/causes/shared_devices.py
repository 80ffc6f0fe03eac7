"""Devices that are shared: they cannot give the requested capacity, or their counters are used up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from kubectl_dra.allocation.capacity import CapacityLack, CapacityShortage
from kubectl_dra.api.slices import DeviceID
from kubectl_dra.explain.cause_kinds import CauseKind, Family
from kubectl_dra.explain.causes import devices_published as device_needs_feature
from kubectl_dra.explain.causes import pools as pool_name_shared
from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.diagnosis import Finding, Remedy
from kubectl_dra.explain.funnel.blocked import Blocked
from kubectl_dra.explain.funnel.device_view import PublishedDevice
from kubectl_dra.explain.funnel.request_funnel import PARTITIONS
from kubectl_dra.explain.funnel.shown import StageName
from kubectl_dra.explain.funnel.stages import CounterOverdrawn, CounterShort, unnamed
from kubectl_dra.explain.phrase import Joined, Subject, Words, say
from kubectl_dra.explain.remedies.candidates import capacities_left, capacity_shortage
from kubectl_dra.explain.remedies.change import LessCapacity
from kubectl_dra.explain.remedies.freeing_claims import fewest_first, first_enough, freeing

CAPACITY = CauseKind(code="capacity-insufficient", family=Family.DEVICES, held=True)
CAPACITY_UNKNOWN = CauseKind(code="capacity-unknown", family=Family.DEVICES)
CAPACITY_POLICY = CauseKind(code="capacity-policy", family=Family.DEVICES)
_Shorts = Sequence[tuple[PublishedDevice, CapacityShortage]]


def _capacity(blocked: Blocked) -> Iterator[Finding]:
    shorts = [(item, short) for item in blocked.lost if (short := capacity_shortage(blocked.view, item, blocked.spec))]
    first = Counter(short.reason for _, short in shorts).most_common(1)[0][0]
    reason, most = blocked.reason, None
    lead = "{lost:device} {lost:has|have} too little capacity for {where}: {reason}"
    remedy: Remedy | None
    if first is CapacityLack.UNKNOWN:
        kind, reason = (
            CAPACITY_UNKNOWN,
            next(short.capacity for _, short in shorts if short.reason is CapacityLack.UNKNOWN),
        )
        lead = "{where} asks for an amount of {reason}, and {lost:device} {lost:has|have} no capacity of that name"
        keys = sorted({key for item, _ in shorts for key in item.device.capacity})
        remedy = Remedy(say("Use a capacity that the devices have: {keys: else none}.", keys=keys))
    elif first is CapacityLack.POLICY:
        kind = CAPACITY_POLICY
        lead = "the policy of {lost:device} does not allow what {where} asks for: {reason}"
        item, short = next(pair for pair in shorts if pair[1].reason is CapacityLack.POLICY)
        allowed = _allowed(item, short.capacity)
        text = "Ask for {name} as the policy of {device} allows: {allowed}."
        remedy = Remedy(say(text, name=short.capacity, device=item.id, allowed=allowed))
    else:
        kind, remedy = CAPACITY, _lower_capacity(blocked, shorts)
        reason, most = _most_left(shorts, others=bool(blocked.left))
    summary = say(lead, lost=len(blocked.lost), where=blocked.where, reason=reason)
    yield Finding(kind, summary, blocked.by_device("capacity", most), remedy)


def _allowed(item: PublishedDevice, name: str) -> Words:
    """What a request policy allows."""
    policy = item.device.capacity[name].get("requestPolicy") or {}
    span = policy.get("validRange") or {}
    if not span:
        values = tuple(str(value) for value in policy.get("validValues") or ())
        return Joined(values, " or ") if values else "its default only"
    limits = [("at least", span.get("min")), ("at most", span.get("max")), ("in steps of", span.get("step"))]
    return say("{limits}", limits=[Subject(word, value) for word, value in limits if value is not None])


def _lower_capacity(blocked: Blocked, shorts: _Shorts) -> Remedy | None:
    """The largest amount of the missing capacity that some device can still give."""
    name = shorts[0][1].capacity
    offers = [remaining for item, short in shorts for own, remaining in capacities_left(item, short) if own == name]
    if not offers:
        return None
    change = LessCapacity(blocked.located.place, name, max(offers))
    proof = blocked.what_if.proof_with(change)
    return Remedy(say("{what:capital}.", what=change.what), proof, offers=(change,)) if proof else None


def _most_left(shorts: _Shorts, *, others: bool) -> tuple[Words, DeviceID | None]:
    """The shortage on the device that has most left, and that device, if it is known which has.

    ``others`` have enough, and are too few.
    """
    known = [
        (short.value - short.used, item, short)
        for item, short in shorts
        if short.value is not None and short.used is not None
    ]
    if not known:
        return shorts[0][1].capacity, None
    remaining, item, short = max(known, key=lambda pair: pair[0])
    rounded: Words = ""
    if short.requested is not None and short.amount is not None and short.amount > short.requested:
        rounded = say(" ({asked}, which the device's policy rounds up)", asked=short.requested)
    wanted = "it wants {short.amount} of {short.capacity}{unnamed}{rounded}, and "
    which = "none of these" if others else "no device"
    text = "{which} has more than {left} left ({device:short})" if remaining else "{which} has any left"
    words = {"which": which, "short": short, "unnamed": unnamed(short), "rounded": rounded, "left": remaining}
    return say(wanted + text, **words, device=item.id), item.id


# Partitions in use leave too little of their shared counters.

COUNTERS = CauseKind(code="counters-exhausted", family=Family.DEVICES, held=True)
OVERDRAWN = CauseKind(code="counters-overdrawn", family=Family.DEVICES)
GROUPS = CauseKind(code="partitions-incompatible", family=Family.DEVICES, held=True)


def _groups(blocked: Blocked) -> Iterator[Finding]:
    text = "{count:device} for {where} cannot be used beside those in use: {device:bare} {first}"
    words = {"count": len(blocked.lost), "where": blocked.where, "first": blocked.reasons[0]}
    yield Finding(
        GROUPS,
        say(text, **words, device=blocked.lost[0].id),
        blocked.by_device("compatibilityGroups"),
        _remedy(blocked),
    )


def _counters(blocked: Blocked) -> Iterator[Finding]:
    if not blocked.view.cycle.features.partitionable_devices:
        yield device_needs_feature.finding(blocked, PARTITIONS, partitionable_devices=True)
        return
    mixed = pool_name_shared.finding(blocked.view, blocked.what_if)
    if mixed is not None:
        yield mixed
        return
    overdrawn = all(isinstance(reason, CounterOverdrawn) for reason in blocked.reasons)
    count = len(blocked.lost)
    first = blocked.reasons[0]
    text = "{count:device} for {where} {count:is|are} blocked by partitions in use: {first}"
    short = all(isinstance(reason, CounterShort) and reason.holders for reason in blocked.reasons)
    if short:
        text = (
            "{every} that {matches} {where}{nodes} {count:overlaps|overlap} with devices in use: {device:bare} with "
            "{holders:some 2}"
        )
    yield Finding(
        OVERDRAWN if overdrawn else COUNTERS,
        say(
            text,
            count=count,
            where=blocked.where,
            first=first,
            every=_how_many(blocked),
            matches="matches" if blocked.tested == 1 else "match",
            nodes=say(" on {nodes:some 2}", nodes=blocked.nodes) if blocked.nodes else "",
            device=blocked.lost[0].id,
            holders=first.holders if isinstance(first, CounterShort) else (),
        ),
        blocked.by_device("consumesCounters"),
        _remedy(blocked),
    )


def _how_many(blocked: Blocked) -> Words:
    """The devices that are blocked, among those that match."""
    from kubectl_dra.explain.devices.device_state import product_of

    products = {product_of(item.device.attributes) for item in blocked.lost}
    # A plural of names does not sound right: the 8 AMD Instinct MI300X.
    (product,) = products if len(products) == 1 else ("",)
    if blocked.left:
        return say("{lost:,} of the {tested:device}", lost=len(blocked.lost), tested=blocked.tested)
    if blocked.tested == 1:
        return say("the only {product: else device}", product=product)
    return say("all {tested:,} {product: else devices}", tested=blocked.tested, product=product)


def _remedy(blocked: Blocked) -> Remedy | None:
    """One claim that has to give its partition back."""
    pools = {item.slice.pool for item in blocked.lost}
    holders = blocked.analysis.holders
    users = {
        id(claim): claim
        for device, claims in blocked.view.cycle.state.holders.items()
        for claim in claims
        if device[:2] in pools
    }
    ranked = sorted(users.values(), key=lambda claim: (holders.holder(claim).order, len(claim.results), claim.key))
    frees = fewest_first(freeing(claim, blocked.view, holders) for claim in ranked)
    search = first_enough(blocked.what_if, frees)
    if search.found is None:
        return None
    free, proof = search.found
    return Remedy(say("{what:capital}.", what=free.what), proof, free.devices, (free,))


FINDERS = (
    Finder(When.STAGE, _capacity, of=StageName.CAPACITY),
    Finder(When.STAGE, _counters, of=StageName.COUNTERS),
    Finder(When.STAGE, _groups, of=StageName.GROUPS),
)
