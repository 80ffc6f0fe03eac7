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
    """The devices of a node: how many, and of which product, as its driver publishes it.

    ``cpu`` and ``memory`` are all that it has; pods get less. They are 0 and empty where they are not known.
    """

    product: str
    devices: int
    cpu: int = 0
    memory: str = ""

    @property
    def room(self) -> dict[str, str]:
        """What is known of its resources, as a node has them."""
        return {"cpu": str(self.cpu), "memory": self.memory} if self.cpu and self.memory else {}


class CloudMachines(Struct, frozen=True):
    """Machine types of a cloud, with the pages and lists (``sources``) that say what they have."""

    sources: tuple[str, ...]
    machines: Mapping[str, MachineType]


@cache
def machine_types() -> Mapping[str, MachineType]:
    """All of them by name."""
    groups = convert(parsed(FILE.read_text("utf-8")), list[CloudMachines])
    return {name: machine for group in groups for name, machine in group.machines.items()}
