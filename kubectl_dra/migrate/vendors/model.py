"""The content of a vendor's document: resources of device plugins, node labels, DeviceClasses, and their
surroundings.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, Final, Literal, Protocol, runtime_checkable

from msgspec import Struct, convert, field

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


@runtime_checkable
class Pattern(Protocol):
    """A compiled pattern: from ``re``, or from google-re2 for users' patterns."""

    def fullmatch(self, text: str, /) -> Match | None:
        """Match the whole text."""


@runtime_checkable
class SuffixPattern(Pattern, Protocol):
    """The pattern of a text's end; what is before it is the group ``before``."""


class Resource(Struct, frozen=True, rename={"device_class": "class", "allocation_mode": "mode"}):
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
    outcome: Outcome = "auto"
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


class Flag(Struct, frozen=True):
    """What to do with something beside a resource: an environment variable, annotation, runtime class and so
    on.

    ``where`` is one of env, annotation, runtimeClassName, schedulerName and hostPath, ``name`` or ``pattern`` what
    there. ``action``: remove (with a note), keep (with a note), quiet (keep without a note) or ask (the pod is
    refused).
    """

    vendor: str
    where: str
    action: Literal["remove", "keep", "quiet", "ask"]
    name: str = ""
    pattern: Pattern | None = None
    message: str = ""
    way_out: str = ""


class KnownDriver(Struct, frozen=True):
    """What devices of a driver always have if a class admits them; selectors guard everything else.

    Users' vendor files provide it for drivers without a document in ``kubectl_dra/data/vendors``.
    """

    name: str
    always: frozenset[str] = frozenset()
    always_capacities: frozenset[str] = frozenset()
    kubernetes: str = ""
    notes: tuple[str, ...] = ()


class Suffix(Struct, frozen=True, rename={"device_class": "class"}):
    """A suffix of label values with an additional meaning: the GPU is shared, or a partition.

    ``values`` maps the texts of the pattern's groups; ``selector`` and ``device_class`` are added if the
    suffix is present. With ``refuse`` the pod is refused; ``kinds`` are the kinds of resource for which the
    suffix matters, empty for all.
    """

    pattern: SuffixPattern
    device_class: str = ""
    selector: str = ""
    values: Mapping[str, Mapping[str, str]] = EMPTY
    note: str = ""
    refuse: str = ""
    way_out: str = ""
    kinds: tuple[str, ...] = ()


class Spelling(Struct, frozen=True):
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


class LabelForm(Struct, frozen=True):
    """CEL around an attribute, which is ``{}``, for the label's values that match."""

    values: Pattern
    form: str


class LabelRule(Struct, frozen=True, rename={"device_class": "class"}):
    """What becomes of a node label (or, for HAMi, a pod's annotation) by which a pod chooses devices.

    Attributes:
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

    action: Literal["select", "keep", "keep-and-select", "drop", "setting"]
    key: str = ""
    pattern: Pattern | None = None
    attribute: str = ""
    capacity: str = ""
    form: str = "{}"
    forms: tuple[LabelForm, ...] = ()
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


class ResourcePart(Struct, frozen=True):
    """A resource beside another one that becomes ``capacity`` of its request, in a ``unit``."""

    name: str
    capacity: str
    unit: str = ""


class ResourceRule(Struct, frozen=True):
    """The resource names that an entry covers, and what they become; the pattern's ``groups`` fill its texts.

    ``when_detected`` is for names shared by several vendors: the entry applies only if something else
    indicates the vendor.
    """

    resource: Resource
    name: str = ""
    pattern: Pattern | None = None
    fallback: bool = False
    when_detected: bool = False
    values: Mapping[str, Mapping[str, str]] = EMPTY
    parts: tuple[ResourcePart, ...] = ()


class Vendor(Struct, frozen=True):
    """A vendor's file.

    ``domains`` are those of its names, or ``*`` for any. ``taints`` are keys of node taints that its pods
    tolerate. ``like`` are vendors whose labels and flags also apply to it; those of a vendor for ``everyone``
    apply to all. ``detect`` lists the resources, annotations and schedulers that indicate it. ``classes`` and
    ``drivers`` are those known only from this vendor's document: users' files, for drivers unknown here.
    """

    id: str = field(name="vendor")
    title: str
    classes: Mapping[str, InstalledClass]
    drivers: Mapping[str, KnownDriver]
    workloads: tuple[tuple[GroupKind, TemplatePath], ...]
    resources: tuple[ResourceRule, ...]
    domains: tuple[str, ...] = ()
    labels: tuple[LabelRule, ...] = ()
    annotations: tuple[LabelRule, ...] = ()
    flags: tuple[Flag, ...] = field(name="beside", default=())
    taints: tuple[str, ...] = ()
    like: tuple[str, ...] = ()
    everyone: bool = False
    detect: Mapping[str, frozenset[str]] = EMPTY


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
    classes = {item["name"]: installed_class(item["driver"], item) for item in raw.get("classes", ())}

    def resource(entry: Mapping[str, Any]) -> Mapping[str, Any]:
        """An entry together with what it becomes."""
        name, wanted = entry.get("name", ""), entry.get("class", "")
        device_class = classes.get(wanted) or known(wanted)
        derived = {"name": name, "vendor": raw["vendor"]}
        if device_class is not None:
            carries = name and device_class.extended_resource == name
            derived |= {"driver": device_class.driver, "extended_resource_since": device_class.since if carries else ""}
        return {**entry, "when_detected": "when" in entry, "resource": {**entry, **derived}}

    content = {
        **raw,
        "classes": classes,
        "drivers": {driver["name"]: driver for driver in raw.get("drivers", ())},
        "workloads": [((kind["group"], kind["kind"]), kind["path"].split(".")) for kind in raw.get("workloads", ())],
        "resources": [resource(entry) for entry in raw.get("resources", ())],
        "beside": [{**flag, "vendor": raw["vendor"]} for flag in raw.get("beside", ())],
    }

    def compiled(kind: type, text: str) -> Pattern:
        # Greedy, so that the ending is no longer than it must be.
        return compile(f"(?P<before>.*)(?:{text})" if kind is SuffixPattern else text)

    return convert(content, Vendor, dec_hook=compiled)
