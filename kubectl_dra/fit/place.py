"""Places pods one after the other, as the scheduler would, each in the cluster with those before it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from random import Random
from typing import Final

from msgspec import Struct

from kubectl_dra.allocation.budgets import MOST_SCORED, PLACED_POD, SCORED_PER_STEP
from kubectl_dra.api.claims import Allocation
from kubectl_dra.api.pods import Pod
from kubectl_dra.api.slices import DeviceID
from kubectl_dra.fit.lane import Lane
from kubectl_dra.fit.pod_factory import Denied, NewPod, denied
from kubectl_dra.scheduling.binding import bound, takes_no_pod
from kubectl_dra.scheduling.default_preemption import Candidate
from kubectl_dra.scheduling.framework import ClusterState
from kubectl_dra.scheduling.gang_scheduling import domains_of, gang_of, priority_differs
from kubectl_dra.scheduling.outcome import Outcome
from kubectl_dra.scheduling.reasons import Reason
from kubectl_dra.scheduling.scoring import winner_among
from kubectl_dra.scheduling.volume_binding import VolumeBinding

Progress = Callable[[str], None]

_TOLD_EVERY: Final = 50


class Chosen(Enum):
    """How a node was chosen among those that take a pod."""

    ONLY = "only"
    """No other takes it."""
    BEST = "best"
    """It scores best."""
    TIE = "tie"
    """It is the first of several that score alike, of which the scheduler takes any."""
    OPEN = "open"
    """The scheduler does not look at all nodes, or not all of its scores are known: the best by those that are, or the
    one with the fewest pods of the workload."""


class HeldDevice(Struct, frozen=True):
    """A device that a pod got: the claim, the request, the device, and how much it consumes of a shared one."""

    claim: str
    request: str
    device: DeviceID
    consumed: tuple[tuple[str, str], ...] = ()


class Seat(Struct, frozen=True):
    """A pod and the node that it got. ``evicted`` are the pods that the scheduler ends for it."""

    new: NewPod
    node: str
    devices: tuple[HeldDevice, ...]
    chosen: Chosen
    evicted: tuple[Pod, ...] = ()


class Unplaced(Struct, frozen=True):
    """A pod that got no node. ``ground`` is the cluster in which it was tried, ``outcome`` the attempt.

    ``denied``: it, or its claims, would not be created. ``alone``: it would fit, but not enough pods of its group do.
    """

    new: NewPod
    ground: ClusterState
    outcome: Outcome | None = None
    denied: Denied | None = None
    alone: bool = False


class Placement(Struct, frozen=True):
    """What came of some pods: ``ground`` is the cluster after.

    ``settled``: other choices among nodes, and another order of pods, could not lead to another number of them.
    ``volumes_open``: pods were placed after others had taken volumes that are bound with them, which is not tracked.
    """

    ground: ClusterState
    seats: tuple[Seat, ...]
    refused: tuple[Unplaced, ...]
    settled: bool = True
    volumes_open: bool = False


class Saved(Struct, frozen=True):
    """The state of a placer."""

    ground: ClusterState
    seats: tuple[Seat, ...]
    refused: tuple[Unplaced, ...]
    given_up: Mapping[tuple[object, ...], Unplaced]
    on: Mapping[str, int]


class Placer:
    """Places pods on one cluster. ``chance``: takes any of the nodes that are as good, not the first."""

    def __init__(self, ground: ClusterState, progress: Progress | None = None, chance: Random | None = None) -> None:
        self.ground = ground
        self.seats: list[Seat] = []
        self.refused: list[Unplaced] = []
        self._lanes: dict[tuple[object, ...], Lane] = {}
        self._given_up: dict[tuple[object, ...], Unplaced] = {}
        self._on: dict[str, int] = {}
        self._scored = 0
        self._free = False
        self._volumes_taken = False
        self._volumes_open = False
        self._progress = progress
        self._chance = chance

    def placement(self) -> Placement:
        """What came of it so far."""
        kinds = {new.likeness for new in (*(seat.new for seat in self.seats), *(one.new for one in self.refused))}
        simple = len(kinds) <= 1 and all(lane.local for lane in self._lanes.values())
        simple = simple and not any(seat.evicted or seat.new.group[2] for seat in self.seats)
        open_ = self._free or len(kinds) > 1
        settled = simple or not open_
        return Placement(self.ground, tuple(self.seats), tuple(self.refused), settled, self._volumes_open)

    def place_all(self, pods: Sequence[NewPod]) -> Placement:
        """Places pods, those of higher priority first, those of one group together."""
        for unit in in_turn(pods):
            self.place_unit(unit)
        self._try_again()
        return self.placement()

    def place_unit(self, unit: Sequence[NewPod]) -> None:
        """Creates and places one pod, or those of one group."""
        created = [new for new in unit if self._create(new)]
        if created and created[0].group[2]:
            self._place_group(created)
        elif created:
            self._place(created[0])
        if self._progress is not None and len(self.seats) % _TOLD_EVERY == 0:
            self._progress(f"placing pods: {len(self.seats)} have a node")

    def _create(self, new: NewPod) -> bool:
        """Whether quotas let the API server create the pod and its claims, or it exists."""
        if new.exists:
            return True
        created = denied(new, self.ground.snapshot)
        if created.denied is not None:
            self.refused.append(Unplaced(new, self.ground, denied=created.denied))
        elif created.quotas is not None:
            self.ground = self.ground.moved(self.ground.cluster.editing(*created.quotas))
        return created.denied is None

    def _try_again(self) -> None:
        """Pods that others have made fit since they were refused: by affinity, or by how pods are spread."""
        while waiting := [one for one in self.refused if self._may_fit_now(one)]:
            before = len(self.seats)
            again = {id(one) for one in waiting}
            self.refused = [one for one in self.refused if id(one) not in again]
            self._given_up.clear()
            for one in waiting:
                self._place(one.new)
            if len(self.seats) == before:
                return

    def _may_fit_now(self, one: Unplaced) -> bool:
        lane = self._lanes.get(one.new.likeness)
        changed = not one.ground.as_good_as(self.ground)
        return changed and one.denied is None and not one.alone and lane is not None and not lane.local

    def _place(self, new: NewPod, nodes: frozenset[str] | None = None) -> bool:
        if new.pod.scheduling_gates or self._cannot_be_added(new):
            self.refused.append(Unplaced(new, self.ground))
            return False
        if (known := self._hopeless(new)) is not None:
            self.refused.append(Unplaced(new, self.ground, known.outcome))
            return False
        lane = self._lane(new)
        within = lane.feasible if nodes is None else [name for name in lane.feasible if name in nodes]
        if within:
            node, chosen = self._choose(lane, within)
            self._seat(new, lane, node, chosen)
            return True
        outcome = lane.outcome
        if nodes is None and not new.group[2] and self._make_room(new, outcome):
            return True
        refused = Unplaced(new, self.ground, outcome)
        self.refused.append(refused)
        if nodes is None:
            self._given_up[new.likeness] = refused
        return False

    def _cannot_be_added(self, new: NewPod) -> bool:
        """Whether the pod names a claim to which the scheduler can add no pod."""
        names = ((new.pod.metadata.namespace, entry.claim_name) for entry in new.pod.claims if entry.claim_name)
        claims = (self.ground.snapshot.claims.get(name) for name in names)
        return any(claim is not None and takes_no_pod(claim, self.ground.cycle.features) for claim in claims)

    def _hopeless(self, new: NewPod) -> Unplaced | None:
        """A pod of the same likeness that was refused, where nothing has changed since that could help."""
        known, lane = self._given_up.get(new.likeness), self._lanes.get(new.likeness)
        if known is None:
            return None
        same = known.ground.as_good_as(self.ground) or (lane is not None and lane.local)
        return known if same else None

    def _lane(self, new: NewPod) -> Lane:
        lane = self._lanes.get(new.likeness)
        if lane is None:
            lane = self._lanes[new.likeness] = Lane(new, self.ground)
        return lane

    def _choose(self, lane: Lane, feasible: Collection[str]) -> tuple[str, Chosen]:
        if len(feasible) == 1:
            return next(iter(feasible)), Chosen.ONLY
        self._scored += len(feasible)
        if self._scored <= MOST_SCORED:
            self.ground.cycle.budget.charge(len(feasible) // SCORED_PER_STEP)
            best = winner_among(lane.outcome.chain, tuple(feasible))
            if best.exact and len(best.nodes) == 1:
                return best.nodes[0], Chosen.BEST
            if best.exact:
                return self._any_of(best.nodes), Chosen.TIE
            if best.nodes and self._chance is None:
                return self._any_of(best.nodes), Chosen.OPEN
        if self._chance is not None:
            return self._any_of(tuple(feasible)), Chosen.OPEN
        self._free = True
        empty = next((name for name in feasible if name not in self._on), None)
        return empty or min(feasible, key=self._on.__getitem__), Chosen.OPEN

    def _any_of(self, names: Sequence[str]) -> str:
        self._free = True
        return names[0] if self._chance is None else self._chance.choice(names)

    def _seat(self, new: NewPod, lane: Lane, node: str, chosen: Chosen, evicted: tuple[Pod, ...] = ()) -> None:
        self._look_at_volumes(lane, node)
        ground = self.ground.moved(self.ground.cluster.editing(*new.claims.values()))
        self.ground = bound(new.pod, node, ground, lane.outcome.attempt_on(node), ground.cycle)
        self.ground.cycle.budget.charge(PLACED_POD)
        held = tuple(_held(new.pod, self.ground))
        self.seats.append(Seat(new, node, held, chosen, evicted))
        self._on[node] = self._on.get(node, 0) + 1
        homes = {self.ground.cluster.homes.get(entry.device.pool) for entry in held}
        touched = frozenset((node,)) if homes <= {node} else None
        shuns = new.pod.spec.affinity is not None and bool(new.pod.spec.affinity.pod_anti_affinity.required)
        for other in self._lanes.values():
            # Its anti-affinity counts for pods that have none themselves.
            other.update(self.ground, touched, counted=shuns)

    def _look_at_volumes(self, lane: Lane, node: str) -> None:
        binding = next((plugin for plugin in lane.outcome.chain.plugins if isinstance(plugin, VolumeBinding)), None)
        if binding is None:
            return
        self._volumes_open = self._volumes_open or self._volumes_taken
        found = binding.placement(self.ground.nodes[node])
        # What is made for a claim of the pod's own concerns no other pod, unless room for it is counted.
        common = (entry.capacity is not None or not entry.claim.metadata.owners for entry in found.provisioned)
        self._volumes_taken = self._volumes_taken or bool(found.matched) or any(common)

    def _make_room(self, new: NewPod, outcome: Outcome) -> bool:
        """What the scheduler does by itself for a pod that no node takes, and whether it has one then."""
        if outcome.preemption is not None and outcome.preemption.best and self._evict(new, outcome.preemption.best):
            return True
        if outcome.freed is None or outcome.next is None or not outcome.next.feasible:
            return False
        self.ground = self.ground.moved(self.ground.cluster.editing(outcome.freed.deallocated()))
        self._lanes.clear()
        self._given_up.clear()
        return self._place(new)

    def _evict(self, new: NewPod, best: Sequence[Candidate]) -> bool:
        """The scheduler ends pods of lower priority, and then gives the pod that node."""
        chosen = best[0] if self._chance is None else self._chance.choice(best)
        self._free = self._free or len(best) > 1
        own = {seat.new.pod.key for seat in self.seats}
        if any(pod.key in own for pod in chosen.victims):
            return False
        self.ground = self.ground.moved(self.ground.cluster.ending(chosen.victims))
        self._lanes.clear()
        self._given_up.clear()
        lane = self._lane(new)
        if chosen.node not in lane.feasible:
            return False
        self._seat(new, lane, chosen.node, Chosen.ONLY if len(best) == 1 else Chosen.TIE, chosen.victims)
        return True

    def _place_group(self, unit: Sequence[NewPod]) -> None:
        """Places the pods of a group: all that fit, or none where too few do."""
        first = unit[0]
        gang = gang_of(first.pod, self.ground)
        if isinstance(gang, Reason) or any(priority_differs(new.pod, self.ground) for new in unit):
            self.refused.extend(Unplaced(new, self.ground) for new in unit)
            return
        if gang is None:
            for new in unit:
                self._place(new)
            return
        domains = domains_of(gang, self.ground)
        if domains is None:
            self.refused.extend(Unplaced(new, self.ground) for new in unit)
            return
        running = sum(bool(member.node_name) for member in gang.members)
        before = self.saved()
        best: tuple[int, Saved] | None = None
        for nodes in domains.values() if gang.topology else (None,):
            self.restore(before)
            placed = sum([self._place(new, nodes) for new in unit])
            if best is None or placed > best[0]:
                best = (placed, self.saved())
            if placed == len(unit):
                break
        if best is None:
            self.refused.extend(Unplaced(new, self.ground) for new in unit)
            return
        self.restore(best[1])
        if best[0] + running >= gang.minimum:
            return
        tried = {one.new.pod.key: one for one in self.refused}
        self.restore(before)
        for new in unit:
            self.refused.append(tried.get(new.pod.key) or Unplaced(new, self.ground, alone=True))

    def saved(self) -> Saved:
        """What has come of it so far, to return to."""
        return Saved(self.ground, tuple(self.seats), tuple(self.refused), dict(self._given_up), dict(self._on))

    def restore(self, saved: Saved) -> None:
        """Returns to what had come of it before."""
        self.ground = saved.ground
        self.seats, self.refused = list(saved.seats), list(saved.refused)
        self._given_up, self._on = dict(saved.given_up), dict(saved.on)
        self._lanes.clear()


def in_turn(pods: Sequence[NewPod]) -> Iterator[list[NewPod]]:
    """The pods in the order in which the scheduler tries them, those of one group together at the first of them."""
    groups: dict[tuple[object, ...], list[NewPod]] = {}
    for number, new in enumerate(sorted(pods, key=lambda one: -one.pod.priority)):
        key = new.group if new.group[2] else (number,)
        groups.setdefault(key, []).append(new)
    yield from groups.values()


def _held(pod: Pod, ground: ClusterState) -> Iterator[HeldDevice]:
    stored = ground.snapshot.pods[pod.metadata.namespace, pod.metadata.name]
    for name in sorted(stored.claim_names):
        claim = ground.snapshot.claims.get((pod.metadata.namespace, name))
        allocation: Allocation | None = claim.allocation if claim is not None else None
        for entry in allocation.results if allocation is not None else ():
            consumed = tuple((key, str(amount)) for key, amount in entry.consumed_capacity.items())
            yield HeldDevice(name, entry.request, entry.device, consumed)


def evicted(seats: Iterable[Seat]) -> list[Pod]:
    """The pods that the scheduler ends for those that are placed."""
    return [pod for seat in seats for pod in seat.evicted]
