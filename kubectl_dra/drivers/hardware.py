"""What labels and resources of a node say of its hardware: the driver that should be there, what plugins offer."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from kubectl_dra.allocation.extended_resources import amount_of, eligible_name
from kubectl_dra.api.nodes import Node
from kubectl_dra.api.pod_resources import pod_requests
from kubectl_dra.cluster.snapshot import Snapshot
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


# Signs that a vendor's driver is installed without the part that publishes the wanted devices.

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
    known = catalogue().driver(NVIDIA)
    assert known is not None
    (label,) = catalogue().labels_of_nodes(NVIDIA)
    resource = known.classes[NVIDIA].extended_resource
    have = [
        node.name for node in nodes if node.labels.get(label) == "true" or node.allocatable.get(resource, "0") != "0"
    ]
    other = NVIDIA_DOMAINS if NVIDIA_DOMAINS in drivers else ""
    return PartOff(tuple(have), label, resource, other) if have or other else None


# What device plugins offer on a node, and how much of it pods have: what DRA knows nothing of.


class PluginShare(NamedTuple):
    """A resource of a node that a device plugin offers, how much of it is healthy, and how much pods have.

    ``unhealthy`` is how much more its capacity is than what the kubelet allocates. ``pods`` are the names of those that
    have some, with their namespaces.
    """

    resource: str
    offered: int
    used: int
    unhealthy: int
    pods: tuple[str, ...]

    @property
    def full(self) -> bool:
        """Whether none of it is left."""
        return self.used >= self.offered


def plugin_shares(node: Node, snapshot: Snapshot) -> tuple[PluginShare, ...]:
    """The resources of device plugins on a node, by name. Extended resources that DRA serves are in no allocatable."""
    on_node = [pod for pod in snapshot.pods.values() if pod.node_name == node.name and not pod.finished]
    requests = {pod.key: pod_requests(pod) for pod in on_node}
    shares: list[PluginShare] = []
    for resource, amount in sorted(node.allocatable.items()):
        offered, capacity = amount_of(amount), amount_of(node.status.capacity.get(resource))
        if not eligible_name(resource) or not max(offered, capacity):
            continue
        used = {key: own[resource].value() for key, own in requests.items() if resource in own}
        pods = tuple(sorted(key for key, count in used.items() if count))
        shares.append(PluginShare(resource, offered, sum(used.values()), max(capacity - offered, 0), pods))
    return tuple(shares)
