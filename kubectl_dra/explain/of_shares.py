"""Causes in what devices share: capacity of one device, counters of its partitions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from kubectl_dra.allocation.capacity import NOTHING, CapacityShortage, amount_taken, shortage
from kubectl_dra.api.claims import DeviceRequest
from kubectl_dra.api.quantity import Quantity
from kubectl_dra.explain.blocked import MAX_TRIES, Blocked, Surroundings, by_device, most_common
from kubectl_dra.explain.causes import devices
from kubectl_dra.explain.diagnosis import Cause
from kubectl_dra.explain.funnel.request_funnel import PARTITIONS
from kubectl_dra.explain.of_pools import needs_feature
from kubectl_dra.explain.of_release import mixed_up
from kubectl_dra.explain.remedies.prove import Proof
from kubectl_dra.explain.scene.view import Published
from kubectl_dra.wording import amount, are, join


def capacity(around: Surroundings, blocked: Blocked) -> Cause:
    shorts = [(item, short) for item in blocked.lost if (short := _shortage(around, item, blocked.spec))]
    first = Counter(short.reason for _, short in shorts).most_common(1)[0][0]
    kind = {"unknown": devices.CAPACITY_UNKNOWN, "policy": devices.CAPACITY_POLICY}.get(first, devices.CAPACITY)
    fix, proof = kind.fix, None
    if kind is devices.CAPACITY_UNKNOWN:
        keys = sorted({key for item, _ in shorts for key in item.device.capacity})
        fix = f"Use a capacity that the devices have: {join(keys) or 'none'}."
    elif kind is devices.CAPACITY_POLICY:
        item, short = next(entry for entry in shorts if entry[1].reason == "policy")
        fix = f"Ask for {short.capacity} as the policy of {item.id} allows: {_allowed(item, short.capacity)}."
    elif kind is devices.CAPACITY:
        fix, proof = _lower_capacity(around, blocked, shorts) or (fix, None)
    reason = most_common(blocked.reasons)
    if kind is devices.CAPACITY:
        reason = _most_left(shorts)
    return Cause(
        kind,
        f"{amount(len(blocked.lost))} for {blocked.located.where} cannot give the requested capacity: {reason}",
        by_device(blocked, "capacity"),
        fix,
        str(proof) if proof else "",
    )


def _allowed(item: Published, name: str) -> str:
    """What a request policy allows, in words."""
    policy = item.device.capacity[name].get("requestPolicy") or {}
    span = policy.get("validRange") or {}
    if not span:
        return " or ".join(str(value) for value in policy.get("validValues") or ()) or "its default only"
    said = [("at least", span.get("min")), ("at most", span.get("max")), ("in steps of", span.get("step"))]
    return ", ".join(f"{word} {value}" for word, value in said if value is not None)


def _lower_capacity(
    around: Surroundings, blocked: Blocked, shorts: Sequence[tuple[Published, CapacityShortage]]
) -> tuple[str, Proof] | None:
    """The largest amount of the capacity that is short which some device still gives."""
    name = shorts[0][1].capacity
    offers: list[Quantity] = []
    for item, short in shorts:
        if short.capacity == name and short.value is not None and short.used is not None:
            left = short.value - short.used
            if left > Quantity.parse("0") and amount_taken(left, item.device.capacity[name]) <= left:
                offers.append(left)
    if not offers:
        return None
    most = max(offers)
    proof = around.change(blocked, lambda old: replace(old, capacity={**(old.capacity or {}), name: most}))
    return (f"Ask for at most {most} of {name}.", proof) if proof else None


def _shortage(around: Surroundings, item: Published, spec: DeviceRequest) -> CapacityShortage | None:
    used = around.view.cycle.state.consumed.get(item.id, NOTHING)
    return shortage(item.device, spec.capacity, used, NOTHING)


def counters(around: Surroundings, blocked: Blocked) -> Cause:
    if not around.view.cycle.features.partitionable_devices:
        return needs_feature(around, blocked, PARTITIONS, partitionable_devices=True)
    quirks = around.view.cycle.quirks
    if quirks.counters_keyed_by_pool_name:
        apart = around.whatif.with_quirks(quirks.without("counters_keyed_by_pool_name"))
        mixed = mixed_up(around.view, str(apart)) if apart else None
        if mixed is not None:
            return mixed
    overdrawn = all("is overdrawn" in reason for reason in blocked.reasons)
    kind = devices.OVERDRAWN if overdrawn else devices.COUNTERS
    pool_ids = {item.slice.pool for item in blocked.lost}
    users = {
        id(claim): claim
        for device, claims in around.view.cycle.state.holders.items()
        for claim in claims
        if device[:2] in pool_ids
    }
    fix, proof = kind.fix, None
    for claim in list(users.values())[:MAX_TRIES]:
        proof = around.whatif.without_holders([claim], around.view.held_near(claim))
        if proof is not None:
            fix = f"It is enough that {around.holders.describe_claim(claim)} gives its partition back."
            break
    count = len(blocked.lost)
    first = f"the first {blocked.reasons[0]}" if count > 1 and not overdrawn else blocked.reasons[0]
    return Cause(
        kind,
        f"{amount(count)} for {blocked.located.where} {are(count)} blocked by partitions in use: {first}",
        by_device(blocked, "consumesCounters"),
        fix,
        str(proof) if proof else "",
    )


def _most_left(shorts: Sequence[tuple[Published, CapacityShortage]]) -> str:
    """The shortage of the device that has most left."""
    known = [(item, short) for item, short in shorts if short.value is not None and short.used is not None]
    if not known:
        return shorts[0][1].capacity
    item, short = max(known, key=lambda entry: entry[1].value - entry[1].used)  # type: ignore[operator]
    assert short.value is not None and short.used is not None
    return f"{short.amount} of {short.capacity} wanted, at most {short.value - short.used} left (on {item.id})"
