"""Devices that claims hold and that no ResourceSlice has: their driver is away, or publishes others by now.

A kubelet deletes the slices of a driver 30 s after it is gone, and those of all its drivers when it starts; allocations
stay (pkg/kubelet/cm/dra/plugin).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.slices import DeviceID
from kubectl_dra.cluster.claim_relation import consumers_of
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.drivers.concerns import not_published
from kubectl_dra.explain.phrase import ObjectName, Phrase, say


class Unpublished(NamedTuple):
    """The devices of a driver on a node (empty where that is not known), and the claims that hold them.

    ``silent``: the driver publishes nothing at all for that node. ``gone``: there is no such node any more.
    """

    driver: str
    node: str
    devices: tuple[DeviceID, ...]
    claims: tuple[ResourceClaim, ...]
    silent: bool
    gone: bool = False

    @property
    def words(self) -> Phrase:
        """As a sentence."""
        where = say(" on node {node}", node=ObjectName("Node", self.node)) if self.node else ""
        text = "{count:device} of driver {driver}{where} {count:is|are} held and not published: {devices:some 3}; "
        if self.gone:
            text += "the node is gone, and nobody ends its pods"
        elif self.silent:
            text += (
                "the driver publishes nothing there: it is away, or the kubelet has just started, which is over within "
                "a minute"
            )
        else:
            text += "the driver publishes others there by now"
        return say(text, count=len(self.devices), driver=self.driver, where=where, devices=self.devices)


def unpublished(snapshot: Snapshot, claims: Iterable[ResourceClaim] | None = None) -> tuple[Unpublished, ...]:
    """What is held (by these claims, or any) and not published, by driver and node.

    Nothing where slices were not read whole.
    """
    if snapshot.missing("ResourceSlice") is not None:
        return ()
    held: dict[tuple[str, str], list[tuple[DeviceID, ResourceClaim]]] = {}
    for claim, result, _ in not_published(snapshot.claims.values() if claims is None else claims, snapshot):
        if not result.admin_access:
            held.setdefault((result.device.driver, _node(claim, snapshot)), []).append((result.device, claim))
    there = {(slice_.driver, slice_.scope.node_name) for slice_ in snapshot.slices}
    return tuple(
        Unpublished(
            driver,
            node,
            tuple(dict.fromkeys(device for device, _ in pairs)),
            tuple({claim.key: claim for _, claim in pairs}.values()),
            (driver, node) not in there and (driver, "") not in there,
            snapshot.lacks_node(node),
        )
        for (driver, node), pairs in sorted(held.items())
    )


def _node(claim: ResourceClaim, snapshot: Snapshot) -> str:
    """The node of a claim's pods; empty if none is known."""
    return next((pod.node_name for pod in consumers_of(claim, snapshot.pods).pods if pod.node_name), "")
