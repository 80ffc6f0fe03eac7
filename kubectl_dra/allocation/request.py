"""The validation stage of an attempt: prepares claims, requests and subrequests for the search."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from kubectl_dra.allocation.errors import AllocationCheck, AllocationError, ErrorDetail
from kubectl_dra.allocation.features import Features, KnownDefects
from kubectl_dra.allocation.selectors import SelectorList
from kubectl_dra.api.claims import ALL, EXACT_COUNT, DeviceClass, DeviceRequest, Request, ResourceClaim
from kubectl_dra.api.limits import MAX_RESULTS


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
    """AllocationCheck one request or subrequest, as far as that needs no devices.

    Raises:
        AllocationError: fatal for the pod, with the scheduler's text.
    """
    subject = f"claim {claim.key}, request {spec.name}"
    if spec.derived_attributes and not features.derived_attributes:
        raise AllocationError(
            f"{subject}: cannot handle request with derived attributes, the feature is disabled",
            check=AllocationCheck.FEATURE_DISABLED,
            subject=subject,
            detail=ErrorDetail(gate="DRADerivedAttributes"),
        )
    for index, expression in enumerate(spec.selectors):
        if expression is None:
            raise AllocationError(
                f"{subject}, selector #{index}: CEL expression empty (unsupported selector type?)",
                check=AllocationCheck.SELECTOR_EMPTY,
                subject=subject,
            )
    if spec.admin_access is not None and not features.admin_access:
        raise AllocationError(
            f"{subject}: admin access is requested, but the feature is disabled",
            check=AllocationCheck.FEATURE_DISABLED,
            subject=subject,
            detail=ErrorDetail(gate="DRAAdminAccess"),
        )
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
    """AllocationCheck a request before its alternatives.

    Raises:
        AllocationError: a prioritized list with the feature off, or a request of an unknown kind.
    """
    subject = f"claim {claim.key}, request {request.name}"
    if request.first_available and not features.prioritized_list:
        raise AllocationError(
            f"{subject}: has subrequests, but the DRAPrioritizedList feature is disabled",
            check=AllocationCheck.FEATURE_DISABLED,
            subject=subject,
            detail=ErrorDetail(gate="DRAPrioritizedList"),
        )
    if not features.consumable_capacity and (features.loose_pools or not features.stable):
        for spec in request.alternatives():
            if spec.capacity is not None:
                sub = request.first_available and not features.loose_pools
                part = f"subrequest {spec.name}" if sub else f"request {request.name}"
                raise _no_capacity(claim, part, subject)
    if not request.alternatives():
        raise AllocationError(f"{subject}: unknown request type", check=AllocationCheck.REQUEST_KIND, subject=subject)


def _no_capacity(claim: ResourceClaim, part: str, subject: str) -> AllocationError:
    return AllocationError(
        f"claim {claim.key}, {part}: has capacity requests, but the DRAConsumableCapacity feature is disabled",
        check=AllocationCheck.FEATURE_DISABLED,
        subject=subject,
        detail=ErrorDetail(gate="DRAConsumableCapacity"),
    )


def check_size(claim: ResourceClaim, prepared: PreparedClaim, defects: KnownDefects) -> None:
    """AllocationCheck that these requests of the claim need no more devices than one allocation may hold.

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
    """AllocationCheck that each constraint is of a known kind.

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
