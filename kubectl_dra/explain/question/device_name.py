"""Finds a device by the name that people write."""

from __future__ import annotations

from kubectl_dra.api.slices import Device, DeviceID
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.errors import InputError
from kubectl_dra.names import nearest
from kubectl_dra.wording import some

MAX_NAMES = 4
MAX_COMPARED = 20_000


def device_named(snapshot: Snapshot, wanted: str) -> tuple[DeviceID, Device]:
    """The device of a name ([driver/]pool/device, or device if unambiguous), with its identity.

    Raises:
        InputError: no device, or several, of that name.
    """
    matching: dict[DeviceID, Device] = {}
    names: list[str] = []
    for entry in snapshot.slices:
        for device, name in zip(entry.devices, entry.names, strict=True):
            identity = DeviceID(entry.driver, entry.pool.name, name)
            full = str(identity)
            names.append(full)
            if full == wanted or full.endswith(f"/{wanted}"):
                matching[identity] = device
    if len(matching) == 1:
        return next(iter(matching.items()))
    if matching:
        listed = some(sorted(map(str, matching)), MAX_NAMES)
        raise InputError(f'"{wanted}" names {len(matching)} devices; write one of them in full: {listed}')
    # Compared with as many parts of the names as were written.
    parts = wanted.count("/") + 1
    by_parts: dict[str, str] = {}
    for name in names:
        by_parts.setdefault("/".join(name.split("/")[-parts:]), name)
    near = [by_parts[text] for text in nearest(wanted, by_parts)] if len(by_parts) < MAX_COMPARED else []
    hint = f"; there are: {some(list(dict.fromkeys(names)), MAX_NAMES)}" if names else "; no device is published"
    if near:
        hint = f"; nearest: {', '.join(near)}"
    raise InputError(f'device "{wanted}" does not exist (write [driver/]pool/device){hint}')
