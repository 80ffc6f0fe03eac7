"""Reads the drivers' files. Nothing is read before someone asks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path as File
from typing import Any, Final, NamedTuple

from kubectl_dra.cel.columns import Column

STANDARD: Final = "resource.kubernetes.io"
"""The domain of attributes that all drivers share."""
_CLASSES: Final = re.compile(r"^classes:.*(?:\n[ #].*)*", re.MULTILINE)
# The section of a driver's file.


class Attribute(NamedTuple):
    """An attribute of a driver. ``type`` is string, int, bool or version, empty where not known.

    ``values`` are all that it can have, none where that is open. No two devices have the same value of a
    ``unique`` one. ``names`` says which list of names its values come from: "products" or "mig".
    """

    type: str = ""
    values: tuple[str, ...] = ()
    unique: bool = False
    example: str = ""
    names: str = ""


def name_in(driver: str, column: Column) -> str:
    """The name of a column in a driver's file: without the domain if that is the driver's."""
    own = column.domain is None or column.domain == driver
    return column.id or "" if own else f"{column.domain}/{column.id}"


class Kind(NamedTuple):
    """One kind of device of a driver: a shape for ``rules.possible``.

    ``given`` are the values that make it this kind, ``absent`` what its devices never or not always have.
    """

    driver: str
    name: str
    given: Mapping[str, Any]
    always: frozenset[str]
    sometimes: frozenset[str] | None
    attributes: Mapping[str, Attribute]
    capacities: frozenset[str]

    def publishes(self, column: Column) -> bool:
        """Whether some device of the kind can have the attribute or capacity."""
        name = name_in(self.driver, column)
        if column.kind == "capacity":
            return name in self.capacities or not self.capacities
        return name in self.always or self.sometimes is None or name in self.sometimes or "/" in name

    def values(self, column: Column) -> tuple[Any, ...] | None:
        """See ``rules.possible.Shape``; what only some devices have counts as absent."""
        name = name_in(self.driver, column)
        if column.kind == "capacity":
            return None if name in self.capacities else ()
        if name in self.given:
            return (self.given[name],)
        if name not in self.always:
            return ()
        attribute = self.attributes.get(name)
        return attribute.values if attribute is not None and attribute.values else None


class ConfigKind(NamedTuple):
    """An opaque config of a driver. A field's type is int, string, bool, quantity, any, a list or a mapping."""

    kind: str
    api_version: str
    fields: Mapping[str, Any]


class Driver(NamedTuple):
    """A driver as its file describes it. ``configs`` is None where its parameters are not known.

    ``resources`` are what its vendor's device plugin offers, ``resource_prefixes`` how others of them begin; those that
    are ``extended`` too are in the driver's own class as extendedResourceName, as its newest release installs it.
    ``node_label`` is "true" on nodes that have its devices, whoever serves them.

    Devices of a ``pod_level`` driver, such as network interfaces, reach the pod without a container that uses
    the claim; claims of a ``shareable`` one are made to be shared.
    """

    name: str
    title: str
    as_of: str
    complete: bool
    attributes: Mapping[str, Attribute]
    capacities: Mapping[str, Mapping[str, Any]]
    kinds: tuple[Kind, ...]
    classes: Mapping[str, tuple[str, ...]]
    resources: tuple[str, ...]
    resource_prefixes: tuple[str, ...]
    node_label: str
    extended: tuple[str, ...]
    configs: tuple[ConfigKind, ...] | None
    removed: Mapping[str, str]
    instead: Mapping[str, str]
    no_equal: Mapping[str, str]
    config_hints: Mapping[str, str]
    products: tuple[str, ...]
    mig_profiles: tuple[str, ...]
    mig_pattern: re.Pattern[str] | None
    taints: tuple[str, ...]
    pod_level: bool
    shareable: bool

    def knows(self, column: Column) -> bool:
        """Whether the driver has, or had, the attribute or capacity."""
        name = name_in(self.name, column)
        return name in (self.capacities if column.kind == "capacity" else self.attributes)

    def begins(self, resource: str) -> bool:
        """Whether a resource's name begins like one of its vendor's device plugin."""
        return resource.startswith(self.resource_prefixes) if self.resource_prefixes else False

    def kinds_of(self, device_class: str) -> tuple[Kind, ...]:
        """The kinds of device that one of the driver's own classes admits."""
        wanted = self.classes.get(device_class, ())
        return tuple(kind for kind in self.kinds if kind.name in wanted)


class Catalogue:
    """All drivers that are known. A driver's file is parsed when something of it is asked for."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts
        self._parsed: dict[str, Driver] = {}
        self._classes: tuple[str, ...] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all drivers."""
        return tuple(self._texts)

    @property
    def drivers(self) -> Mapping[str, Driver]:
        """All drivers by name."""
        return {name: self._driver(name) for name in self._texts}

    def driver(self, name: str) -> Driver | None:
        """The driver of a name, which is also the domain of its attributes."""
        return self._driver(name) if name in self._texts else None

    def of_class(self, name: str) -> Driver | None:
        """The driver that a class belongs to as it is installed."""
        return next((driver for driver in self._that_mention(name) if name in driver.classes), None)

    def of_resource(self, name: str) -> Driver | None:
        """The driver of the devices that a device plugin offers under a resource name."""
        whole = next((driver for driver in self._that_mention(name) if name in driver.resources), None)
        if whole is not None:
            return whole
        domain = name.partition("/")[0]
        return next((driver for driver in self._that_mention(f"[{domain}/") if driver.begins(name)), None)

    def classes(self) -> tuple[str, ...]:
        """The names of all classes. Nothing else of the files is parsed for them."""
        if self._classes is None:
            sections = [found[0] for text in self._texts.values() if (found := _CLASSES.search(text))]
            self._classes = tuple(name for section in sections for name in _parsed(section)["classes"])
        return self._classes

    def _that_mention(self, name: str) -> Iterator[Driver]:
        for driver, text in self._texts.items():
            if name in text:
                yield self._driver(driver)

    def _driver(self, name: str) -> Driver:
        found = self._parsed.get(name)
        if found is None:
            found = self._parsed[name] = _driver(_parsed(self._texts[name]))
        return found


def _parsed(text: str) -> Any:
    import yaml

    return yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))


@cache
def catalogue() -> Catalogue:
    """The drivers of this package; each has a file of its name."""
    files = sorted(File(__file__).with_name("driver_files").glob("*.yaml"))
    return Catalogue({file.stem: file.read_text(encoding="utf-8") for file in files})


def _driver(raw: Mapping[str, Any]) -> Driver:
    attributes = {name: _attribute(below) for name, below in (raw.get("attributes") or {}).items()}
    configs = raw.get("configs")
    mig = raw.get("mig") or {}
    hints = raw.get("hints") or {}
    return Driver(
        name=raw["driver"],
        title=raw["title"],
        as_of=str(raw["as_of"]),
        complete=raw["complete"],
        attributes=attributes,
        capacities=raw.get("capacities") or {},
        kinds=tuple(_kind(raw["driver"], below, attributes) for below in raw.get("kinds") or ()),
        classes={name: tuple(kinds) for name, kinds in (raw.get("classes") or {}).items()},
        resources=tuple(raw.get("resources") or ()),
        resource_prefixes=tuple(raw.get("resource_prefixes") or ()),
        node_label=raw.get("node_label") or "",
        extended=tuple(raw.get("extended") or ()),
        configs=None if configs is None else tuple(_config(entry) for entry in configs),
        removed=raw.get("removed") or {},
        instead=raw.get("instead") or {},
        no_equal={name: hints[hint] for name, hint in (raw.get("no_equal") or {}).items()},
        config_hints=raw.get("config_hints") or {},
        products=tuple(raw.get("products") or ()),
        mig_profiles=tuple(mig.get("profiles") or ()),
        mig_pattern=re.compile(mig["pattern"]) if mig else None,
        taints=tuple(raw.get("taints") or ()),
        pod_level=bool(raw.get("pod_level")),
        shareable=bool(raw.get("shareable")),
    )


def _attribute(raw: Mapping[str, Any]) -> Attribute:
    return Attribute(
        raw.get("type", ""),
        tuple(raw.get("values") or ()),
        bool(raw.get("unique")),
        str(raw.get("example", "")),
        raw.get("names", ""),
    )


def _kind(driver: str, raw: Mapping[str, Any], attributes: Mapping[str, Attribute]) -> Kind:
    sometimes = raw.get("sometimes") or ()
    return Kind(
        driver,
        raw["name"],
        raw.get("where") or {},
        frozenset(raw["always"]),
        None if sometimes == "*" else frozenset(sometimes),
        attributes,
        frozenset(raw.get("always_capacities") or ()),
    )


def _config(raw: Mapping[str, Any]) -> ConfigKind:
    ((kind, api_version),) = raw["kinds"].items()
    return ConfigKind(kind, api_version, raw["fields"])
