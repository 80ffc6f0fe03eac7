"""Known drivers with what the ResourceSlices at hand publish: the catalogue does not know every device."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from kubectl_dra.api.quantity import Quantity, QuantityError
from kubectl_dra.api.shared_devices import PerDeviceColumn
from kubectl_dra.cel.columns import Column
from kubectl_dra.data.drivers import Attribute, Driver, Kind, catalogue
from kubectl_dra.lint.analysis.server_verdict import is_accepted
from kubectl_dra.lint.context import Context, items
from kubectl_dra.manifests.changes import fields_at

if TYPE_CHECKING:
    from kubectl_dra.cluster.snapshot import Snapshot

_TYPES: Final = ("string", "int", "bool", "version")


class _Device(Struct, frozen=True):
    """What a ResourceSlice says of a device. Names are without the driver's own domain.

    ``attributes`` has type and value, ``capacities`` the amount as written, and whether the name has the domain.
    """

    attributes: Mapping[str, tuple[str, Any]]
    capacities: Mapping[str, tuple[str, bool]]
    taints: tuple[str, ...]


def known_driver(context: Context, name: str | None) -> Driver | None:
    """A driver of the catalogue, with all that devices of the cluster and of the manifests have besides."""
    if not name or name not in catalogue().names:
        return None
    known = context.given.drivers
    if name not in known:
        of_cluster = None if context.snapshot is None else context.snapshot.derived(_of_snapshot).driver(name)
        driver = of_cluster or catalogue().driver(name)
        assert driver is not None
        known[name] = _with(driver, _of_manifests(context, name))
    return known[name]


def known_attribute(context: Context, column: Column | None) -> tuple[Driver, Attribute] | None:
    """An attribute that a known driver publishes."""
    if column is None or column.kind != "attribute":
        return None
    driver = known_driver(context, column.domain)
    attribute = None if driver is None else driver.attributes.get(column.id or "")
    return None if driver is None or attribute is None else (driver, attribute)


def known_kinds(context: Context, kinds: Iterable[Kind]) -> tuple[Kind, ...]:
    """Kinds of devices of the catalogue, with all that such devices of the cluster and of the manifests have."""
    return tuple(_known_kind(context, kind) for kind in kinds)


def _known_kind(context: Context, kind: Kind) -> Kind:
    driver = known_driver(context, kind.driver)
    return next((each for each in driver.kinds if each.name == kind.name), kind) if driver is not None else kind


def shared_domains(drivers: Iterable[Driver]) -> frozenset[str]:
    """The domains that drivers use beside their own."""
    return frozenset(_domains(name for driver in drivers for name in driver.attributes))


def published_domains(context: Context) -> frozenset[str]:
    """The domains of everything that ResourceSlices publish: their drivers, and those that names have."""
    domains = set[str]()
    if context.snapshot is not None:
        domains |= context.snapshot.derived(_of_snapshot).domains
    for spec in _slices(context):
        domains.add(str(spec.get("driver")))
        for device in items(spec, "devices"):
            for kind in ("attributes", "capacity"):
                domains.update(_domains(fields_at(device, kind)))
    return frozenset(domains)


def published_amounts(context: Context, column: Column) -> tuple[Quantity, ...]:
    """What devices have of a capacity of a known driver."""
    driver = known_driver(context, column.domain) if column.kind == "capacity" else None
    facts = driver.capacities.get(column.id or "") if driver is not None else None
    return tuple(_quantities((facts or {}).get("published", ())))


def _quantities(texts: Iterable[str]) -> Iterator[Quantity]:
    for text in texts:
        with suppress(QuantityError):
            yield Quantity.parse(text)


def _domains(names: Iterable[Any]) -> Iterator[str]:
    return (str(name).partition("/")[0] for name in names if "/" in str(name))


class _OfSnapshot:
    """The drivers of a snapshot's devices, and their domains."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._drivers: dict[str, Driver | None] = {}
        self._domains: frozenset[str] | None = None

    def driver(self, name: str) -> Driver | None:
        """The driver with what its devices have besides; None without such devices."""
        if name not in self._drivers:
            known = catalogue().driver(name)
            devices = tuple(self._devices(known)) if known is not None else ()
            self._drivers[name] = _with(known, devices) if known is not None and devices else None
        return self._drivers[name]

    @property
    def domains(self) -> frozenset[str]:
        """The domains of everything that is published."""
        if self._domains is None:
            devices = {id(device): device for slice_ in self._snapshot.slices for device in slice_.devices}
            found = {slice_.driver for slice_ in self._snapshot.slices}
            for device in devices.values():
                found.update(_domains((*device.attributes, *device.capacity)))
            self._domains = frozenset(found)
        return self._domains

    def _devices(self, driver: Driver) -> Iterator[_Device]:
        listed = (name for name, known in driver.attributes.items() if known.values or known.names)
        own = frozenset(PerDeviceColumn("attribute", name) for name in listed)
        slices = (slice_ for slice_ in self._snapshot.slices if slice_.driver == driver.name)
        exact = (slice_.exact(own) if slice_.has_own(own) else slice_ for slice_ in slices)
        # Large snapshots share devices that are alike.
        devices = {id(device): device for slice_ in exact for device in slice_.devices}
        for device in devices.values():
            keys = tuple(taint.key for taint in device.taints)
            yield _published(driver.name, device.attributes, device.capacity, keys)


def _of_snapshot(snapshot: Snapshot) -> _OfSnapshot:
    return _OfSnapshot(snapshot)


def _slices(context: Context) -> tuple[Mapping[str, Any], ...]:
    """The specs of the ResourceSlices of the manifests. One that the API server refuses publishes nothing."""
    given = context.given
    if given.slices is None:
        accepted = (item for item in given.of_kind("ResourceSlice") if is_accepted(Context(item, context.target)))
        given.slices = tuple(fields_at(item.v1 or {}, "spec") for item in accepted)
    return given.slices


def _of_manifests(context: Context, driver: str) -> Iterator[_Device]:
    for spec in _slices(context):
        for device in items(spec, "devices") if spec.get("driver") == driver else ():
            keys = tuple(str(taint.get("key")) for taint in items(device, "taints"))
            yield _published(driver, fields_at(device, "attributes"), fields_at(device, "capacity"), keys)


def _published(
    driver: str, attributes: Mapping[str, Any], capacities: Mapping[str, Any], taints: tuple[str, ...]
) -> _Device:
    prefix = f"{driver}/"
    values = ((name, value) for name, value in attributes.items() if isinstance(value, Mapping) and value)
    amounts = ((name, value.get("value")) for name, value in capacities.items() if isinstance(value, Mapping))
    return _Device(
        {str(name).removeprefix(prefix): next(iter(value.items())) for name, value in values},
        {str(name).removeprefix(prefix): (str(amount), str(name).startswith(prefix)) for name, amount in amounts},
        taints,
    )


def _with(driver: Driver, devices: Iterable[_Device]) -> Driver:
    """The driver with what these devices have besides; itself if they are as it is known."""
    devices = tuple(devices)
    if not devices:
        return driver
    attributes, products, profiles = dict(driver.attributes), dict(driver.products), dict.fromkeys(driver.mig_profiles)
    capacities = {name: dict(facts) for name, facts in driver.capacities.items()}
    taints = dict.fromkeys(driver.taints)
    for device in devices:
        for name, (kind, value) in device.attributes.items():
            known = attributes[name] = _seen(driver.attributes.get(name), attributes.get(name), kind, value)
            if known.names == "products":
                products.setdefault(str(value), {})
            elif known.names == "mig":
                profiles.setdefault(str(value))
        for name, (amount, qualified) in device.capacities.items():
            facts = capacities.setdefault(name, {})
            facts["qualified"] = qualified
            facts["published"] = facts.get("published", frozenset()) | {amount}
        taints |= dict.fromkeys(device.taints) if taints else {}
    return replace(
        driver,
        attributes=attributes,
        capacities=capacities,
        products=products,
        mig_profiles=tuple(profiles),
        taints=tuple(taints),
        kinds=tuple(_kind_with(kind, driver, devices, attributes) for kind in driver.kinds),
    )


def _seen(known: Attribute | None, so_far: Attribute | None, kind: str, value: Any) -> Attribute:
    """An attribute as it is known, or as devices have it where that is otherwise."""
    kind = kind if kind in _TYPES else ""
    if so_far is None:
        return Attribute(kind)
    if so_far.type and so_far.type != kind:
        so_far = replace(so_far, type="", values=())
    if known is not None and so_far.values and value not in so_far.values:
        so_far = replace(so_far, values=(*so_far.values, value))
    return so_far


def _kind_with(kind: Kind, driver: Driver, devices: Iterable[_Device], attributes: Mapping[str, Attribute]) -> Kind:
    """A kind with what its devices have; what devices of no known kind have may be on those of every kind."""
    names, capacities = set[str](), set[str]()
    for device in devices:
        own = _is_of(device, kind)
        if own or not any(_is_of(device, other) for other in driver.kinds):
            names |= device.attributes.keys()
            capacities |= device.capacities.keys()
    return replace(
        kind,
        attributes=attributes,
        sometimes=None if kind.sometimes is None else kind.sometimes | names,
        capacities=kind.capacities | capacities,
    )


def _is_of(device: _Device, kind: Kind) -> bool:
    return all(device.attributes.get(name, ("", None))[1] == value for name, value in kind.given.items())
