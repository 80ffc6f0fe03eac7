"""Compatibility groups that keep a device from being used beside others, in words."""

from __future__ import annotations

from kubectl_dra.allocation.counters import GroupClash
from kubectl_dra.explain.phrase import Phrase, Statement, Words, say


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
