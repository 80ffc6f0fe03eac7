"""Known defects of Kubernetes releases, each with its upstream number and the releases that have it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct, field

from kubectl_dra.api.releases import NEWEST_MODELLED, Release


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
    def fixes(self) -> tuple[str, ...]:
        """The first releases without it, oldest first; empty while it is open."""
        last = () if self.gone is None or self.gone > NEWEST_MODELLED.minor else (f"1.{self.gone}.0",)
        return (*(self.fixed_in(minor) for minor in sorted(self.fixed)), *last)

    @property
    def reference(self) -> str:
        """Its upstream name; empty without a number."""
        return f"kubernetes/kubernetes#{self.number}" if self.number else ""


# The allocator: which devices a pod gets.

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
    what="it keeps the shared counters of each device that it tries first and refuses for a taint or a constraint",
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

OF_ALLOCATOR: Final = tuple(defect for defect in globals().values() if isinstance(defect, Defect))

# The kubelet.

OUT_OF_EXTENDED: Final = Defect(135667, since=34, gone=36)
"""The kubelet counts extended resources that devices of claims serve as its own, has none, and refuses the pod."""
LATER_CLAIMS_UNPREPARED: Final = Defect(135919, gone=36, fixed={34: 4, 35: 1})
"""Of a pod's claims those after one that another pod of the node uses already are not prepared."""
UNPREPARED_IN_USE: Final = Defect(140212, gone=37)
"""The end of one pod makes the kubelet give back devices of a claim that another pod still uses."""
JOINS_UNPREPARED: Final = Defect(140527, gone=37)
"""A pod that joins a claim while its devices are given back runs with devices that are gone."""

# The scheduler, around its allocator.

HALF_A_CLAIM: Final = Defect(131662, since=33, gone=34, fixed={33: 1})
"""A request for more than 16 devices is never served, though a claim may have 32."""
ALLOCATED_TWICE: Final = Defect(136269, gone=36, fixed={34: 4, 35: 1})
"""Under a burst of pods the scheduler gives one exclusive device to two claims."""
CLAIM_EVENT_MISSED: Final = Defect(140831, gone=37)
"""A change of a claim may be missed, so that the pod waits until all waiting pods are tried again, every 5 minutes."""
EXTENDED_TAKES_OF_NODE: Final = Defect(141467, since=37)
"""A pod is not bound if a device that takes resources of its node serves an extended resource of it."""

# Taints.

TOLERATIONS_NOT_COPIED: Final = Defect(134479, gone=35)
"""The scheduler does not copy tolerations into the allocation, so that eviction does not see them."""
RULE_FOR_ALL: Final = Defect(141998, gone=38, fixed={37: 1})
"""The scheduler takes a DeviceTaintRule without deviceSelector for one of every device; it selects none."""


def last_fix(release: Release) -> str:
    """The first patch of a minor release in which all defects of its allocator are mended that any patch of it mends;
    empty if none.
    """
    patches = [defect.fixed.get(release.minor, 0) for defect in OF_ALLOCATOR]
    return f"{release}.{max(patches)}" if any(patches) else ""
