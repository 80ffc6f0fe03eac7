"""What a search works on: requests prepared for it, the node's devices, its budget, and its observer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from msgspec import Struct, field

from kubectl_dra.allocation.budgets import Budget
from kubectl_dra.allocation.capacity import CapacityShortage, fault
from kubectl_dra.allocation.counters import CounterShortage, GroupClash
from kubectl_dra.allocation.errors import AllocationCheck, AllocationError, ErrorDetail
from kubectl_dra.allocation.features import Features, KnownDefects
from kubectl_dra.allocation.pools import NodePools, Pool, scope_matches
from kubectl_dra.allocation.selectors import SelectorList, Selectors
from kubectl_dra.allocation.state import AllocatedState
from kubectl_dra.api.claims import ALL, EXACT_COUNT, DeviceClass, DeviceRequest, Request, ResourceClaim
from kubectl_dra.api.labels import InvalidNodeSelector
from kubectl_dra.api.limits import MAX_RESULTS
from kubectl_dra.api.nodes import Node
from kubectl_dra.api.quantity import Quantity
from kubectl_dra.api.slices import Device, DeviceID, ResourceSlice


class Alternative(Struct, frozen=True):
    """One way to satisfy a request: the exact request, or one subrequest.

    ``claim``, ``request`` and ``position`` are indices, together ``indices``. ``listed`` holds, in mode All,
    the positions of the devices that must all be taken; it is None in mode ExactCount.
    """

    indices: tuple[int, int, int]
    claim: int
    request: int
    position: int
    parent: Request
    spec: DeviceRequest
    device_class: DeviceClass
    selectors: tuple[SelectorList, SelectorList]
    result_name: str
    listed: tuple[int, ...] | None = None

    @property
    def needed(self) -> int:
        """Number of devices that it takes."""
        return self.spec.count if self.listed is None else len(self.listed)

    @property
    def subrequest(self) -> str:
        """The subrequest's name, empty for an exact request."""
        return self.spec.name if self.parent.first_available else ""


PreparedClaim = tuple[tuple[Alternative, ...], ...]
"""Per request its alternatives, in spec order."""


def prepare_alternative(
    claim: ResourceClaim,
    indices: tuple[int, int, int],
    request: Request,
    spec: DeviceRequest,
    classes: Mapping[str, DeviceClass],
    features: Features,
) -> Alternative:
    """Check one request or subrequest, as far as that needs no devices.

    Raises:
        AllocationError: fatal for the pod, with the scheduler's text.
    """
    subject = f"claim {claim.key}, request {spec.name}"
    if spec.derived_attributes and not features.derived_attributes:
        text = "cannot handle request with derived attributes, the feature is disabled"
        raise _disabled(subject, f"{subject}: {text}", "DRADerivedAttributes")
    for index, expression in enumerate(spec.selectors):
        if expression is None:
            raise AllocationError(
                f"{subject}, selector #{index}: CEL expression empty (unsupported selector type?)",
                check=AllocationCheck.SELECTOR_EMPTY,
                subject=subject,
            )
    if spec.admin_access is not None and not features.admin_access:
        text = "admin access is requested, but the feature is disabled"
        raise _disabled(subject, f"{subject}: {text}", "DRAAdminAccess")
    if not spec.device_class:
        raise AllocationError(
            f"{subject}: missing device class name (unsupported request type?)",
            check=AllocationCheck.CLASS_UNNAMED,
            subject=subject,
        )
    device_class = classes.get(spec.device_class)
    if device_class is None:
        raise AllocationError(
            f"{subject}: could not retrieve device class {spec.device_class}: "
            f'deviceclass.resource.k8s.io "{spec.device_class}" not found',
            check=AllocationCheck.CLASS_MISSING,
            subject=spec.device_class,
        )
    if spec.allocation_mode not in (EXACT_COUNT, ALL):
        raise AllocationError(
            f"{subject}: unsupported count mode {spec.allocation_mode}",
            check=AllocationCheck.MODE_UNKNOWN,
            subject=subject,
        )
    return Alternative(
        indices=indices,
        claim=indices[0],
        request=indices[1],
        position=indices[2],
        parent=request,
        spec=spec,
        device_class=device_class,
        selectors=(
            SelectorList(f"class {device_class.name}", device_class.selectors, device_class.name),
            SelectorList(f"claim {claim.key}", spec.selectors, claim=claim.key),
        ),
        result_name=request.result_name(spec),
    )


def check_request(claim: ResourceClaim, request: Request, features: Features) -> None:
    """Check a request before its alternatives.

    Raises:
        AllocationError: a prioritized list with the feature off, or a request of an unknown kind.
    """
    subject = f"claim {claim.key}, request {request.name}"
    if request.first_available and not features.prioritized_list:
        text = "has subrequests, but the DRAPrioritizedList feature is disabled"
        raise _disabled(subject, f"{subject}: {text}", "DRAPrioritizedList")
    if not features.consumable_capacity and (features.loose_pools or not features.stable):
        for spec in request.alternatives():
            if spec.capacity is not None:
                sub = request.first_available and not features.loose_pools
                part = f"subrequest {spec.name}" if sub else f"request {request.name}"
                text = "has capacity requests, but the DRAConsumableCapacity feature is disabled"
                raise _disabled(subject, f"claim {claim.key}, {part}: {text}", "DRAConsumableCapacity")
    if not request.alternatives():
        raise AllocationError(f"{subject}: unknown request type", check=AllocationCheck.REQUEST_KIND, subject=subject)


def _disabled(subject: str, text: str, gate: str) -> AllocationError:
    return AllocationError(text, check=AllocationCheck.FEATURE_DISABLED, subject=subject, detail=ErrorDetail(gate=gate))


def check_size(claim: ResourceClaim, prepared: PreparedClaim, defects: KnownDefects) -> None:
    """Check that these requests of the claim need no more devices than one allocation may hold.

    Raises:
        AllocationError: more than 32 devices.
    """
    needed = [min(alternative.needed for alternative in alternatives) for alternatives in prepared]
    fewest = sum(needed)
    if fewest <= MAX_RESULTS:
        return
    text = f"claim {claim.key}: number of requested devices {fewest} exceeds the claim limit of {MAX_RESULTS}"
    if not defects.devices_of_claim_summed:
        text = (
            f"claim {claim.key}, request {prepared[-1][0].parent.name}: adding {needed[-1]} devices exceeds the claim "
            f"limit of {MAX_RESULTS}, with {fewest - needed[-1]} already accounted for"
        )
    raise AllocationError(
        text, check=AllocationCheck.TOO_MANY_DEVICES, subject=claim.key, detail=ErrorDetail(claim.key)
    )


def check_constraints(claim: ResourceClaim, features: Features) -> None:
    """Check that each constraint is of a known kind.

    Raises:
        AllocationError: a constraint with neither attribute, or distinctAttribute where it is unknown.
    """
    for index, constraint in enumerate(claim.constraints):
        if constraint.match_attribute or (constraint.distinct_attribute and not features.stable):
            continue
        raise AllocationError(
            f"claim {claim.key}, constraint #{index}: empty constraint (unsupported constraint type?)",
            check=AllocationCheck.CONSTRAINT_KIND,
            subject=claim.key,
            detail=ErrorDetail(claim.key),
        )


# The validation stage of an attempt: prepares claims, requests and subrequests for the search.


class CandidateDevice(NamedTuple):
    """A device of a usable pool on the node, in the order in which devices are tried."""

    position: int
    device: Device
    id: DeviceID
    pool: Pool
    slice: ResourceSlice
    shareable: bool


class PickedDevice(Struct, frozen=True):
    """A device picked for an alternative; ``consumed`` is None for a device that is not shareable.

    ``shared_before``: the pod already had a share of the device.
    """

    alternative: Alternative
    candidate: CandidateDevice
    consumed: dict[str, Quantity] | None
    charged: bool
    shared_before: bool


Lack = CapacityShortage | CounterShortage | GroupClash
"""What a device lacks because of others that were picked or are in use."""


class Observer(Protocol):
    """Learns of each device that the search refuses for what it lacks."""

    def lacks(self, alternative: Alternative, candidate: CandidateDevice, lack: Lack) -> None: ...


class SearchContext(Struct):
    """What stays constant during an attempt on one node.

    Where an invalid pool ends the search, ``barrier`` has the first one, and how many candidates come before it.
    """

    node: Node
    features: Features
    defects: KnownDefects
    selectors: Selectors
    state: AllocatedState
    candidates: Sequence[CandidateDevice]
    budget: Budget
    observer: Observer | None = None
    barrier: tuple[int, Pool] | None = None
    _selectable: dict[tuple[int, int, int], list[bool | None]] = field(default_factory=dict)

    @property
    def lacks_node_operations(self) -> bool:
        """Whether devices that skip operations on their node are refused here."""
        features = self.features
        return features.experimental and not (features.node_operations and self.node.skips_operations)

    def selectable(self, alternative: Alternative, candidate: CandidateDevice, *, listing: bool = False) -> bool:
        """Whether class, request and node scope admit the device; computed once per attempt.

        Raises:
            AllocationError: a selector fails on the device.
        """
        answers = self._selectable.get(alternative.indices)
        if answers is None:
            answers = self._selectable[alternative.indices] = [None] * len(self.candidates)
        answer = answers[candidate.position]
        if answer is None:
            answer = answers[candidate.position] = self._selects(alternative, candidate, listing)
        return answer

    def _selects(self, alternative: Alternative, candidate: CandidateDevice, listing: bool) -> bool:
        if not self._admits(alternative, candidate):
            return False
        # The scheduler looks at the capacity next. What cannot be computed is fatal whatever else is taken.
        if self.features.consumable_capacity and not self.defects.capacity_wraps:
            why = fault(candidate.device, alternative.spec.capacity, fractional=self.features.fractional_capacity)
            if why:
                owner = f"{alternative.selectors[1].owner}, request {alternative.spec.name}"
                name = candidate.id.device if listing else candidate.id
                message = f"{owner}: checking capacity for device {name}: {why}"
                raise AllocationError(message, check=AllocationCheck.CAPACITY_FAULT, subject=str(candidate.id))
        return True

    def _admits(self, alternative: Alternative, candidate: CandidateDevice) -> bool:
        device = candidate.device
        if device.binding_conditions and not self.features.binding_conditions:
            return False
        named = self.features.errors_name_device
        for selector_list in alternative.selectors:
            if not selector_list.admits(self.selectors, device, candidate.id, named=named):
                return False
        if not candidate.slice.per_device_node_selection:
            return True
        try:
            return scope_matches(device.scope, self.node)
        except InvalidNodeSelector as error:
            raise AllocationError(
                str(error), check=AllocationCheck.DEVICE_NODE_SELECTOR, subject=str(candidate.id)
            ) from error


def barrier(pools: NodePools, features: Features) -> tuple[int, Pool] | None:
    """The first invalid pool, and how many candidates come before it; None where the search passes it over."""
    if not features.loose_pools:
        return None
    before = 0
    for pool in pools.pools:
        if pool.invalid:
            return before, pool
        before += sum(len(slice_.devices) for slice_ in pool.slices)
    return None


def candidates(pools: NodePools, features: Features) -> tuple[CandidateDevice, ...]:
    """The devices of usable pools, in the order in which the scheduler tries them."""
    out: list[CandidateDevice] = []
    sharing = features.consumable_capacity
    for pool in pools.pools:
        if not pool.usable:
            continue
        driver, name = pool.id
        for slice_ in pool.slices:
            for device, own in zip(slice_.devices, slice_.names, strict=True):
                shareable = sharing and device.allow_multiple_allocations
                out.append(CandidateDevice(len(out), device, DeviceID(driver, name, own), pool, slice_, shareable))
    return tuple(out)
