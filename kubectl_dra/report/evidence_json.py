"""A fact as data: its words, and the objects, devices and numbers that they are made of; and what was not read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from string import Formatter
from typing import Any, Final, NamedTuple

from kubectl_dra.api.quantity import Quantity
from kubectl_dra.api.slices import DeviceID, PoolID
from kubectl_dra.cluster.snapshot import Gap
from kubectl_dra.explain.diagnosis import Evidence
from kubectl_dra.explain.phrase import Joined, ObjectName, Phrase, Statement, Subject, Words
from kubectl_dra.explain.unread import NotProved, NotSeen, Unread
from kubectl_dra.report.phrases import fields_of, template_of, written
from kubectl_dra.report.structured import gap_json

_LISTS: Final = {"Node": "nodes", "Pod": "pods", "ResourceClaim": "claims"}
"""Kinds with a list of their own; all others are in ``objects``, with their kind."""
_NANO: Final = 10**9
_FORMATTER: Final = Formatter()


class TypedPart(NamedTuple):
    """A typed value among words: its name in the phrase, and the noun that it counts, where it has them."""

    value: object
    name: str = ""
    unit: str = ""


def evidence_json(fact: Evidence) -> dict[str, Any]:
    """The fact as text, what it is about, and what was found there."""
    out: dict[str, Any] = {
        "object": written(fact.object),
        "field": written(fact.field),
        "value": written(fact.value),
        "about": _listed([*_parts(fact.object), *_parts(fact.field)]),
        "found": _listed(_parts(fact.value)),
    }
    if fact.is_cel:
        out["language"] = "cel"
    return out


def device_json(device: DeviceID) -> dict[str, str]:
    """A device."""
    return {"driver": device.driver, "pool": device.pool, "device": device.device}


def _parts(words: object, name: str = "", unit: str = "") -> Iterator[TypedPart]:
    """The typed values that words are made of, in the order in which they are said."""
    if isinstance(words, Phrase | Statement):
        fields = fields_of(words)
        for _, field, how, _ in _FORMATTER.parse(template_of(words)):
            # With a bar the number only decides about a word.
            if field is not None and "|" not in (how or ""):
                value, _ = _FORMATTER.get_field(field, (), fields)
                yield from _parts(value, field.rpartition(".")[2], how or "")
    elif isinstance(words, Joined):
        for part in words.parts:
            yield from _parts(part)
    elif isinstance(words, Subject):
        yield from _parts(words.name)
    elif isinstance(words, tuple) and not hasattr(words, "_fields"):
        for part in words:
            yield from _parts(part, name)
    elif isinstance(words, ObjectName | DeviceID | PoolID | Quantity | int) and not isinstance(words, bool):
        yield TypedPart(words, name, unit if unit.isalpha() else "")


def _listed(parts: Iterable[TypedPart]) -> dict[str, list[Any]]:
    """The values by what they are, each once."""
    out: dict[str, list[Any]] = {}
    for part in parts:
        kind, entry = _entry(part)
        entries = out.setdefault(kind, [])
        if entry not in entries:
            entries.append(entry)
    return out


def _entry(part: TypedPart) -> tuple[str, dict[str, Any]]:
    value = part.value
    if isinstance(value, DeviceID):
        return "devices", device_json(value)
    if isinstance(value, PoolID):
        return "pools", {"driver": value.driver, "name": value.name}
    if isinstance(value, ObjectName):
        where = {"namespace": value.namespace} if value.namespace else {}
        if value.kind in _LISTS:
            return _LISTS[value.kind], {**where, "name": value.name}
        return "objects", {"kind": value.kind, **where, "name": value.name}
    named = {"name": part.name} if part.name else {}
    if isinstance(value, Quantity):
        return "quantities", {**named, "quantity": str(value), "value": _number(value.nanos)}
    return "numbers", {**named, "value": value, **({"unit": part.unit} if part.unit else {})}


def _number(nanos: int) -> int | float:
    whole, rest = divmod(nanos, _NANO)
    return nanos / _NANO if rest else whole


def unread_json(said: Iterable[Words]) -> list[dict[str, Any]]:
    """The gaps among what is said about an answer, each once; ``decides`` tells whether the answer depends on it."""
    found: dict[Gap, bool] = {}
    for one in said:
        gaps = one.gaps if isinstance(one, NotProved) else (one.gap,) if isinstance(one, Unread | NotSeen) else ()
        for gap in gaps:
            found[gap] = found.get(gap, False) or isinstance(one, Unread)
    return [{**gap_json(gap), "decides": decides} for gap, decides in found.items()]
