"""Which devices a list is to hold, and whether the names in it exist."""

from __future__ import annotations

from collections.abc import Sequence, Set

from msgspec import Struct

from kubectl_dra.api.slices import PoolID
from kubectl_dra.cel import Program
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.errors import InputError, UndeterminedError
from kubectl_dra.names import nearest
from kubectl_dra.wording import some

MAX_NAMES = 8


class Wanted(Struct, frozen=True):
    """Which devices to list: those for which every part that is set holds; names of one part are alternatives.

    A pool is ``NAME`` or ``DRIVER/NAME``. ``selector`` is a compiled CEL selector. ``namespace`` is one whose claims
    hold the device.
    """

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
    pools = {entry.pool for entry in snapshot.slices}
    scopes = {entry.scope.node_name for entry in snapshot.slices} - {""}
    for kind, asked, exist, read in (
        ("driver", wanted.drivers, {pool.driver for pool in pools}, ("ResourceSlice",)),
        ("node", wanted.nodes, {*nodes, *scopes}, ("Node", "ResourceSlice")),
        ("pool", wanted.pools, {pool.name for pool in pools} | {str(pool) for pool in pools}, ("ResourceSlice",)),
        ("class", wanted.classes, set(snapshot.classes), ("DeviceClass",)),
    ):
        for name in asked:
            if name in exist:
                continue
            near = nearest(name, sorted(exist))
            known = sorted(other for other in exist if "/" not in other)
            hint = f"; there are: {some(known, MAX_NAMES)}" if known else "; there is none"
            if other := _of_another_kind(name, pools, snapshot):
                hint = f"; {other}"
            elif near:
                hint = f"; nearest: {', '.join(near)}"
            elif gaps := snapshot.unread(read):
                raise UndeterminedError(
                    f"{gaps[0]}, so whether there is a {_TITLES[kind]} {name} is unknown{gaps[0].help}"
                )
            raise InputError(f"there is no {_TITLES[kind]} {name}{hint}")


def _of_another_kind(name: str, pools: Set[PoolID], snapshot: Snapshot) -> str:
    """What else has the name, and how to ask for it."""
    if name in snapshot.classes:
        return f"it is a DeviceClass: write --class {name}"
    if any(name == pool.driver for pool in pools):
        return f"it is a driver: write --driver {name}"
    if any(name in (pool.name, str(pool)) for pool in pools):
        return f"it is a pool: write --pool {name}"
    if name in snapshot.nodes:
        return f"it is a node: write --node {name}"
    with_it = sorted({entry.pool.name for entry in snapshot.slices if name in entry.names})
    return f"it is a device of {some(with_it, 2)}: name its node, or its pool with --pool" if with_it else ""


_TITLES = {"driver": "driver that publishes devices called", "node": "node", "pool": "pool", "class": "DeviceClass"}
