"""Signs that a vendor's driver is installed without the part that publishes the wanted devices."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final, NamedTuple

from kubectl_dra.api.nodes import Node

NVIDIA: Final = "gpu.nvidia.com"
NVIDIA_DOMAINS: Final = "compute-domain.nvidia.com"
"""The other half of the same driver, which publishes channels but no GPUs."""
_DOMAIN: Final = ".nvidia.com"


class PartOff(NamedTuple):
    """The nodes that have its devices, how that shows, and the driver's other part, empty unless that publishes."""

    nodes: tuple[str, ...]
    label: str
    resource: str
    other: str


def part_off(wanted: str, nodes: Iterable[Node], drivers: Collection[str]) -> PartOff | None:
    """The driver's part that is off, if nothing of the driver or class ``wanted`` exists but nodes have GPUs.

    ``drivers`` are those that publish slices. The only driver known to have such a part is NVIDIA's for GPUs.
    """
    if not (wanted == NVIDIA or wanted.endswith(_DOMAIN)) or NVIDIA in drivers or wanted in drivers:
        return None
    from kubectl_dra.data.drivers import catalogue

    known = catalogue().driver(NVIDIA)
    assert known is not None
    (label,) = catalogue().labels_of_nodes(NVIDIA)
    resource = known.classes[NVIDIA].extended_resource
    have = [
        node.name for node in nodes if node.labels.get(label) == "true" or node.allocatable.get(resource, "0") != "0"
    ]
    other = NVIDIA_DOMAINS if NVIDIA_DOMAINS in drivers else ""
    return PartOff(tuple(have), label, resource, other) if have or other else None
