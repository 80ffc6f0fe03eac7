"""Kubernetes releases, and what each has of resource.k8s.io: versions, kinds, feature gates.

As of 2026-11, releases 1.26 to 1.37 are known. Later releases are assumed to be like 1.37, minus the
announced removals.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from msgspec import Struct

from kubectl_dra.api.meta import kind_plural

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
        return (known for known in self if known > release.without_patch)


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

    Raises ValueError: the text is not a release.
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
PLURALS: Final[Mapping[str, str]] = {life.kind: kind_plural(life.kind).lower() for life in LIFECYCLES}


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

    Raises KeyError: no release has the gate.
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


REMOVED_VERSIONS: Final[Mapping[tuple[str, str], str]] = {
    ("apps", "v1beta1"): "1.16",
    ("apps", "v1beta2"): "1.16",
    ("batch", "v2alpha1"): "1.21",
    ("batch", "v1beta1"): "1.25",
}
"""Versions of built-in groups that were served once, each with the release that no longer does."""
