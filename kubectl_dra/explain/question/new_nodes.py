"""A value of ``--with-node`` as it is written: which new nodes are meant, and what an unknown one may mean."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.data.clouds import machine_types
from kubectl_dra.data.drivers import STANDARD, catalogue, vendor_files
from kubectl_dra.errors import FlagValueError, UsageError
from kubectl_dra.explain.question.device_facts import drivers_of, is_product
from kubectl_dra.explain.question.node_in_words import (
    INSTANCE_TYPE,
    LABEL,
    MOST_DEVICES,
    USUAL,
    Described,
    all_there,
    every_product,
    has_kinds,
    unknown_product,
)
from kubectl_dra.explain.question.what_if_flag import WITH_NODE, WhatIfChange
from kubectl_dra.text import did_you_mean, nearest, some, whole_number

FLAG: Final = f"--{WITH_NODE}"
GRAMMAR: Final = (
    "FILE[,count=N], [like=]NODE[,ATTRIBUTE=VALUE]...[,count=N], NxPRODUCT, or "
    "[driver=NAME,][product=NAME,]devices=N[,ATTRIBUTE=VALUE]...[,label:KEY=VALUE]...[,count=N]"
)
_SUCH_AS: Final = "product=NVIDIA H100 80GB HBM3,devices=8"
_MEANT: Final = {"device": "devices", "labels:": LABEL}
"""What people write for a part of the flag that is called otherwise."""
_KEYS: Final = frozenset(("driver", "product", "devices", "like"))
MOST: Final = 1_000
"""Largest number of nodes that one flag adds."""


class NewNodes(Struct, frozen=True):
    """A value of the flag, as written in ``text``.

    ``first`` is its first part where that is no NAME=VALUE: a file, a node that they are like, a machine type, or a
    product with a number. A ``resource`` is that of a device plugin. ``like`` names a node, ``words`` are further
    NAME=VALUE. ``count`` is None where nobody said how many.
    """

    text: str
    first: str = ""
    like: str = ""
    resource: str = ""
    words: tuple[tuple[str, str], ...] = ()
    count: int | None = None

    @property
    def change(self) -> WhatIfChange:
        """It as one of the changes under which an answer holds."""
        return WhatIfChange("", WITH_NODE, self.text)

    def described(self, first: str = "", base: Mapping[str, str] | None = None, machine: str = "") -> Described:
        """A node in words, or how a node is to be changed."""
        end = f",count={self.count}" if self.count is not None else ""
        base = base or {}
        words = {name: text for name, text in self.words if base.get(name) != text}
        return Described(first, base, words, end, machine, self.resource)


def check(texts: Iterable[str]) -> None:
    """Reads all values before the cluster is read. Raises UsageError: nothing for which another value can be proposed.

    Whether one can be used depends on the cluster and on what is asked.
    """
    for text in texts:
        with suppress(FlagValueError):
            parse(text)


def parse(text: str) -> NewNodes:
    """Read a value of the flag. Raises UsageError: an unknown form."""
    if not text.strip():
        raise UsageError(f"{FLAG} is empty: is a variable of the shell not set? Write one of: {GRAMMAR}")
    parts = [part.strip() for part in text.split(",")]
    for part in parts:
        key = part.partition("=")[0]
        for typed, right in _MEANT.items():
            if any(each.startswith(f"{right}=") for each in parts):
                continue
            if key == typed or (typed.endswith(":") and key.startswith(typed)):
                value = ",".join(right + each.removeprefix(typed) if each is part else each for each in parts)
                raise FlagValueError(
                    f'{FLAG} "{text}": "{typed}" is unknown; did you mean "{right}"?', text, [("Write", value)]
                )
    first, resource = parts[0], ""
    if "=" not in first or first.startswith((".", "/")):
        pairs = _pairs(parts[1:], text)
    else:
        pairs, first = _pairs(parts, text), ""
        name = next(iter(pairs))
        if name not in _KEYS and not {"driver", "like"} & pairs.keys() and whole_number(pairs[name]):
            if "/" in name and not name.startswith(f"{STANDARD}/"):
                resource, first = name, parts[0]
            elif is_product(name):
                # As people write resources.
                first = f"{pairs.pop(name)}x{name}"
    count = number_of(pairs.pop("count"), "count", text, MOST) if "count" in pairs else None
    like = "" if first else pairs.pop("like", "")
    if first and "=" in text and "devices" in pairs and (resource or first != parts[0]):
        raise UsageError(f'{FLAG} "{text}": it says twice how many devices a node has; leave devices= out')
    if resource:
        pairs["devices"] = str(number_of(pairs.pop(resource), resource, text, MOST_DEVICES))
    elif not first and not like and not (pairs.get("driver") or pairs.get("product")):
        near = nearest(next(iter(pairs), ""), ("like", "driver", "product", "count"))
        hint = f' (did you mean "{near[0]}="?)' if near else ""
        instead = [("Write", near[0] + text[text.index("=") :])] if near else [("Such as", _SUCH_AS)]
        if (name := next(iter(pairs), "")) in catalogue().names:
            instead = [("Write", f"driver={name},devices={pairs[name]}")]
        raise FlagValueError(f'{FLAG} "{text}" is not understood{hint}; write one of: {GRAMMAR}', text, instead)
    return NewNodes(text, first, like, resource, tuple(pairs.items()), count)


def _pairs(parts: Iterable[str], text: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for part in parts:
        key, equal, value = part.partition("=")
        label = key.startswith(LABEL)
        if not equal or not key.removeprefix(LABEL) or not (value or label) or key in pairs:
            alone = "" if equal else f" (another node needs a {FLAG} of its own)"
            what = f'"{key}" is there twice' if key in pairs else f'"{part}" is not NAME=VALUE{alone}'
            raise UsageError(f'{FLAG} "{text}": {what}; write one of: {GRAMMAR}')
        if wrong := _wrong_label(key.removeprefix(LABEL).strip(), value.strip()) if label else "":
            raise UsageError(f'{FLAG} "{text}": "{part}" is no label: {wrong}')
        pairs[key.strip()] = value.strip()
    return pairs


def _wrong_label(key: str, value: str) -> str:
    """What the API server would refuse of a label; empty if nothing."""
    from kubectl_dra.admission.server.names import label_key_problems, label_value_problems

    wrong = (*(f"its key {each}" for each in label_key_problems(key)), *label_value_problems(value))
    return wrong[0] if wrong else ""


def number_of(value: str, key: str, text: str, most: int) -> int:
    """The number that a part of the flag says. Raises UsageError: it is none, or too high."""
    number = whole_number(value)
    if not number or number > most:
        raise UsageError(f'{FLAG} "{text}": {key} is a number from 1 to {most:,}, not "{value}"')
    return number


# What people write for a node that they know: 8xH100, a machine type of a cloud, what a device plugin offers.

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


# A value of ``--with-node`` that is nothing known: what it may be meant to be, and what else may be written.

_SUFFIXES: Final = (".yaml", ".yml", ".json", ".gz")
_FORMS: Final = (
    "a file, a node that is there, 8xH100, a machine type (a3-highgpu-8g), nvidia.com/gpu=8, or product=NAME,devices=N"
)
_RESOURCE: Final = re.compile(r"(?P<name>[a-z0-9.-]+\.[a-z]+/[A-Za-z0-9_.-]+)(?:[:x ]*(?P<number>[0-9]+))?")
_NUMBER_FIRST: Final = re.compile(r"-?(?P<number>[0-9]+)[xX ]*(?P<what>[A-Za-z].*)")
_NUMBER: Final = re.compile("([0-9]+)")
_FAMILY: Final = re.compile("[-.]")
_MACHINE: Final = re.compile(
    r"[a-z][a-z0-9-]*\.(?:metal.*|[0-9]*x?large|medium|small|micro|nano)"
    r"|[a-z][a-z0-9]+-(?:standard|high|mega|ultra|max|edge|custom|medium|micro|small)[a-z]*-[0-9].*"
    r"|standard_[a-z]+[0-9].*",
    re.IGNORECASE,
)
"""How AWS, Google and Azure call machine types."""


def is_path(text: str) -> bool:
    """Whether a text that names nothing can only be meant as a file."""
    return text.endswith(_SUFFIXES) or text.startswith(("/", "./", "../", "~"))


def unknown_node(new: NewNodes, like: str, names: Collection[str], snapshot: Snapshot) -> FlagValueError:
    """Error that there is no such file, node or machine type, with those that exist: first the cluster's nodes."""
    first = like or new.first
    wanted = first.removeprefix("node/")
    family = () if like else _of_family(wanted)
    near = nearest(wanted, {*names, *family})
    alike = _of_other_numbers(wanted, family)
    machines = alike or tuple(name for name in near or family[:3] if name not in names)
    near = tuple(name for name in near if name in names) if near and near[0] in names else ()
    there = [name for name in dict.fromkeys(slice_.scope.node_name for slice_ in snapshot.slices) if name in names]
    meant = [] if like or alike else list(dict.fromkeys(_meant(wanted)))
    known = f"there are: {some(there or sorted(names), 3) or 'none'}"
    if near:
        hint = did_you_mean(near)
    elif machines:
        hint = f"as a machine type, {did_you_mean(machines)}"
    else:
        hint = known if like else f"{known}; write {_FORMS}"
    values = [("Write", name) for name in (*near[:1], *machines[:1])]
    values += [] if values else [("Like a node that is there", name) for name in there[:1]]
    what = f"no Node {wanted}" if like else f"neither a file {first} nor a Node of that name"
    if not like and not near and not machines and _MACHINE.fullmatch(wanted):
        meant = []
        what += ", and as a machine type it is not in the catalogue: write which devices it has (8xH100), or a file"
        hint = known
    instead = [(label, new.described(name).written({})) for label, name in values]
    instead += [("Write", value) for value in meant[:2]]
    return FlagValueError(f"there is {what}; {hint}", instead=instead)


def _of_other_numbers(wanted: str, names: Collection[str]) -> tuple[str, ...]:
    """The names that differ from what is wanted in numbers alone, the nearest numbers first."""
    texts = _NUMBER.split(wanted.lower())
    alike = {name: other for name in names if (other := _NUMBER.split(name.lower()))[::2] == texts[::2]}

    def apart(name: str) -> int:
        pairs = zip(texts[1::2], alike[name][1::2], strict=True)
        return sum(abs((whole_number(one) or 0) - (whole_number(other) or 0)) for one, other in pairs)

    return tuple(sorted(alike, key=apart)[:3])


def _of_family(wanted: str) -> tuple[str, ...]:
    """Machine types of the same family: of another one, a similar name says nothing."""
    family = _FAMILY.split(wanted.lower())[0]
    return tuple(name for name in machine_types() if _FAMILY.split(name.lower())[0] == family)


def _meant(text: str) -> Iterator[str]:
    """What may be meant by a form that is none: a resource with another sign before its number, or a product."""
    if (resource := _RESOURCE.fullmatch(text)) is not None and catalogue().of_resource(resource["name"]) is not None:
        yield f"{resource['name']}={resource['number'] or USUAL}"
        return
    number = _NUMBER_FIRST.fullmatch(text)
    what = number["what"] if number is not None else text
    for word in (what, *re.split("[^A-Za-z0-9]+", what)):
        if len(word) > 1 and re.search("[0-9]", word) and is_product(word):
            yield f"{number['number'] if number is not None else USUAL}x{word}"
