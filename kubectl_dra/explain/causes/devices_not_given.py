"""Matching devices that are not given: their capacity or counters are used up, or they are tainted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from kubectl_dra.allocation.capacity import CapacityLack, CapacityShortage
from kubectl_dra.api.claims import ALL
from kubectl_dra.api.slices import DeviceID
from kubectl_dra.api.taints import DeviceTaint, blocking_taint
from kubectl_dra.command import deleting
from kubectl_dra.explain.cause_kinds import CauseKind, Family, Look
from kubectl_dra.explain.causes import pools_and_limits as pool_name_shared
from kubectl_dra.explain.causes.devices_held import ALL_INCOMPLETE
from kubectl_dra.explain.causes.devices_published import needs_feature
from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.diagnosis import Evidence, Finding, Remedy
from kubectl_dra.explain.funnel.blocked import MAX_EVIDENCE, Blocked, in_all, proved
from kubectl_dra.explain.funnel.device_view import PublishedDevice
from kubectl_dra.explain.funnel.request_funnel import PARTITIONS
from kubectl_dra.explain.funnel.shown import StageName
from kubectl_dra.explain.funnel.stages import CounterOverdrawn, CounterShort, describe_taint, unnamed
from kubectl_dra.explain.phrase import Joined, Phrase, Subject, Words, say
from kubectl_dra.explain.remedies.candidates import capacities_left, capacity_shortage
from kubectl_dra.explain.remedies.change import LessCapacity, Tolerate
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
    return proved(blocked.what_if, LessCapacity(blocked.located.place, name, max(offers)))


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
    text = "{lost:device} for {where} cannot be used beside those in use: {device:bare} {first}"
    summary = blocked.say(text, device=blocked.lost[0].id, first=blocked.reasons[0])
    yield Finding(GROUPS, summary, blocked.by_device("compatibilityGroups"), _remedy(blocked))


def _counters(blocked: Blocked) -> Iterator[Finding]:
    if not blocked.view.cycle.features.partitionable_devices:
        yield needs_feature(blocked, PARTITIONS)
        return
    mixed = pool_name_shared.finding(blocked.view, blocked.what_if)
    if mixed is not None:
        yield mixed
        return
    overdrawn = all(isinstance(reason, CounterOverdrawn) for reason in blocked.reasons)
    first = blocked.reasons[0]
    summary = blocked.say("{lost:device} for {where} {lost:is|are} blocked by partitions in use: {first}", first=first)
    if all(isinstance(reason, CounterShort) and reason.holders for reason in blocked.reasons):
        text = (
            "{every} that {matches} {where}{nodes} {lost:overlaps|overlap} with devices in use: {device:bare} with "
            "{holders:some 2}"
        )
        summary = blocked.say(
            text,
            every=_how_many(blocked),
            matches="matches" if blocked.tested == 1 else "match",
            nodes=say(" on {nodes:some 2}", nodes=blocked.nodes) if blocked.nodes else "",
            device=blocked.lost[0].id,
            holders=first.holders if isinstance(first, CounterShort) else (),
        )
    kind = OVERDRAWN if overdrawn else COUNTERS
    yield Finding(kind, summary, blocked.by_device("consumesCounters"), _remedy(blocked))


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


# The matching devices have taints that the request does not tolerate.

TAINTED = CauseKind(code="devices-tainted", family=Family.DEVICES, fixed_at=Look.TAINTED_DEVICES)
TOLERATION = CauseKind(code="toleration-does-not-match", family=Family.DEVICES, fixed_at=Look.TAINTED_DEVICES)


def _tainted(blocked: Blocked) -> Iterator[Finding]:
    kind = ALL_INCOMPLETE if blocked.spec.allocation_mode == ALL else TAINTED
    lost = [(item, taint) for item in blocked.lost if (taint := _blocking(blocked, item.device.taints))]
    by_taint: dict[str, list[DeviceTaint]] = {}
    for _, taint in lost:
        by_taint.setdefault(str(taint), []).append(taint)
    missed = _missed(blocked)
    if missed and kind is TAINTED:
        kind = TOLERATION
    count = len(blocked.lost)
    text = "{count:device} that {count:matches|match} {where} {count:is|are} tainted: {listed}{rest}{other}"
    if len(by_taint) == 1:
        text = "{count:device} that {count:matches|match} {where} {count:has|have} taint {taint}{rest}{other}"
    summary = say(
        text,
        count=count,
        where=blocked.where,
        taint=next(iter(by_taint)),
        listed=[
            say("{count} with {taint}", taint=text, count=len(taints))
            for text, taints in sorted(by_taint.items(), key=lambda item: -len(item[1]))
        ],
        rest=say("; {left} untainted, {needed} needed", left=blocked.left, needed=blocked.located.needed)
        if blocked.left
        else "",
        other=_of_other_keys(blocked, missed),
    )
    evidence = [
        Evidence(
            Subject("device", item.id),
            "taint",
            say("{taint}{since}", taint=describe_taint(taint, blocked.spec), since=_since(item.exact.taints)),
        )
        for item, taint in lost[:MAX_EVIDENCE]
    ]
    remedy = _tolerating(blocked, kind, tuple(taints[0] for taints in by_taint.values()), missed)
    yield Finding(kind, summary, (*evidence, *in_all(count, "devices tainted")), remedy)


def _tolerating(
    blocked: Blocked, kind: CauseKind, taints: tuple[DeviceTaint, ...], missed: tuple[Phrase, ...]
) -> Remedy:
    from kubectl_dra.explain.driver_repair import MAX_COMMANDS, ending_taints, rules_named

    blocking = [(item, _blocking(blocked, item.device.taints)) for item in blocked.lost]
    rules = tuple(sorted({taint.rule for _, taint in blocking if taint is not None and taint.rule}))
    deleted = tuple(deleting("devicetaintrule", rule) for rule in rules[:MAX_COMMANDS])
    if rules and blocked.located.place.extended:
        return ending_taints(rules)
    tolerate = Tolerate(blocked.located.place, taints)
    offers = (tolerate, *(Tolerate(blocked.located.place, (taint,)) for taint in taints)) if rules else (tolerate,)
    if kind is TOLERATION:
        text = "Correct the toleration in a new claim: {missed}."
        if rules:
            text += " Or delete {rules} once the maintenance is over."
        proof = blocked.what_if.proof_with(tolerate)
        return Remedy(say(text, missed=missed, rules=rules_named(rules)), proof, offers=(tolerate,), commands=deleted)
    if rules:
        text = "Delete {rules} once the maintenance is over, or let the request tolerate the taint."
        proof = blocked.what_if.proof_with(tolerate)
        return Remedy(say(text, rules=rules_named(rules)), proof, offers=offers, commands=deleted)
    return ending_taints((), {(item.id.driver, taint.key) for item, taint in blocking if taint is not None})


def _of_other_keys(blocked: Blocked, missed: Sequence[Phrase]) -> Words:
    """Words for the keys that the request tolerates, none of which is the taint's; empty if there are none."""
    keys = tuple(dict.fromkeys(toleration.key for toleration in blocked.spec.tolerations if toleration.key))
    if not keys or missed:
        return ""
    return say(", and the request tolerates only {keys:some}", keys=keys)


def _blocking(blocked: Blocked, taints: Collection[DeviceTaint]) -> DeviceTaint | None:
    return blocking_taint(tuple(taints), blocked.spec.tolerations)


def _missed(blocked: Blocked) -> tuple[Phrase, ...]:
    """Mismatches of tolerations with the taints of all lost devices; empty if none is near one of the taints."""
    texts: dict[Phrase, None] = {}
    for item in blocked.lost:
        taint = _blocking(blocked, item.device.taints)
        near = [
            toleration
            for toleration in blocked.spec.tolerations
            if taint is not None and toleration.key in ("", taint.key)
        ]
        if taint is None or not near:
            return ()
        part = near[0].mismatch(taint)
        wanted = {"effect": taint.effect, "value": taint.value or '""'}.get(part or "", "Exists or Equal")
        texts[say("{part} has to be {wanted} for key {key}", part=part, wanted=wanted, key=taint.key)] = None
    return tuple(texts)


def _since(taints: Collection[DeviceTaint]) -> Words:
    times = sorted(taint.time_added for taint in taints if taint.time_added)
    return say(", since {time}", time=times[0]) if times else ""


FINDERS = (
    Finder(When.STAGE, _capacity, of=StageName.CAPACITY),
    Finder(When.STAGE, _counters, of=StageName.COUNTERS),
    Finder(When.STAGE, _groups, of=StageName.GROUPS),
    Finder(When.STAGE, _tainted, of=StageName.TAINT),
)
