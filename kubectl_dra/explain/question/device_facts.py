"""Which product is meant, and what its devices publish: as those of the cluster do, else as the catalogue says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from kubectl_dra.api.slices import Device, identifies
from kubectl_dra.cel.columns import Column
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.data.drivers import Attribute, Driver, Kind, catalogue
from kubectl_dra.data.product_names import meant
from kubectl_dra.scheduling.node_copy import is_address
from kubectl_dra.text import whole_number

_UNKNOWN: Final = Attribute()


class DeviceFacts(Struct, frozen=True):
    """Attributes and capacities of a device, as the API has them. ``like``: of which device of the cluster they are."""

    attributes: Mapping[str, Mapping[str, Any]] = {}
    capacity: Mapping[str, Mapping[str, Any]] = {}
    like: str = ""

    def has(self, column_kind: str, name: str) -> bool:
        """Whether a column is said."""
        return name in (self.capacity if column_kind == "capacity" else self.attributes)

    def over(self, other: DeviceFacts) -> DeviceFacts:
        """These, and those of the other that are not said here."""
        return DeviceFacts(
            {**other.attributes, **self.attributes}, {**other.capacity, **self.capacity}, self.like or other.like
        )


def typed_value(type_: str, text: str) -> dict[str, Any] | None:
    """A value of an attribute in the shape of the API; None if the text is none of the type."""
    value: Any = {"int": whole_number(text), "bool": {"true": True, "false": False}.get(text.lower())}.get(type_, text)
    return None if value is None else {type_ or "string": value}


def own_name(driver: str, name: str) -> str:
    """The name of an attribute or capacity without its driver's own domain."""
    return name.removeprefix(f"{driver}/")


def published_by(driver: str, snapshot: Snapshot, node: str = "") -> Iterator[tuple[str, Device]]:
    """The devices of a driver that are there, on one ``node`` or on all, and not tainted, each with its full name."""
    for slice_ in snapshot.slices:
        if slice_.driver == driver and (not node or slice_.scope.node_name == node):
            for device in slice_.devices:
                if not device.taints:
                    yield f"{slice_.pool.name}/{device.name}", device


def names_there(driver: str, snapshot: Snapshot) -> dict[str, tuple[str, str]]:
    """What devices of a driver that are there publish: each name with its kind (attribute or capacity) and type."""
    out: dict[str, tuple[str, str]] = {}
    for _, device in published_by(driver, snapshot):
        for full, value in device.attributes.items():
            out.setdefault(own_name(driver, full), ("attribute", next(iter(value), "string").removesuffix("s")))
        for full in device.capacity:
            out.setdefault(own_name(driver, full), ("capacity", ""))
    return out


def attribute_text(device: Device, name: str) -> str:
    """The value of a device's attribute as people write it; empty if it has none."""
    value = device.attributes.get(name) or device.attributes.get(f"{device.driver}/{name}") or {}
    return next((str(part).lower() if isinstance(part, bool) else str(part) for part in value.values()), "")


def products_there(driver: Driver, snapshot: Snapshot, node: str = "") -> tuple[str, ...]:
    """The products of which the cluster has devices, or one node."""
    name = driver.product_attribute
    texts = (attribute_text(device, name) for _, device in published_by(driver.name, snapshot, node)) if name else ()
    return tuple(dict.fromkeys(filter(None, texts)))


def products_meant(driver: Driver, text: str, snapshot: Snapshot) -> tuple[str, ...]:
    """The products that a text may mean: of those in the cluster if there is one, else of the catalogue."""
    there = products_there(driver, snapshot)
    return meant(text, there) or meant(text, driver.product_names)


def drivers_of(text: str, snapshot: Snapshot) -> list[Driver]:
    """The drivers that have a product of this name, first those of the cluster."""
    known = [driver for driver in catalogue().drivers.values() if driver.kinds and driver.product_attribute]
    there = {slice_.driver for slice_ in snapshot.slices}
    known.sort(key=lambda driver: driver.name not in there)
    return [driver for driver in known if products_meant(driver, text, snapshot)]


def is_product(text: str) -> bool:
    """Whether the catalogue knows a product of this name."""
    return any(meant(text, driver.product_names) for driver in catalogue().drivers.values())


def facts_of(driver: Driver, kind: Kind, products: Sequence[str], snapshot: Snapshot) -> DeviceFacts:
    """What is said of each of the products in the same way."""
    facts = [_of_product(driver, kind, product, snapshot) for product in products]
    if not facts:
        return DeviceFacts()
    first, *others = facts
    return DeviceFacts(
        _common(first.attributes, [other.attributes for other in others]),
        _common(first.capacity, [other.capacity for other in others]),
        first.like if not others else "",
    )


def _of_product(driver: Driver, kind: Kind, product: str, snapshot: Snapshot) -> DeviceFacts:
    listed = DeviceFacts({driver.product_attribute: {"string": product}}).over(_listed(driver, kind, product))
    there = [
        (name, device)
        for name, device in published_by(driver.name, snapshot)
        if attribute_text(device, driver.product_attribute) == product and _is(device, kind)
    ]
    if not there:
        return listed
    attributes = [_of_kind(driver, device) for _, device in there]
    capacity = [
        {own_name(driver.name, name): {"value": value.get("value")} for name, value in device.capacity.items()}
        for _, device in there
    ]
    return DeviceFacts(_common(attributes[0], attributes[1:]), _common(capacity[0], capacity[1:]), there[0][0]).over(
        listed
    )


def as_published(device: Device, driver: Driver, kind: Kind, snapshot: Snapshot) -> Device:
    """The device as its driver publishes others of the kind in the cluster: with the same names, shared or not, and
    with the same rules for how much of a capacity a request gets.
    """
    others = [other for _, other in published_by(driver.name, snapshot) if _is(other, kind)]
    if not others:
        return device
    names = {own_name(driver.name, full): full for full in (*others[0].attributes, *others[0].capacity)}
    capacity: dict[str, Mapping[str, Any]] = {}
    for name, value in device.capacity.items():
        full = names.get(name, name)
        like = next((other.capacity[full] for other in others if full in other.capacity), {})
        capacity[full] = {**like, **value}
    return replace(
        device,
        attributes={names.get(name, name): value for name, value in device.attributes.items()},
        capacity=capacity,
        allow_multiple_allocations=others[0].allow_multiple_allocations,
    )


def _listed(driver: Driver, kind: Kind, product: str) -> DeviceFacts:
    """What the catalogue says of a product. The capacities are those of a whole device, which is the first kind."""
    facts = driver.products.get(product, {})
    attributes, capacity = {}, {}
    for name, text in facts.items():
        if name in driver.attributes:
            value = typed_value(driver.attributes[name].type, text)
            if value is not None and kind.publishes(Column("attribute", None, name)):
                attributes[name] = value
        elif kind is driver.kinds[0]:
            capacity[name] = {"value": text}
    return DeviceFacts(attributes, capacity)


def _is(device: Device, kind: Kind) -> bool:
    return all(attribute_text(device, name) == str(value) for name, value in kind.given.items())


def _of_kind(driver: Driver, device: Device) -> dict[str, Mapping[str, Any]]:
    """The attributes of a device that tell its kind, and not which one it is or where: no numbers, either."""
    out = {}
    for full, value in device.attributes.items():
        name = own_name(driver.name, full)
        known = driver.attributes.get(name, _UNKNOWN)
        own = known.unique or known.single or identifies(name)
        if not own and value.keys() <= {"string", "bool", "version"} and not is_address(value.get("string", "")):
            out[name] = value
    return out


def _common(first: Mapping[str, Any], others: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    others = list(others)
    return {name: value for name, value in first.items() if all(other.get(name) == value for other in others)}


def plausible(driver: Driver, column_kind: str, name: str, snapshot: Snapshot) -> str:
    """A value that a device may well have: that of most devices that are there, an example, or one of the type."""
    devices = [device for _, device in published_by(driver.name, snapshot)]
    if column_kind == "capacity":
        amounts = Counter(
            str(value.get("value"))
            for device in devices
            for full, value in device.capacity.items()
            if own_name(driver.name, full) == name
        )
        amounts.pop("0", None)
        example = (driver.capacities.get(name) or {}).get("example", "80Gi" if "memory" in name.lower() else "1")
        return amounts.most_common(1)[0][0] if amounts else str(example)
    texts = Counter(filter(None, (attribute_text(device, name) for device in devices)))
    if texts:
        return texts.most_common(1)[0][0]
    known = driver.attributes.get(name, _UNKNOWN)
    product = next((facts[name] for facts in driver.products.values() if name in facts), "")
    of_type = {"int": "0", "bool": "true", "version": "1.0.0"}.get(known.type, "VALUE")
    return known.example or product or next(iter(known.values), "") or of_type
