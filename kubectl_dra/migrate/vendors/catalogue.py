"""All vendors: what their device-plugin resources and node labels become. The data is in ``data/vendors/``."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from kubectl_dra.api.quantity import Quantity
from kubectl_dra.data.drivers import InstalledClass, VendorFile, vendor_files
from kubectl_dra.data.drivers import catalogue as drivers
from kubectl_dra.manifests.workloads import GroupKind, TemplatePath
from kubectl_dra.migrate.vendors.model import (
    EMPTY,
    Flag,
    KnownDriver,
    LabelRule,
    Resource,
    ResourceRule,
    Suffix,
    Vendor,
    built_in,
    built_in_class,
    filled,
)

_NAME: Final = re.compile(
    r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?", re.ASCII
)


def is_extended(name: object) -> bool:
    """Whether this names an extended resource: domain/name, not Kubernetes' own, not a quota's ``requests.`` key."""
    if not isinstance(name, str) or name.startswith("requests.") or "kubernetes.io/" in name:
        return False
    return _NAME.fullmatch(name) is not None


class Labelled(NamedTuple):
    """The rule of a label, and the key's texts for the groups of the rule's pattern."""

    rule: LabelRule
    groups: Mapping[str, str]


Fitting = tuple[ResourceRule, Mapping[str, str]]
"""An entry that matches a name, and the name's texts for the groups of its pattern."""


class VendorCatalogue:
    """All vendors: the user's, then this package's, whose files are parsed on demand."""

    def __init__(self, own: Sequence[Vendor] = ()) -> None:
        self._files = vendor_files()
        self._own = {vendor.id: vendor for vendor in own}

    @property
    def own(self) -> Sequence[Vendor]:
        """The user's vendors."""
        return tuple(self._own.values())

    @property
    def vendors(self) -> Mapping[str, Vendor]:
        """All vendors by id, the user's first."""
        return {**self._own, **{id: built_in(id) for id in self._files}}

    @cached_property
    def workloads(self) -> Sequence[tuple[GroupKind, TemplatePath]]:
        """Kinds of the user's files, each with a path of its pod specs."""
        return tuple(workload for vendor in self._own.values() for workload in vendor.workloads)

    def __contains__(self, id: str) -> bool:
        """Whether there is a vendor of the id."""
        return id in self._own or id in self._files

    def vendor(self, id: str) -> Vendor:
        """A vendor by id. Raises KeyError."""
        return self._own[id] if id in self._own else built_in(id)

    def resource(
        self,
        name: str,
        beside: Mapping[str, Any] = EMPTY,
        annotations: Mapping[str, Any] = EMPTY,
        scheduler: str = "",
    ) -> Resource | None:
        """What a resource becomes; None if it is not an extended resource or no vendor knows it.

        ``beside`` are all resources of the container with their quantities, ``annotations`` those of the pod,
        ``scheduler`` its schedulerName. They distinguish HAMi's nvidia.com/gpu from NVIDIA's.
        """
        for rule, groups in self._entries(name):
            vendor = self.vendor(rule.resource.vendor)
            if rule.when_detected and not _is_detected(vendor, beside, annotations, scheduler):
                continue
            resource = _resource(rule, name, groups)
            if resource is not None:
                return _with_parts(resource, rule, vendor, beside)
        return None

    def readings(self, name: str) -> Sequence[Resource]:
        """Each of what a resource can become: what it is beside the sign of a vendor, and last what it is else."""
        out: list[Resource] = []
        for rule, groups in self._entries(name):
            if (resource := _resource(rule, name, groups)) is not None:
                out.append(resource)
                if not rule.when_detected:
                    break
        return out

    def moves(self, name: str, beside: Mapping[str, Any] = EMPTY) -> bool:
        """Whether a vendor knows the resource, and it is not declared to stay; ``beside`` as for ``resource``."""
        resource = self.resource(name, beside)
        return resource is not None and resource.outcome != "keep"

    def device_class(self, name: str) -> InstalledClass | None:
        """A DeviceClass as its driver installs it, or None if unknown."""
        own = (vendor.classes[name] for vendor in self._own.values() if name in vendor.classes)
        return next(own, None) or built_in_class(name)

    def driver(self, name: str, device_class: str = "") -> KnownDriver | None:
        """What is known about a driver, and what its devices always have if a class admits them.

        A user's file about devices takes precedence over this package. None if nothing is known.
        """
        own = [vendor.drivers[name] for vendor in self._own.values() if name in vendor.drivers]
        said = max(own, key=lambda driver: len(driver.always), default=None)
        if said is not None and (said.always or said.always_capacities):
            return said
        published = drivers().driver(name)
        if published is None:
            return said
        kinds = published.kinds_of(device_class) or published.kinds
        return KnownDriver(
            name,
            frozenset.intersection(*(kind.always for kind in kinds)) if kinds else frozenset(),
            frozenset.intersection(*(kind.capacities for kind in kinds)) if kinds else frozenset(),
            said.kubernetes if said else published.kubernetes,
            said.notes if said else published.notes,
        )

    def compared(self, rule: LabelRule, resource: Resource) -> KnownDriver:
        """What the devices always have that a label's rule compares, in the class that the rule chooses.

        A capacity is guarded if devices of the resource's own class may lack it, so that the selector works
        on them, too.
        """
        own = rule.capacity or not rule.device_class
        known_driver = self.driver(resource.driver, resource.device_class if own else rule.device_class)
        return known_driver or KnownDriver(resource.driver)

    def flag(self, where: str, name: str, vendors: Collection[str]) -> Flag | None:
        """What to do with an env variable, annotation, runtime class, scheduler or host path in pods of the vendors."""
        for vendor in (other for id in vendors for other in self._with_likes(id)):
            for flag in vendor.flags:
                named = flag.name == name if flag.pattern is None else flag.pattern.fullmatch(name)
                if flag.where == where and named:
                    return flag
        return None

    def label(self, key: str, resource: Resource) -> Labelled | None:
        """What becomes of a node label in pods that request the resource; None if it says nothing about the devices."""
        domain = key.partition("/")[0]
        everyone = [vendor for vendor in self._own.values() if vendor.everyone]
        everyone += self._files_where(lambda file: file.everyone and domain in file.domains)
        vendors = [*self._with_likes(resource.vendor), *everyone]
        return _labelled([rule for vendor in vendors for rule in vendor.labels], key, resource)

    def classes_by_label(self, resource: Resource) -> frozenset[str]:
        """The classes that node labels can choose in place of the resource's own."""
        everyone = [vendor for vendor in self._own.values() if vendor.everyone]
        everyone += self._files_where(lambda file: file.everyone)
        rules = [rule for vendor in (*self._with_likes(resource.vendor), *everyone) for rule in vendor.labels]
        mine = [rule for rule in rules if not rule.only_for or resource.vendor in rule.only_for]
        chosen: list[LabelRule | Suffix] = [*mine, *(suffix for rule in mine for suffix in rule.suffixes)]
        fitting = [suffix for suffix in chosen if not suffix.kinds or resource.kind in suffix.kinds]
        return frozenset(suffix.device_class for suffix in fitting if suffix.device_class)

    def is_label(self, name: str) -> bool:
        """Whether a vendor knows the name as the key of a node label."""
        domain = name.partition("/")[0]
        vendors = [*self._own.values(), *self._files_where(lambda file: domain in file.domains)]
        return any(rule.key == name for vendor in vendors for rule in vendor.labels)

    def annotation(self, key: str, resource: Resource) -> Labelled | None:
        """Like ``label``, for an annotation of the pod that chooses devices."""
        return _labelled(self.vendor(resource.vendor).annotations, key, resource)

    def _with_likes(self, id: str) -> Iterator[Vendor]:
        vendor = self.vendor(id)
        yield vendor
        for other in vendor.like:
            yield self.vendor(other)

    def _entries(self, name: str) -> Iterator[Fitting]:
        """The entries for an extended resource, the user's first; none for other names."""
        if not is_extended(name):
            return
        domain = name.partition("/")[0]
        own = [vendor for vendor in self._own.values() if not vendor.domains or domain in vendor.domains]
        sure = self._files_where(lambda file: domain in file.domains)
        yield from chain(_fitting(own, name, False), _fitting(own, name, True), self._built_in(sure, name))

    def _built_in(self, sure: Sequence[Vendor], name: str) -> Iterator[Fitting]:
        """This package's entries: those of the domain, of vendors with any domain, then the rest."""
        yield from _fitting(sure, name, False)
        yield from _fitting(self._files_where(lambda file: "*" in file.domains), name, False)
        yield from _fitting(sure, name, True)

    def _files_where(self, wanted: Callable[[VendorFile], bool]) -> list[Vendor]:
        return [built_in(id) for id, file in self._files.items() if wanted(file)]


def load(files: Sequence[str] = ()) -> VendorCatalogue:
    """The vendors of the user's files, and of this package.

    Raises:
        InputError: a file that cannot be read or violates the schema: its name, line, the path in it, and the error.
    """
    catalogue = VendorCatalogue()
    if not files:
        return catalogue
    from kubectl_dra.migrate.vendors.check import read

    for file in files:
        catalogue = VendorCatalogue([*catalogue.own, *read(file, catalogue)])
    return catalogue


def _is_detected(vendor: Vendor, beside: Mapping[str, Any], annotations: Mapping[str, Any], scheduler: str) -> bool:
    detect = vendor.detect
    return bool(
        detect
        and (
            any(name in beside for name in detect.get("resources", ()))
            or any(name in annotations for name in detect.get("annotations", ()))
            or scheduler in detect.get("schedulers", ())
        )
    )


def _fitting(vendors: Sequence[Vendor], name: str, fallback: bool) -> Iterator[Fitting]:
    """The entries for a name: exact names before patterns, entries that need a sign of the vendor before others."""
    rules = [rule for vendor in vendors for rule in vendor.resources if rule.fallback == fallback]
    exact = [rule for rule in rules if rule.name == name]
    yield from ((rule, EMPTY) for rule in sorted(exact, key=lambda rule: not rule.when_detected))
    for rule in rules:
        match = rule.pattern.fullmatch(name) if rule.pattern else None
        if match is not None:
            yield rule, {group: text or "" for group, text in match.groupdict().items()}


def _resource(rule: ResourceRule, name: str, groups: Mapping[str, str]) -> Resource | None:
    """What an entry makes of the name; None if a text in its pattern has no meaning."""
    texts = translated(groups, rule.values)
    if texts is None:
        return None
    resource = rule.resource
    toleration = {"key": name, "operator": "Exists", "effect": "NoSchedule"}
    return replace(
        resource,
        name=name,
        device_class=filled(resource.device_class, texts),
        selectors=tuple(filled(selector, texts) for selector in resource.selectors),
        capacity={key: filled(amount, texts) for key, amount in resource.capacity.items()},
        tolerations=(toleration,) if resource.outcome in ("auto", "note") and not resource.part_of else (),
    )


def translated(groups: Mapping[str, str], values: Mapping[str, Mapping[str, str]]) -> Mapping[str, str] | None:
    """The texts of a pattern's groups in the driver's terms; None if one of them has no equivalent."""
    out = {group: values[group].get(text) if group in values else text for group, text in groups.items()}
    return {group: text for group, text in out.items() if text is not None} if None not in out.values() else None


def _with_parts(resource: Resource, rule: ResourceRule, vendor: Vendor, beside: Mapping[str, Any]) -> Resource:
    """The resource with the capacity requested by the resources beside it."""
    if resource.part_of and resource.part_of not in beside:
        return replace(
            resource,
            outcome="ask",
            message=f"it asks for a part of each device without a number of devices ({resource.part_of})",
            way_out=f"Add {resource.part_of} with the number that is meant, and migrate again.",
        )
    if not rule.parts:
        return resource
    capacity = dict(resource.capacity)
    for part in rule.parts:
        amount = whole_number(beside.get(part.name, 0))
        if amount is None or amount < 0:
            return replace(
                resource,
                outcome="refuse",
                message=f"{part.name} beside it is not a whole number",
                way_out="Write the number, and migrate again.",
            )
        if amount:
            capacity[part.capacity] = f"{amount}{part.unit}"
    for other in vendor.resources:
        if other.name in beside and other.resource.outcome in ("ask", "refuse"):
            beside_it = other.resource
            return replace(
                resource,
                outcome=beside_it.outcome,
                message=f"{other.name} beside it: {beside_it.message}",
                way_out=beside_it.way_out,
            )
    return replace(resource, capacity=capacity)


def whole_number(quantity: object) -> int | None:
    """The number that an amount is; None if it is not a whole one."""
    if isinstance(quantity, bool) or not isinstance(quantity, str | int):
        return None
    try:
        parsed = Quantity.parse(quantity)
    except ValueError:
        return None
    return parsed.as_int64() if parsed.is_integer() else None


def _labelled(rules: Sequence[LabelRule], key: str, resource: Resource) -> Labelled | None:
    for rule in rules:
        groups = _groups(rule, key)
        if groups is None or (rule.only_for and resource.vendor not in rule.only_for):
            continue
        if not rule.same_as:
            return Labelled(rule, groups)
        labelled = _labelled([other for other in rules if not other.same_as], filled(rule.same_as, groups), resource)
        if labelled is not None:
            return Labelled(replace(labelled.rule, from_key=rule.from_key), {**labelled.groups, **groups})
    return None


def _groups(rule: LabelRule, key: str) -> Mapping[str, str] | None:
    if rule.key:
        return EMPTY if rule.key == key else None
    match = rule.pattern.fullmatch(key) if rule.pattern else None
    return None if match is None else {group: text or "" for group, text in match.groupdict().items()}
