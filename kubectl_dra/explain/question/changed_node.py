"""One more node like one that exists, whose devices have other attributes or capacities."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from msgspec.structs import replace

from kubectl_dra.api.nodes import Node
from kubectl_dra.api.slices import Device
from kubectl_dra.cluster.cluster import NodeCopy
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.data.drivers import Driver, catalogue
from kubectl_dra.errors import FlagValueError, InputError, UndeterminedError
from kubectl_dra.explain.question.device_facts import attribute_text, drivers_of, facts_of, own_name, products_meant
from kubectl_dra.explain.question.node_in_words import (
    LABEL,
    Described,
    amount,
    no_partition,
    of_type,
    unknown_name,
    unknown_product,
)


def changed_node(copy: NodeCopy, described: Described, snapshot: Snapshot) -> NodeCopy:
    """The copy with what was typed.

    Raises:
        InputError: an attribute, capacity, product or value that its devices cannot have.
        UndeterminedError: it has no devices, and not all ResourceSlices were read.
    """
    if described.labels:
        old = copy.node
        meta = replace(old.metadata, labels={**old.labels, **described.labels})
        copy = copy._replace(node=Node(meta, old.spec, old.status))
    words = {name: text for name, text in described.words.items() if not name.startswith(LABEL)}
    devices = [device for slice_ in copy.slices for device in slice_.devices]
    if words and not devices:
        if (gap := snapshot.missing("ResourceSlice")) is not None:
            raise UndeterminedError(f"{gap}, so which devices node {copy.like} has is unknown")
        raise InputError(f"node {copy.like} has no devices")
    drivers = [known for slice_ in copy.slices if (known := catalogue().driver(slice_.driver)) is not None]
    for name, text in words.items():
        if name == "product":
            copy = _with_product(copy, text, drivers, described, snapshot)
            continue
        changed = _each(copy, partial(_with, name=name, text=text))
        if changed is None:
            # No device has it so far: those have it whose driver may publish it.
            changed = _each(copy, partial(_with_new, name=name, text=text))
        if changed is None:
            names = ((device.driver, full) for device in devices for full in (*device.attributes, *device.capacity))
            there = dict.fromkeys(own_name(*known) for known in names)
            driver = drivers[0] if drivers else None
            raise unknown_name(name, text, driver, described, f"devices of {copy.like}", tuple(there))
        copy = changed
    for driver in drivers:
        if not words.keys().isdisjoint(("product", driver.product_attribute, driver.profile_attribute)):
            _check_partitions(copy, driver, described)
    return copy


def _check_partitions(copy: NodeCopy, driver: Driver, described: Described) -> None:
    """Raises FlagValueError: a device has a profile that its product cannot have."""
    own = (device for slice_ in copy.slices if slice_.driver == driver.name for device in slice_.devices)
    for device in own if driver.profile_attribute else ():
        product = attribute_text(device, driver.product_attribute)
        profile = attribute_text(device, driver.profile_attribute)
        if profile and driver.has_mig_profile(product, profile) is False:
            raise no_partition(driver, (product,), profile, described)


def _each(copy: NodeCopy, change: Callable[[Device], Device | None]) -> NodeCopy | None:
    """The node with each device changed; None if that is true of none."""
    changed = False
    slices = []
    for slice_ in copy.slices:
        devices = []
        for device in slice_.devices:
            other = change(device)
            changed = changed or other is not None
            devices.append(device if other is None else other)
        slices.append(replace(slice_, devices=tuple(devices)))
    return copy._replace(slices=slices) if changed else None


def _with(device: Device, name: str, text: str) -> Device | None:
    """The device with another value of what it has; None if it has no such attribute or capacity."""
    for full in (name, f"{device.driver}/{name}"):
        if (value := device.attributes.get(full)) is not None:
            type_ = next(iter(value), "string").removesuffix("s")
            return replace(device, attributes={**device.attributes, full: of_type(name, type_, text)})
        if (known := device.capacity.get(full)) is not None:
            return replace(device, capacity={**device.capacity, full: {**known, "value": amount(name, text)}})
    return None


def _with_new(device: Device, name: str, text: str) -> Device | None:
    """The device with an attribute or capacity that its driver may publish; None if that is not known of it."""
    driver = catalogue().driver(device.driver)
    if driver is None:
        return None
    if (known := driver.attributes.get(name)) is not None:
        return replace(device, attributes={**device.attributes, name: of_type(name, known.type, text)})
    if name in driver.capacities:
        return replace(device, capacity={**device.capacity, name: {"value": amount(name, text)}})
    return None


def _with_product(
    copy: NodeCopy, text: str, drivers: list[Driver], described: Described, snapshot: Snapshot
) -> NodeCopy:
    """The node whose devices are of another product, with what that has."""
    for driver in drivers:
        products = products_meant(driver, text, snapshot) if driver.product_attribute else ()
        if len(products) > 1:
            instead = [(f"With {product}", described.written({"product": product})) for product in products[:4]]
            raise FlagValueError(f'product "{text}" may be {" or ".join(products[:4])}', instead=instead)
        if products:
            return _of_product(copy, driver, products[0], snapshot)
    if others := drivers_of(text, snapshot):
        number = sum(len(slice_.devices) for slice_ in copy.slices)
        new = f"product={text},devices={number}{described.end}"
        raise FlagValueError(
            f'product "{text}" is of {others[0].title}, which has no devices on {copy.like}',
            instead=[(f"A node with {number} {text}", new)],
        )
    known = tuple(name for driver in drivers for name in driver.products)
    raise unknown_product(text, known, described, there=known)


def _of_product(copy: NodeCopy, driver: Driver, product: str, snapshot: Snapshot) -> NodeCopy:
    by_kind = {kind.name: facts_of(driver, kind, (product,), snapshot) for kind in driver.kinds}

    def changed(device: Device) -> Device | None:
        given = ((kind, kind.given.items()) for kind in driver.kinds)
        kind = next((kind for kind, pairs in given if all(attribute_text(device, k) == str(v) for k, v in pairs)), None)
        if device.driver != driver.name or kind is None:
            return None
        facts = by_kind[kind.name]
        for name, value in facts.attributes.items():
            full = f"{driver.name}/{name}" if f"{driver.name}/{name}" in device.attributes else name
            device = replace(device, attributes={**device.attributes, full: value})
        for name, value in facts.capacity.items():
            device = _with(device, name, str(value["value"])) or replace(
                device, capacity={**device.capacity, name: value}
            )
        return device

    return _each(copy, changed) or copy
