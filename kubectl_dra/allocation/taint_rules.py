"""DeviceTaintRules applied to slices, as the scheduler's taint tracker does."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from kubectl_dra.api.slices import Device, ResourceSlice
from kubectl_dra.api.taints import DeviceTaintRule


def apply_rules(slices: Iterable[ResourceSlice], rules: Sequence[DeviceTaintRule]) -> tuple[ResourceSlice, ...]:
    """Slices with each matching rule's taint appended to its devices, whatever the slice's generation.

    A rule without a selector matches nothing, as the API documents it.
    """
    if not rules:
        return tuple(slices)
    return tuple(_with_rules(entry, rules) for entry in slices)


def _with_rules(entry: ResourceSlice, rules: Sequence[DeviceTaintRule]) -> ResourceSlice:
    devices = tuple(_tainted(device, entry, rules) for device in entry.devices)
    if all(new is old for new, old in zip(devices, entry.devices, strict=True)):
        return entry
    return replace(entry, devices=devices)


def _tainted(device: Device, entry: ResourceSlice, rules: Sequence[DeviceTaintRule]) -> Device:
    added = tuple(rule.taint for rule in rules if rule.selects(entry.driver, entry.pool.name, device.name))
    return replace(device, taints=(*device.taints, *added)) if added else device
