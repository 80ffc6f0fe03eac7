"""Defects of Kubernetes releases that change what a scheduler does, each with its upstream number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct, field

from kubectl_dra.api.versions import Release


class Defect(Struct, frozen=True):
    """A defect and the releases that have it.

    ``number`` is its pull request or issue in kubernetes/kubernetes; None if it ended with a larger change.
    ``what`` it means for those who wait for devices, for defects that decide whether they get them.
    ``since`` and ``gone`` are the first minor releases with and without it; ``gone`` is None while it is
    open. ``fixed`` maps each minor release in between to its first patch release without the defect.
    """

    number: int | None = None
    since: int = 0
    gone: int | None = None
    fixed: Mapping[int, int] = field(default_factory=dict)
    what: str = ""

    def affects(self, release: Release, patch: int | None) -> bool | None:
        """Whether a release has it; None if that depends on an unknown patch release."""
        if release.minor < self.since or (self.gone is not None and release.minor >= self.gone):
            return False
        first = self.fixed.get(release.minor)
        if first is None:
            return True
        return None if patch is None else patch < first

    def fixed_in(self, minor: int) -> str:
        """The first patch release of a minor release without it. Raises KeyError if there is none."""
        return f"1.{minor}.{self.fixed[minor]}"

    def patches(self, minor: int) -> str:
        """The patch releases of a minor release that have it. Raises KeyError if all have it."""
        last = self.fixed[minor] - 1
        return f"1.{minor}.0 to 1.{minor}.{last}" if last > 1 else f"1.{minor}.0 and 1.{minor}.{last}"

    @property
    def reference(self) -> str:
        """Its upstream name; empty without a number."""
        return f"kubernetes/kubernetes#{self.number}" if self.number else ""


RULES_UNSEEN: Final = Defect(139651, since=36, gone=37, fixed={36: 3}, what="DeviceTaintRules are not seen")
"""The scheduler watches DeviceTaintRules in a version that it cannot read: it ignores them, and may crash."""
CRASH_ON_ALL: Final = Defect(
    138885,
    since=35,
    gone=37,
    fixed={35: 6, 36: 2},
    what="the scheduler crashes at a request for all devices where one of them uses shared counters",
)
"""The scheduler crashes if a request for all devices meets a device that uses shared counters."""
SCORING_FAILS: Final = Defect(139016, since=35, gone=37, fixed={35: 6, 36: 2})
"""Scoring nodes fails for a pod with both allocated and unallocated claims."""

TAINTS_NAMED: Final = Defect(134740, gone=35, fixed={34: 2})
"""The scheduler's message names each node's taint, so that nodes with different taints are not counted together."""

COUNTERS_LEAK: Final = Defect(
    140431,
    gone=37,
    fixed={36: 3},
    what="a device that is tried first and refused, for its taint or a constraint, goes on to count against the "
    "shared counters",
)
"""A refused or undone device stays charged, and one refused for its capacity stays in its claim's constraints."""
COUNTERS_KEYED_BY_POOL_NAME: Final = Defect(
    140435, gone=37, fixed={36: 4}, what="drivers that use one pool name share their counters"
)
"""Drivers that use one pool name share counter tables."""
DISTINCT_COMPARES_NOTHING: Final = Defect(gone=35, what="distinctAttribute accepts devices with equal values")
"""distinctAttribute accepts devices with equal values."""
LATER_ALL_CONTINUES_WITH_FIRST: Final = Defect(
    137347, gone=36, what="a later alternative for all devices goes on with what the first asks for"
)
"""A later alternative for all devices takes one of them, and goes on with what the first alternative asks for."""
DEVICES_OF_CLAIM_SUMMED: Final = Defect(
    141307,
    gone=37,
    fixed={34: 12, 35: 9, 36: 5},
    what="very large numbers of devices wrap around when they are summed up",
)
"""The number of devices of a claim is checked once they are summed up, by which very large numbers overflow."""
REQUEST_TAKES_SHARE_TWICE: Final = Defect(gone=36, what="a request for several devices takes several shares of one")
"""A request for several devices takes several shares of one."""
SHARES_CHARGE_NOTHING: Final = Defect(
    139040, gone=37, fixed={36: 2}, what="shared devices that are allocated do not count against the shared counters"
)
"""Counters of shared devices are not counted as used once the allocation stands."""
DISTINCT_REMEMBERS_ONE: Final = Defect(
    140600, gone=37, what="distinctAttribute compares with one device of each request only"
)
"""distinctAttribute remembers one value per request."""
ALL_FAILS_ON_ANY_POOL: Final = Defect(141898, what="a request for all devices fails on any unusable pool of the node")
"""Mode All fails fatally if any pool on the node is incomplete or invalid."""
ALL_DROPS_EXHAUSTED: Final = Defect(
    140769, gone=37, what="a request for all devices leaves out shared devices that are full"
)
"""Mode All silently drops exhausted shareable devices."""
CLAIM_CONFIG_REPEATED: Final = Defect(
    gone=37, what="a configuration of the claim is repeated for every request that it names"
)
"""A claim's config entry is repeated for every request that it names."""
COUNTER_SLICES_EVERYWHERE: Final = Defect(
    since=35, gone=37, what="slices with shared counters of other nodes are looked at as well"
)
"""Slices with shared counters are seen on every node."""
CAPACITY_WRAPS: Final = Defect(
    140442, gone=37, what="the arithmetic of a request policy's range wraps past the largest 64-bit integer"
)
"""Rounding a capacity request wraps around beyond the largest 64-bit integer, negative amounts are accepted,
and rounded amounts are binary quantities whatever the step.
"""
SHARE_WITHOUT_CAPACITY_CHARGES: Final = Defect(
    140437, gone=37, what="a share that takes no capacity counts against the shared counters once more"
)
"""A share without consumed capacity charges counters again."""
