"""When the device taint eviction controller ends a pod after it has been given devices.

Source: pkg/controller/devicetainteviction in kube-controller-manager. It reads the tolerations of the allocation, and
of those only the ones whose effect is NoExecute; claims for extended resources it leaves alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from itertools import chain
from typing import Final, NamedTuple

from kubectl_dra.allocation.extended_resources import CLAIM_NAME
from kubectl_dra.allocation.features import Features
from kubectl_dra.api.claims import DeviceResult, ResourceClaim
from kubectl_dra.api.slices import Device, DeviceID, ResourceSlice, newest_slices
from kubectl_dra.api.taints import DeviceTaint, DeviceTaintRule, seconds_tolerated
from kubectl_dra.by_identity import ByIdentity
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.cluster.time_read import moment, parse

EFFECT: Final = "NoExecute"


class Eviction(NamedTuple):
    """The taint of a device that ends the pod, after so many seconds; 0: at once. ``tolerated``: for some time."""

    result: DeviceResult
    taint: DeviceTaint
    seconds: int
    tolerated: bool


class DeviceTaints:
    """The taints of a cluster's devices, as far as the gates let them count.

    ``rules``: the DeviceTaintRules that somebody sees, if not all.
    """

    def __init__(self, snapshot: Snapshot, features: Features, rules: Sequence[DeviceTaintRule] | None = None) -> None:
        self._drivers = _of_drivers(snapshot.slices) if features.device_taints else {}
        self._rules = () if not features.taint_rules else snapshot.taint_rules if rules is None else rules

    def of(self, device: DeviceID) -> Iterator[DeviceTaint]:
        """Those of one device: its driver's, then those of rules."""
        yield from self._drivers.get(device, ())
        yield from (rule.taint for rule in self._rules if rule.selects(*device))

    def any_with(self, effect: str) -> bool:
        """Whether a device may have one with this effect."""
        taints = (*chain.from_iterable(self._drivers.values()), *(rule.taint for rule in self._rules))
        return any(taint.effect == effect for taint in taints)


class Evictions:
    """The devices of a cluster whose taints end pods."""

    def __init__(self, snapshot: Snapshot, features: Features) -> None:
        self._now = moment(snapshot).at
        self._taints = DeviceTaints(snapshot, features)

    @property
    def possible(self) -> bool:
        """Whether there is any such device."""
        return self._taints.any_with(EFFECT)

    def first(self, claims: Iterable[ResourceClaim]) -> Eviction | None:
        """What ends a pod that has these claims, or gets them, first; None if it may stay."""
        results = (result for claim in claims if claim.metadata.name != CLAIM_NAME for result in claim.results)
        evictions = [self._of(result, taint) for result in results for taint in self._taints.of(result.device)]
        return min(
            (eviction for eviction in evictions if eviction is not None),
            key=lambda eviction: eviction.seconds,
            default=None,
        )

    def _of(self, result: DeviceResult, taint: DeviceTaint) -> Eviction | None:
        seconds = seconds_tolerated(taint, result.tolerations) if taint.effect == EFFECT else None
        if seconds is None:
            return None
        added = parse(taint.time_added) or self._now
        seconds_left = (added + timedelta(seconds=seconds) - self._now).total_seconds()
        return Eviction(result, taint, max(0, int(seconds_left)), seconds > 0)


def _of_drivers(slices: Iterable[ResourceSlice]) -> dict[DeviceID, tuple[DeviceTaint, ...]]:
    """The taints that drivers publish, of each pool's newest generation."""
    slices = tuple(slices)
    # Most devices share their lists with others.
    known = ByIdentity[Sequence[Device], bool]()

    def tainted(slice_: ResourceSlice) -> bool:
        return known.of(slice_.devices, lambda devices: any(device.taints for device in devices))

    if not any(map(tainted, slices)):
        return {}
    newest = (slice_ for entries in newest_slices(slices).values() for slice_ in filter(tainted, entries))
    return {
        DeviceID(*slice_.pool, device.name): device.taints
        for slice_ in newest
        for device in slice_.exact().devices
        if device.taints
    }
