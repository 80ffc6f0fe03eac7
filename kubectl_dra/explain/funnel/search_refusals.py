"""What the search itself refuses while combining devices: counters and capacity used up by the pod's own picks."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from msgspec import Struct, field

from kubectl_dra.allocation.capacity import CapacityShortage
from kubectl_dra.allocation.counters import CounterShortage, GroupClash
from kubectl_dra.allocation.request import Alternative
from kubectl_dra.allocation.search_context import CandidateDevice
from kubectl_dra.api.slices import DeviceID
from kubectl_dra.explain.phrase import Phrase, Statement, Words, say

_KINDS = ("counters", "capacity")


class LostDevice(NamedTuple):
    """A device that a request lost to others of the same pod: the check, and what the device then lacks."""

    check: str
    request: str
    device: DeviceID
    lack: Words


class Refusals(Struct):
    """An observer of one attempt that keeps the refusals caused by devices picked before."""

    counts: Counter[str] = field(default_factory=Counter)
    first: dict[str, LostDevice] = field(default_factory=dict)

    def rejected(self, alternative: Alternative, candidate: CandidateDevice, check: str, detail: object) -> None:
        """Record one refusal of the search."""
        if check in _KINDS:
            check = "groups" if check == "counters" and not isinstance(detail, CounterShortage) else check
            self.counts[check] += 1
            if check not in self.first:
                self.first[check] = LostDevice(check, alternative.result_name, candidate.id, _lack(detail))

    def most_frequent(self) -> LostDevice | None:
        """The first example of the most frequent kind of refusal, or None."""
        if not self.counts:
            return None
        return self.first[self.counts.most_common(1)[0][0]]


def _lack(detail: object) -> Words:
    if isinstance(detail, CounterShortage):
        return say(
            "counter {short.counter} of set {short.counter_set}: {short.available} available, {short.charged} taken "
            "by the pod's other devices, {short.needed} more needed",
            short=detail,
        )
    if isinstance(detail, CapacityShortage):
        return say("{short.capacity}: {short.used} of {short.value} used, {short.amount} more needed", short=detail)
    from kubectl_dra.allocation.counters import GroupClash

    if isinstance(detail, GroupClash):
        text = "one {own}, and what draws on counter set {clash.counter_set} by then {common}"
        return say(text, clash=detail, own=own_groups(detail), common=common_groups(detail))
    return ""


# Compatibility groups that keep a device from being used beside others, in words.


def own_groups(clash: GroupClash) -> Words:
    """The compatibility groups of a device."""
    text = "is in compatibility {count:group|groups} {own}"
    return say(text, count=len(clash.own), own=clash.own) if clash.own else "is in no compatibility group"


def common_groups(clash: GroupClash) -> Words:
    """The groups that the devices beside it share."""
    return say("is in {common}", common=clash.common) if clash.common else "has no group in common"


class GroupsDiffer(Statement, frozen=True):
    """A device may not be in use beside others of its counter set: they have no compatibility group in common."""

    TEXT = "{own}; what draws on counter set {clash.counter_set} now {common}{used}"
    clash: GroupClash
    holders: tuple[Phrase, ...] = ()

    @property
    def own(self) -> Words:
        """The device's groups."""
        return own_groups(self.clash)

    @property
    def common(self) -> Words:
        """Those of the others."""
        return common_groups(self.clash)

    @property
    def used(self) -> Words:
        """By whom."""
        return say(": {holders:some}", holders=self.holders) if self.holders else ""
