"""Machine types of clouds: which devices a node of one has."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path
from typing import Final

from msgspec import Struct, convert

from kubectl_dra.data.drivers import parsed

FILE: Final = Path(__file__).with_name("machine_types.yaml")


class MachineType(Struct, frozen=True):
    """The devices of a node: how many, and of which product, as its driver publishes it.

    ``cpu`` and ``memory`` are all that it has; pods get less. They are 0 and empty where they are not known. ``labels``
    are those by which its cloud tells its devices from others of the same product.
    """

    product: str
    devices: int
    cpu: int = 0
    memory: str = ""
    labels: Mapping[str, str] = {}

    @property
    def room(self) -> dict[str, str]:
        """What is known of its resources, as a node has them."""
        return {"cpu": str(self.cpu), "memory": self.memory} if self.cpu and self.memory else {}


class CloudMachines(Struct, frozen=True):
    """Machine types of a cloud, with the pages and lists (``sources``) that say what they have.

    ``labels`` is how labels begin that only its Kubernetes service gives nodes, where labels tell of devices.
    """

    sources: tuple[str, ...]
    machines: Mapping[str, MachineType]
    labels: str = ""


@cache
def machine_types() -> Mapping[str, MachineType]:
    """All of them by name."""
    return {name: machine for group in _groups() for name, machine in group.machines.items()}


def cloud_of_label(key: str) -> Collection[str] | None:
    """The machine types of the cloud that alone gives nodes such a label; None if that is no cloud's label."""
    groups = [group for group in _groups() if group.labels and key.startswith(group.labels)]
    return {name for group in groups for name in group.machines} if groups else None


@cache
def _groups() -> list[CloudMachines]:
    return convert(parsed(FILE.read_text("utf-8")), list[CloudMachines])
