"""JSON bytes to typed objects, for objects of the usual shape in clusters with 100,000 devices and more pods.

An unusual object (a null, a whole number written as 1.0, a field from a newer release, a wrong type) gives
None. Then ``api.decoding`` reports the error, or the object is read field by field. Equal parts are one
object: devices, their attributes and capacity, claim specs, and what pods of one workload have in common.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import lru_cache
from sys import intern
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import MsgspecError, Raw, Struct, ValidationError, field, json
from msgspec.structs import force_setattr as put

from kubectl_dra.api.claims import (
    Allocation,
    Consumer,
    DeviceClass,
    DeviceResult,
    ResourceClaim,
    ResourceClaimTemplate,
    spec_fields,
)
from kubectl_dra.api.codec import decoded, struct_mismatch
from kubectl_dra.api.meta import EMPTY, Amount, ApiObject, ObjectMeta, Wire, convert
from kubectl_dra.api.nodes import Node, NodeSelector, NodeStatus
from kubectl_dra.api.pods import Pod
from kubectl_dra.api.policy import ResourceQuota
from kubectl_dra.api.quantity import Quantity
from kubectl_dra.api.slices import CounterSet, DeviceID, NodeScope, PoolID, ResourceSlice
from kubectl_dra.api.taints import DeviceTaintRule
from kubectl_dra.cluster.device_lists import DeviceLists
from kubectl_dra.cluster.duplicates import REMEMBERED, CheckedAmounts, Interner, Place, Unusual
from kubectl_dra.cluster.pod_lists import PodLists, PodText
from kubectl_dra.cluster.snapshot import Event
from kubectl_dra.errors import InputError


def _namespace(raw: Mapping[str, Any]) -> ObjectMeta:
    return ObjectMeta.from_json(raw.get("metadata") or EMPTY)


def _event(raw: Mapping[str, Any]) -> Event:
    about = raw.get("involvedObject") or raw.get("regarding") or EMPTY
    series = raw.get("series") or EMPTY
    first = raw.get("firstTimestamp") or raw.get("deprecatedFirstTimestamp") or raw.get("eventTime") or ""
    last = series.get("lastObservedTime") or raw.get("lastTimestamp") or raw.get("deprecatedLastTimestamp")
    source = raw.get("source") or raw.get("deprecatedSource") or EMPTY
    fields = {
        "kind": about.get("kind") or "",
        "namespace": about.get("namespace") or (raw.get("metadata") or EMPTY).get("namespace") or "",
        "name": about.get("name") or "",
        "uid": about.get("uid") or "",
        "reason": raw.get("reason") or "",
        "message": raw.get("message") or raw.get("note") or "",
        "type": raw.get("type") or "",
        "count": int(series.get("count") or raw.get("count") or raw.get("deprecatedCount") or 1),
        "first": first,
        "last": last or first,
        "component": raw.get("reportingComponent") or raw.get("reportingController") or source.get("component") or "",
    }
    return convert(fields, Event)


READ: Final[Mapping[str, Callable[[Any], Any]]] = {
    "DeviceClass": DeviceClass.from_json,
    "DeviceTaintRule": DeviceTaintRule.from_json,
    "Event": _event,
    "Namespace": _namespace,
    "Node": Node.from_json,
    "Pod": Pod.from_json,
    "ResourceClaim": ResourceClaim.from_json,
    "ResourceClaimTemplate": ResourceClaimTemplate.from_json,
    "ResourceQuota": ResourceQuota.from_json,
    "ResourceSlice": ResourceSlice.from_json,
}


class Found(NamedTuple):
    """An object, its metadata, and its resource version, which pods that run do not keep."""

    object: Any
    metadata: ObjectMeta
    version: str


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


class _Slice(ApiObject, frozen=True):
    spec: _SliceSpec = _SliceSpec()


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


class _ClaimStatus(Wire, frozen=True, forbid_unknown_fields=True):
    allocation: _Allocation | None = None
    reserved_for: tuple[Consumer, ...] = ()


class _Claim(ApiObject, frozen=True):
    spec: Raw = Raw(b"{}")
    status: _ClaimStatus = _ClaimStatus()


class Reader:
    """Reads objects one after another and shares equal parts among all of them.

    With ``compact``, attributes whose text is individual to each device are kept apart from the devices (see
    ``api.shared_devices``), so that otherwise equal devices can be shared as well.
    """

    def __init__(self, *, compact: bool = False) -> None:
        self._amounts = CheckedAmounts()
        self._specs: dict[bytes, dict[str, Any]] = {}
        self._pods = PodLists(self._amounts)
        self._images = Interner()
        self._of_nodes = Interner()
        self._times = Interner()
        self._devices = DeviceLists(compact=compact)

    def read(self, kind: str, data: Any) -> Found | None:
        """An object in the v1 form of its kind; None if it needs a closer look."""
        known = _READ.get(kind)
        if known is None:
            return None
        decoder, make = known
        try:
            return make(self, decoder.decode(data))
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError):
            return None

    def pod(self, raw: PodText) -> Pod | None:
        """A pod of a page; None if it needs a closer look."""
        try:
            return self._pods.read(raw)
        except (ValueError, TypeError, OverflowError):
            return None

    def _pod(self, raw: PodText) -> Found:
        pod = self._pods.read(raw)
        return Found(pod, pod.metadata, raw.metadata.resource_version)

    def _slice(self, raw: _Slice) -> Found:
        spec, meta = raw.spec, raw.metadata
        driver = intern(spec.driver)
        devices, individual = self._devices.read(driver, bytes(memoryview(spec.devices)))
        slice_ = ResourceSlice(
            name=meta.name,
            driver=driver,
            pool=PoolID(driver, intern(spec.pool.name)),
            generation=spec.pool.generation,
            slice_count=spec.pool.resource_slice_count,
            scope=NodeScope(intern(spec.node_name), spec.node_selector, spec.all_nodes),
            per_device_node_selection=spec.per_device_node_selection,
            shared_counters=_counter_sets(bytes(memoryview(spec.shared_counters))),
            devices=devices,
            creation_timestamp=self._times.first(meta.creation_timestamp, meta.creation_timestamp),
            resource_version=meta.resource_version,
            individual=individual,
        )
        return Found(slice_, meta, meta.resource_version)

    def _claim(self, raw: _Claim) -> Found:
        key = bytes(memoryview(raw.spec))
        fields = self._specs.get(key)
        if fields is None:
            spec = json.decode(key)
            if spec is None or struct_mismatch(spec, "ResourceClaimSpec", "v1") is not None:
                raise Unusual
            fields = spec_fields(decoded(spec, "ResourceClaimSpec"))
            if len(self._specs) < REMEMBERED:
                self._specs[key] = fields
        given = raw.status.allocation
        allocation = None
        if given is not None:
            config = bytes(memoryview(given.devices.config))
            if config != b"[]":
                wrong = {"results": [], "config": json.decode(config)}
                if struct_mismatch(wrong, "DeviceAllocationResult") is not None:
                    raise Unusual
            results = tuple([_result(result) for result in given.devices.results])
            allocation = Allocation(results, _shared_texts(given.node_selector), given.allocation_timestamp)
        for consumer in raw.status.reserved_for:
            put(consumer, "resource", intern(consumer.resource))
            put(consumer, "api_group", intern(consumer.api_group))
        meta = _slim(raw.metadata)
        claim = ResourceClaim(metadata=meta, allocation=allocation, reserved_for=raw.status.reserved_for, **fields)
        return Found(claim, meta, meta.resource_version)

    def _node(self, node: Node) -> Found:
        """A node; what it has in common with others is shared. It has just been decoded and has no other owner."""
        meta = _slim(node.metadata)
        put(meta, "name", intern(meta.name))
        for name, value in meta.labels.items():
            # Most values are those of many nodes, and one is the name.
            meta.labels[name] = intern(value)
        put(node, "status", self._node_status(node.status))
        return Found(node, meta, meta.resource_version)

    def _node_status(self, status: NodeStatus) -> NodeStatus:
        """One object for all nodes of a kind; of others, the parts that many have. Raises Unusual."""
        allocatable, capacity = tuple(status.allocatable.items()), tuple(status.capacity.items())
        parts = (status.conditions, status.node_info, status.images, status.declared_features)
        key, first = (allocatable, capacity, *parts), self._of_nodes.first
        known: NodeStatus | None = self._of_nodes.get(key)
        if known is not None:
            return known
        self._amounts.check([amount for _, amount in (*allocatable, *capacity)])
        put(status, "allocatable", first(allocatable, status.allocatable) if allocatable else _EMPTY)
        put(status, "capacity", first(capacity, status.capacity) if capacity else _EMPTY)
        put(status, "conditions", first(status.conditions, status.conditions))
        put(status, "node_info", first(status.node_info, status.node_info))
        if status.images:
            put(status, "images", tuple([self._images.first(image, image) for image in status.images]))
        return first(key, status)


# Not in the reader: bound methods would keep it, and all that it remembers, as long as garbage is not collected.
_READ: Final[dict[str, tuple[json.Decoder[Any], Callable[[Reader, Any], Found]]]] = {
    "ResourceSlice": (json.Decoder(_Slice), Reader._slice),
    "ResourceClaim": (json.Decoder(_Claim), Reader._claim),
    "Pod": (json.Decoder(PodText), Reader._pod),
    "Node": (json.Decoder(Node), Reader._node),
}
_NOTHING: Final[dict[str, Quantity]] = {}
_EMPTY: Final[dict[str, str]] = {}


def _slim(meta: ObjectMeta) -> ObjectMeta:
    """The metadata without tables of its own that are empty. It has just been decoded and has no other owner."""
    put(meta, "namespace", intern(meta.namespace))
    if not meta.labels:
        put(meta, "labels", _EMPTY)
    if not meta.annotations:
        put(meta, "annotations", _EMPTY)
    return meta


def _shared_texts(selector: NodeSelector | None) -> NodeSelector | None:
    """The selector of an allocation, whose texts are those of many others and of its node. Changed in place."""
    for term in selector.terms if selector is not None else ():
        for requirement in (*term.expressions, *term.fields):
            put(requirement, "key", intern(requirement.key))
            put(requirement, "operator", intern(requirement.operator))
            put(requirement, "values", tuple(map(intern, requirement.values)))
    return selector


def _result(raw: _Result) -> DeviceResult:
    used = {name: Quantity.parse(text) for name, text in raw.consumed_capacity.items()} if raw.consumed_capacity else {}
    device = DeviceID(intern(raw.driver), intern(raw.pool), intern(raw.device))
    return DeviceResult(intern(raw.request), device, share_id=raw.share_id, consumed_capacity=used or _NOTHING)


def _counter_sets(data: bytes) -> tuple[CounterSet, ...]:
    if data == b"[]":
        return ()
    raw = json.decode(data)
    if struct_mismatch({"sharedCounters": raw}, "ResourceSliceSpec") is not None:
        raise Unusual
    return ResourceSlice.from_json({"spec": decoded({"sharedCounters": raw}, "ResourceSliceSpec")}).shared_counters


# One page of a list: its head, and its items as bytes, each to be decoded straight into its target struct.


class ListMeta(msgspec.Struct, frozen=True, rename="camel"):
    """``metadata`` of a list. ``token`` requests the next page; it is empty on the last one.

    Changes after ``resource_version`` are not in the list, in none of its pages.
    """

    token: str | None = msgspec.field(default=None, name="continue")
    remaining_item_count: int | None = None
    resource_version: str | None = None


class Page(msgspec.Struct, frozen=True, rename="camel"):
    """One answer to a list request."""

    kind: str = ""
    api_version: str = ""
    metadata: ListMeta = ListMeta()
    entries: list[msgspec.Raw] | None = msgspec.field(default=None, name="items")

    # Decoded at once, where a kind was asked for and all items are of its usual shape; ``data`` is the text then.
    objects: list[Any] | None = None
    data: bytes = b""

    @property
    def items(self) -> list[msgspec.Raw]:
        """The objects, which may lack apiVersion and kind."""
        return self.entries or []

    @property
    def size(self) -> int:
        """The number of items."""
        return len(self.items if self.objects is None else self.objects)

    @property
    def item_kind(self) -> str:
        """The kind of the items."""
        return self.kind.removesuffix("List")


class _PodPage(msgspec.Struct, frozen=True, rename="camel"):
    kind: str = ""
    api_version: str = ""
    metadata: ListMeta = ListMeta()
    items: list[PodText] | None = None


_decoder = msgspec.json.Decoder(Page)
_pods = msgspec.json.Decoder(_PodPage)


def page(data: bytes, *, pods: bool = False) -> Page | None:
    """Read a page, decoding ``pods`` at once; None if it is not a list of objects.

    Raises ValueError: not a JSON object.
    """
    if data.lstrip()[:1] != b"{":
        raise ValueError
    if pods:
        with suppress(msgspec.ValidationError):
            whole = _pods.decode(data)
            return Page(whole.kind, whole.api_version, whole.metadata, None, whole.items or [], data)
    try:
        page = _decoder.decode(data)
    except msgspec.ValidationError:
        return None
    return page if all(bytes(memoryview(item)[:1]) == b"{" for item in page.items) else None


def whole(item: msgspec.Raw, of: Page) -> dict[str, Any]:
    """An item as JSON, with apiVersion and kind and without managedFields. Raises ValueError."""
    raw: dict[str, Any] = msgspec.json.decode(item)
    raw.setdefault("apiVersion", of.api_version)
    raw.setdefault("kind", of.item_kind)
    metadata = raw.get("metadata")
    if isinstance(metadata, dict):
        metadata.pop("managedFields", None)
    return raw


# Items of a List as JSON text: of which type they are, and as objects.


class _Head(Struct, frozen=True, rename="camel"):
    api_version: str = ""
    kind: str = ""


_head: Final = json.Decoder(_Head)
_BEGINNING: Final = re.compile(rb'\{\s*"apiVersion"\s*:\s*"([\w./-]+)"\s*,\s*"kind"\s*:\s*"(\w+)"')
"""Beginning of an object as the server and kubectl write it: reading all of it for its kind takes as long again."""


@lru_cache(1_000)
def _name(text: bytes) -> str:
    return text.decode()


def type_of(data: Any, api_version: str, kind: str) -> tuple[str, str]:
    """The apiVersion and kind of an item, or these where it has none of its own; no kind if they are no text."""
    if begins := _BEGINNING.match(memoryview(data)):
        return _name(begins[1]), _name(begins[2])
    try:
        head = _head.decode(data)
    except ValidationError:
        return api_version, ""
    return head.api_version or api_version, head.kind or kind


def item_of(data: Any, place: Place) -> dict[str, Any]:
    """An item of a List. Raises InputError: a number that no field can have, such as 1e999, or text that is no JSON."""
    try:
        raw: dict[str, Any] = json.decode(data)
    except MsgspecError as error:
        raise InputError(f"{place}: cannot be read: {error}") from None
    return raw
