"""Claims that the scheduler allocates and their driver refuses, as far as the vendors' files tell it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from kubectl_dra.api.slices import DeviceID, ResourceSlice, newest_slices
from kubectl_dra.data.drivers import catalogue


class PartOfNode(NamedTuple):
    """A claim has ``got`` of the ``of`` devices of a node, whose driver gives a claim all of them or none."""

    claim: str
    driver: str
    node: str
    got: int
    of: int


def parts_of_node(
    held: Iterable[tuple[str, DeviceID]], node: str, slices: Sequence[ResourceSlice]
) -> Iterator[PartOfNode]:
    """The claims, by their keys with their devices on a node, that a driver refuses because they have only a part.

    ``slices`` are those that may concern the node.
    """
    whole, given = catalogue().whole_node, dict[tuple[str, str], set[DeviceID]]()
    for claim, device in held:
        if device.driver in whole:
            given.setdefault((claim, device.driver), set()).add(device)
    for (claim, driver), devices in given.items():
        published = published_on(node, driver, slices)
        if len(devices) < published:
            yield PartOfNode(claim, driver, node, len(devices), published)


def published_on(node: str, driver: str, slices: Iterable[ResourceSlice]) -> int:
    """How many devices a driver publishes for a node alone."""
    own = (each for each in slices if each.pool.driver == driver and each.scope.node_name == node)
    return sum(len(each.devices) for newest in newest_slices(own).values() for each in newest)


def any_of_whole_nodes(drivers: Iterable[str]) -> bool:
    """Whether one of these drivers gives a claim all devices of a node or none."""
    return not catalogue().whole_node.isdisjoint(drivers)


def driver_of_whole_nodes(device_class: str) -> str:
    """The driver that installs a class and gives a claim all devices of a node or none; empty if it is another."""
    driver = catalogue().of_class(device_class)
    return driver.name if driver is not None and driver.name in catalogue().whole_node else ""


def for_one_pod(drivers: Iterable[str]) -> str:
    """The first of these drivers that gives the devices of a claim to one pod only; empty if none does."""
    return min(catalogue().one_pod.intersection(drivers), default="")
