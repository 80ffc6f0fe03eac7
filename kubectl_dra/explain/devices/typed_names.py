"""Names of devices as people type them: any end of driver, pool and device, and several in one word."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from kubectl_dra.api.slices import DeviceID
from kubectl_dra.errors import InputError

_NUMBERS: Final = re.compile(
    r"(?P<stem>[^,]*?)(?P<numbers>[0-9]+(?:\.\.[0-9]+)?(?:,[0-9]+(?:\.\.[0-9]+)?)*)\Z", re.ASCII
)
_MOST: Final = 1000
"""The most devices in one range; a pool publishes fewer of one kind."""


def single_names(word: str) -> Iterator[str]:
    """The names in a word as ``devices`` prints it: ``n1/gpu-0,2..3`` is n1/gpu-0, n1/gpu-2 and n1/gpu-3.

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
        if dots and not 0 <= int(last) - int(first) < _MOST:
            raise InputError(f'"{word}" is no range of device numbers, as gpu-0..3 is')
        for number in range(int(first), int(last) + 1) if dots else (first,):
            yield f"{holder}{slash}{numbered['stem']}{number}"


def is_called(device: DeviceID, where: str, name: str) -> bool:
    """Whether a name means the device: ``driver/pool/device`` or an end of it; ``where`` may stand for the pool."""
    if f"/{device}".endswith(f"/{name}"):
        return True
    node, slash, own = name.rpartition("/")
    return bool(slash) and device.device == own and node in (where, f"{device.driver}/{where}")
