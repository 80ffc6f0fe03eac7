"""ResourceSlices, their devices and shared counters, in their v1 shape."""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterable, Mapping, Sequence, Set
from typing import Any, Final, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from kubectl_dra.api.dra_fields import read_names
from kubectl_dra.api.meta import EMPTY, JSONObject
from kubectl_dra.api.nodes import NodeSelector
from kubectl_dra.api.quantity import Quantity
from kubectl_dra.api.shared_devices import NAMES, PerDeviceColumn, PerDeviceTexts
from kubectl_dra.api.taints import DeviceTaint


class DeviceID(NamedTuple):
    """The identity of a device: driver, pool and device name, regardless of the generation."""

    driver: str
    pool: str
    device: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}/{self.device}"


class PoolID(NamedTuple):
    """A pool: all ResourceSlices of one driver and pool name."""

    driver: str
    name: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.name}"


Counters = Mapping[str, Quantity]


NO_GROUPS: Final[frozenset[str]] = frozenset()


class CounterConsumption(Struct, frozen=True, gc=False):
    """What a device takes from one counter set (``consumesCounters[]``).

    Devices can be in use together only if a ``group`` is common to all that take from the set, or none has one (1.37).
    """

    counter_set: str
    counters: Counters
    groups: frozenset[str] = NO_GROUPS


class CounterSet(Struct, frozen=True, gc=False):
    """Counters that several devices of a pool share (``sharedCounters[]``)."""

    name: str
    counters: Counters


class NodeScope(Struct, frozen=True, gc=False):
    """Where a slice or a device is usable. The first field that is set decides; see allocation.pools."""

    node_name: str = ""
    node_selector: NodeSelector | None = None
    all_nodes: bool = False

    @classmethod
    def from_json(cls, raw: JSONObject) -> NodeScope:
        selector = raw.get("nodeSelector")
        return cls(
            node_name=raw.get("nodeName") or "",
            node_selector=None if selector is None else NodeSelector.from_json(selector),
            all_nodes=bool(raw.get("allNodes")),
        )

    @property
    def empty(self) -> bool:
        """Whether the scope names no node at all."""
        return not self.node_name and self.node_selector is None and not self.all_nodes

    def __str__(self) -> str:
        if self.node_name:
            return f"node {self.node_name}"
        if self.all_nodes:
            return "all nodes"
        if self.node_selector is not None:
            return f"nodes with {self.node_selector}"
        return "no node"


NOWHERE = NodeScope()


class NodeResource(Struct, frozen=True, gc=False):
    """What a device takes of one of its node's own resources (``nodeAllocatableResources[name]``, alpha in 1.37).

    ``mapped``: the device stands for part of the resource: ``multiplier`` times what is consumed of ``capacity``, or
    once for the device if no capacity is named. ``per_pod`` and ``per_container`` come on top, for each pod and for
    each of its containers that uses the claim.
    """

    name: str
    mapped: bool = False
    capacity: str = ""
    multiplier: Quantity | None = None
    per_pod: Quantity | None = None
    per_container: Quantity | None = None

    @classmethod
    def from_json(cls, name: str, raw: JSONObject) -> NodeResource:
        mapping, overhead = raw.get("mapping"), raw.get("overhead") or EMPTY
        amounts = mapping or EMPTY
        capacity = amounts.get("capacityKey") or ""
        return cls(
            name=name,
            mapped=mapping is not None,
            capacity=capacity,
            multiplier=_quantity(amounts.get("capacityMultiplier" if capacity else "deviceMultiplier")),
            per_pod=_quantity(overhead.get("perPod")),
            per_container=_quantity(overhead.get("perContainer")),
        )


def _quantity(written: Any) -> Quantity | None:
    return None if written is None else Quantity.parse(written)


class Device(Struct, frozen=True, gc=False):
    """One device as published.

    ``attributes`` maps a qualified name to the API's one-of (``{"string": "A100"}``); ``capacity`` maps a
    name to ``{"value": …, "requestPolicy": …}``. A name without ``/`` belongs to the driver's domain.
    """

    driver: str
    name: str
    attributes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    capacity: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    allow_multiple_allocations: bool = False
    consumes_counters: tuple[CounterConsumption, ...] = ()
    scope: NodeScope = NOWHERE
    taints: tuple[DeviceTaint, ...] = ()
    binds_to_node: bool = False
    binding_conditions: tuple[str, ...] | None = None
    binding_failure_conditions: tuple[str, ...] | None = None
    unmodelled: tuple[str, ...] = ()
    node_resources: tuple[NodeResource, ...] = ()

    def with_attributes(self, attributes: Mapping[str, Mapping[str, Any]]) -> Device:
        """The device with other attributes. Much faster than ``dataclasses.replace``."""
        return Device(
            self.driver,
            self.name,
            attributes,
            self.capacity,
            self.allow_multiple_allocations,
            self.consumes_counters,
            self.scope,
            self.taints,
            self.binds_to_node,
            self.binding_conditions,
            self.binding_failure_conditions,
            self.unmodelled,
            self.node_resources,
        )

    @classmethod
    def from_json(cls, driver: str, raw: JSONObject) -> Device:
        """Read one entry of ``spec.devices`` of a v1 slice."""
        name = raw.get("name") or ""
        attributes = raw.get("attributes") or EMPTY
        capacity = raw.get("capacity") or EMPTY
        if raw.keys() <= _PLAIN_KEYS:
            return cls(driver, name, attributes, capacity)
        conditions = raw.get("bindingConditions")
        failures = raw.get("bindingFailureConditions")
        return cls(
            driver=driver,
            name=name,
            attributes=attributes,
            capacity=capacity,
            allow_multiple_allocations=bool(raw.get("allowMultipleAllocations")),
            consumes_counters=tuple(
                CounterConsumption(
                    consumption.get("counterSet") or "",
                    _counters(consumption.get("counters")),
                    frozenset(consumption.get("compatibilityGroups") or NO_GROUPS),
                )
                for consumption in raw.get("consumesCounters") or ()
            ),
            scope=NodeScope.from_json(raw),
            taints=tuple(DeviceTaint.from_json(taint) for taint in raw.get("taints") or ()),
            binds_to_node=bool(raw.get("bindsToNode")),
            binding_conditions=None if conditions is None else tuple(conditions),
            binding_failure_conditions=None if failures is None else tuple(failures),
            unmodelled=tuple(sorted(raw.keys() - _DEVICE_KEYS | _unknown_in_consumption(raw))),
            node_resources=tuple(
                NodeResource.from_json(key, resource or EMPTY)
                for key, resource in sorted((raw.get("nodeAllocatableResources") or EMPTY).items())
            ),
        )


_PLAIN_KEYS = frozenset(("name", "attributes", "capacity"))
_DEVICE_KEYS: Final = read_names("Device")
MAPPINGS: Final = "nodeAllocatableResourceMappings"
"""What devices take of their node as 1.36 wrote it, which is not modelled: it concerns only who gets such a device."""
_SLICE_KEYS: Final = read_names("ResourceSliceSpec")
_CONSUMPTION_KEYS: Final = read_names("DeviceCounterConsumption")


def _unknown_in_consumption(device: JSONObject) -> set[str]:
    """Restrictions on the use of counters that are not modelled."""
    return {
        f"consumesCounters[].{name}"
        for consumption in device.get("consumesCounters") or ()
        for name, value in consumption.items()
        if name not in _CONSUMPTION_KEYS and value
    }


class ResourceSlice(Struct, frozen=True, gc=False):
    """One v1 ResourceSlice. ``per_device_node_selection`` is None if the field is absent.

    ``skip_node_operations``: what the kubelet need not do for its devices, if it knows how to omit that (1.37).

    Large snapshots share one tuple of devices among slices that differ only in ``individual``. The shared
    devices carry another slice's values of these columns, and no names if NAMES is one; ``exact`` gives its own.
    """

    name: str
    driver: str
    pool: PoolID
    generation: int
    slice_count: int
    scope: NodeScope
    per_device_node_selection: bool | None
    shared_counters: tuple[CounterSet, ...]
    devices: tuple[Device, ...]
    creation_timestamp: str = ""
    resource_version: str = ""
    unmodelled: tuple[str, ...] = ()
    individual: PerDeviceTexts | None = None
    skip_node_operations: tuple[str, ...] = ()

    @property
    def names(self) -> Sequence[str]:
        """The names of the devices, in their order."""
        own = self.individual.of(NAMES) if self.individual is not None else ()
        return own or [device.name for device in self.devices]

    def has_own(self, columns: Set[PerDeviceColumn]) -> bool:
        """Whether the devices have values of their own in any of these columns."""
        return self.individual is not None and not columns.isdisjoint(self.individual.columns)

    def told_apart(self, answers: Mapping[PerDeviceColumn, Callable[[str], Hashable]]) -> ResourceSlice:
        """The slice itself if its devices get the same answers as those that stand in for them, else exact."""
        if self.individual is None or self.individual.answered_alike(self.devices, answers):
            return self
        return self.exact(answers)

    def exact_device(self, position: int) -> Device:
        """One device with all of its own values."""
        return self.exact().devices[position]

    def exact(self, only: Container[PerDeviceColumn] | None = None) -> ResourceSlice:
        """The slice whose devices have their own values of all columns, or of those that are kept apart ``only`` these.

        The devices have to be those that were read, or others with the same taints.
        """
        if self.individual is None:
            return self
        devices, rest = self.individual.restored(self.devices, only)
        return self if rest == self.individual else replace(self, devices=devices, individual=rest)

    @classmethod
    def from_json(cls, raw: JSONObject) -> ResourceSlice:
        """Read a v1 ResourceSlice (convert older versions first)."""
        meta = raw.get("metadata") or EMPTY
        spec = raw.get("spec") or EMPTY
        pool = spec.get("pool") or EMPTY
        driver = spec.get("driver") or ""
        per_device = spec.get("perDeviceNodeSelection")
        return cls(
            name=meta.get("name") or "",
            driver=driver,
            pool=PoolID(driver, pool.get("name") or ""),
            generation=int(pool.get("generation") or 0),
            slice_count=int(pool.get("resourceSliceCount") or 0),
            scope=NodeScope.from_json(spec),
            per_device_node_selection=None if per_device is None else bool(per_device),
            shared_counters=tuple(
                CounterSet(counter_set.get("name") or "", _counters(counter_set.get("counters")))
                for counter_set in spec.get("sharedCounters") or ()
            ),
            devices=tuple(Device.from_json(driver, device) for device in spec.get("devices") or ()),
            creation_timestamp=meta.get("creationTimestamp") or "",
            resource_version=meta.get("resourceVersion") or "",
            unmodelled=() if spec.keys() <= _SLICE_KEYS else tuple(sorted(spec.keys() - _SLICE_KEYS)),
            skip_node_operations=tuple(spec.get("skipNodeOperations") or ()),
        )


def newest_slices(slices: Iterable[ResourceSlice]) -> dict[PoolID, list[ResourceSlice]]:
    """The slices of each pool's newest generation, in their order."""
    newest: dict[PoolID, list[ResourceSlice]] = {}
    for entry in slices:
        known = newest.get(entry.pool)
        if known is None or known[0].generation < entry.generation:
            newest[entry.pool] = [entry]
        elif known[0].generation == entry.generation:
            known.append(entry)
    return newest


def _counters(raw: Mapping[str, JSONObject] | None) -> Counters:
    return {name: Quantity.parse((counter or EMPTY).get("value", "0")) for name, counter in (raw or EMPTY).items()}


# The hardware behind a device name, identified by what a driver publishes and a change of name does not affect.

# The first that a driver publishes; drivers differ in the names. A bus address is a place, not hardware: left out.
_HARDWARE: Final = ("uuid", "deviceuuid", "gpuuuid", "serialnumber", "serial", "uniqueid", "guid")


def hardware_id(device: Device) -> str:
    """The device's UUID or serial number from its attributes; empty if it has none.

    Attributes are matched by the part after the domain, ignoring case.
    """
    identities: dict[str, str] = {}
    for name, value in device.attributes.items():
        text = value.get("string")
        if isinstance(text, str) and text:
            identities.setdefault(_lower_name(name), text)
    return next((identities[name] for name in _HARDWARE if name in identities), "")


def identifies(attribute: str) -> bool:
    """Whether an attribute of this name tells one piece of hardware from another of its kind."""
    return _lower_name(attribute) in _HARDWARE


def _lower_name(attribute: str) -> str:
    return attribute.rpartition("/")[2].lower()
