"""What labels and resources of a node say of its hardware, and so which driver should be there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Final

from kubectl_dra.api.nodes import Node
from kubectl_dra.data.drivers import catalogue
from kubectl_dra.drivers.health import NodeDriver

_KIND_LABELS: Final = (
    "node.kubernetes.io/instance-type",
    "cloud.google.com/gke-accelerator",
    "cloud.google.com/gke-tpu-accelerator",
    "nvidia.com/gpu.product",
    "amd.com/gpu.product-name",
)
"""Labels that say what hardware a node has."""


def kind_of(node: Node) -> tuple[tuple[str, str], ...] | None:
    """What hardware a node has, as far as labels tell; None if they do not."""
    labels = tuple((key, value) for key in _KIND_LABELS if (value := node.labels.get(key)))
    return labels or None


def promised(node: Node | None, driver: str) -> bool:
    """Whether labels of a node say that it has the hardware of the driver's vendor."""
    return node is not None and any(node.labels.get(key) == "true" for key in _vendor_labels(driver))


@lru_cache(256)
def _vendor_labels(driver: str) -> tuple[str, ...]:
    return catalogue().labels_of_nodes(driver) if driver in catalogue().names else ()


def unserved(
    nodes: Mapping[str, Node], rows: Mapping[tuple[str, str], NodeDriver], drivers: Iterable[str]
) -> Iterator[tuple[str, Node]]:
    """Each of the drivers with the nodes that have its hardware and nothing of its vendor: neither a row, which is by
    driver and node, nor a device plugin.
    """
    kinds = {name: kind_of(node) for name, node in nodes.items()}
    publishing = {(row.driver, kinds.get(row.node)) for row in rows.values() if row.devices}
    for driver in drivers:
        for node in nodes.values():
            kind = kinds[node.name]
            alike = kind is not None and (driver, kind) in publishing
            if (driver, node.name) not in rows and (alike or promised(node, driver)) and not plugin_offer(node, driver):
                yield driver, node


def plugin_offer(node: Node, driver: str) -> tuple[str, str] | None:
    """The resource that a device plugin of the driver's vendor offers on a node, and how much; None if it offers none.

    Extended resources that DRA serves are not in a node's allocatable.
    """
    offers = ((name, str(count)) for name, count in node.allocatable.items() if "/" in name and count != "0")
    return next((offer for offer in offers if served_by(offer[0]) == driver), None)


def with_hardware(nodes: Iterable[Node], driver: str) -> tuple[str, ...]:
    """The nodes that have a driver's hardware, as their labels say or a device plugin of its vendor offers it."""
    return tuple(node.name for node in nodes if promised(node, driver) or plugin_offer(node, driver))


@lru_cache(512)
def served_by(resource: str) -> str:
    """The driver for the devices that device plugins offer under this name; empty if it is not known."""
    driver = catalogue().of_resource(resource)
    return driver.name if driver is not None else ""
