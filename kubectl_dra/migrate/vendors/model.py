"""What a vendor's document says: resources of device plugins, node labels, DeviceClasses, and things beside them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple, Protocol

from kubectl_dra.data.drivers import InstalledClass

Outcome = Literal["auto", "note", "ask", "refuse", "keep"]
"""auto: migrated. note: migrated, with advice. ask: only people know what is meant. refuse: DRA has nothing for it.
keep: people have decided that it stays with its device plugin, so nothing is said of it."""

Kind = Literal[
    "whole", "partition", "shared", "fraction", "core", "monitoring", "passthrough", "network", "quota", "other"
]

EMPTY: Mapping[str, Any] = MappingProxyType({})


class Match(Protocol):
    """Where a pattern fits: of ``re``, or of google-re2 for patterns of users."""

    def groupdict(self) -> dict[str, str | None]:
        """The texts of the named groups."""


class Pattern(Protocol):
    """A compiled pattern: of ``re``, or of google-re2 for patterns of users."""

    def fullmatch(self, text: str, /) -> Match | None:
        """Whether the whole text fits."""


class Resource(NamedTuple):
    """What one resource name of a device plugin becomes: one request for as many devices as the quantity says.

    Attributes:
        name: the name in ``resources.limits``.
        vendor: the id of the vendor's file.
        kind: what one unit of it is.
        outcome: see ``Outcome``.
        device_class: the DeviceClass to ask for; empty if none is known.
        driver: the DRA driver of that class, which is the domain of its attributes.
        selectors: CEL of the request, beyond the class's own, such as the profile of a MIG resource.
        capacity: ``capacity.requests`` of the request.
        allocation_mode: ``All`` where the driver gives a node's devices to one claim only; then one container of the
            pod may ask, and its quantity goes.
        admin_access: the request needs ``adminAccess`` (and its namespace a label).
        message: the advice, question or reason of all outcomes but auto; it reads well after ``NAME: ``.
        way_out: what to do by hand, for ask and refuse.
        tolerations: what the admission plugin ExtendedResourceToleration adds to pods that ask for the resource, and
            nothing adds for claims.
        part_of: the resource whose request takes this one in as capacity; it has no request of its own.
        extended_resource_since: since when ``device_class`` carries the name as its ``extendedResourceName``, as it is
            installed; empty if it does not.
        gates: feature gates without which the request is not allocated.
        unsafe: the device is not certainly what the device plugin gave.
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
    """What to do with something beside a resource: an environment variable, annotation, runtime class and so on.

    ``where`` is one of env, annotation, runtimeClassName, schedulerName and hostPath. ``action``:
    remove (and say so), keep (and say so), quiet (keep, nothing to say) or ask (the pod is refused).
    """

    vendor: str
    where: str
    action: Literal["remove", "keep", "quiet", "ask"]
    message: str
    way_out: str = ""


class KnownDriver(NamedTuple):
    """What devices of a driver always have, where a class admits them; anything else is guarded in selectors.

    Vendors' files of users say it of drivers that have no document in ``kubectl_dra/data/vendors``.
    """

    name: str
    always: frozenset[str]
    always_capacities: frozenset[str]
    kubernetes: str = ""
    notes: tuple[str, ...] = ()


class Suffix(NamedTuple):
    """An ending of label values that says more than the label: that the GPU is shared, or a partition.

    ``values`` maps the texts of the pattern's groups; ``selector`` and ``device_class`` are added where it is there.
    With ``refuse`` the pod is refused; ``kinds`` are the kinds of resource that it is looked for with, none for all.
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
    """How a label's values differ from those of the attribute.

    The attribute's value is that of ``map`` or, unless ``only`` those of the map are known, the label's with
    ``replace`` done and ``prefix`` before it. Values that do not match ``unless`` also count with ``also_prefix``.
    """

    replace: Mapping[str, str] = EMPTY
    map: Mapping[str, str] = EMPTY
    only: bool = False
    prefix: str = ""
    also_prefix: str = ""
    unless: Pattern | None = None


class LabelRule(NamedTuple):
    """What becomes of a node label (or, for HAMi, of a pod's annotation) that a pod chooses by.

    Attributes:
        vendor: the id of the vendor's file.
        action: select (a selector takes its place), keep, keep-and-select, drop (the claim implies it) or setting (it
            is a setting of the device plugin: it goes, with advice).
        key, pattern: which labels; one of the two.
        attribute, capacity: what of the device it is compared with; in the domain of the driver, unless it has one.
        form: CEL around that, which is ``{}``. forms: others for values of a pattern.
        compare: text, integer, version, quantity, mebibytes, gibibytes (rounded), pattern (RE2), topology (AxB, whose
            product is the quantity of the resource ``of``), list and contains (of comma-separated texts).
        device_class: the class that takes the place of the resource's.
        value: for drop, the value that is true of all devices; with ``from_key``, the one that says yes.
        from_key: the value to compare with, made of the pattern's groups. same_as: the key whose rule counts, likewise.
        note: what to know. quiet: there is nothing to know.
        kinds, only_for: the kinds of resource and the vendors that it is for; it is kept with others.
        harmless: values of a setting with which nothing changes for the pod.
        negated: devices are wanted for which it is not true.
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
    """Which resource names an entry is about, and what they become; ``groups`` of the pattern fill its texts.

    ``when_detected`` is for names that several vendors share: it counts only where the vendor is seen otherwise.
    ``parts`` are resources beside it that become capacity of its request: (name, capacity, unit).
    """

    name: str
    pattern: Pattern | None
    fallback: bool
    when_detected: bool
    resource: Resource
    values: Mapping[str, Mapping[str, str]]
    parts: tuple[tuple[str, str, str], ...]


class FlagRule(NamedTuple):
    """A ``Flag`` and the names that it is for."""

    name: str
    pattern: Pattern | None
    flag: Flag


class Vendor(NamedTuple):
    """A vendor's file.

    ``domains`` are those of its names, ``*`` where it may be any. ``taints`` are keys of node taints that its pods
    tolerate. ``like`` are vendors whose labels and flags count for it, too; those of a vendor for ``everyone`` count
    for all. ``detect`` says by which resources, annotations and schedulers it is seen. ``classes`` and ``drivers``
    are those that only this vendor's document tells of: files of users, for drivers that are not known here.
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


_PLACE: Final = re.compile(r"\{(\w+)\}")


def filled(text: str, groups: Mapping[str, str]) -> str:
    """The text with ``{name}`` replaced where ``groups`` has the name."""
    return _PLACE.sub(lambda match: groups.get(match[1], match[0]), text) if groups else text
