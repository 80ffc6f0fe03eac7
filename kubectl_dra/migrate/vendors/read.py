"""Vendors' documents as values: this package's without checks, users' after all checks."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Protocol

from kubectl_dra.data.drivers import InstalledClass, catalogue, installed_class
from kubectl_dra.data.files import vendor_files
from kubectl_dra.migrate.vendors.model import (
    EMPTY,
    Flag,
    FlagRule,
    KnownDriver,
    LabelRule,
    Pattern,
    Resource,
    ResourceRule,
    Spelling,
    Suffix,
    Vendor,
)

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
    classes = {entry["name"]: installed_class(entry["driver"], entry) for entry in raw.get("classes", ())}

    def class_of(name: str) -> InstalledClass | None:
        return classes.get(name) or known(name)

    detect = raw.get("detect", EMPTY)
    return Vendor(
        id=id,
        title=raw["title"],
        domains=tuple(raw.get("domains", ())),
        resources=tuple(_resource(id, entry, class_of, compile) for entry in raw.get("resources", ())),
        labels=tuple(_label(id, entry, compile) for entry in raw.get("labels", ())),
        annotations=tuple(_label(id, entry, compile) for entry in raw.get("annotations", ())),
        flags=tuple(_flag(id, entry, compile) for entry in raw.get("beside", ())),
        classes=classes,
        drivers={entry["name"]: _driver(entry) for entry in raw.get("drivers", ())},
        taints=tuple(raw.get("taints", ())),
        like=tuple(raw.get("like", ())),
        everyone=raw.get("everyone", False),
        detect={key: frozenset(names) for key, names in detect.items()},
        workloads=tuple(
            ((entry["group"], entry["kind"]), tuple(entry["path"].split("."))) for entry in raw.get("workloads", ())
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
        forms=tuple((compile(entry["values"]), entry["form"]) for entry in raw.get("forms", ())),
        compare=raw.get("compare", "text"),
        spelling=Spelling(
            spelling.get("replace", EMPTY),
            spelling.get("map", EMPTY),
            spelling.get("only", False),
            spelling.get("prefix", ""),
            spelling.get("also_prefix", ""),
            compile(spelling["unless"]) if "unless" in spelling else None,
        ),
        suffixes=tuple(_suffix(entry, compile) for entry in raw.get("suffixes", ())),
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
