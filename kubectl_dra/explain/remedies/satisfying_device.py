"""Makes a device that selectors accept from one that they reject, by turning their constants into values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from kubectl_dra.allocation.selectors import Selectors
from kubectl_dra.api.slices import Device
from kubectl_dra.cel import Program
from kubectl_dra.cel.columns import Column, DeviceTable, columns_of
from kubectl_dra.explain.remedies.selector_values import slots

MAX_BASES = 12
_TYPES = {"string": "string", "int": "int", "bool": "bool", "version": "version"}


def satisfying(selectors: Selectors, expressions: Sequence[str | None], devices: Sequence[Device]) -> Device | None:
    """A device on which all expressions hold, as close as possible to a published one; None if none was found."""
    programs = [term for expression in expressions for term in selectors.terms(expression or "")]
    if not programs:
        return None
    for base in _bases(programs, devices):
        device = base
        for term in programs:
            if not _true(term, device):
                device = _with(term, device)
        if all(_true(term, device) for term in programs):
            return device
    return None


def _bases(programs: Sequence[Program], devices: Sequence[Device]) -> list[Device]:
    """One device for each distinct set of verdicts, those that satisfy most terms first."""
    kinds: dict[tuple[bool, ...], Device] = {}
    shared = DeviceTable(devices)
    table = [program.evaluate_devices(shared) for program in programs]
    for index, device in enumerate(devices):
        kinds.setdefault(tuple(column[index] is True for column in table), device)
    ranked = sorted(kinds, key=lambda verdicts: -sum(verdicts))
    return [kinds[verdicts] for verdicts in ranked[:MAX_BASES]]


def _true(program: Program, device: Device) -> bool:
    return program.evaluate_devices([device])[0] is True


def _with(term: Program, device: Device) -> Device:
    """The device with the first value for a column of the term that makes the term true; otherwise unchanged."""
    for slot in slots(term):
        columns = [column for column in columns_of(slot.comparison) or term.columns or () if column.id]
        for column in columns:
            for value in _values(slot.kind, slot.value):
                changed = _setting(device, column, slot.kind, value)
                if changed is not None and _true(term, changed):
                    return changed
    return device


def _values(kind: str, value: Any) -> list[Any]:
    if kind == "list":
        return list(value)
    if kind == "int":
        return [value, value + 1, value - 1]
    if kind == "bool":
        return [value, not value]
    if kind == "quantity":
        digits = value.rstrip("EPTGMKkinmu")
        unit = value[len(digits) :]
        return [value, f"{int(digits) + 1}{unit}", f"{max(0, int(digits) - 1)}{unit}"] if digits.isdigit() else [value]
    if kind == "version" and value.count(".") == 2 and value.rpartition(".")[2].isdigit():
        head, _, patch = value.rpartition(".")
        return [value, f"{head}.{int(patch) + 1}", f"{head}.{max(0, int(patch) - 1)}"]
    return [value]


def _setting(device: Device, column: Column, kind: str, value: Any) -> Device | None:
    domain = device.driver if column.domain is None else column.domain
    name = column.id or ""
    key = name if domain == device.driver else f"{domain}/{name}"
    if column.kind == "capacity":
        old: Mapping[str, Any] = device.capacity.get(key) or {}
        return replace(device, capacity={**device.capacity, key: {**old, "value": str(value)}})
    if column.kind != "attribute" or kind == "quantity":
        return None
    if kind == "list":
        kind = "int" if isinstance(value, int) else "string"
    return replace(device, attributes={**device.attributes, key: {_TYPES[kind]: value}})
