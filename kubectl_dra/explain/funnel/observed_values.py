"""What devices have instead: the values of the attributes and capacities that an expression reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter

from kubectl_dra.api.shared_devices import OwnValues
from kubectl_dra.api.slices import Device
from kubectl_dra.cel import Program
from kubectl_dra.cel.columns import Column
from kubectl_dra.explain.funnel.device_view import PublishedDevice, in_slices
from kubectl_dra.explain.funnel.shown import Observation

MAX_NAMES = 4


def observations(program: Program, items: Sequence[PublishedDevice]) -> tuple[Observation, ...]:
    """Values with device counts for each name that the program reads, most frequent first.

    Empty if only evaluation can tell which names the program reads.
    """
    if not program.columns:
        return ()
    readable = [column for column in program.columns if column.id is not None]
    out: list[Observation] = []
    for column in sorted(readable, key=lambda column: (column.kind, column.domain or "", column.id or ""))[:MAX_NAMES]:
        counts = counted_values(items, column)
        absent = counts.pop(None, 0)
        ranked = _ranked(counts)
        del counts
        if absent:
            ranked.append((None, absent))
        out.append(Observation(_label(column, items), tuple(ranked)))
    return tuple(out)


def _ranked(counts: Counter[str | None]) -> list[tuple[str | None, int]]:
    """By frequency, then by value. Empties the counts, which may be as many as devices."""
    if len(counts) == counts.total():
        texts = sorted(map(str, counts))
        counts.clear()
        return [(text, 1) for text in texts]
    # One sort after the other is faster than pairs as keys.
    ranked: list[tuple[str | None, int]] = sorted(counts.items(), key=itemgetter(0))
    ranked.sort(key=itemgetter(1), reverse=True)
    return ranked


def _label(column: Column, items: Iterable[PublishedDevice]) -> str:
    if not column.id:
        return column.kind
    own = column.domain is None or {item.device.driver for item in items} <= {column.domain}
    return column.id if own else f"{column.domain}/{column.id}"


def counted_values(items: Sequence[PublishedDevice], column: Column) -> Counter[str | None]:
    """Number of devices by value. Devices that are one object without values of their own are counted at once."""
    if own_values_in(items, (column,)) or len({id(item.device) for item in items}) == len(items):
        return Counter(values_of(items, column))
    keys = [id(item.device) for item in items]
    different = dict(zip(keys, items, strict=True))
    counts: Counter[str | None] = Counter()
    times = Counter(keys).values()
    for value, number in zip(values_of(different.values(), column), times, strict=True):
        counts[value] += number
    return counts


def own_values_in(items: Iterable[PublishedDevice], columns: Iterable[Column]) -> bool:
    """Whether some of the devices share an object, but have values of their own in these columns."""
    every = [_own(column) for column in columns]
    return any(
        own.of(slice_.driver, slice_.devices, slice_.individual) for slice_, _ in in_slices(items) for own in every
    )


def _own(column: Column) -> OwnValues:
    return OwnValues(column.kind, column.domain, column.id or "")


def values_of(items: Iterable[PublishedDevice], column: Column) -> Iterator[str | None]:
    """``value_of`` for each device; fast for a text attribute, or a capacity, in the devices' own domain."""
    usual_place = column.kind in ("attribute", "capacity") and column.domain and column.id
    attributes = column.kind == "attribute"
    usual = "string" if attributes else "value"
    domain, name, qualified = column.domain, column.id or "", f"{column.domain}/{column.id}"
    per_device = _own(column)
    for slice_, group in in_slices(items):
        if own := per_device.of(slice_.driver, slice_.devices, slice_.individual):
            yield from [own[item.position] for item in group]
            continue
        for item in group:
            device = item.device
            table = device.attributes if attributes else device.capacity
            raw = table.get(name) if usual_place and device.driver == domain and qualified not in table else None
            text = raw.get(usual) if raw is not None and len(raw) == 1 else None
            yield text if text.__class__ is str else value_of(device, column)


def value_of(device: Device, column: Column) -> str | None:
    """The value of one attribute or capacity as text; None if the device lacks it."""
    if column.kind == "driver":
        return device.driver
    if column.kind == "allowMultipleAllocations":
        return "true" if device.allow_multiple_allocations else "false"
    table = device.attributes if column.kind == "attribute" else device.capacity
    domain = device.driver if column.domain is None else column.domain
    raw = table.get(f"{domain}/{column.id}")
    if raw is None and domain == device.driver:
        raw = table.get(column.id or "")
    if raw is None:
        return None
    if column.kind == "capacity":
        return str(raw.get("value", "0"))
    for value in raw.values():
        if isinstance(value, bool):
            return "true" if value else "false"
        return str(value)
    return None
