"""What a device is for a person: the product, and which part of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

_PARTS: Final = ("profile", "computePartition", "memoryPartition")
"""Attributes that tell parts of one product apart: a MIG profile, the partition modes of an AMD GPU."""
_NAMED: Final = ("productName", "model")
_IDENTIFYING: Final = (
    *_NAMED,
    "pciDevice",
    "accelerator",
    "deviceType",
    *_PARTS,
    "family",
    "architecture",
    "type",
)
"""Attributes that say what a device is, best first; drivers differ in what they publish."""


def identifying(attributes: Iterable[str], *more: str) -> list[str]:
    """Those of the attributes that say what a device is, best first, then those called like one of ``more``."""
    short = {name.rpartition("/")[2]: name for name in attributes}
    return [short[name] for name in (*_IDENTIFYING, *more) if name in short]


def model_of(attributes: Mapping[str, Mapping[str, Any]]) -> str:
    """The product and its part, as in ``NVIDIA A30 1g.6gb``; empty where no attribute says it."""
    short = _short(attributes)
    product = next((text for name in _IDENTIFYING if name not in _PARTS and (text := _text(short.get(name)))), "")
    return " ".join(filter(None, (product, *(_text(short.get(name)) for name in _PARTS))))


def product_of(attributes: Mapping[str, Mapping[str, Any]]) -> str:
    """The product alone, as its vendor writes it for people; empty where only an id or a family is published."""
    short = _short(attributes)
    name = next((text for name in _NAMED if (text := _text(short.get(name)))), "")
    return name.replace("_", " ")


def _short(attributes: Mapping[str, Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    return {name.rpartition("/")[2]: value for name, value in attributes.items()}


def _text(attribute: Mapping[str, Any] | None) -> str:
    value = attribute.get("string") if attribute else None
    return value if isinstance(value, str) else ""
