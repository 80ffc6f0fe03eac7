"""How fragmented the free devices of a class are: the largest request for them that one node can still serve."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from kubectl_dra.allocation.attempt import AttemptVerdict, Cycle
from kubectl_dra.allocation.budgets import LARGEST_NODES
from kubectl_dra.api.claims import DeviceRequest, Request, ResourceClaim
from kubectl_dra.api.limits import MAX_RESULTS
from kubectl_dra.api.meta import ObjectMeta
from kubectl_dra.api.nodes import Node
from kubectl_dra.explain.devices.device_state import DeviceState
from kubectl_dra.explain.devices.inventory import DeviceRow


class LargestRequest(Struct, frozen=True):
    """A request for ``count`` devices of the class fits on ``node`` (empty for none), and no larger one anywhere.

    ``at_least``: not all nodes were tried, so that a larger one may fit.
    """

    count: int
    node: str = ""
    at_least: bool = False


def largest_request(name: str, rows: Sequence[DeviceRow], cycle: Cycle, nodes: Sequence[Node]) -> LargestRequest | None:
    """The largest request for devices of a class that the allocator can serve on one of the nodes, without tolerations.

    None where devices of the class can be shared: how many fit then depends on the capacity that is asked for.
    """
    free: dict[str, int] = {}
    for row in rows:
        if name not in row.classes:
            continue
        if row.device.allow_multiple_allocations:
            return None
        if row.state is DeviceState.FREE:
            for node in row.nodes:
                free[node] = free.get(node, 0) + 1
    known = {node.name: node for node in nodes if not node.unschedulable}
    # No more than what is free can fit, so nodes with less than what fits elsewhere need no try.
    ranked = sorted((node for node in free if node in known), key=lambda node: -free[node])
    best = LargestRequest(0)
    for tried, node in enumerate(ranked):
        most = min(free[node], MAX_RESULTS)
        if most <= best.count:
            break
        if tried == LARGEST_NODES:
            return LargestRequest(best.count, best.node, at_least=True)
        count = _most(name, known[node], cycle, best.count, most)
        if count > best.count:
            best = LargestRequest(count, node)
    return best


def _most(name: str, node: Node, cycle: Cycle, low: int, high: int) -> int:
    """The largest count from ``low``, which is known to fit somewhere, to ``high`` that fits on the node."""
    if _fits(name, node, cycle, high):
        return high
    while high - low > 1:
        middle = (low + high) // 2
        if _fits(name, node, cycle, middle):
            low = middle
        else:
            high = middle
    return low


def _fits(name: str, node: Node, cycle: Cycle, count: int) -> bool:
    asked = DeviceRequest("devices", name, count=count)
    claim = ResourceClaim(ObjectMeta(name="largest", namespace="default"), (Request("devices", asked),))
    return cycle.changed().attempt(node, [claim]).verdict is AttemptVerdict.ALLOCATED
