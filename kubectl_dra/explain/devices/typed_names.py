"""Names of devices as people type them: any end of driver, pool and device, and several in one word."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from kubectl_dra.api.slices import Device, DeviceID
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.errors import InputError, UndeterminedError
from kubectl_dra.text import did_you_mean, nearest, some, whole_number

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
