"""A value of ``--with-node`` that is nothing known: what it may be meant to be, and what else may be written."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Final

from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.data.clouds import machine_types
from kubectl_dra.data.drivers import catalogue
from kubectl_dra.errors import FlagValueError
from kubectl_dra.explain.question.device_facts import is_product
from kubectl_dra.explain.question.new_nodes import NewNodes
from kubectl_dra.text import did_you_mean, nearest, some, whole_number

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
_USUAL: Final = "8"


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
        yield f"{resource['name']}={resource['number'] or _USUAL}"
        return
    number = _NUMBER_FIRST.fullmatch(text)
    what = number["what"] if number is not None else text
    for word in (what, *re.split("[^A-Za-z0-9]+", what)):
        if len(word) > 1 and re.search("[0-9]", word) and is_product(word):
            yield f"{number['number'] if number is not None else _USUAL}x{word}"
