"""Devices as JSON or YAML, in the shape of ``schemas/devices.json``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, TextIO

from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.taints import DeviceTaint
from kubectl_dra.command import ClusterFlags
from kubectl_dra.explain.devices.alike_devices import Tally
from kubectl_dra.explain.devices.arrangement import CountedBy
from kubectl_dra.explain.devices.device_state import DeviceState, model_of
from kubectl_dra.explain.devices.inventory import DeviceRow, Inventory
from kubectl_dra.explain.settings import Settings
from kubectl_dra.report.json_output import SCHEMA_VERSION, filled
from kubectl_dra.report.json_shapes import assumed_json, device_json, key_json, owner_json, taint_json
from kubectl_dra.report.phrases import written
from kubectl_dra.report.remedy_json import notes_json, unread_json


def to_json(
    inventory: Inventory,
    settings: Settings,
    by: CountedBy | None = None,
    counts: Sequence[Tally] = (),
    *,
    where: ClusterFlags,
) -> dict[str, Any]:
    """A DeviceList, with the counts where they are asked for; its commands ask the cluster of ``where``."""
    counted = {"by": by.value, "counts": [*map(_count, counts)]} if by is not None else {}
    return {
        "schemaVersion": SCHEMA_VERSION,
        "kind": "DeviceList",
        "assumed": assumed_json(settings.scheduler.version, settings.release_source, sorted(settings.scheduler.gates)),
        "summary": {
            "devices": len(inventory.rows),
            "nodes": inventory.node_count(),
            "states": {state.value: count for state, count in inventory.states().items()},
        },
        **counted,
        "items": [*map(_device, inventory.rows)],
        **notes_json(inventory.notes, where),
        "unread": unread_json((*inventory.unread, *inventory.notes)),
    }


def _count(count: Tally) -> dict[str, Any]:
    states = {state.value: number for state, number in count.states.items()}
    return {"name": count.name, "deviceCount": count.devices, "nodeCount": count.nodes, "states": states}


def write_json(result: dict[str, Any], stream: TextIO) -> None:
    """Write JSON with one device per line, which is fast for 100,000 devices and suits grep."""
    encode = json.JSONEncoder(ensure_ascii=False).encode
    lines = []
    for key, value in result.items():
        if key == "items" and value:
            devices = ",\n".join(f"    {encode(item)}" for item in value)
            lines.append(f'  "items": [\n{devices}\n  ]')
        else:
            lines.append(f"  {encode(key)}: {encode(value)}")
    stream.write("{\n" + ",\n".join(lines) + "\n}\n")


def _device(row: DeviceRow) -> dict[str, Any]:
    return {
        **device_json(row.id),
        "resourceSlice": row.slice.name,
        "generation": row.slice.generation,
        "where": row.where,
        "model": model_of(row.device.attributes),
        "nodeCount": len(row.nodes),
        **({"node": row.nodes[0]} if len(row.nodes) == 1 else {}),
        "classes": list(row.classes),
        "state": row.state.value,
        "tainted": row.also_tainted or row.state is DeviceState.TAINTED,
        **({"reason": written(row.reason)} if row.reason else {}),
        "shareable": row.device.allow_multiple_allocations,
        "attributes": {name: next(iter(value.values()), None) for name, value in row.device.attributes.items()},
        "capacity": {name: _capacity(row, name) for name in row.device.capacity},
        "taints": [taint_of(taint, row) for taint in row.taints],
        "heldBy": [*map(holder_json, row.holders)],
    }


def _capacity(row: DeviceRow, name: str) -> dict[str, str]:
    """The total, and what claims consume of it if the device can be shared."""
    out = {"value": str(row.device.capacity[name].get("value", "0"))}
    if row.device.allow_multiple_allocations:
        out["consumed"] = str(row.consumed.get(name, "0"))
    return out


def taint_of(taint: DeviceTaint, row: DeviceRow) -> dict[str, Any]:
    """A taint of a device, and who sets it."""
    owner = ("DeviceTaintRule", taint.rule) if taint.rule else ("ResourceSlice", row.slice.name)
    return {**taint_json(taint), **filled(timeAdded=taint.time_added), "owner": owner_json(*owner)}


def holder_json(claim: ResourceClaim) -> dict[str, Any]:
    """A claim that holds a device, and its consumers."""
    return {
        **key_json(claim.key),
        "consumers": [{"resource": consumer.resource, "name": consumer.name} for consumer in claim.reserved_for],
    }
