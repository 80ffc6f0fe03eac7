"""Fragmentation of a class's free devices: the largest request for them that one node can still serve."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kubectl_dra.allocation.attempt import Attempt
from kubectl_dra.allocation.budgets import LARGEST_NODES
from kubectl_dra.allocation.features import DEFECTS, KnownDefects
from kubectl_dra.api.claims import DeviceRequest, Request, ResourceClaim
from kubectl_dra.api.limits import MAX_RESULTS
from kubectl_dra.api.meta import ObjectMeta
from kubectl_dra.api.quantity import Quantity
from kubectl_dra.api.slices import DeviceID
from kubectl_dra.cluster.cluster import Cluster, key_of
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.explain.devices.alike_devices import ROOM, CapacityRoom, capacity_left
from kubectl_dra.explain.devices.device_state import DeviceState
from kubectl_dra.explain.devices.inventory import DeviceRow
from kubectl_dra.scheduling.dynamic_resources import ClaimsAlone
from kubectl_dra.scheduling.outcome import Outcome
from kubectl_dra.scheduling.scheduler import Scheduler


class LargestRequest(Struct, frozen=True):
    """A request for ``count`` devices of the class fits on ``node`` (empty for none), and no larger one anywhere.

    ``at_least``: a larger one may fit: not all nodes were tried, or it is open what the scheduler does on one.
    ``defects``: names of those of the scheduler's allocator without which a request for one device fits; ``until`` is
    the first patch release without them, where nobody knows which one runs: an early one is assumed.
    """

    count: int
    node: str = ""
    at_least: bool = False
    defects: tuple[str, ...] = ()
    until: str = ""

    def refused(self, defects: tuple[str, ...], scheduler: Scheduler) -> LargestRequest:
        """The same where these defects of a scheduler refuse every request."""
        minor = scheduler.release.minor
        open_ = [DEFECTS[name] for name in defects if DEFECTS[name].affects(scheduler.release, scheduler.patch) is None]
        last = max(open_, key=lambda defect: defect.fixed[minor], default=None)
        return replace(self, defects=defects, until=last.fixed_in(minor) if last is not None else "")


_CLAIM: Final = ResourceClaim(ObjectMeta(name="largest"))
"""Stands for no claim of the cluster: those have a namespace."""


class RequestTrials:
    """Attempts with a claim that asks for so many devices of a class, on the nodes that are not cordoned."""

    def __init__(self, snapshot: Snapshot, scheduler: Scheduler) -> None:
        cluster = Cluster(snapshot)
        self.scheduler = scheduler
        self.nodes = {node.name: node for node in cluster.nodes if not node.unschedulable}
        self._none = scheduler.attempt(ClaimsAlone((key_of(_CLAIM),)), cluster)
        self._asked: dict[tuple[str, int, str, tuple[str, Quantity] | None], Outcome] = {}

    def on(
        self,
        node: str,
        name: str,
        count: int,
        defects: KnownDefects | None = None,
        *,
        selector: str = "",
        amount: tuple[str, Quantity] | None = None,
    ) -> Attempt:
        """The attempt on a node, by a scheduler with its own ``defects`` or with these; with a ``selector`` or none,
        and for an ``amount`` of a capacity of each device.
        """
        outcome = self._asking(name, count, selector, amount)
        if defects is not None:
            outcome = outcome.on(outcome.state.looking(defects=defects))
        return outcome.try_on(self.nodes[node])

    @property
    def defects(self) -> KnownDefects:
        """Those of the scheduler."""
        return self._none.state.cycle.defects

    def _asking(self, name: str, count: int, selector: str, amount: tuple[str, Quantity] | None) -> Outcome:
        key = (name, count, selector, amount)
        if key not in self._asked:
            selectors, capacity = (selector,) if selector else (), dict((amount,)) if amount else None
            request = Request("devices", DeviceRequest("devices", name, selectors, count=count, capacity=capacity))
            claim = replace(_CLAIM, requests=(request,))
            self._asked[key] = self._none.changed(self._none.state.cluster.editing(claim))
        return self._asked[key]


def largest_request(name: str, rows: Sequence[DeviceRow], trials: RequestTrials) -> LargestRequest | None:
    """The largest request for devices of a class that the scheduler can serve on one of the nodes, without tolerations.

    None where devices of the class can be shared and are not all taken or tainted: how many fit then depends on the
    capacity that is asked for; none does where a defect of the scheduler refuses them.
    """
    free: dict[str, int] = {}
    shared: dict[str, None] = {}
    for row in rows:
        if name not in row.classes:
            continue
        open_ = not row.also_tainted and not row.unserved
        if row.device.allow_multiple_allocations and row.state in ROOM and open_:
            shared.update(dict.fromkeys(row.nodes))
        elif row.state is DeviceState.FREE:
            for node in row.nodes:
                free[node] = free.get(node, 0) + 1
    if shared:
        defects = _refusing(name, shared, trials)
        return LargestRequest(0).refused(defects, trials.scheduler) if defects else None
    # No more than what is free can fit, so nodes with less than what fits elsewhere need no try.
    ranked = sorted((node for node in free if node in trials.nodes), key=lambda node: -free[node])
    best = LargestRequest(0)
    for tried, node in enumerate(ranked):
        most = min(free[node], MAX_RESULTS)
        if most <= best.count:
            break
        if tried == LARGEST_NODES:
            return replace(best, at_least=True)
        best = _larger(best, name, node, trials, most)
    if best.count or best.at_least:
        return best
    return best.refused(_refusing(name, free, trials), trials.scheduler)


def room_left(name: str, rows: Sequence[DeviceRow], trials: RequestTrials) -> tuple[CapacityRoom, ...]:
    """What is left of the capacities of a class's devices, and of the scarcest the most that a request gets on one."""
    first, *others = capacity_left(rows, trials.nodes) or (None,)
    if first is None:
        return ()
    left: dict[Quantity, dict[str, list[DeviceID]]] = {}
    for row in rows:
        for room in capacity_left((row,), trials.nodes):
            if room.name == first.name and room.on is not None:
                places = left.setdefault(room.most, {})
                for node in row.nodes:
                    if node in trials.nodes:
                        places.setdefault(node, []).append(row.id)
    refused: set[DeviceID] = set()
    ranked = ((most, node, ids) for most in sorted(left, reverse=True) for node, ids in left[most].items())
    for most, node, ids in islice(ranked, LARGEST_NODES):
        amount = (first.name, most)
        attempt = trials.on(node, name, 1, amount=amount)
        if attempt.certain:
            rest = capacity_left([row for row in rows if row.id not in refused], trials.nodes)
            there = next(room.left for room in rest if room.name == first.name)
            return (first._replace(left=there, most=most, on=ids[0]), *others)
        if not attempt.excluded:
            break
        if trials.on(node, name, 1, KnownDefects.none(), amount=amount).certain:
            refused.update(ids)
    return (first, *others)


def whole_refused(name: str, row: DeviceRow, trials: RequestTrials) -> tuple[str, ...]:
    """The defects that keep a free device that can be shared from a request for all of a capacity; none else."""
    for room in capacity_left((row,), trials.nodes) if row.device.allow_multiple_allocations else ():
        for node in row.nodes if room.on is not None and room.most == room.total else ():
            amount = (room.name, room.most)
            if node not in trials.nodes or not trials.on(node, name, 1, amount=amount).excluded:
                continue
            if trials.on(node, name, 1, KnownDefects.none(), amount=amount).certain:
                return _to_blame(node, name, trials, amount)
    return ()


def _to_blame(
    node: str, name: str, trials: RequestTrials, amount: tuple[str, Quantity] | None = None
) -> tuple[str, ...]:
    """Each defect without which a request for one device fits there; all of them where no single one is enough."""
    own = trials.defects
    there = [defect for defect in KnownDefects.__struct_fields__ if getattr(own, defect)]
    alone = (defect for defect in there if trials.on(node, name, 1, own.without(defect), amount=amount).certain)
    return tuple(alone) or tuple(there)


def _refusing(name: str, nodes: Iterable[str], trials: RequestTrials) -> tuple[str, ...]:
    """The defects without which a request for one device fits on one of the nodes; none where it fits with them."""
    tried = [node for node in nodes if node in trials.nodes]
    if not tried or len(tried) > LARGEST_NODES:
        return ()
    if not all(trials.on(node, name, 1).excluded for node in tried):
        return ()
    own, none = trials.defects, KnownDefects.none()
    place = next((node for node in tried if trials.on(node, name, 1, none).certain), None)
    if own == none or place is None:
        return ()
    return _to_blame(place, name, trials)


def _larger(best: LargestRequest, name: str, node: str, trials: RequestTrials, most: int) -> LargestRequest:
    """The largest request for up to ``most`` devices that fits on the node, if it is larger than the best so far."""
    low, high = best.count, most + 1
    count = most
    while high - low > 1:
        attempt = trials.on(node, name, count)
        if attempt.certain:
            low, best = count, replace(best, count=count, node=node)
        else:
            high = count
            best = best if attempt.excluded else replace(best, at_least=True)
        count = (low + high) // 2
    return best
