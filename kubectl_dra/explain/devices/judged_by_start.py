"""Whether a pod starts with a device that the scheduler gives: unknown where the Pods of drivers were not read."""

from __future__ import annotations

from msgspec.structs import replace

from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.explain.devices.device_state import DeviceState
from kubectl_dra.explain.devices.inventory import Inventory
from kubectl_dra.explain.unread import NotSeen, unread_of_share, unread_of_start


def judged_by_start(inventory: Inventory, snapshot: Snapshot) -> Inventory:
    """The inventory with the Pods that were not read: they decide where the scheduler gives some device.

    Of shared devices what may keep from new claims what is left of them decides as well.
    """
    unread = unread_of_start(snapshot)
    given = any(row.state in (DeviceState.FREE, DeviceState.SHARED) for row in inventory.rows)
    notes = unread if given else tuple(NotSeen(unread_kind.gap) for unread_kind in unread)
    shared = any(row.state is DeviceState.SHARED for row in inventory.rows)
    deciding = (*(unread if given else ()), *(unread_of_share(snapshot) if shared else ()))
    return replace(
        inventory,
        notes=tuple(dict.fromkeys((*notes, *inventory.notes))),
        unread=tuple(dict.fromkeys((*inventory.unread, *deciding))),
    )
