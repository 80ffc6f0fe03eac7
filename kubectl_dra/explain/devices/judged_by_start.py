"""Whether a pod starts with a device that the scheduler gives: unknown where the Pods of drivers were not read."""

from __future__ import annotations

from msgspec.structs import replace

from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.explain.devices.device_state import DeviceState
from kubectl_dra.explain.devices.inventory import Inventory
from kubectl_dra.explain.unread import NotSeen, unread_of_start


def judged_by_start(inventory: Inventory, snapshot: Snapshot) -> Inventory:
    """The inventory with the Pods that were not read: they decide where the scheduler gives some device."""
    unread = unread_of_start(snapshot)
    given = any(row.state in (DeviceState.FREE, DeviceState.SHARED) for row in inventory.rows)
    notes = unread if given else tuple(NotSeen(each.gap) for each in unread)
    return replace(
        inventory,
        notes=tuple(dict.fromkeys((*notes, *inventory.notes))),
        unread=(*inventory.unread, *unread) if given else inventory.unread,
    )
