"""A value of ``--with-node`` as it is written: which new nodes are meant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Final

from msgspec import Struct

from kubectl_dra.data.drivers import STANDARD, catalogue
from kubectl_dra.errors import FlagValueError, UsageError
from kubectl_dra.explain.question.device_facts import is_product
from kubectl_dra.explain.question.node_in_words import LABEL, MOST_DEVICES, Described
from kubectl_dra.explain.question.what_if_flag import WITH_NODE, WhatIfChange
from kubectl_dra.text import nearest, whole_number

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
