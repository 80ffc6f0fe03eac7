"""What the search itself refuses while combining devices: counters and capacity used up by the pod's own picks."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from msgspec import Struct, field

from kubectl_dra.allocation.capacity import CapacityShortage
from kubectl_dra.allocation.counters import CounterShortage, GroupClash
from kubectl_dra.allocation.search_context import Alternative, CandidateDevice, Lack
from kubectl_dra.api.slices import DeviceID
from kubectl_dra.explain.phrase import Phrase, Statement, Words, say


class LostDevice(NamedTuple):
    """A device that a request lost to others of the same pod, and what the device then lacks."""

    request: str
    device: DeviceID
    lack: Lack

    @property
    def said(self) -> Words:
        """What it lacks."""
        lack = self.lack
        if isinstance(lack, CounterShortage):
            return say(
                "counter {short.counter} of set {short.counter_set}: {short.available} available, {short.charged} "
                "taken by the pod's other devices, {short.needed} more needed",
                short=lack,
            )
        if isinstance(lack, CapacityShortage):
            return say("{short.capacity}: {short.used} of {short.value} used, {short.amount} more needed", short=lack)
        text = "one {own}, and what draws on counter set {clash.counter_set} by then {common}"
        return say(text, clash=lack, own=own_groups(lack), common=common_groups(lack))


class Refusals(Struct):
    """An observer of one attempt that keeps the refusals caused by devices picked before."""

    counts: Counter[type[Lack]] = field(default_factory=Counter)
    first: dict[type[Lack], LostDevice] = field(default_factory=dict)

    def lacks(self, alternative: Alternative, candidate: CandidateDevice, lack: Lack) -> None:
        """Record one refusal of the search."""
        kind = type(lack)
        self.counts[kind] += 1
        if kind not in self.first:
            self.first[kind] = LostDevice(alternative.result_name, candidate.id, lack)

    def most_frequent(self) -> LostDevice | None:
        """The first example of the most frequent kind of refusal, or None."""
        if not self.counts:
            return None
        return self.first[self.counts.most_common(1)[0][0]]


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
