"""Machine types of clouds: which devices a node of one has."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

from msgspec import Struct, convert

from kubectl_dra.data.drivers import parsed

FILE: Final = Path(__file__).with_name("machine_types.yaml")


class MachineType(Struct, frozen=True):
    """The devices of a node: how many, and of which product, as its driver publishes it."""

    product: str
    devices: int


class CloudMachines(Struct, frozen=True):
    """The machine types of a page (``source``) of a cloud's documentation."""

    source: str
    machines: Mapping[str, MachineType]


@cache
def machine_types() -> Mapping[str, MachineType]:
    """All of them by name."""
    pages = convert(parsed(FILE.read_text("utf-8")), list[CloudMachines])
    return {name: machine for page in pages for name, machine in page.machines.items()}
