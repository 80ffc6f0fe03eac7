"""What devices have instead: the values of the attributes and capacities that an expression reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from operator import itemgetter

from kubectl_dra.api.slices import Device
from kubectl_dra.cel import Program
from kubectl_dra.cel.columns import Column
from kubectl_dra.explain.diagnosis import Observation

MAX_NAMES = 4


def observations(program: Program, devices: Sequence[Device]) -> tuple[Observation, ...]:
    """Values with device counts for each name that the program reads, most frequent first.

    Empty if only evaluation can tell which names the program reads.
    """
    if not program.columns:
        return ()
    readable = [column for column in program.columns if column.id is not None]
    out: list[Observation] = []
    for column in sorted(readable, key=lambda entry: (entry.kind, entry.domain or "", entry.id or ""))[:MAX_NAMES]:
        counts = counted_values(devices, column)
        absent = counts.pop(None, 0)
        # By frequency, then by value: one sort after the other is faster than pairs as keys.
        ranked: list[tuple[str | None, int]] = sorted(counts.items(), key=itemgetter(0))
        ranked.sort(key=itemgetter(1), reverse=True)
        out.append(Observation(_label(column, devices), (*ranked, *([(None, absent)] if absent else ()))))
    return tuple(out)


def _label(column: Column, devices: Iterable[Device]) -> str:
    if not column.id:
        return column.kind
    own = column.domain is None or {device.driver for device in devices} <= {column.domain}
    return column.id if own else f"{column.domain}/{column.id}"


def counted_values(devices: Sequence[Device], column: Column) -> Counter[str | None]:
    """How many devices have which value. Devices that are one object are looked at once."""
    if len(set(map(id, devices))) == len(devices):
        return Counter(values_of(devices, column))
    different = dict(zip(map(id, devices), devices, strict=True))
    counts: Counter[str | None] = Counter()
    times = Counter(map(id, devices)).values()
    for value, number in zip(values_of(list(different.values()), column), times, strict=True):
        counts[value] += number
    return counts


def values_of(devices: Sequence[Device], column: Column) -> list[str | None]:
    """``value_of`` for each device; fast for a text attribute, or a capacity, in the devices' own domain."""
    if column.kind not in ("attribute", "capacity") or not column.domain or not column.id:
        return [value_of(device, column) for device in devices]
    attributes = column.kind == "attribute"
    usual = "string" if attributes else "value"
    domain, name, qualified = column.domain, column.id, f"{column.domain}/{column.id}"
    out: list[str | None] = []
    for device in devices:
        table = device.attributes if attributes else device.capacity
        raw = table.get(name) if device.driver == domain and qualified not in table else None
        text = raw.get(usual) if raw is not None and len(raw) == 1 else None
        out.append(text if text.__class__ is str else value_of(device, column))
    return out


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
