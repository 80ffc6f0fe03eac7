"""The devices of a snapshot's cluster, as rules compare them with requests: what is published, held or not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from kubectl_dra.api.shared_devices import PerDeviceColumn
from kubectl_dra.api.slices import newest_slices
from kubectl_dra.cel.errors import EvaluationError
from kubectl_dra.lint.analysis.selector_targets import AskedSelector, asked, class_programs
from kubectl_dra.lint.context import Context, once

if TYPE_CHECKING:
    from kubectl_dra.api.slices import Device, ResourceSlice
    from kubectl_dra.cel.program import Program
    from kubectl_dra.cluster.snapshot import Snapshot


def hidden(context: Context, kind: str, namespace: str = "") -> bool:
    """Whether the cluster may have objects of a kind that were not read, so that a rule cannot decide."""
    gaps = context.snapshot.unread((kind,), namespace) if context.snapshot is not None else ()
    context.given.unread.update(dict.fromkeys(gaps))
    return bool(gaps)


class DeviceOnNode(NamedTuple):
    """A device and its node; empty if it is not of one node alone."""

    device: Device
    node: str


class _Known(Struct, frozen=True):
    """``in_part``: the drivers of pools of which slices are missing. ``classes``: the devices that a class admits."""

    slices: tuple[ResourceSlice, ...]
    devices: tuple[Device, ...]
    in_part: frozenset[str]
    classes: dict[tuple[Program, ...], Sequence[Device]]
    placed: dict[tuple[frozenset[PerDeviceColumn], tuple[Program, ...]], Sequence[DeviceOnNode]]


def _known(snapshot: Snapshot) -> _Known:
    pools = newest_slices(snapshot.slices).values()
    slices = tuple(slice_ for pool in pools for slice_ in pool)
    devices = tuple(device for slice_ in slices for device in slice_.devices)
    in_part = frozenset(pool[0].driver for pool in pools if len(pool) < pool[0].slice_count)
    return _Known(slices, devices, in_part, {}, {})


def of_class(snapshot: Snapshot, programs: tuple[Program, ...]) -> Sequence[Device]:
    """The devices of the newest generation of each pool that a class with these selectors admits."""
    known = snapshot.derived(_known)
    if programs not in known.classes:
        known.classes[programs] = admitted(known.devices, programs)
    return known.classes[programs]


def placed(
    snapshot: Snapshot, of_class: tuple[Program, ...], programs: Iterable[Program], attributes: Iterable[str]
) -> Sequence[DeviceOnNode]:
    """The devices of a class, with their own values of what selectors read and of these attributes."""
    own = frozenset(_columns((*of_class, *programs), attributes))
    known = snapshot.derived(_known)
    if (own, of_class) not in known.placed:
        exact = (slice_.exact(own) if slice_.has_own(own) else slice_ for slice_ in known.slices)
        everything = [
            DeviceOnNode(device, slice_.scope.node_name or device.scope.node_name)
            for slice_ in exact
            for device in slice_.devices
        ]
        known.placed[own, of_class] = admitted_places(everything, of_class)
    return known.placed[own, of_class]


def _columns(programs: Iterable[Program], attributes: Iterable[str]) -> Iterator[PerDeviceColumn]:
    read = [(column.kind, column.domain, column.id) for program in programs for column in program.columns or ()]
    named = [("attribute", *name.partition("/")[::2]) for name in attributes]
    for kind, domain, name in (*read, *named):
        if name:
            yield PerDeviceColumn(kind, name)
            yield PerDeviceColumn(kind, f"{domain}/{name}")


def seen_in_part(snapshot: Snapshot, places: Iterable[DeviceOnNode]) -> bool:
    """Whether slices are missing of pools whose devices may be like these: of their drivers, or of one unseen yet."""
    known = snapshot.derived(_known)
    if not known.in_part:
        return False
    seen = {device.driver for device in known.devices}
    alike = {device.driver for device, _ in places}
    return any(driver in alike or driver not in seen for driver in known.in_part)


def admitted(devices: Sequence[Device], programs: Sequence[Program]) -> Sequence[Device]:
    """The devices that pass all of these selectors."""
    for program in programs:
        outcomes = program.evaluate_devices(devices)
        devices = [device for device, outcome in zip(devices, outcomes, strict=True) if outcome is True]
    return devices


def admitted_places(places: Sequence[DeviceOnNode], programs: Sequence[Program]) -> Sequence[DeviceOnNode]:
    """Those of them that pass all of these selectors."""
    for program in programs:
        outcomes = program.evaluate_devices([device.device for device in places])
        places = [device for device, outcome in zip(places, outcomes, strict=True) if outcome is True]
    return places


@once
def evaluated(
    context: Context,
) -> Sequence[tuple[AskedSelector, Sequence[Device], Sequence[bool | EvaluationError]]]:
    """The selectors of requests, each with the devices admitted by its class and the earlier selectors, and what it
    says of them; without those that have no such device.
    """
    snapshot = context.snapshot
    targets = asked(context) if snapshot is not None and not hidden(context, "ResourceSlice") else ()
    found = []
    for target in targets:
        programs = class_programs(context, target.device_class)
        if snapshot is None or programs is None:
            continue
        if devices := admitted(of_class(snapshot, tuple(programs)), target.before):
            found.append((target, devices, target.program.evaluate_devices(devices)))
    return found


def reads_without_error(context: Context, target: AskedSelector) -> bool:
    """Whether the slices of the cluster show all devices of the class, and the selector is no error on any of them."""
    snapshot = context.snapshot
    for known, devices, outcomes in evaluated(context) if snapshot is not None else ():
        if known is target and snapshot is not None:
            in_part = snapshot.derived(_known).in_part
            seen_whole = not any(device.driver in in_part for device in devices)
            return seen_whole and not any(isinstance(outcome, EvaluationError) for outcome in outcomes)
    return False
