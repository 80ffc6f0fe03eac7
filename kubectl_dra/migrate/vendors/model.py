"""The content of a vendor's document: resources of device plugins, node labels, DeviceClasses, and their
surroundings.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple, Protocol

from kubectl_dra.data.drivers import InstalledClass, catalogue, installed_class, vendor_files
from kubectl_dra.manifests.workloads import GroupKind, TemplatePath

Outcome = Literal["auto", "note", "ask", "refuse", "keep"]
"""auto: migrated. note: migrated, with advice. ask: only people can decide. refuse: DRA has nothing for it.
keep: people have decided that it stays with its device plugin, so it is not reported.
"""
Kind = Literal[
    "whole", "partition", "shared", "fraction", "core", "monitoring", "passthrough", "network", "quota", "other"
]
EMPTY: Mapping[str, Any] = MappingProxyType({})


class Match(Protocol):
    """A match of a pattern: from ``re``, or from google-re2 for users' patterns."""

    def groupdict(self) -> dict[str, str | None]:
        """The texts of the named groups."""


class Pattern(Protocol):
    """A compiled pattern: from ``re``, or from google-re2 for users' patterns."""

    def fullmatch(self, text: str, /) -> Match | None:
        """Match the whole text."""


class Resource(NamedTuple):
    """What one resource name of a device plugin becomes: one request for as many devices as the quantity
    says.

    Attributes:
        name: the name in ``resources.limits``.
        vendor: the id of the vendor's file.
        kind: what one unit of it is.
        outcome: see ``Outcome``.
        device_class: the DeviceClass to request; empty if none is known.
        driver: the DRA driver of that class, which is the domain of its attributes.
        selectors: CEL of the request, in addition to the class's own, such as the profile of a MIG resource.
        capacity: ``capacity.requests`` of the request.
        allocation_mode: ``All`` if the driver gives a node's devices to one claim only; then only one container of
            the pod may request it, and its quantity is dropped.
        admin_access: the request needs ``adminAccess`` (and its namespace a label).
        message: the advice, question or reason for all outcomes but auto; it reads well after ``NAME: ``.
        way_out: what to do by hand, for ask and refuse.
        tolerations: what the admission plugin ExtendedResourceToleration adds to pods that request the resource, and
            nothing adds for claims.
        part_of: the resource whose request includes this one as capacity; it has no request of its own.
        extended_resource_since: since when ``device_class``, as installed, has the name as its
            ``extendedResourceName``; empty if it does not.
        gates: feature gates without which the request is not allocated.
        unsafe: the device may differ from what the device plugin gave.
    """

    name: str
    vendor: str
    kind: str
    outcome: Outcome
    device_class: str = ""
    driver: str = ""
    selectors: tuple[str, ...] = ()
    capacity: Mapping[str, str] = EMPTY
    allocation_mode: Literal["ExactCount", "All"] = "ExactCount"
    admin_access: bool = False
    message: str = ""
    way_out: str = ""
    tolerations: tuple[Mapping[str, str], ...] = ()
    part_of: str = ""
    extended_resource_since: str = ""
    gates: tuple[str, ...] = ()
    unsafe: bool = False


class Flag(NamedTuple):
    """What to do with something beside a resource: an environment variable, annotation, runtime class and so
    on.

    ``where`` is one of env, annotation, runtimeClassName, schedulerName and hostPath. ``action``: remove
    (with a note), keep (with a note), quiet (keep without a note) or ask (the pod is refused).
    """

    vendor: str
    where: str
    action: Literal["remove", "keep", "quiet", "ask"]
    message: str
    way_out: str = ""


class KnownDriver(NamedTuple):
    """What devices of a driver always have if a class admits them; selectors guard everything else.

    Users' vendor files provide it for drivers without a document in ``kubectl_dra/data/vendors``.
    """

    name: str
    always: frozenset[str]
    always_capacities: frozenset[str]
    kubernetes: str = ""
    notes: tuple[str, ...] = ()


class Suffix(NamedTuple):
    """A suffix of label values with an additional meaning: the GPU is shared, or a partition.

    ``values`` maps the texts of the pattern's groups; ``selector`` and ``device_class`` are added if the
    suffix is present. With ``refuse`` the pod is refused; ``kinds`` are the kinds of resource for which the
    suffix matters, empty for all.
    """

    pattern: Pattern
    device_class: str = ""
    selector: str = ""
    values: Mapping[str, Mapping[str, str]] = EMPTY
    note: str = ""
    refuse: str = ""
    way_out: str = ""
    kinds: tuple[str, ...] = ()


class Spelling(NamedTuple):
    """Difference between a label's values and those of the attribute.

    The attribute's value is that of ``map`` or, unless ``only`` those of the map are known, the label's value
    after ``replace``, with ``prefix`` before it. Values that do not match ``unless`` are also tried with
    ``also_prefix``.
    """

    replace: Mapping[str, str] = EMPTY
    map: Mapping[str, str] = EMPTY
    only: bool = False
    prefix: str = ""
    also_prefix: str = ""
    unless: Pattern | None = None


class LabelRule(NamedTuple):
    """What becomes of a node label (or, for HAMi, a pod's annotation) by which a pod chooses devices.

    Attributes:
        vendor: the id of the vendor's file.
        action: select (a selector replaces it), keep, keep-and-select, drop (the claim implies it) or setting (it
            is a setting of the device plugin: it is removed, with advice).
        key, pattern: which labels; one of the two.
        attribute, capacity: the device's value to compare it with; in the domain of the driver, unless it has one.
        form: CEL around that, which is ``{}``. forms: others for values of a pattern.
        compare: text, integer, version, quantity, mebibytes, gibibytes (rounded), pattern (RE2), topology (AxB, whose
            product is the quantity of the resource ``of``), list and contains (of comma-separated texts).
        device_class: the class that replaces the resource's.
        value: for drop, the value that is true of all devices; with ``from_key``, the one that means yes.
        from_key: the value to compare with, made from the pattern's groups.
        same_as: the key whose rule applies, likewise.
        note: what to know. quiet: there is nothing to know.
        kinds, only_for: the kinds of resource and the vendors to which it applies; for others the label is kept.
        harmless: values of a setting that change nothing for the pod.
        negated: the pod wants devices for which it does not hold.
    """

    vendor: str
    action: Literal["select", "keep", "keep-and-select", "drop", "setting"]
    key: str = ""
    pattern: Pattern | None = None
    attribute: str = ""
    capacity: str = ""
    form: str = "{}"
    forms: tuple[tuple[Pattern, str], ...] = ()
    compare: str = "text"
    spelling: Spelling = Spelling()
    suffixes: tuple[Suffix, ...] = ()
    device_class: str = ""
    value: str = ""
    of: str = ""
    from_key: str = ""
    same_as: str = ""
    note: str = ""
    quiet: bool = False
    kinds: tuple[str, ...] = ()
    only_for: tuple[str, ...] = ()
    harmless: tuple[str, ...] = ()
    negated: bool = False


class ResourceRule(NamedTuple):
    """The resource names that an entry covers, and what they become; the pattern's ``groups`` fill its texts.

    ``when_detected`` is for names shared by several vendors: the entry applies only if something else
    indicates the vendor. ``parts`` are resources beside it that become capacity of its request: (name,
    capacity, unit).
    """

    name: str
    pattern: Pattern | None
    fallback: bool
    when_detected: bool
    resource: Resource
    values: Mapping[str, Mapping[str, str]]
    parts: tuple[tuple[str, str, str], ...]


class FlagRule(NamedTuple):
    """A ``Flag`` and the names that it covers."""

    name: str
    pattern: Pattern | None
    flag: Flag


class Vendor(NamedTuple):
    """A vendor's file.

    ``domains`` are those of its names, or ``*`` for any. ``taints`` are keys of node taints that its pods
    tolerate. ``like`` are vendors whose labels and flags also apply to it; those of a vendor for ``everyone``
    apply to all. ``detect`` lists the resources, annotations and schedulers that indicate it. ``classes`` and
    ``drivers`` are those known only from this vendor's document: users' files, for drivers unknown here.
    """

    id: str
    title: str
    domains: tuple[str, ...]
    resources: tuple[ResourceRule, ...]
    labels: tuple[LabelRule, ...]
    annotations: tuple[LabelRule, ...]
    flags: tuple[FlagRule, ...]
    classes: Mapping[str, InstalledClass]
    drivers: Mapping[str, KnownDriver]
    taints: tuple[str, ...]
    like: tuple[str, ...]
    everyone: bool
    detect: Mapping[str, frozenset[str]]
    workloads: tuple[tuple[GroupKind, TemplatePath], ...] = ()


_PLACE: Final = re.compile(r"\{(\w+)\}")


def filled(text: str, groups: Mapping[str, str]) -> str:
    """The text with ``{name}`` replaced for each name in ``groups``."""
    return _PLACE.sub(lambda match: groups.get(match[1], match[0]), text) if groups else text


# Vendors' documents as values: this package's without checks, users' after all checks.

Compile = Callable[[str], Pattern]


class Known(Protocol):
    """What is known apart from a file."""

    def __contains__(self, id: str) -> bool:
        """Whether there is a vendor of the id."""

    def device_class(self, name: str, /) -> InstalledClass | None:
        """A DeviceClass as its driver installs it."""

    def driver(self, name: str, /) -> KnownDriver | None:
        """What is known about a driver."""


@cache
def built_in(id: str) -> Vendor:
    """A vendor of this package. Raises KeyError for an unknown one."""
    return vendor_of(vendor_files()[id].raw, re.compile, built_in_class)


def built_in_class(name: str) -> InstalledClass | None:
    """A class as installed by a driver of this package."""
    driver = catalogue().of_class(name) if name else None
    return driver.classes[name] if driver is not None else None


def linear(pattern: str) -> Pattern:
    """A user's pattern, compiled by google-re2 so that matching takes linear time."""
    from kubectl_dra.cel.library.regex import compile_pattern

    compiled: Pattern = compile_pattern(pattern)
    return compiled


def vendor_of(raw: Mapping[str, Any], compile: Compile, known: Callable[[str], InstalledClass | None]) -> Vendor:
    """The vendor of a document that fits the schema; ``known`` provides classes that it does not define.

    Raises what ``compile`` raises.
    """
    id = raw["vendor"]
    classes = {
        definition["name"]: installed_class(definition["driver"], definition) for definition in raw.get("classes", ())
    }

    def class_of(name: str) -> InstalledClass | None:
        return classes.get(name) or known(name)

    detect = raw.get("detect", EMPTY)
    return Vendor(
        id=id,
        title=raw["title"],
        domains=tuple(raw.get("domains", ())),
        resources=tuple(_resource(id, resource, class_of, compile) for resource in raw.get("resources", ())),
        labels=tuple(_label(id, label, compile) for label in raw.get("labels", ())),
        annotations=tuple(_label(id, annotation, compile) for annotation in raw.get("annotations", ())),
        flags=tuple(_flag(id, flag, compile) for flag in raw.get("beside", ())),
        classes=classes,
        drivers={driver["name"]: _driver(driver) for driver in raw.get("drivers", ())},
        taints=tuple(raw.get("taints", ())),
        like=tuple(raw.get("like", ())),
        everyone=raw.get("everyone", False),
        detect={key: frozenset(names) for key, names in detect.items()},
        workloads=tuple(
            ((workload["group"], workload["kind"]), tuple(workload["path"].split(".")))
            for workload in raw.get("workloads", ())
        ),
    )


def _driver(raw: Mapping[str, Any]) -> KnownDriver:
    return KnownDriver(
        raw["name"],
        frozenset(raw.get("always", ())),
        frozenset(raw.get("always_capacities", ())),
        str(raw.get("kubernetes", "")),
        tuple(raw.get("notes", ())),
    )


def _resource(
    vendor: str, raw: Mapping[str, Any], class_of: Callable[[str], InstalledClass | None], compile: Compile
) -> ResourceRule:
    name = raw.get("name", "")
    wanted = raw.get("class", "")
    device_class = class_of(wanted)
    carries = device_class is not None and name and device_class.extended_resource == name
    resource = Resource(
        name=name,
        vendor=vendor,
        kind=raw["kind"],
        outcome=raw.get("outcome", "auto"),
        device_class=wanted,
        driver=device_class.driver if device_class else raw.get("driver", ""),
        selectors=tuple(raw.get("selectors", ())),
        capacity=raw.get("capacity", EMPTY),
        allocation_mode=raw.get("mode", "ExactCount"),
        admin_access=raw.get("admin_access", False),
        message=raw.get("message", ""),
        way_out=raw.get("way_out", ""),
        part_of=raw.get("part_of", ""),
        extended_resource_since=device_class.since if device_class and carries else "",
        gates=tuple(raw.get("gates", ())),
        unsafe=raw.get("unsafe", False),
    )
    return ResourceRule(
        name,
        compile(raw["pattern"]) if "pattern" in raw else None,
        raw.get("fallback", False),
        raw.get("when") == "detected",
        resource,
        raw.get("values", EMPTY),
        tuple((part["name"], part["capacity"], part.get("unit", "")) for part in raw.get("parts", ())),
    )


def _label(vendor: str, raw: Mapping[str, Any], compile: Compile) -> LabelRule:
    spelling = raw.get("spelling", EMPTY)
    return LabelRule(
        vendor=vendor,
        action=raw["action"],
        key=raw.get("key", ""),
        pattern=compile(raw["pattern"]) if "pattern" in raw else None,
        attribute=raw.get("attribute", ""),
        capacity=raw.get("capacity", ""),
        form=raw.get("form", "{}"),
        forms=tuple((compile(form["values"]), form["form"]) for form in raw.get("forms", ())),
        compare=raw.get("compare", "text"),
        spelling=Spelling(
            spelling.get("replace", EMPTY),
            spelling.get("map", EMPTY),
            spelling.get("only", False),
            spelling.get("prefix", ""),
            spelling.get("also_prefix", ""),
            compile(spelling["unless"]) if "unless" in spelling else None,
        ),
        suffixes=tuple(_suffix(suffix, compile) for suffix in raw.get("suffixes", ())),
        device_class=raw.get("class", ""),
        value=raw.get("value", ""),
        of=raw.get("of", ""),
        from_key=raw.get("from_key", ""),
        same_as=raw.get("same_as", ""),
        note=raw.get("note", ""),
        quiet=raw.get("quiet", False),
        kinds=tuple(raw.get("kinds", ())),
        only_for=tuple(raw.get("only_for", ())),
        harmless=tuple(raw.get("harmless", ())),
        negated=raw.get("negated", False),
    )


def _suffix(raw: Mapping[str, Any], compile: Compile) -> Suffix:
    return Suffix(
        # Greedy, so that the ending is no longer than it must be.
        compile(f"(?P<before>.*)(?:{raw['pattern']})"),
        raw.get("class", ""),
        raw.get("selector", ""),
        raw.get("values", EMPTY),
        raw.get("note", ""),
        raw.get("refuse", ""),
        raw.get("way_out", ""),
        tuple(raw.get("kinds", ())),
    )


def _flag(vendor: str, raw: Mapping[str, Any], compile: Compile) -> FlagRule:
    flag = Flag(vendor, raw["where"], raw["action"], raw.get("message", ""), raw.get("way_out", ""))
    return FlagRule(raw.get("name", ""), compile(raw["pattern"]) if "pattern" in raw else None, flag)
