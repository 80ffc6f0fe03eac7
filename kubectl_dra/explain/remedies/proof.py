"""What a run of the scheduler's attempt with a change has shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import Final, NamedTuple

from msgspec import Struct

from kubectl_dra.allocation.result import AllocationResult
from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.slices import DeviceID
from kubectl_dra.explain.phrase import Words


class PlacedDevice(NamedTuple):
    """A device that a request of a claim gets; for a shared device, how much of each capacity.

    ``claim`` is the claim's key in the form of ``ObjectMeta.key``.
    """

    claim: str
    request: str
    device: DeviceID
    consumed_capacity: Mapping[str, str] = {}


def placed_devices(claims: Sequence[ResourceClaim], results: Sequence[AllocationResult]) -> Iterator[PlacedDevice]:
    """The devices of claims, in the order of the results; one result per claim."""
    for claim, result in zip(claims, results, strict=True):
        for device in result.devices:
            yield PlacedDevice(
                claim.key,
                device["request"],
                DeviceID(device["driver"], device["pool"], device["device"]),
                device.get("consumedCapacity", {}),
            )


class Tried(Enum):
    """What was changed for a proof."""

    CHANGE = "the-change"
    """The change that the proof belongs to."""
    WITHOUT_TERM = "without-the-term"
    WITHOUT_REQUEST = "without-the-request"
    CLAIM_PER_REQUEST = "a-claim-for-each-request"


NEW_NODE: Final = "the new node"
"""Stands for the node of a proof that does not exist yet."""


class OtherRequest(NamedTuple):
    """A request, its claim's key, and both in words that are clear here."""

    request: str
    claim: str
    place: Words


class Beside(Struct, frozen=True):
    """What a proof rests on beside its change.

    Of other requests that fail by themselves, those ``changed`` had their own fixes made, those ``aside`` were left
    out. ``causes`` are codes of causes that have nothing to do with devices. What was left out, and
    these causes, keep the pod waiting all the same.
    """

    changed: tuple[OtherRequest, ...] = ()
    aside: tuple[OtherRequest, ...] = ()
    causes: tuple[str, ...] = ()


class Proof(Struct, frozen=True):
    """A scheduler's attempt with a change: the first node that then accepts the pod, and the devices there.

    ``filters``: a pod was tried, with all filters of the scheduler; otherwise only the allocation of the claims.
    ``like`` is the node of which a copy was tried; then ``node`` is ``NEW_NODE``. ``request`` is the one that was left
    out. ``beside`` is what else the pod needs, if anything.
    """

    node: str
    devices: tuple[PlacedDevice, ...] = ()
    filters: bool = False
    tried: Tried = Tried.CHANGE
    request: str = ""
    like: str = ""
    beside: Beside | None = None
