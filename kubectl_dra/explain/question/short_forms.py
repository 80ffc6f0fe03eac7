"""What people write for a node that they know: 8xH100, a machine type of a cloud, what a device plugin offers."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, Final

from msgspec.structs import replace

from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.data.clouds import machine_types
from kubectl_dra.data.drivers import catalogue, vendor_files
from kubectl_dra.errors import FlagValueError, UsageError
from kubectl_dra.explain.question.device_facts import drivers_of
from kubectl_dra.explain.question.new_nodes import MOST, NewNodes, number_of
from kubectl_dra.explain.question.node_in_words import (
    INSTANCE_TYPE,
    USUAL,
    Described,
    all_there,
    every_product,
    has_kinds,
    unknown_product,
)

_TIMES: Final = (
    re.compile(r"(?P<number>[0-9]+)(?:\s*[xX*\u00d7]\s*|\s+)(?P<what>.+)"),
    re.compile(r"(?P<what>.+?)\s*[xX*:\u00d7]\s*(?P<number>[0-9]+)"),
)


def described_by(new: NewNodes, names: Collection[str], snapshot: Snapshot) -> Described | NewNodes | None:
    """What words and short forms stand for: a node in words, or nodes like one; None if that is nothing known.

    Raises:
        InputError: a product, or a resource of a device plugin, that nobody knows.
    """
    if not new.first:
        return new.described()
    if new.resource:
        number = dict(new.words)["devices"]
        return new.described(new.first, {"driver": _of_resource(new.resource, number, snapshot), "devices": number})
    for node in snapshot.nodes.values():
        if node.labels.get(INSTANCE_TYPE) == new.first and any(
            slice_.scope.node_name == node.name for slice_ in snapshot.slices
        ):
            return replace(new, first=node.name)
    known = {name.lower(): name for name in machine_types()}
    if (machine := known.get(new.first.lower()) or known.get(f"standard_{new.first}".lower())) is not None:
        found = machine_types()[machine]
        return new.described(new.first, {"product": found.product, "devices": str(found.devices)}, machine)
    return _times(new, names, snapshot)


def _of_resource(resource: str, number: str, snapshot: Snapshot) -> str:
    """The name of the driver that has what a device plugin offers under a name."""
    driver = catalogue().of_resource(resource)
    for known in snapshot.classes.values() if driver is None else ():
        if known.extended_resource_name == resource:
            driver = catalogue().of_class(known.name)
    rule = _rule(resource)
    if driver is not None and rule.get("kind", "whole") != "whole":
        kinds = [kind for kind in driver.kinds_of(rule.get("class", "")) if kind is not driver.kinds[0]]
        given = "".join(f"{name}={value}," for kind in kinds[:1] for name, value in kind.given.items())
        raise FlagValueError(
            f"{resource} is no whole device; write what the driver publishes in its place",
            instead=[("Such as", f"driver={driver.name},{given}devices={number}")],
        )
    if driver is not None:
        return driver.name
    raise FlagValueError(
        f"no driver is known for the devices of {resource}; write driver=NAME,devices={number}",
        instead=_of_driver_there(number, snapshot),
    )


def with_a_driver(typed: str, snapshot: Snapshot) -> list[tuple[str, str]]:
    """What was typed, with a driver that the cluster has, where it names neither that nor a product; else nothing."""
    words = dict(part.partition("=")[::2] for part in typed.split(","))
    if not words.keys() <= {"devices", "count"}:
        return []
    end = f",count={words['count']}" if "count" in words else ""
    return [(label, value + end) for label, value in _of_driver_there(words.get("devices") or USUAL, snapshot)]


def _of_driver_there(number: str, snapshot: Snapshot) -> list[tuple[str, str]]:
    """In words, a node with so many devices of a driver that the cluster has; at most one."""
    there = dict.fromkeys(slice_.driver for slice_ in snapshot.slices)
    known = [("With a driver that is there", f"driver={name},devices={number}") for name in there if has_kinds(name)]
    return known[:1]


def _rule(resource: str) -> Mapping[str, Any]:
    """What the vendors' files say of a resource of a device plugin; empty if they do not know it."""
    domain = resource.partition("/")[0]
    rules = (rule for file in vendor_files().values() if domain in file.domains for rule in file.raw["resources"])
    own = (rule for rule in rules if "when" not in rule and "part_of" not in rule)
    fits = (rule for rule in own if rule.get("name") == resource or re.fullmatch(rule.get("pattern", "(?!)"), resource))
    return next(fits, {})


def _times(new: NewNodes, names: Collection[str], snapshot: Snapshot) -> Described | NewNodes | None:
    """A number of devices of a product, or of nodes; a product alone lacks the number."""
    number, what = "", new.first
    match = next(filter(None, (pattern.fullmatch(new.first) for pattern in _TIMES)), None)
    if match is not None:
        number, what = match["number"], match["what"]
    if number and what.removeprefix("node/") in names:
        if new.count is not None:
            raise UsageError(f"write {what},count={number} for {number} nodes like {what}")
        return replace(new, first=what, count=number_of(number, "count", new.text, MOST))
    described = new.described(new.first if number else "", {"product": what, **({"devices": number} if number else {})})
    if drivers_of(what, snapshot):
        return described
    if number and new.first.startswith(number) and "/" not in what and "." not in what:
        error = unknown_product(what, every_product(snapshot), described, there=all_there(snapshot))
        error.instead = error.instead or _of_driver_there(number, snapshot)
        raise error
    return None
