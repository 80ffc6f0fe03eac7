"""The drivers that the vendors' files describe. Nothing is parsed before it is needed."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from functools import cache, cached_property
from itertools import chain
from pathlib import Path as File
from typing import Any, Final

from msgspec import Struct, convert

from kubectl_dra.cel.columns import Column
from kubectl_dra.data.driver_releases import DriverDefect, DriverGate, newest_before

# The vendors' files, split into documents that are parsed on demand.

FOLDER: Final = File(__file__).with_name("vendors")
_DRIVER: Final = re.compile(r"^driver: (\S+)$", re.MULTILINE)
_DOMAINS: Final = re.compile(r"^domains:\s*\[([^\]]*)\]", re.MULTILINE)
_EVERYONE: Final = re.compile(r"^everyone: true", re.MULTILINE)


class VendorFile:
    """A vendor's file: ``text`` is its first document, ``drivers`` are the others by driver name."""

    def __init__(self, id: str, content: str) -> None:
        self.id = id
        self.text, *others = content.split("\n---\n")
        self.drivers: Mapping[str, str] = {_DRIVER.findall(text)[0]: text for text in others}

    @cached_property
    def domains(self) -> tuple[str, ...]:
        """The domains of the vendor's resource names, or ``*`` for any."""
        match = _DOMAINS.search(self.text)
        return tuple(part.strip(" \n\"'") for part in match[1].split(",") if part.strip()) if match else ()

    @cached_property
    def everyone(self) -> bool:
        """Whether its labels apply to pods of all vendors."""
        return _EVERYONE.search(self.text) is not None

    @cached_property
    def raw(self) -> Mapping[str, Any]:
        """The first document."""
        document: Mapping[str, Any] = parsed(self.text)
        return document


@cache
def vendor_files() -> Mapping[str, VendorFile]:
    """The files of this package by vendor id, which is the file's name."""
    return {file.stem: VendorFile(file.stem, file.read_text("utf-8")) for file in sorted(FOLDER.glob("*.yaml"))}


def parsed(text: str) -> Any:
    """The value of a YAML text."""
    import yaml

    return yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def table(name: str) -> Any:
    """The value of a YAML file beside the vendors' folder."""
    return parsed(FOLDER.with_name(name).read_text("utf-8"))


STANDARD: Final = "resource.kubernetes.io"
"""The domain of attributes that all drivers share."""
_CLASSES: Final = re.compile(r"^classes:.*(?:\n[ #].*)*", re.MULTILINE)
_POD: Final = re.compile(r"^pod:.*(?:\n[ #].*)*", re.MULTILINE)
_WHOLE_NODE: Final = re.compile(r"^whole_node: true", re.MULTILINE)
_ONE_POD: Final = re.compile(r"^one_pod: true", re.MULTILINE)


class Attribute(Struct, frozen=True):
    """An attribute of a driver. ``type`` is string, int, bool or version; empty if unknown.

    ``values`` are all possible values; empty if open. No two devices have the same value of a ``unique`` one.
    A ``single`` one says which device of a node it is, and nothing about what kind of device that is. One ``of_node``
    depends on how many devices the node has.
    ``names`` says which list of names its values come from: "products" or "mig".
    ``since`` is the first release of the driver that publishes it, if that is to be said; ``before`` is the attribute
    of earlier ones that comes nearest.
    """

    type: str = ""
    values: tuple[str, ...] = ()
    unique: bool = False
    single: bool = False
    of_node: bool = False
    example: str = ""
    names: str = ""
    since: str = ""
    before: str = ""


def name_in(driver: str, column: Column) -> str:
    """The name of a column in a driver's document, without the driver's own domain."""
    own = column.domain is None or column.domain == driver
    return column.id or "" if own else f"{column.domain}/{column.id}"


class Kind(Struct, frozen=True):
    """One kind of device of a driver: a ``Shape`` for ``lint.analysis.possible_results``.

    ``given`` are the values that define this kind, ``absent`` what its devices never or not always have.
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
        """See ``lint.analysis.possible_results.Shape``. What only some devices have counts as absent."""
        name = name_in(self.driver, column)
        if column.kind == "capacity":
            return None if name in self.capacities else ()
        if name in self.given:
            return (self.given[name],)
        if name not in self.always:
            return ()
        attribute = self.attributes.get(name)
        return attribute.values if attribute is not None and attribute.values else None


class ConfigKind(Struct, frozen=True):
    """An opaque config of a driver. A field's type is int, percent, string, bool, quantity, any, a list or a mapping.

    A list has the possible values; a mapping has fields, or what each entry of a list has under ``[]``. ``kind`` and
    ``api_version`` may be empty. Of some it is known which kinds of ``devices`` it is for, and which fields go only
    ``beside`` a value of another one: the driver refuses what does not suit, or ignores such fields if not ``strict``.
    """

    kind: str
    api_version: str
    fields: Mapping[str, Any]
    devices: tuple[str, ...] = ()
    beside: Mapping[str, Mapping[str, str]] = {}
    strict: bool = True


class InstalledClass(Struct, frozen=True):
    """A DeviceClass as the driver's chart installs it.

    ``selector`` is its CEL, empty if unknown. ``extended_resource`` is its ``extendedResourceName``,
    ``since`` the first release of the driver that sets it. ``kinds`` are the kinds of device that it admits.
    """

    name: str
    driver: str
    selector: str = ""
    extended_resource: str = ""
    since: str = ""
    note: str = ""
    kinds: tuple[str, ...] = ()


class PodLook(Struct, frozen=True):
    """Signs of a driver's pods that run on nodes.

    ``signs`` are parts of the name of its DaemonSet, of its images or of its program; ``container`` is the one that
    serves the devices, which a ``required`` look has always: other drivers are in the same pod. ``gates`` is the
    variable or the flag with the driver's feature gates, if it has any. ``needs`` are parts of names of DaemonSets on
    which it depends: it has to start after their pods. ``waits`` is for what its init container waits, and what to do.
    """

    driver: str
    container: str
    signs: tuple[str, ...]
    required: bool = False
    gates: str = ""
    needs: tuple[str, ...] = ()
    waits: str = ""


class Driver(Struct, frozen=True):
    """A driver as its document describes it. ``configs`` is None if its parameters are unknown.

    ``kubernetes`` is the first release that it runs on, ``notes`` are what to know before installing it, ``unseen`` is
    what defeats it on a ``{node}`` though no object of the API says so. ``writes``: versions of
    resource.k8s.io, each with the first release that writes it.

    Devices of a ``pod_level`` driver, such as network interfaces, reach the pod without a container that uses
    the claim. Claims of a ``shareable`` one are meant to be shared. ``passing_taints``: of its taints those that say no
    fault, each with what ends it. ``products``: by name, the attributes and capacities that each of their devices has;
    those of ``arm64`` are built together with such CPUs alone. ``mig_by_product``: the profiles of partitions of each.
    """

    name: str
    title: str
    as_of: str
    complete: bool
    attributes: Mapping[str, Attribute]
    kinds: tuple[Kind, ...]
    classes: Mapping[str, InstalledClass]
    configs: tuple[ConfigKind, ...] | None
    kubernetes: str = ""
    notes: tuple[str, ...] = ()
    capacities: Mapping[str, Mapping[str, Any]] = {}
    removed: Mapping[str, str] = {}
    instead: Mapping[str, str] = {}
    no_equal: Mapping[str, str] = {}
    config_hints: Mapping[str, str] = {}
    products: Mapping[str, Mapping[str, str]] = {}
    mig_profiles: tuple[str, ...] = ()
    mig_by_product: Mapping[str, tuple[str, ...]] = {}
    mig_pattern: re.Pattern[str] | None = None
    mig_label: str = ""
    without_mig: tuple[str, ...] = ()
    taints: tuple[str, ...] = ()
    passing_taints: Mapping[str, str] = {}
    pod_level: bool = False
    shareable: bool = False
    gates: tuple[DriverGate, ...] = ()
    defects: tuple[DriverDefect, ...] = ()
    unseen: str = ""
    unseen_command: str = ""
    writes: Mapping[str, str] = {}
    arm64: tuple[str, ...] = ()

    @property
    def product_names(self) -> tuple[str, ...]:
        """The products that are known."""
        return tuple(self.products)

    @property
    def product_attribute(self) -> str:
        """The attribute that says which product a device is; empty if no products are known."""
        return next((name for name, known in self.attributes.items() if known.names == "products"), "")

    @property
    def profile_attribute(self) -> str:
        """The attribute with the profile of a partition (MIG); empty if the driver publishes none."""
        return next((name for name, known in self.attributes.items() if known.names == "mig"), "")

    def has_mig_profile(self, product: str, profile: str) -> bool | None:
        """Whether devices of a product can be partitioned like that; None if the catalogue does not say.

        With an empty profile: whether they can be partitioned at all.
        """
        if product in self.without_mig:
            return False
        if not profile:
            return True if self.mig_by_product and product in self.products else None
        known = self.mig_by_product.get(product)
        return None if known is None else whole_partition(profile) in known

    def api_version(self, version: str) -> str:
        """The version of resource.k8s.io that a release of the driver writes; empty if that is not known."""
        return newest_before(version, self.writes)

    def gates_needed(self, parameters: Any) -> Iterator[tuple[DriverGate, str]]:
        """The gates that a config needs, each with what in it needs the gate."""
        for gate in self.gates if isinstance(parameters, Mapping) else ():
            if needing := gate.needing(parameters):
                yield gate, next(iter(needing))

    def knows(self, column: Column) -> bool:
        """Whether the driver has, or had, the attribute or capacity."""
        name = name_in(self.name, column)
        return name in (self.capacities if column.kind == "capacity" else self.attributes)

    def written(self, capacity: str) -> str:
        """The name of a capacity as the driver writes it in a ResourceSlice, mostly without a domain."""
        return f"{self.name}/{capacity}" if self.capacities[capacity].get("qualified") else capacity

    def kinds_of(self, device_class: str) -> tuple[Kind, ...]:
        """The kinds of device that one of the driver's own classes admits."""
        installed = self.classes.get(device_class)
        return tuple(kind for kind in self.kinds if installed is not None and kind.name in installed.kinds)

    def offers(self, resource: str) -> bool:
        """Whether one of its classes has the resource as extendedResourceName, in the driver's newest release."""
        return any(installed.extended_resource == resource for installed in self.classes.values())


class Catalogue:
    """All known drivers. A document is parsed when something from it is requested."""

    def __init__(self, files: Mapping[str, VendorFile]) -> None:
        self._files = files
        self._texts = {name: text for file in files.values() for name, text in file.drivers.items()}
        self._parsed: dict[str, Driver] = {}
        self._of_class: dict[str, Driver | None] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all drivers."""
        return tuple(self._texts)

    @property
    def drivers(self) -> Mapping[str, Driver]:
        """All drivers by name."""
        return {name: self._driver(name) for name in self._texts}

    def driver(self, name: str) -> Driver | None:
        """The driver with a name, which is also the domain of its attributes."""
        return self._driver(name) if name in self._texts else None

    def of_class(self, name: str) -> Driver | None:
        """The driver that installs a class."""
        if name not in self._of_class:
            mention = (self._driver(driver) for driver, text in self._texts.items() if name in text)
            self._of_class[name] = next((driver for driver in mention if name in driver.classes), None)
        return self._of_class[name]

    def of_resource(self, name: str, signs: Collection[str] = ()) -> Driver | None:
        """The driver for the devices that a vendor's device plugin offers under a resource name.

        ``signs`` are what a pod has besides: other resources, keys of annotations, its scheduler. They tell HAMi's
        nvidia.com/gpu from NVIDIA's. None if all that does not tell the vendor.
        """
        domain = name.partition("/")[0]
        detected = {
            vendor: any(sign in listed for listed in file.raw.get("detect", {}).values() for sign in signs)
            for vendor, file in self._files.items()
        }
        for vendor, file in sorted(self._files.items(), key=lambda item: not detected[item[0]]):
            if domain in file.domains:
                for resource in file.raw["resources"]:
                    whole = ("when" not in resource or detected[vendor]) and "part_of" not in resource
                    if whole and (name == resource.get("name") or _fits(resource.get("pattern"), name)):
                        driver = resource.get("driver")
                        return self.driver(driver) if driver else self.of_class(resource.get("class", ""))
        return None

    def labels_of_nodes(self, driver: str) -> tuple[str, ...]:
        """Node labels that are "true" on nodes with devices of a driver's vendor, whoever serves the devices."""
        vendor = next((file for file in self._files.values() if driver in file.drivers), None)
        labels = vendor.raw.get("labels", ()) if vendor is not None else ()
        # Some rules are about many keys, by a pattern.
        own = (label for label in labels if label["action"] == "drop" and label.get("value") == "true")
        return tuple(label["key"] for label in own if "key" in label)

    @cached_property
    def classes(self) -> tuple[str, ...]:
        """The names of all classes, without parsing anything else of the documents."""
        sections = [match[0] for text in self._texts.values() if (match := _CLASSES.search(text))]
        return tuple(row["name"] for section in sections for row in parsed(section)["classes"])

    @cached_property
    def whole_node(self) -> frozenset[str]:
        """The drivers that prepare all devices of a node for a claim, or none."""
        return frozenset(name for name, text in self._texts.items() if _WHOLE_NODE.search(text))

    @cached_property
    def one_pod(self) -> frozenset[str]:
        """The drivers that give the devices of a claim to one pod only."""
        return frozenset(name for name, text in self._texts.items() if _ONE_POD.search(text))

    @cached_property
    def looks(self) -> tuple[PodLook, ...]:
        """Signs of the pods of all drivers, without parsing anything else of the documents."""
        sections = ((name, _POD.search(text)) for name, text in self._texts.items())
        pods = ((name, parsed(section[0])["pod"]) for name, section in sections if section is not None)
        return tuple(convert({"driver": name, **pod}, PodLook) for name, pod in pods)

    def _driver(self, name: str) -> Driver:
        driver = self._parsed.get(name)
        if driver is None:
            driver = self._parsed[name] = _driver(parsed(self._texts[name]))
        return driver


def _fits(pattern: str | None, name: str) -> bool:
    return pattern is not None and re.fullmatch(pattern, name) is not None


@cache
def catalogue() -> Catalogue:
    """The drivers of this package."""
    return Catalogue(vendor_files())


def _driver(raw: Mapping[str, Any]) -> Driver:
    name, mig = raw["driver"], raw.get("mig") or {}
    by_product = mig.get("profiles", {})
    attributes = {written: _attribute(below) for written, below in (raw.get("attributes") or {}).items()}
    kinds = tuple(_kind(name, below, attributes) for below in raw.get("kinds") or ())
    own = {
        "name": name,
        "attributes": attributes,
        "kinds": kinds,
        "classes": {below["name"]: installed_class(name, below, kinds) for below in raw.get("classes") or ()},
        "configs": [_config(below) for below in raw["configs"]] if "configs" in raw else None,
        "no_equal": {written: raw["hints"][hint] for written, hint in (raw.get("no_equal") or {}).items()},
        "mig_profiles": list(dict.fromkeys(chain.from_iterable(by_product.values()))),
        "mig_by_product": by_product,
        "mig_pattern": re.compile(mig["pattern"]) if mig else None,
        "mig_label": mig.get("label", ""),
        "without_mig": mig.get("without", ()),
    }
    return convert({**raw, **own}, Driver)


def whole_partition(profile: str) -> str:
    """The MIG profile to which a compute instance, or one with or without media extensions, belongs."""
    return profile.rpartition("c.")[2].partition("+")[0].removesuffix("-me")


def installed_class(driver: str, raw: Mapping[str, Any], kinds: tuple[Kind, ...] = ()) -> InstalledClass:
    """A class as a file gives it. If it names no kinds of device, it admits all."""
    admits = raw.get("kinds", ()) or tuple(kind.name for kind in kinds)
    return convert({**raw, "driver": driver, "kinds": admits}, InstalledClass)


def _attribute(raw: Mapping[str, Any]) -> Attribute:
    texts = {name: str(raw[name]) for name in ("example", "since") if name in raw}
    return convert({**raw, **texts}, Attribute)


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
    return convert({**raw, "kind": kind, "api_version": api_version}, ConfigKind)
