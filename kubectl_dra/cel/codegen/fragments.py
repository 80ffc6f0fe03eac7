"""Fragments of a generated function: Python expressions, and parts of the device that are not read yet."""

from __future__ import annotations

from typing import Any, NamedTuple

SIMPLE = {str: "str", int: "int", bool: "bool", float: "float"}
"""The kinds of the classes that Python's operators treat as CEL does."""


class NotTranslatable(Exception):
    """The expression has a part without a short translation."""


class Code(NamedTuple):
    """A Python expression.

    ``kind`` is the class its value is certain to have ("str", "int", "bool", "float", "Quantity", "Semver",
    "list", "computed" for a Quantity from arithmetic) or "" if only running it tells. ``constant`` holds the
    value of a constant in a 1-tuple.
    """

    text: str
    kind: str = ""
    constant: tuple[Any, ...] = ()


class Place(NamedTuple):
    """A part of the device that is not read yet: ``map`` or ``domain`` (its text gives the dict)."""

    level: str
    attribute: bool = True
    text: str = ""


class Maybe(NamedTuple):
    """An optional entry of a domain (``domain.?id``)."""

    domain: Place
    key: str


Result = Code | Place | Maybe
