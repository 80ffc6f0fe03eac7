"""Partitions in use leave too little of their shared counters."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_dra.explain.causes import device_needs_feature, pool_name_shared
from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.diagnosis import CauseKind, Family, Finding, Remedy
from kubectl_dra.explain.funnel.blocked import Blocked
from kubectl_dra.explain.funnel.request_funnel import PARTITIONS
from kubectl_dra.explain.funnel.stages import CounterOverdrawn, CounterShort
from kubectl_dra.explain.phrase import Words, say
from kubectl_dra.explain.remedies.free import first_enough, freeing

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
    mixed = pool_name_shared.finding(blocked.view, blocked.world)
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
    from kubectl_dra.explain.devices.model import product_of

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
    holders = blocked.scene.holders
    users = {
        id(claim): claim
        for device, claims in blocked.view.cycle.state.holders.items()
        for claim in claims
        if device[:2] in pools
    }
    ranked = sorted(users.values(), key=lambda claim: (holders.holder(claim).order, holders.size(claim), claim.key))
    search = first_enough(blocked.world, [freeing(claim, blocked.view, holders) for claim in ranked])
    if search.found is None:
        return None
    free, proof = search.found
    return Remedy(say("{what:capital}.", what=free.what), proof, free.devices, (free,))


FINDERS = (Finder(When.STAGE, _counters, of="counters"), Finder(When.STAGE, _groups, of="groups"))
