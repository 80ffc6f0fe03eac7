"""Signs that a vendor's driver is installed without the part that publishes the requested devices."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

from kubectl_dra.api.nodes import Node
from kubectl_dra.explain.diagnosis import Evidence
from kubectl_dra.explain.phrase import Subject, nodes_named, say

NVIDIA = "gpu.nvidia.com"
_NVIDIA_DOMAIN = ".nvidia.com"
NVIDIA_DOMAINS = "compute-domain.nvidia.com"
"""The other half of the same driver, which publishes channels but no GPUs."""
_OFF = "The GPU part of NVIDIA's driver is off"
_TURN_ON = (
    "Turn it on with the Helm value resources.gpus.enabled=true, and with gpuResourcesEnabledOverride=true where the "
    "chart asks for it. The device plugin must not run on those nodes."
)


class PartOff(NamedTuple):
    """What shows that a part is off, how to turn it on, and the nodes that have its devices."""

    evidence: tuple[Evidence, ...]
    fix: str
    nodes: tuple[str, ...] = ()


def part_off(wanted: str, nodes: Iterable[Node], drivers: Collection[str]) -> PartOff | None:
    """The driver's part that is off, if nothing of the driver or class ``wanted`` exists but nodes have GPUs.

    ``drivers`` are those that publish slices. The chart's values are those of NVIDIA's DRA driver for GPUs.
    """
    if not (wanted == NVIDIA or wanted.endswith(_NVIDIA_DOMAIN)) or NVIDIA in drivers or wanted in drivers:
        return None
    from kubectl_dra.data.drivers import catalogue

    evidence: list[Evidence] = []
    known = catalogue().driver(NVIDIA)
    assert known is not None
    (label,) = catalogue().labels_of_nodes(NVIDIA)
    resource = known.classes[NVIDIA].extended_resource
    have = [
        node.name for node in nodes if node.labels.get(label) == "true" or node.allocatable.get(resource, "0") != "0"
    ]
    if have:
        field = f"label {label} or allocatable {resource}"
        evidence.append(
            Evidence(
                say("nodes {have:some}", have=nodes_named(have)),
                field,
                f"they have GPUs, and no ResourceSlice of {NVIDIA}",
            )
        )
    if NVIDIA_DOMAINS in drivers:
        text = "its other part runs, so the driver is installed"
        evidence.append(Evidence(Subject("driver", NVIDIA_DOMAINS), "publishes ResourceSlices", text))
    missing = "" if NVIDIA_DOMAINS in drivers else ", or the driver is not installed"
    return PartOff(tuple(evidence), f"{_OFF}{missing}. {_TURN_ON}", tuple(have)) if evidence else None
