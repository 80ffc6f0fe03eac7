"""Which devices are meant: names and selectors as people type them, and whether what they name exists."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence, Set
from typing import Final

from msgspec import Struct

from kubectl_dra.api.slices import Device, DeviceID, PoolID
from kubectl_dra.cel import CompileError, Environment, Program, compile_expression
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.command import kubectl
from kubectl_dra.errors import InputError, UndeterminedError, UsageError
from kubectl_dra.text import did_you_mean, nearest, some, whole_number

MAX_NAMES = 8


class Wanted(Struct, frozen=True):
    """Which devices to list: those for which every part that is set holds; names of one part are alternatives.

    A pool is ``NAME`` or ``DRIVER/NAME``; a device is named as ``single_names`` says. ``selector`` is a compiled CEL
    selector. ``namespace`` is one whose claims hold the device.
    """

    devices: tuple[str, ...] = ()
    drivers: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    pools: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    selector: Program | None = None
    namespace: str = ""
    free: bool = False
    tainted: bool = False


def check_names(snapshot: Snapshot, nodes: Sequence[str], wanted: Wanted) -> None:
    """Check that all names exist.

    Raises:
        InputError: a name that does not exist, with the names that may be meant.
        UndeterminedError: a name that may be that of an object which was not read.
    """
    pools = {slice_.pool for slice_ in snapshot.slices}
    scopes = {slice_.scope.node_name for slice_ in snapshot.slices} - {""}
    for kind, names, exist, read in (
        ("driver", wanted.drivers, {pool.driver for pool in pools}, ("ResourceSlice",)),
        ("node", wanted.nodes, {*nodes, *scopes}, ("Node", "ResourceSlice")),
        ("pool", wanted.pools, {pool.name for pool in pools} | {str(pool) for pool in pools}, ("ResourceSlice",)),
        ("class", wanted.classes, set(snapshot.classes), ("DeviceClass",)),
    ):
        for name in names:
            if name in exist:
                continue
            near = nearest(name, sorted(exist))
            known = sorted(other for other in exist if "/" not in other)
            hint = f"; there are: {some(known, MAX_NAMES)}" if known else "; there is none"
            other = _of_another_kind(name, pools, snapshot)
            if gaps := snapshot.unread(read):
                more = f"; {other}" if other else ""
                raise UndeterminedError(
                    f"{gaps[0]}, so whether there is a {_TITLES[kind]} {name} is unknown{gaps[0].help}{more}"
                )
            if other:
                hint = f"; {other}"
            elif near:
                hint = f"; {did_you_mean(near)}"
            error = InputError(f"there is no {_TITLES[kind]} {name}{hint}")
            if kind == "class" and (driver := _driver_of(name, snapshot)):
                error.commands = (("The driver that brings it", kubectl("dra", "explain", kind="driver", name=driver)),)
            raise error


def _driver_of(device_class: str, snapshot: Snapshot) -> str:
    """The driver whose installation brings a class, if something here tells of that driver; empty otherwise."""
    from kubectl_dra.data.drivers import catalogue
    from kubectl_dra.drivers.drivers_on_nodes import joined

    driver = catalogue().of_class(device_class)
    return driver.name if driver is not None and any(row.driver == driver.name for row in joined(snapshot).rows) else ""


def _of_another_kind(name: str, pools: Set[PoolID], snapshot: Snapshot) -> str:
    """What else has the name, and how to ask for it."""
    if name in snapshot.classes:
        return f"it is a DeviceClass: write --class {name}"
    by_resource = [
        device_class.name for device_class in snapshot.classes.values() if device_class.extended_resource_name == name
    ]
    if by_resource:
        return f"it is the extended resource of DeviceClass {by_resource[0]}"
    if any(name == pool.driver for pool in pools):
        return f"it is a driver: write --driver {name}"
    if any(name in (pool.name, str(pool)) for pool in pools):
        return f"it is a pool: write --pool {name}"
    if name in snapshot.nodes:
        return f"it is a node: write --node {name}"
    with_it = sorted({slice_.pool.name for slice_ in snapshot.slices if name in slice_.names})
    return f"it is a device of {some(with_it, 2)}: name its node, or its pool with --pool" if with_it else ""


_TITLES = {"driver": "driver that publishes devices called", "node": "node", "pool": "pool", "class": "DeviceClass"}


# Names of devices as people type them: any end of driver, pool and device, and several in one word.

_NUMBERS: Final = re.compile(
    r"(?P<stem>[^,]*?)(?P<numbers>[0-9]+(?:\.\.[0-9]+)?(?:,[0-9]+(?:\.\.[0-9]+)?)*)(?P<rest>(?:-[^,]*)?)\Z", re.ASCII
)
_MOST: Final = 1000
"""The most devices in one range; a pool publishes fewer of one kind."""
_MOST_COMPARED: Final = 20_000
_MOST_NAMED: Final = 4


def single_names(word: str) -> Iterator[str]:
    """The names in a word as ``devices`` prints it: ``n1/gpu-0,2..3`` is n1/gpu-0, n1/gpu-2 and n1/gpu-3.

    The numbers may stand before a hyphen: ``gpu-0,1-mig`` is gpu-0-mig and gpu-1-mig.

    No name in the API holds a comma or two dots.

    Raises:
        InputError: a range that runs backwards, or is longer than any pool.
    """
    holder, slash, names = word.rpartition("/")
    numbered = _NUMBERS.match(names) if "," in names or ".." in names else None
    if numbered is None:
        yield from (f"{holder}{slash}{name}" for name in names.split(","))
        return
    for part in numbered["numbers"].split(","):
        first, dots, last = part.partition("..")
        for number in _range(first, last, word) if dots else (first,):
            yield f"{holder}{slash}{numbered['stem']}{number}{numbered['rest']}"


def _range(first: str, last: str, word: str) -> range:
    start, end = whole_number(first), whole_number(last)
    if start is None or end is None or not 0 <= end - start < _MOST:
        raise InputError(f'"{word}" is no range of device numbers, as gpu-0..3 is')
    return range(start, end + 1)


def is_called(device: DeviceID, where: str, name: str) -> bool:
    """Whether a name means the device: ``driver/pool/device`` or an end of it; ``where`` may stand for the pool."""
    if f"/{device}".endswith(f"/{name}"):
        return True
    node, slash, own = name.rpartition("/")
    return bool(slash) and device.device == own and node in (where, f"{device.driver}/{where}")


def near_names(name: str, devices: Iterable[DeviceID]) -> tuple[str, ...]:
    """The names that may be meant, with as many parts as were typed."""
    parts = name.count("/") + 1
    ends = {"/".join(str(device).split("/")[-parts:]) for device in devices}
    return nearest(name, sorted(ends)) if len(ends) < _MOST_COMPARED else ()


def published_device(snapshot: Snapshot, name: str) -> tuple[DeviceID, Device]:
    """The published device of a name.

    Raises:
        InputError: no device has it, or several have.
        UndeterminedError: a device that was not read may have it.
    """
    devices = {
        DeviceID(slice_.driver, slice_.pool.name, own): (slice_.scope.node_name, device)
        for slice_ in snapshot.slices
        for device, own in zip(slice_.devices, slice_.names, strict=True)
    }
    called = [id for id, (node, _) in devices.items() if is_called(id, node, name)]
    exact = [id for id in called if str(id) == name]
    if len(exact or called) == 1:
        id = (exact or called)[0]
        return id, devices[id][1]
    if called:
        listed = some(sorted(map(str, called)), _MOST_NAMED)
        raise InputError(f'"{name}" names {len(called)} devices; write one of them in full: {listed}')
    for gap in snapshot.unread(("ResourceSlice",)):
        raise UndeterminedError(f"{gap}, so whether there is a device {name} is unknown{gap.help}")
    hint = f"; there are: {some(list(map(str, devices)), _MOST_NAMED)}" if devices else "; no device is published"
    if near := near_names(name, devices):
        hint = f"; {did_you_mean(near)}"
    raise InputError(f'device "{name}" does not exist (write [driver/]pool/device){hint}')


# A selector that somebody typed: compiled when it is read, so that the error is about what was typed.


def compiled_selector(expression: str, environment: Environment, typed: str = "--selector") -> Program:
    """The program of a selector; ``typed`` is where it was. Raises UsageError, with the place, where it is wrong."""
    try:
        return compile_expression(environment, expression)
    except CompileError as error:
        message = f"{typed} does not compile"
        lines: list[str] = []
        for issue in error.issues[:3]:
            said = issue.said
            if lines:
                lines.append(said)
            else:
                message += f": {said}"
            if issue.line:
                text = expression.splitlines()[issue.line - 1] if issue.line <= len(expression.splitlines()) else ""
                lines += [f"  {text}", f"  {' ' * (issue.column - 1)}^"]
        raise UsageError(message, lines) from None
