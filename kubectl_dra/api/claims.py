"""ResourceClaims, their requests and allocations, and ResourceClaimTemplates, in their v1 shape."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from kubectl_dra.api.dra_fields import read_names
from kubectl_dra.api.labels import InvalidNodeSelector
from kubectl_dra.api.meta import EMPTY, JSONObject, ObjectMeta, Wire
from kubectl_dra.api.nodes import Node, NodeSelector
from kubectl_dra.api.quantity import Quantity
from kubectl_dra.api.slices import DeviceID
from kubectl_dra.api.taints import DeviceToleration

# DeviceClasses and CEL selectors, in their v1 shape.


class DeviceClass(Struct, frozen=True, gc=False):
    """A v1 DeviceClass. A selector is its CEL text, or None for an entry without ``cel``."""

    metadata: ObjectMeta
    selectors: tuple[str | None, ...]
    config: tuple[JSONObject, ...]
    extended_resource_name: str = ""

    @classmethod
    def from_json(cls, raw: JSONObject) -> DeviceClass:
        spec = raw.get("spec") or EMPTY
        return cls(
            metadata=ObjectMeta.from_json(raw.get("metadata") or EMPTY),
            selectors=selectors_from_json(spec.get("selectors")),
            config=tuple(spec.get("config") or ()),
            extended_resource_name=spec.get("extendedResourceName") or "",
        )

    @property
    def name(self) -> str:
        return self.metadata.name


def selectors_from_json(raw: Any) -> tuple[str | None, ...]:
    """The CEL expressions of a ``selectors`` list, None for an entry without ``cel``."""
    return tuple(
        (selector["cel"] or EMPTY).get("expression") or "" if selector and selector.get("cel") is not None else None
        for selector in raw or ()
    )


EXACT_COUNT = "ExactCount"
ALL = "All"


class DeviceRequest(Struct, frozen=True, gc=False):
    """What is requested: the content of ``exactly``, or one subrequest of ``firstAvailable``.

    ``admin_access`` is None if the field is absent.
    ``derived_attributes`` maps the names of attributes that constraints compare to expressions on a device (1.37).
    """

    name: str
    device_class: str
    selectors: tuple[str | None, ...] = ()
    allocation_mode: str = EXACT_COUNT
    count: int = 1
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: Mapping[str, Quantity] | None = None
    derived_attributes: Mapping[str, str] = EMPTY
    unmodelled: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, raw: JSONObject, name: str = "") -> DeviceRequest:
        """Read ``exactly`` (with the request's name) or a subrequest, applying the API's defaults."""
        mode = raw.get("allocationMode") or EXACT_COUNT
        count = int(raw.get("count") or 0)
        capacity = raw.get("capacity")
        return cls(
            name=name or raw.get("name") or "",
            device_class=raw.get("deviceClassName") or "",
            selectors=selectors_from_json(raw.get("selectors")),
            allocation_mode=mode,
            count=1 if mode == EXACT_COUNT and count == 0 else count,
            admin_access=raw.get("adminAccess"),
            tolerations=tuple(DeviceToleration.from_json(toleration) for toleration in raw.get("tolerations") or ()),
            capacity=None
            if capacity is None
            else {key: Quantity.parse(value) for key, value in (capacity.get("requests") or EMPTY).items()},
            derived_attributes={
                derived.get("name") or "": derived.get("expression") or ""
                for derived in raw.get("derivedAttributes") or ()
            }
            or EMPTY,
            unmodelled=tuple(sorted(raw.keys() - _REQUEST_KEYS)),
        )


_REQUEST_KEYS: Final = read_names("DeviceSubRequest") | read_names("ExactDeviceRequest")
_CLAIM_KEYS: Final = read_names("DeviceClaim")


class Request(Struct, frozen=True, gc=False):
    """One entry of ``spec.devices.requests``: ``exactly``, or a list of subrequests, or neither."""

    name: str
    exactly: DeviceRequest | None
    first_available: tuple[DeviceRequest, ...] = ()

    @classmethod
    def from_json(cls, raw: JSONObject) -> Request:
        name = raw.get("name") or ""
        exactly = raw.get("exactly")
        return cls(
            name=name,
            exactly=None if exactly is None else DeviceRequest.from_json(exactly, name),
            first_available=tuple(DeviceRequest.from_json(sub) for sub in raw.get("firstAvailable") or ()),
        )

    def alternatives(self) -> tuple[DeviceRequest, ...]:
        """The subrequests or the one exact request, in the order in which they are tried."""
        if self.first_available:
            return self.first_available
        return () if self.exactly is None else (self.exactly,)

    def result_name(self, alternative: DeviceRequest) -> str:
        """The name in results: ``request``, or ``request/subrequest``."""
        return f"{self.name}/{alternative.name}" if self.first_available else self.name


class DeviceConstraint(Wire, frozen=True):
    """A constraint of a claim. Without ``requests`` it covers all of them."""

    requests: tuple[str, ...] = ()
    match_attribute: str = ""
    distinct_attribute: str = ""

    @property
    def attribute(self) -> str:
        """The attribute that it compares."""
        return self.match_attribute or self.distinct_attribute

    def covers(self, request: str, subrequest: str = "") -> bool:
        """Whether devices of this request (and chosen subrequest) fall under the constraint."""
        if not self.requests or request in self.requests:
            return True
        return bool(subrequest) and f"{request}/{subrequest}" in self.requests

    def __str__(self) -> str:
        kind, attribute = (
            ("matchAttribute", self.match_attribute)
            if self.match_attribute
            else ("distinctAttribute", self.distinct_attribute)
        )
        return f"{kind} {attribute}"


class DeviceResult(Struct, frozen=True, gc=False):
    """One device of an allocation (``status.allocation.devices.results[]``)."""

    request: str
    device: DeviceID
    admin_access: bool = False
    share_id: str = ""
    consumed_capacity: Mapping[str, Quantity] = field(default_factory=dict)
    tolerations: tuple[DeviceToleration, ...] = ()
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    skip_node_operations: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, raw: JSONObject) -> DeviceResult:
        return cls(
            request=raw.get("request") or "",
            device=DeviceID(raw.get("driver") or "", raw.get("pool") or "", raw.get("device") or ""),
            admin_access=bool(raw.get("adminAccess")),
            share_id=raw.get("shareID") or "",
            consumed_capacity={
                key: Quantity.parse(value) for key, value in (raw.get("consumedCapacity") or EMPTY).items()
            },
            tolerations=tuple(DeviceToleration.from_json(toleration) for toleration in raw.get("tolerations") or ()),
            binding_conditions=tuple(raw.get("bindingConditions") or ()),
            binding_failure_conditions=tuple(raw.get("bindingFailureConditions") or ()),
            skip_node_operations=tuple(raw.get("skipNodeOperations") or ()),
        )


class Allocation(Struct, frozen=True, gc=False):
    """``status.allocation`` of a claim. Without ``node_selector`` it is usable on every node."""

    results: tuple[DeviceResult, ...]
    node_selector: NodeSelector | None
    timestamp: str = ""

    def usable_on(self, node: Node) -> bool:
        """Whether the devices can be used on the node. A selector that cannot be parsed matches no node."""
        if any(result.skip_node_operations for result in self.results) and not node.skips_operations:
            return False
        try:
            return self.node_selector is None or self.node_selector.matches(node)
        except InvalidNodeSelector:
            return False

    @classmethod
    def from_json(cls, raw: JSONObject) -> Allocation:
        selector = raw.get("nodeSelector")
        devices = raw.get("devices") or EMPTY
        return cls(
            results=tuple(DeviceResult.from_json(result) for result in devices.get("results") or ()),
            node_selector=None if selector is None else NodeSelector.from_json(selector),
            timestamp=raw.get("allocationTimestamp") or "",
        )


class Consumer(Wire, frozen=True):
    """One entry of ``status.reservedFor``."""

    resource: str = ""
    name: str = ""
    uid: str = ""
    api_group: str = ""

    @property
    def is_pod(self) -> bool:
        """Whether it is a pod, and not a group of pods or something else."""
        return self.resource == "pods" and not self.api_group

    def __str__(self) -> str:
        """For people: ``pod train-0``, ``podgroups workers``."""
        return f"{'pod' if self.resource == 'pods' else self.resource} {self.name}"


class DeviceStatus(Struct, frozen=True, gc=False):
    """One entry of ``status.devices``: what a driver reports about an allocated device."""

    device: DeviceID
    share_id: str
    conditions: tuple[JSONObject, ...]

    @classmethod
    def from_json(cls, raw: JSONObject) -> DeviceStatus:
        return cls(
            device=DeviceID(raw.get("driver") or "", raw.get("pool") or "", raw.get("device") or ""),
            share_id=raw.get("shareID") or "",
            conditions=tuple(raw.get("conditions") or ()),
        )


class ResourceClaim(Struct, frozen=True, gc=False):
    """A v1 ResourceClaim: its requests, constraints and config, and the content of its status."""

    metadata: ObjectMeta
    requests: tuple[Request, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[JSONObject, ...] = ()
    allocation: Allocation | None = None
    reserved_for: tuple[Consumer, ...] = ()
    device_statuses: tuple[DeviceStatus, ...] = ()
    unmodelled: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, raw: JSONObject) -> ResourceClaim:
        """Read a v1 ResourceClaim (convert older versions first)."""
        status = raw.get("status") or EMPTY
        allocation = status.get("allocation")
        return cls(
            metadata=ObjectMeta.from_json(raw.get("metadata") or EMPTY),
            allocation=None if allocation is None else Allocation.from_json(allocation),
            reserved_for=tuple(Consumer.from_json(consumer) for consumer in status.get("reservedFor") or ()),
            device_statuses=tuple(
                DeviceStatus.from_json(device_status) for device_status in status.get("devices") or ()
            ),
            **spec_fields(raw.get("spec") or EMPTY),
        )

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return self.metadata.key

    @property
    def results(self) -> tuple[DeviceResult, ...]:
        """The devices that it has; none before it is allocated."""
        return self.allocation.results if self.allocation is not None else ()

    @property
    def devices(self) -> list[DeviceID]:
        """The devices that it has, as often as it has them."""
        return [result.device for result in self.results]

    def reported(self, result: DeviceResult) -> dict[str, JSONObject]:
        """What drivers say of one of its devices: conditions of ``status.devices``, by type."""
        return {
            condition.get("type") or "": condition
            for entry in self.device_statuses
            if entry.device == result.device and entry.share_id == result.share_id
            for condition in entry.conditions
        }

    def alternatives(self) -> Iterator[DeviceRequest]:
        """All requests and subrequests, in their order."""
        return (spec for request in self.requests for spec in request.alternatives())

    def deallocated(self) -> ResourceClaim:
        """The claim without its devices. The server drops what drivers said of them as well."""
        return replace(self, allocation=None, reserved_for=(), device_statuses=())


def devices_of(claims: Iterable[ResourceClaim]) -> Iterator[DeviceID]:
    """The devices that claims have, in their order."""
    return (device for claim in claims for device in claim.devices)


class ResourceClaimTemplate(Struct, frozen=True, gc=False):
    """A v1 ResourceClaimTemplate."""

    metadata: ObjectMeta
    spec: JSONObject
    claim_metadata: JSONObject

    @classmethod
    def from_json(cls, raw: JSONObject) -> ResourceClaimTemplate:
        spec = raw.get("spec") or EMPTY
        return cls(
            metadata=ObjectMeta.from_json(raw.get("metadata") or EMPTY),
            spec=spec.get("spec") or EMPTY,
            claim_metadata=spec.get("metadata") or EMPTY,
        )

    def claim(self, name: str, namespace: str) -> ResourceClaim:
        """The unallocated claim that the resource claim controller would create from this template."""
        return ResourceClaim(
            metadata=ObjectMeta(
                name=name,
                namespace=namespace,
                labels=self.claim_metadata.get("labels") or {},
                annotations=self.claim_metadata.get("annotations") or {},
            ),
            **spec_fields(self.spec),
        )


def spec_fields(spec: JSONObject) -> dict[str, Any]:
    devices = spec.get("devices") or EMPTY
    return {
        "requests": tuple(Request.from_json(request) for request in devices.get("requests") or ()),
        "constraints": tuple(DeviceConstraint.from_json(constraint) for constraint in devices.get("constraints") or ()),
        "config": tuple(devices.get("config") or ()),
        "unmodelled": tuple(sorted(devices.keys() - _CLAIM_KEYS)),
    }
