"""Texts that every device has its own of, such as UUIDs: learned from samples, and taken from raw devices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kubectl_dra.api.meta import EMPTY
from kubectl_dra.api.slices import Individual


def individual_names(samples: Sequence[Sequence[Mapping[str, Any]]]) -> tuple[str, ...]:
    """The text attributes of which nearly every slice brings values that no slice before it had."""
    first = samples[0][0] if samples[0] else EMPTY
    out: list[str] = []
    for name in sorted(first):
        seen: set[str] = set()
        fresh = 0
        for devices in samples:
            texts = {_text_of(attributes, name) for attributes in devices}
            if None in texts:
                break
            fresh += not texts <= seen
            seen |= texts  # type: ignore[arg-type]
        else:
            if fresh >= 0.9 * len(samples):
                out.append(name)
    return tuple(out)


def _text_of(attributes: Mapping[str, Any], name: str) -> str | None:
    value = attributes.get(name)
    text = value.get("string") if type(value) is dict and len(value) == 1 else None
    return text if type(text) is str else None


def take_individual(devices: list[Any], names: Sequence[str]) -> Individual | None:
    """The individual texts of raw devices, which lose them; None, and no change, if one does not have them all."""
    values: list[tuple[str, ...]] = []
    try:
        for name in names:
            texts: list[str] = []
            for device in devices:
                value = device["attributes"][name]
                if len(value) != 1:
                    return None
                texts.append(value["string"])
            values.append(tuple(texts))
    except (KeyError, TypeError):
        return None
    if not all(type(text) is str for texts in values for text in texts):
        return None
    for name in names:
        for device in devices:
            device["attributes"][name] = None
    return Individual(tuple(names), tuple(values))


def give_back(devices: Iterable[Any], individual: Individual) -> None:
    """Raw devices get their own texts back; their tables of attributes may be shared, and stay as they are."""
    for name, texts in zip(individual.names, individual.values, strict=True):
        for device, text in zip(devices, texts, strict=True):
            device["attributes"] = {**device["attributes"], name: {"string": text}}


def stand_ins_of(individual: Individual) -> dict[str, dict[str, str]]:
    """The attributes of the first device, in place of those of any."""
    return {
        name: {"string": texts[0]} for name, texts in zip(individual.names, individual.values, strict=True) if texts
    }
