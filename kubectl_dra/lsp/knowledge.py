"""What the language server knows: the devices of a snapshot, documented drivers, the selector language."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, Final, NamedTuple

from kubectl_dra.cel.environment import Environment
from kubectl_dra.cel.functions import Function
from kubectl_dra.cel.library import table
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.data.drivers import Attribute, Driver, catalogue
from kubectl_dra.lint.context import AssumedCluster


class PublishedValues(NamedTuple):
    """An attribute or capacity: its type, how many devices have it, and how many have each value."""

    type: str
    devices: int
    values: Mapping[str, int]


class DevicesSeen(NamedTuple):
    """``drivers`` counts their devices. ``attributes`` and ``capacity`` are by domain and name."""

    drivers: Mapping[str, int]
    attributes: Mapping[tuple[str, str], PublishedValues]
    capacity: Mapping[tuple[str, str], PublishedValues]
    classes: tuple[str, ...]


NOTHING: Final = DevicesSeen({}, {}, {}, ())
_CAPACITY: Final = frozenset(("value", "requestPolicy"))


def devices_seen(snapshot: Snapshot) -> DevicesSeen:
    """Count what the devices of the snapshot publish."""
    drivers: Counter[str] = Counter()
    attributes: dict[tuple[str, str], list[tuple[str, str]]] = {}
    capacity: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for slice in snapshot.slices:
        for device in slice.devices:
            drivers[device.driver] += 1
            for published, kept in ((device.attributes, attributes), (device.capacity, capacity)):
                for written, value in published.items():
                    domain, _, name = written.rpartition("/")
                    kept.setdefault((domain or device.driver, name), []).extend(_texts(value))
    return DevicesSeen(drivers, _counted(attributes), _counted(capacity), tuple(snapshot.classes))


def _texts(value: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The types and texts of a value: one, or those of a list."""
    for type, content in value.items():
        if type in _CAPACITY:
            if type == "value":
                yield "quantity", str(content)
            continue
        for item in content if isinstance(content, list | tuple) else (content,):
            yield type, str(item).lower() if isinstance(item, bool) else str(item)


def _counted(values_seen: Mapping[tuple[str, str], list[tuple[str, str]]]) -> dict[tuple[str, str], PublishedValues]:
    return {
        name: PublishedValues(values[0][0], len(values), Counter(text for _, text in values))
        for name, values in values_seen.items()
        if values
    }


class Meaning(NamedTuple):
    """What an attribute or capacity is: its type, all its values if they are few, and who publishes it.

    ``examples`` are documented values of an open set. ``published`` is None without a snapshot that has it.
    """

    type: str
    values: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()
    published: PublishedValues | None = None


class Knowledge:
    """What the server knows, computed when it is first asked for."""

    def __init__(self, target: AssumedCluster) -> None:
        self.target: Final = target

    @cached_property
    def seen(self) -> DevicesSeen:
        """The devices of the snapshot."""
        return NOTHING if self.target.snapshot is None else devices_seen(self.target.snapshot)

    @cached_property
    def environment(self) -> Environment:
        """The CEL environment of new selectors."""
        return Environment.for_release(self.target.release, self.target.features)

    @cached_property
    def functions(self) -> Mapping[str, Function]:
        """The functions that a selector may call by name; operators are left out."""
        functions = {name: self.environment.function(name) for name in table() if name.replace(".", "").isidentifier()}
        return {name: function for name, function in functions.items() if function is not None}

    def drivers(self) -> tuple[str, ...]:
        """Names of drivers: those of the snapshot, or all documented ones."""
        return tuple(self.seen.drivers) or catalogue().names

    def classes(self) -> tuple[str, ...]:
        """Names of DeviceClasses: those of the snapshot, or all that documented drivers install."""
        return self.seen.classes or catalogue().classes

    def domains(self, part: str) -> tuple[str, ...]:
        """The domains that devices' attributes or capacities are in."""
        published = self.seen.attributes if part == "attributes" else self.seen.capacity
        return tuple(dict.fromkeys(domain for domain, _ in published)) or catalogue().names

    def names(self, part: str, domain: str) -> tuple[str, ...]:
        """The names of a domain's attributes or capacities: published ones, then documented ones."""
        published = self.seen.attributes if part == "attributes" else self.seen.capacity
        driver = catalogue().driver(domain)
        documented = () if driver is None else driver.attributes if part == "attributes" else driver.capacities
        own = (name for name in documented if "/" not in name)
        return tuple(dict.fromkeys([*(name for at, name in published if at == domain), *own]))

    def meaning(self, part: str, domain: str, name: str) -> Meaning | None:
        """What is known of an attribute or capacity; None if nothing is."""
        published = (self.seen.attributes if part == "attributes" else self.seen.capacity).get((domain, name))
        driver = catalogue().driver(domain)
        if part == "capacity":
            documented = driver is not None and name in driver.capacities
            return Meaning("quantity", published=published) if documented or published else None
        attribute = driver.attributes.get(name) if driver is not None else None
        if driver is None or attribute is None:
            return None if published is None else Meaning(published.type, published=published)
        examples = () if published is not None else _examples(driver, name, attribute)
        return Meaning(attribute.type, tuple(map(str, attribute.values)), examples, published)

    def qualified(self) -> tuple[str, ...]:
        """The attributes that constraints may compare, with their domains."""
        domains = self.domains("attributes")
        own = (f"{domain}/{name}" for domain in domains for name in self.names("attributes", domain))
        shared = (
            name
            for driver in domains
            if (known_driver := catalogue().driver(driver))
            for name in known_driver.attributes
        )
        return tuple(dict.fromkeys((*own, *(name for name in shared if "/" in name))))

    def taints(self) -> tuple[str, ...]:
        """The keys of taints: those on devices of the snapshot, then those that documented drivers set."""
        slices = () if self.target.snapshot is None else self.target.snapshot.slices
        there = (taint.key for slice in slices for device in slice.devices for taint in device.taints)
        return tuple(
            dict.fromkeys((*there, *(key for driver in catalogue().drivers.values() for key in driver.taints)))
        )


def _examples(driver: Driver, name: str, attribute: Attribute) -> tuple[str, ...]:
    """Values that are documented though there may be others: names of products, MIG profiles, what kinds have."""
    lists = {"products": driver.product_names, "mig": driver.mig_profiles}
    of_kinds = (str(kind.given[name]) for kind in driver.kinds if name in kind.given)
    return tuple(dict.fromkeys((*lists.get(attribute.names, ()), *of_kinds, *filter(None, (attribute.example,)))))
