"""Bytes of JSON to typed objects: each kind in its usual shape, of clusters with 100,000 devices and more pods.

What is not of the usual shape (a null, a whole number written as 1.0, a field that a newer release has, a wrong type)
gives None: then ``api.decoding`` says what is wrong, or the object is read field by field. What is equal is one object:
devices, their attributes and capacity, claim specs, what pods of one workload have in common.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import msgspec
from msgspec import Raw, field, json, msgpack, structs
from msgspec.structs import force_setattr as put

from kubectl_dra.api.claims import Allocation, Consumer, DeviceResult, ResourceClaim, spec_fields
from kubectl_dra.api.decoding import struct_mismatch
from kubectl_dra.api.meta import ObjectMeta
from kubectl_dra.api.nodes import Node, NodeSelector
from kubectl_dra.api.pods import Container, ContainerStatus, Pod, PodSpec
from kubectl_dra.api.quantity import Quantity, QuantityError
from kubectl_dra.api.slices import CounterSet, Device, DeviceID, Individual, NodeScope, PoolID, ResourceSlice
from kubectl_dra.api.volumes import PodVolume
from kubectl_dra.api.wire import Amount, Wire

T = TypeVar("T")

SAMPLE: Final = 32
"""Slices of a driver from which is learned which attributes are a device's own."""
_KEPT: Final = 20_000
"""How many different things of one kind are remembered, to find equal ones."""
_LISTS: Final = 2_000
"""The same for whole lists of devices."""
_SIMPLE: Final = {"string": str, "int": int, "bool": bool, "version": str}
_USUAL_CONDITIONS: Final = frozenset(
    ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
)
KEPT_ANNOTATIONS: Final = ("resource.kubernetes.io/", "kubectl-dra/")


class Found(NamedTuple):
    """An object, and its metadata."""

    object: Any
    metadata: ObjectMeta


class _Pool(Wire, frozen=True, forbid_unknown_fields=True):
    name: str = ""
    generation: int = 0
    resource_slice_count: int = 0


class _SliceSpec(Wire, frozen=True, forbid_unknown_fields=True):
    driver: str = ""
    pool: _Pool = _Pool()
    node_name: str = ""
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    per_device_node_selection: bool | None = None
    shared_counters: Raw = Raw(b"[]")
    devices: Raw = Raw(b"[]")


class _Slice(Wire, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: _SliceSpec = _SliceSpec()


class _Device(Wire, frozen=True, forbid_unknown_fields=True):
    """A device of the usual shape; any other is read by ``Device.from_json``."""

    name: str = ""
    attributes: Raw = Raw(b"{}")
    capacity: Raw = Raw(b"{}")


class _Result(Wire, frozen=True, forbid_unknown_fields=True):
    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    share_id: str = field(default="", name="shareID")
    consumed_capacity: dict[str, Amount] = field(default_factory=dict)


class _AllocatedDevices(Wire, frozen=True):
    results: tuple[_Result, ...] = ()
    config: Raw = Raw(b"[]")


class _Allocation(Wire, frozen=True):
    devices: _AllocatedDevices = _AllocatedDevices()
    node_selector: NodeSelector | None = None
    allocation_timestamp: str = ""


class _Consumer(Wire, frozen=True):
    resource: str = ""
    name: str = ""
    uid: str = ""
    api_group: str = ""


class _ClaimStatus(Wire, frozen=True, forbid_unknown_fields=True):
    allocation: _Allocation | None = None
    reserved_for: tuple[_Consumer, ...] = ()


class _Claim(Wire, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: Raw = Raw(b"{}")
    status: _ClaimStatus = _ClaimStatus()


class Unusual(ValueError):
    """Not of the shape that is read here."""


class _Shared(dict[Any, Any]):
    """The first of each equal thing, as long as there are not too many."""

    def first(self, key: Any, value: T) -> T:
        known: T | None = self.get(key)
        if known is not None:
            return known
        if len(self) < _KEPT:
            self[key] = value
        return value


class Reader:
    """Reads objects in turn; equal parts are shared among all of them.

    With ``compact``, attributes that every device has its own text of are kept beside devices that are otherwise
    alike (see ``api.slices.Individual``), so that these can be shared as well.
    """

    def __init__(self, *, compact: bool = False) -> None:
        self._texts = _Shared()
        self._amounts: set[Amount] = set()
        self._specs: dict[bytes, dict[str, Any]] = {}
        self._pods = _Shared()
        self._labels = _Shared()
        self._owners = _Shared()
        self._images = _Shared()
        self._devices = _Devices(compact=compact)
        self._decoders: dict[str, tuple[msgspec.json.Decoder[Any], Callable[[Any], Found]]] = {
            "ResourceSlice": (json.Decoder(_Slice), self._slice),
            "ResourceClaim": (json.Decoder(_Claim), self._claim),
            "Pod": (json.Decoder(Pod), self._pod),
            "Node": (json.Decoder(Node), self._node),
        }

    def read(self, kind: str, data: Any) -> Found | None:
        """An object in the v1 form of its kind; None where it has to be looked at more closely."""
        known = self._decoders.get(kind)
        if known is None:
            return None
        decoder, make = known
        try:
            return make(decoder.decode(data))
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError):
            return None

    def pod(self, raw: Pod) -> Found | None:
        """A pod that is decoded already, without what nobody reads; None where it has to be looked at more closely."""
        try:
            return self._pod(raw)
        except (ValueError, TypeError, OverflowError):
            return None

    def _slice(self, raw: _Slice) -> Found:
        spec, meta = raw.spec, raw.metadata
        driver, texts = self._texts.first(spec.driver, spec.driver), self._texts
        devices, individual = self._devices.read(driver, bytes(memoryview(spec.devices)))
        node = texts.first(spec.node_name, spec.node_name)
        found = ResourceSlice(
            name=meta.name,
            driver=driver,
            pool=PoolID(driver, texts.first(spec.pool.name, spec.pool.name)),
            generation=spec.pool.generation,
            slice_count=spec.pool.resource_slice_count,
            scope=NodeScope(node, spec.node_selector, spec.all_nodes),
            per_device_node_selection=spec.per_device_node_selection,
            shared_counters=_counter_sets(bytes(memoryview(spec.shared_counters))),
            devices=devices,
            creation_timestamp=meta.creation_timestamp,
            individual=individual,
        )
        return Found(found, meta)

    def _claim(self, raw: _Claim) -> Found:
        key = bytes(memoryview(raw.spec))
        fields = self._specs.get(key)
        if fields is None:
            spec = json.decode(key)
            if spec is None or struct_mismatch(spec, "ResourceClaimSpec", "v1") is not None:
                raise Unusual
            fields = spec_fields(spec)
            if len(self._specs) < _KEPT:
                self._specs[key] = fields
        given, texts = raw.status.allocation, self._texts
        allocation = None
        if given is not None:
            config = bytes(memoryview(given.devices.config))
            if config != b"[]":
                wrong = {"results": [], "config": json.decode(config)}
                if struct_mismatch(wrong, "DeviceAllocationResult") is not None:
                    raise Unusual
            results = tuple(
                DeviceResult(
                    texts.first(one.request, one.request),
                    DeviceID(*(texts.first(text, text) for text in (one.driver, one.pool, one.device))),
                    share_id=one.share_id,
                    consumed_capacity={name: Quantity.parse(text) for name, text in one.consumed_capacity.items()},
                )
                for one in given.devices.results
            )
            allocation = Allocation(results, given.node_selector, given.allocation_timestamp)
        reserved = tuple(Consumer(one.resource, one.name, one.uid, one.api_group) for one in raw.status.reserved_for)
        claim = ResourceClaim(metadata=raw.metadata, allocation=allocation, reserved_for=reserved, **fields)
        return Found(claim, raw.metadata)

    def _node(self, node: Node) -> Found:
        status = node.status
        self._check(amount for amounts in (status.allocatable, status.capacity) for amount in amounts.values())
        if status.images:
            images = tuple(self._images.first(one, one) for one in status.images)
            node = structs.replace(node, status=structs.replace(status, images=images))
        return Found(node, node.metadata)

    def _pod(self, pod: Pod) -> Found:
        """A pod without what nobody reads of it; what others have too is shared.

        The objects were decoded a moment ago, and nobody else knows them: they are changed in place.
        """
        texts, spec, meta, status = self._texts, pod.spec, pod.metadata, pod.status
        node = spec.node_name
        put(spec, "node_name", "")
        put(spec, "volumes", tuple([volume for volume in spec.volumes if volume != PodVolume(volume.name)]))
        key = msgpack.encode(spec)
        shared = self._pods.get(key)
        if shared is None:
            self._check(_requested(spec))
            shared = self._pods.first(key, spec)
        put(pod, "spec", structs.replace(shared, node_name=texts.first(node, node)) if node else shared)
        put(meta, "namespace", texts.first(meta.namespace, meta.namespace))
        put(meta, "labels", self._labels.first(tuple(meta.labels.items()), meta.labels))
        put(meta, "owners", self._owners.first(meta.owners, meta.owners))
        if meta.annotations:
            kept = {name: text for name, text in meta.annotations.items() if name.startswith(KEPT_ANNOTATIONS)}
            put(meta, "annotations", kept or _NONE)
        if node and not spec.resource_claims:
            # Of a pod that runs, and has no claims, the usual ones explain nothing.
            put(status, "conditions", tuple([one for one in status.conditions if one.type not in _USUAL_CONDITIONS]))
        put(status, "container_statuses", _resized(status.container_statuses, spec.containers))
        put(status, "init_container_statuses", _resized(status.init_container_statuses, spec.init_containers))
        return Found(pod, meta)

    def _check(self, amounts: Iterable[Amount]) -> None:
        """Raises Unusual where one is no quantity."""
        for amount in amounts:
            if amount not in self._amounts:
                try:
                    Quantity.from_json(amount)
                except QuantityError:
                    raise Unusual from None
                if len(self._amounts) < _KEPT:
                    self._amounts.add(amount)


_NONE: Final[dict[str, str]] = {}


def _requested(spec: PodSpec) -> Iterator[Amount]:
    for container in (*spec.containers, *spec.init_containers):
        yield from container.resources.requests.values()
        yield from container.resources.limits.values()
    if spec.resources is not None:
        yield from spec.resources.requests.values()
        yield from spec.resources.limits.values()
    yield from spec.overhead.values()


def _resized(statuses: tuple[ContainerStatus, ...], containers: tuple[Container, ...]) -> tuple[ContainerStatus, ...]:
    """The statuses, unless they say no more than the containers ask for."""
    if not statuses:
        return ()
    asked = {container.name: container.resources.requests for container in containers}
    for status in statuses:
        requests = asked.get(status.name, _NONE)
        if status.resources is not None and status.resources.requests != requests:
            return statuses
        if status.allocated_resources and status.allocated_resources != requests:
            return statuses
    return ()


def _counter_sets(data: bytes) -> tuple[CounterSet, ...]:
    if data == b"[]":
        return ()
    raw = json.decode(data)
    if struct_mismatch({"sharedCounters": raw}, "ResourceSliceSpec") is not None:
        raise Unusual
    return ResourceSlice.from_json({"spec": {"sharedCounters": raw}}).shared_counters


class _Devices:
    """Lists of devices; those that are equal, but for texts of their own, are one."""

    def __init__(self, *, compact: bool) -> None:
        self._compact = compact
        # Each with whether all devices have the texts that stand in for their own.
        self._lists: dict[tuple[str, bytes], tuple[tuple[Device, ...], bool]] = {}
        self._known: dict[tuple[str, bytes], Device] = {}
        self._tables: dict[bytes, Mapping[str, Mapping[str, Any]]] = {}
        self._values = _Shared()
        self._names = _Shared()
        self._samples: dict[str, list[Sequence[Mapping[str, Any]]]] = {}
        # What takes a driver's individual texts out of the bytes of a list.
        self._individual: dict[str, tuple[_Cut, ...]] = {}
        self._device = json.Decoder(_Device)
        self._each = json.Decoder(list[Raw])

    def read(self, driver: str, data: bytes) -> tuple[tuple[Device, ...], Individual | None]:
        """The devices of a list and what is individual of them. Raises ValueError."""
        cuts = self._individual.get(driver)
        if not cuts:
            devices, _ = self._read(driver, data, ())
            if self._compact and cuts is None:
                self._sample(driver, devices)
            return devices, None
        rest, values = data, []
        for cut in cuts:
            rest, texts = cut.taken(rest)
            values.append(texts)
        devices, alike = self._read(driver, rest, cuts)
        if not alike or any(len(texts) != len(devices) for texts in values):
            return self._read(driver, data, cuts)[0], None
        return devices, Individual(tuple(cut.name for cut in cuts), tuple(values))

    def _read(self, driver: str, data: bytes, cuts: Sequence[_Cut]) -> tuple[tuple[Device, ...], bool]:
        key = (driver, data)
        found = self._lists.get(key)
        if found is None:
            devices = tuple(self._one(driver, bytes(memoryview(one))) for one in self._each.decode(data))
            found = devices, all(cut.stands_in(device) for cut in cuts for device in devices)
            if len(self._lists) < _LISTS:
                self._lists[key] = found
        return found

    def _one(self, driver: str, data: bytes) -> Device:
        key = (driver, data)
        device = self._known.get(key)
        if device is None:
            try:
                raw = self._device.decode(data)
            except msgspec.ValidationError:
                device = self._rare(driver, json.decode(data))
            else:
                name = self._names.first(raw.name, raw.name)
                attributes, capacity = bytes(memoryview(raw.attributes)), bytes(memoryview(raw.capacity))
                device = Device(driver, name, self._table(attributes, "attributes"), self._table(capacity, "capacity"))
            if len(self._known) < _KEPT:
                self._known[key] = device
        return device

    def _rare(self, driver: str, raw: Any) -> Device:
        """A device with counters, taints and so on."""
        if not isinstance(raw, dict) or raw.get("name", "") is None or struct_mismatch(raw, "Device") is not None:
            raise Unusual
        for name in ("attributes", "capacity"):
            if raw.get(name):
                raw[name] = self._table(json.encode(raw[name]), name)
        return Device.from_json(driver, raw)

    def _table(self, data: bytes, name: str) -> Mapping[str, Mapping[str, Any]]:
        """Attributes or capacity, of which equal ones and equal values are shared."""
        known = self._tables.get(data)
        if known is None:
            raw = json.decode(data)
            if struct_mismatch({name: raw}, "Device") is not None or raw is None:
                raise Unusual
            for key, value in raw.items():
                if value is None:
                    raise Unusual
                raw[key] = self._values.first(json.encode(value), value)
            known = raw
            if len(self._tables) < _KEPT:
                self._tables[data] = known
        return known

    def _sample(self, driver: str, devices: Sequence[Device]) -> None:
        samples = self._samples.setdefault(driver, [])
        samples.append([device.attributes for device in devices])
        if len(samples) >= SAMPLE:
            first = samples[0][0] if samples[0] else {}
            self._individual[driver] = tuple(_Cut(name, first[name]["string"]) for name in _individual_names(samples))
            del self._samples[driver]
            self._lists.clear()


class _Cut:
    """Takes the texts of one attribute out of the bytes of devices; ``text`` stands in for all of them."""

    def __init__(self, name: str, text: str) -> None:
        self.name: Final = name
        self._value: Final = {"string": text}
        written = json.encode(name)
        self._pattern = re.compile(
            re.escape(written) + rb'\s*:\s*\{\s*"string"\s*:\s*"([^"\\\x00-\x1f]*)"\s*\}',
        )
        self._same = written + b":" + json.encode(self._value)

    def taken(self, data: bytes) -> tuple[bytes, tuple[str, ...]]:
        """The bytes with the same text everywhere, and the texts. Raises UnicodeDecodeError."""
        parts = self._pattern.split(data)
        return self._same.join(parts[::2]), tuple([text.decode() for text in parts[1::2]])

    def stands_in(self, device: Device) -> bool:
        """Whether the device has the text that stands in for its own."""
        return device.attributes.get(self.name) == self._value


def _individual_names(samples: Sequence[Sequence[Mapping[str, Any]]]) -> tuple[str, ...]:
    """The text attributes of which nearly every slice brings values that no slice before it had."""
    first = samples[0][0] if samples[0] else {}
    out: list[str] = []
    for name in sorted(first):
        seen: set[str] = set()
        fresh = 0
        for devices in samples:
            texts = {_text_of(attributes, name) for attributes in devices}
            if None in texts:
                break
            fresh += not texts <= seen
            seen |= texts  # type: ignore[arg-type]
        else:
            if fresh >= 0.9 * len(samples):
                out.append(name)
    return tuple(out)


def _text_of(attributes: Mapping[str, Any], name: str) -> str | None:
    value = attributes.get(name)
    text = value.get("string") if type(value) is dict and len(value) == 1 else None
    return text if type(text) is str else None
