"""Devices that the scheduler gives and pods cannot use: their driver does not run, or refuses the claim."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.drivers.refused_claims import any_of_whole_nodes
from kubectl_dra.explain.funnel.device_view import PublishedDevice
from kubectl_dra.explain.not_starting import not_starting, troubled_nodes
from kubectl_dra.explain.phrase import ObjectName, Words, say


def away(driver: str, nodes: Sequence[str], snapshot: Snapshot) -> Words:
    """Why pods with devices of a driver start on none of the nodes that can use them; empty where some do."""
    if not nodes or not troubled_nodes(snapshot).issuperset(nodes):
        return ""
    where = not_starting(snapshot, ((name, (driver,)) for name in nodes))
    return where[0].why if len(where) == len(nodes) else ""


class WholeNodes:
    """The devices of drivers that give a claim all devices of a node or none."""

    def __init__(self, published: Sequence[PublishedDevice], state: Callable[[PublishedDevice], str]) -> None:
        """``state`` says in a word whether a device is ``free``, or why not."""
        self._published = published
        self._state = state
        self._on_node: Mapping[tuple[str, str], list[PublishedDevice]] | None = None
        self._refused: dict[tuple[str, str], Words] = {}

    def refused(self, item: PublishedDevice) -> Words:
        """Why no claim gets a device: the driver gives no part of its node, and another device there is not free."""
        driver, node = item.slice.driver, item.slice.scope.node_name
        if not node or not any_of_whole_nodes((driver,)):
            return ""
        if (driver, node) not in self._refused:
            self._refused[driver, node] = self._why(driver, node)
        return self._refused[driver, node]

    def _why(self, driver: str, node: str) -> Words:
        if self._on_node is None:
            self._on_node = on_node = defaultdict[tuple[str, str], list[PublishedDevice]](list)
            for item in self._published:
                on_node[item.slice.driver, item.slice.scope.node_name].append(item)
        devices = self._on_node.get((driver, node), [])
        for device in devices:
            if (state := self._state(device)) != "free":
                text = "driver {driver} gives a claim all {count} devices of node {node} or none, and {name} is {state}"
                words = {"driver": driver, "count": len(devices), "name": device.name, "state": state}
                return say(text, node=ObjectName("Node", node), **words)
        return ""
