"""Which devices a list is to hold, and whether the names in it exist."""

from __future__ import annotations

from collections.abc import Sequence, Set

from msgspec import Struct

from kubectl_dra.api.slices import PoolID
from kubectl_dra.cel import Program
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.command import kubectl
from kubectl_dra.errors import InputError, UndeterminedError
from kubectl_dra.text import did_you_mean, nearest, some

MAX_NAMES = 8


class Wanted(Struct, frozen=True):
    """Which devices to list: those for which every part that is set holds; names of one part are alternatives.

    A pool is ``NAME`` or ``DRIVER/NAME``; a device is named as ``typed_names`` says. ``selector`` is a compiled CEL
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
