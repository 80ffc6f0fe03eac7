"""Kubernetes releases, and what each has of resource.k8s.io: versions, kinds, feature gates.

As of 2026-11, releases 1.26 to 1.37 are known. Later releases are assumed to be like 1.37, minus the
announced removals.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from msgspec import Struct, field

GROUP: Final = "resource.k8s.io"
_OLDEST, _NEWEST = 31, 37


class Release(NamedTuple):
    """A Kubernetes release; orders by major, minor and patch."""

    major: int
    minor: int
    patch: int = 0

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"

    @property
    def without_patch(self) -> Release:
        """The minor release that it belongs to."""
        return Release(self.major, self.minor)

    def at_least(self, minor: int) -> bool:
        """Whether this is 1.``minor`` or later."""
        return (self.major, self.minor) >= (1, minor)


class Releases(Struct, frozen=True):
    """The minor releases of Kubernetes 1 from ``since`` to ``until``; None means no last one.

    ``release in releases`` is how all code but this folder and ``cel.libraries`` asks what a release is like.
    """

    since: int = 0
    until: int | None = None

    def __contains__(self, release: Release) -> bool:
        return release.at_least(self.since) and (self.until is None or not release.at_least(self.until + 1))

    def __str__(self) -> str:
        return f"{self.oldest} and later" if self.until is None else f"{self.oldest} to {self.newest}"

    def __iter__(self) -> Iterator[Release]:
        return (Release(1, minor) for minor in range(self.oldest.minor, self.newest.minor + 1))

    @property
    def oldest(self) -> Release:
        """The first of them that is modelled."""
        return Release(1, max(self.since, _OLDEST))

    @property
    def newest(self) -> Release:
        """The last of them that is modelled."""
        return Release(1, _NEWEST if self.until is None else self.until)

    def closest(self, release: Release) -> Release:
        """The one that is closest to a release."""
        return min(max(release.without_patch, self.oldest), self.newest)

    def after(self, release: Release) -> Iterator[Release]:
        """Those that are newer than a release."""
        return (each for each in self if each > release.without_patch)


MODELLED: Final = Releases(_OLDEST, _NEWEST)
"""The releases whose API server is modelled: what ``lint`` knows."""
WRITTEN: Final = Releases(32, _NEWEST)
"""The releases whose API versions ``migrate`` writes."""
EXPLAINED: Final = Releases(34, _NEWEST)
"""The releases whose scheduler is modelled."""
EVERY: Final = Releases(_OLDEST)
"""Those modelled and all later ones: of fields and rules that no release lacks."""
OLDEST_MODELLED, NEWEST_MODELLED = MODELLED.oldest, MODELLED.newest
UNTOLD: Final = Release(1, 36)
"""Assumed for a cluster, or stored objects, that do not show their release: what most clusters run."""
SCHEMAS: Final = Release(1, 36)
"""The release whose schemas of other groups are packed whole; of the others there is what they have otherwise."""
TARGET: Final = NEWEST_MODELLED
"""The release for which manifests are checked and written, unless the user names another."""
_RELEASE = re.compile(r"v?(\d{1,3})\.(\d{1,4})\+?(?:\.(\d{1,6}))?(?:[-+.].*)?\Z", re.ASCII)


@lru_cache(maxsize=64)
def parse_release(text: str) -> Release:
    """Read ``1.36``, ``v1.36.2`` or a vendor's form such as ``v1.36.2+k3s1`` or ``1.36+``.

    Raises:
        ValueError: the text is not a release.
    """
    match = _RELEASE.match(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not a Kubernetes release such as 1.36 or v1.36.2")
    major, minor, patch = match.groups()
    return Release(int(major), int(minor), int(patch or 0))


class Lifecycle(NamedTuple):
    """One kind in one version of the group, by minor release of Kubernetes 1; None if not planned.

    ``introduced`` is the first release that has it, ``deprecated`` the first that warns, ``removed`` the
    first without it. ``default_since`` is the first that serves it without ``--runtime-config``.
    """

    version: str
    kind: str
    introduced: int
    deprecated: int | None
    removed: int | None
    default_since: int | None

    def exists(self, release: Release) -> bool:
        """Whether the release can serve it."""
        return not self.is_newer(release) and not self.was_removed(release)

    def served_by_default(self, release: Release) -> bool:
        """Whether the release serves it without being configured to."""
        return self.exists(release) and self.default_since is not None and release.at_least(self.default_since)

    def was_removed(self, release: Release) -> bool:
        """Whether the release no longer has it."""
        return self.removed is not None and release.at_least(self.removed)

    def is_newer(self, release: Release) -> bool:
        """Whether the release did not have it yet."""
        return not release.at_least(self.introduced)

    def is_deprecated(self, release: Release) -> bool:
        """Whether the release warns about it."""
        return self.deprecated is not None and release.at_least(self.deprecated)


_FOUR: Final = ("DeviceClass", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice")
LIFECYCLES: Final = (
    *(Lifecycle("v1", kind, 34, None, None, 34) for kind in _FOUR),
    Lifecycle("v1", "DeviceTaintRule", 37, None, None, 37),
    *(Lifecycle("v1beta2", kind, 33, 36, 39, None) for kind in _FOUR),
    Lifecycle("v1beta2", "DeviceTaintRule", 36, 39, 42, None),
    *(Lifecycle("v1beta1", kind, 32, 35, 38, None) for kind in _FOUR),
    *(Lifecycle("v1alpha3", kind, 31, None, 34, None) for kind in _FOUR),
    Lifecycle("v1alpha3", "DeviceTaintRule", 33, 36, 39, None),
    Lifecycle("v1alpha3", "ResourcePoolStatusRequest", 36, 39, 42, None),
    Lifecycle("v1alpha3", "PodSchedulingContext", 31, None, 32, None),
    *(
        Lifecycle("v1alpha2", kind, 27, None, 31, None)
        for kind in ("ResourceClass", "ResourceClaim", "ResourceClaimTemplate", "PodSchedulingContext")
    ),
    *(
        Lifecycle("v1alpha2", kind, 30, None, 31, None)
        for kind in ("ResourceSlice", "ResourceClaimParameters", "ResourceClassParameters")
    ),
    *(
        Lifecycle("v1alpha1", kind, 26, None, 27, None)
        for kind in ("ResourceClass", "ResourceClaim", "ResourceClaimTemplate", "PodScheduling")
    ),
)
"""Every kind of the group in every version, newest version first."""
_BY_NAME: Final[Mapping[tuple[str, str], Lifecycle]] = {(life.version, life.kind): life for life in LIFECYCLES}
PLURALS: Final[Mapping[str, str]] = {
    "DeviceClass": "deviceclasses",
    "DeviceTaintRule": "devicetaintrules",
    "ResourceClaim": "resourceclaims",
    "ResourceClaimTemplate": "resourceclaimtemplates",
    "ResourceSlice": "resourceslices",
    "ResourcePoolStatusRequest": "resourcepoolstatusrequests",
    "ResourceClass": "resourceclasses",
    "PodSchedulingContext": "podschedulingcontexts",
    "PodScheduling": "podschedulings",
    "ResourceClaimParameters": "resourceclaimparameters",
    "ResourceClassParameters": "resourceclassparameters",
}


def lifecycle(version: str, kind: str) -> Lifecycle | None:
    """When a kind existed in a version of the group, or None if it never did."""
    return _BY_NAME.get((version, kind))


def versions_of(kind: str, release: Release) -> tuple[str, ...]:
    """The versions in which a release can serve the kind, preferred first."""
    return tuple(life.version for life in LIFECYCLES if life.kind == kind and life.exists(release))


def first_release(kind: str) -> Release:
    """The first release that had the kind. Raises ValueError for an unknown kind."""
    return Release(1, min(life.introduced for life in LIFECYCLES if life.kind == kind))


def default_version(kind: str, release: Release) -> str | None:
    """The preferred version in which a release serves the kind by default, or None if it does not."""
    return next(
        (life.version for life in LIFECYCLES if life.kind == kind and life.served_by_default(release)),
        None,
    )


# One character per release from 1.31 to 1.37: "." unknown gate, "-" off by default, "+" on, "L" locked on.
_GATES: Final[Mapping[str, str]] = {
    "DynamicResourceAllocation": "---+LLL",
    "DRAControlPlaneController": "-......",
    "DRAAdminAccess": ".--++LL",
    "DRAResourceClaimDeviceStatus": ".-++++L",
    "DRAPrioritizedList": "..-+++L",
    "DRAPartitionableDevices": "..---++",
    "DRADeviceTaints": "..---++",
    "DRADeviceTaintRules": "....--+",
    "DRAConsumableCapacity": "...--++",
    "DRADeviceBindingConditions": "...--++",
    "DRAExtendedResource": "...--+L",
    "DRASchedulerFilterTimeout": "...++++",
    "DRAListTypeAttributes": ".....--",
    "DRANodeAllocatableResources": ".....--",
    "DRAResourcePoolStatus": ".....--",
    "DRAResourceClaimGranularStatusAuthorization": ".....++",
    "DRAWorkloadResourceClaims": ".....--",
    "DRAPartitionableDevicesType": "......-",
    "DRAOptionalNodeOperations": "......-",
    "DRADerivedAttributes": "......-",
    "DRADeviceCompatibilityGroups": "......-",
    # On only where the minimum compatibility version is 1.37 or later, which an ordinary server's is not.
    "DRAFractionalCapacityRange": "......-",
    "KubeletPodResourcesDynamicResources": "---++++",
    "ResourceHealthStatus": "-----++",
    "TaintTolerationComparisonOperators": "....---",
    "DeclarativeValidation": "..+++LL",
    # Of the scheduler's other plugins.
    "NodeDeclaredFeatures": "....-+L",
    "GenericWorkload": "....---",
    "GangScheduling": "....--.",
    "TopologyAwareWorkloadScheduling": ".....--",
    "WorkloadAwarePreemption": ".....-.",
    "PodLevelResources": ".--++++",
    "InPlacePodVerticalScaling": "--++LLL",
    "InPlacePodLevelResourcesVerticalScaling": "....-++",
    "VolumeLimitScaling": "....--+",
    "StorageCapacityScoring": "..----+",
}
_KEPS: Final[Mapping[str, int]] = {
    "DynamicResourceAllocation": 4381,
    "DRAAdminAccess": 5018,
    "DRAResourceClaimDeviceStatus": 4817,
    "DRAPrioritizedList": 4816,
    "DRAPartitionableDevices": 4815,
    "DRADeviceTaints": 5055,
    "DRADeviceTaintRules": 5055,
    "DRAConsumableCapacity": 5075,
    "DRADeviceBindingConditions": 5007,
    "DRAExtendedResource": 5004,
    "DRASchedulerFilterTimeout": 4381,
    "DRAListTypeAttributes": 5491,
    "DRANodeAllocatableResources": 5517,
    "DRAResourcePoolStatus": 5677,
    "DRAWorkloadResourceClaims": 5729,
    "DRAPartitionableDevicesType": 5677,
    "DRADerivedAttributes": 6080,
    "DRADeviceCompatibilityGroups": 5963,
    "TaintTolerationComparisonOperators": 5471,
    "NodeDeclaredFeatures": 5328,
    "GenericWorkload": 4671,
    "GangScheduling": 4671,
    "PodLevelResources": 2837,
    "InPlacePodVerticalScaling": 1287,
}


def kep_of(gate: str) -> int | None:
    """The number of the enhancement that a gate belongs to, where it is known."""
    return _KEPS.get(gate)


def gate_default(gate: str, release: Release) -> bool | None:
    """Whether the gate is on by default in a release; None if the release has no such gate.

    Raises:
        KeyError: no release has the gate.
    """
    state = _GATES[gate][_column(release)]
    return None if state == "." else state != "-"


def first_with(gate: str) -> Release:
    """The first release that has the gate on by default. Raises StopIteration if none has, KeyError if no such gate."""
    return next(release for release in MODELLED if gate_default(gate, release))


def gate_locked(gate: str, release: Release) -> bool:
    """Whether the gate cannot be switched off in a release. Raises KeyError for an unknown gate."""
    return _GATES[gate][_column(release)] == "L"


def default_features(release: Release) -> frozenset[str]:
    """The feature gates that are on by default in a release."""
    return frozenset(gate for gate in _GATES if gate_default(gate, release))


def known_gates() -> tuple[str, ...]:
    """Every feature gate of any release that affects devices or where pods run."""
    return tuple(_GATES)


def _column(release: Release) -> int:
    minor = release.minor if release.major == 1 else NEWEST_MODELLED.minor
    return min(max(minor, OLDEST_MODELLED.minor), NEWEST_MODELLED.minor) - OLDEST_MODELLED.minor


# Defects of Kubernetes releases that change what an allocator does, each with its upstream number. Those of the
# kubelet and of others are in behaviour.py.


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


def last_fix(release: Release) -> str:
    """The first patch of a minor release in which all defects are mended that any patch of it mends; empty if none."""
    patches = [each.fixed.get(release.minor, 0) for each in globals().values() if isinstance(each, Defect)]
    return f"{release}.{max(patches)}" if any(patches) else ""
