"""The devices cannot give the requested capacity."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kubectl_dra.allocation.capacity import CapacityShortage
from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.diagnosis import CauseKind, Family, Finding, Remedy
from kubectl_dra.explain.funnel.blocked import Blocked
from kubectl_dra.explain.funnel.stages import counted
from kubectl_dra.explain.phrase import Joined, Subject, Words, say
from kubectl_dra.explain.remedies.candidates import capacities_left, capacity_shortage
from kubectl_dra.explain.remedies.change import LessCapacity
from kubectl_dra.explain.scene.view import Published

CAPACITY = CauseKind(code="capacity-insufficient", family=Family.DEVICES, held=True)
CAPACITY_UNKNOWN = CauseKind(code="capacity-unknown", family=Family.DEVICES)
CAPACITY_POLICY = CauseKind(code="capacity-policy", family=Family.DEVICES)

_Shorts = Sequence[tuple[Published, CapacityShortage]]


def _capacity(blocked: Blocked) -> Iterator[Finding]:
    shorts = [(item, short) for item in blocked.lost if (short := capacity_shortage(blocked.view, item, blocked.spec))]
    first = counted(short.reason for _, short in shorts)[0][0]
    reason = blocked.reason
    remedy: Remedy | None
    if first == "unknown":
        kind = CAPACITY_UNKNOWN
        keys = sorted({key for item, _ in shorts for key in item.device.capacity})
        remedy = Remedy(say("Use a capacity that the devices have: {keys: else none}.", keys=keys))
    elif first == "policy":
        kind = CAPACITY_POLICY
        item, short = next(entry for entry in shorts if entry[1].reason == "policy")
        allowed = _allowed(item, short.capacity)
        text = "Ask for {name} as the policy of {device} allows: {allowed}."
        remedy = Remedy(say(text, name=short.capacity, device=item.id, allowed=allowed))
    else:
        kind, reason, remedy = CAPACITY, _most_left(shorts), _lower_capacity(blocked, shorts)
    text = "{lost:device} {lost:has|have} too little capacity for {where}: {reason}"
    summary = say(text, lost=len(blocked.lost), where=blocked.where, reason=reason)
    yield Finding(kind, summary, blocked.by_device("capacity"), remedy)


def _allowed(item: Published, name: str) -> Words:
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
    offers = [left for item, short in shorts for own, left in capacities_left(item, short) if own == name]
    if not offers:
        return None
    change = LessCapacity(blocked.located.place, name, max(offers))
    proof = blocked.world.proof_with(change)
    return Remedy(say("{what:capital}.", what=change.what), proof, offers=(change,)) if proof else None


def _most_left(shorts: _Shorts) -> Words:
    """The shortage on the device that has most left."""
    known = [
        (short.value - short.used, item, short)
        for item, short in shorts
        if short.value is not None and short.used is not None
    ]
    if not known:
        return shorts[0][1].capacity
    left, item, short = max(known, key=lambda entry: entry[0])
    text = "it wants {short.amount} of {short.capacity}, and no device has more than {left} left ({device:short})"
    return say(text, short=short, left=left, device=item.id)


FINDERS = (Finder(When.STAGE, _capacity, of="capacity"),)
