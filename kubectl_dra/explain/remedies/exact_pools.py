"""The pools of nodes with each device's own values, for attempts with other selectors than those of the question."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from kubectl_dra.allocation.attempt import Cycle
from kubectl_dra.allocation.errors import AllocationError
from kubectl_dra.allocation.pools import NodePools, Pool
from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.nodes import Node
from kubectl_dra.api.slices import ResourceSlice


class ExactPools:
    """Restores slices that keep values apart from their devices (``Snapshot.judged``), each once.

    Verdicts are remembered by a device's identity, so what was restored lives as long as this.
    """

    def __init__(self) -> None:
        self._exact: dict[int, tuple[ResourceSlice, ResourceSlice]] = {}

    def of(self, cycle: Cycle, node: Node) -> NodePools | None:
        """The pools that a node sees; None if they cannot be told, which the attempt finds out by itself."""
        try:
            seen = cycle.pools_of(node)
        except AllocationError:
            return None
        return replace(seen, pools=tuple(map(self._of_pool, seen.pools)))

    def judge(self, cycle: Cycle, nodes: Sequence[Node], claims: Sequence[ResourceClaim]) -> None:
        """Judge the devices of many nodes by what claims select at once, which is faster than one by one."""
        seen = [pools for node in nodes if (pools := self.of(cycle, node)) is not None]
        devices = [
            device for pools in seen for pool in pools.pools for entry in pool.slices for device in entry.devices
        ]
        specs = [spec for claim in claims for request in claim.requests for spec in request.alternatives()]
        classes = [cycle.classes[name] for spec in specs if (name := spec.device_class) in cycle.classes]
        expressions = {text for each in classes for text in each.selectors}
        expressions.update(text for spec in specs for text in spec.selectors)
        for expression in expressions - {None, ""}:
            cycle.selectors.prefetch(expression or "", devices)

    def _of_pool(self, pool: Pool) -> Pool:
        return replace(pool, slices=tuple(map(self._of_slice, pool.slices)))

    def _of_slice(self, entry: ResourceSlice) -> ResourceSlice:
        known = self._exact.get(id(entry))
        if known is None:
            known = self._exact[id(entry)] = entry, entry.exact()
        return known[1]
