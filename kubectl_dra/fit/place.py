"""Places pods one after the other, as the scheduler would, each in the cluster with those before it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from random import Random
from typing import Final

from msgspec import Struct, structs

from kubectl_dra.allocation.budgets import MOST_SCORED, PLACED_POD, SCORED_PER_STEP, Budget
from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.pods import Pod
from kubectl_dra.cluster.snapshot import Progress
from kubectl_dra.drivers.daemons import node_of
from kubectl_dra.fit.pod_factory import Denied, NewPod, denied, ended
from kubectl_dra.scheduling.binding import Chance, bound, takes_no_pod, winner_among
from kubectl_dra.scheduling.default_preemption import Candidate
from kubectl_dra.scheduling.framework import ClusterState
from kubectl_dra.scheduling.gang_scheduling import domains_of, gang_of, priority_differs
from kubectl_dra.scheduling.outcome import Outcome
from kubectl_dra.scheduling.reasons import Reason
from kubectl_dra.scheduling.scheduler import Scheduler
from kubectl_dra.scheduling.volume_binding import VolumeBinding

_TOLD_EVERY: Final = 50


class Chosen(Enum):
    """Reason for the choice of a node among those that take a pod."""

    ONLY = "only"
    """No other takes it."""
    BEST = "best"
    """It scores best."""
    TIE = "tie"
    """It is the first of several that score alike, of which the scheduler takes any."""
    OPEN = "open"
    """The scheduler does not look at all nodes, or not all of its scores are known: the best by those that are, or the
    one with the fewest pods of the workload."""


class PlacedPod(Struct, frozen=True):
    """A pod and the node that it got. ``evicted`` are the pods that the scheduler ends for it, ``instead`` the nodes to
    avoid that it may as well get, ``claims`` its claims as they are once it has the node.
    """

    new: NewPod
    node: str
    chosen: Chosen
    evicted: tuple[Pod, ...] = ()
    instead: tuple[str, ...] = ()
    claims: tuple[ResourceClaim, ...] = ()


class Unplaced(Struct, frozen=True):
    """A pod that got no node. ``state`` is the cluster in which it was tried, ``outcome`` the attempt.

    ``denied``: it, or its claims, would not be created. ``alone``: it would fit, but not enough pods of its group do.
    ``later``: it is not created before others have a node.
    """

    new: NewPod
    state: ClusterState
    outcome: Outcome | None = None
    denied: Denied | None = None
    alone: bool = False
    later: bool = False


class Placement(Struct, frozen=True):
    """What came of some pods: ``state`` is the cluster after.

    ``settled``: other choices among nodes, and another order of pods, could not lead to another number of them;
    ``nodes_open`` is whether that of nodes could, ``ends_open`` whether it could that other old pods end first.
    ``volumes_open``: pods were placed after others had taken volumes that are bound with them, which is not tracked.
    ``unknown`` is what else decides which node a pod gets.
    """

    state: ClusterState
    placed_pods: tuple[PlacedPod, ...]
    refused: tuple[Unplaced, ...]
    settled: bool = True
    nodes_open: bool = False
    ends_open: bool = False
    volumes_open: bool = False
    unknown: tuple[str, ...] = ()


class Saved(Struct, frozen=True):
    """The state of a placer."""

    state: ClusterState
    placed_pods: tuple[PlacedPod, ...]
    refused: tuple[Unplaced, ...]
    given_up: Mapping[tuple[object, ...], Unplaced]
    on: Mapping[str, int]


class Placer:
    """Places pods on one cluster. ``chance``: takes any of the nodes that are as good, not the first.

    ``budget`` counts what that takes. Nodes to ``avoid`` are taken only where the scheduler certainly takes one.
    """

    def __init__(
        self,
        state: ClusterState,
        budget: Budget,
        progress: Progress | None = None,
        chance: Random | None = None,
        avoid: Collection[str] = (),
    ) -> None:
        self.state = state
        self._budget = budget
        self.placed_pods: list[PlacedPod] = []
        self.refused: list[Unplaced] = []
        self._outcomes: dict[tuple[object, ...], Outcome] = {}
        self._given_up: dict[tuple[object, ...], Unplaced] = {}
        self._on: dict[str, int] = {}
        self._scored = 0
        self._free = False
        self._avoid = avoid
        self._unknown: dict[str, None] = {}
        self._volumes_taken = False
        self._volumes_open = False
        self._progress = progress
        self._chance = Chance(chance)
        self.chosen = False
        """Whether others could have ended first than those that did."""

    def placement(self) -> Placement:
        """What came of it so far."""
        pods = [placed_pod.new for placed_pod in self.placed_pods] + [unplaced.new for unplaced in self.refused]
        kinds = {new.likeness for new in pods}
        simple = (len(kinds) <= 1 or self._apart(pods)) and all(outcome.local for outcome in self._outcomes.values())
        simple = simple and not any(placed_pod.evicted or placed_pod.new.group[2] for placed_pod in self.placed_pods)
        nodes_open = not simple and (self._free or self._chance.taken)
        return Placement(
            self.state,
            tuple(self.placed_pods),
            tuple(self.refused),
            (simple or not (nodes_open or len(kinds) > 1)) and not self.chosen,
            nodes_open,
            self.chosen,
            self._volumes_open,
            tuple(self._unknown),
        )

    def _apart(self, pods: Sequence[NewPod]) -> bool:
        """Whether each pod is for a node of its own, as those of a DaemonSet, and takes devices of that one only."""
        nodes = [node_of(new.pod) for new in pods]
        own = all(nodes) and len(set(nodes)) == len(nodes)
        return own and all(published.scope.node_name for published in self.state.snapshot.slices)

    def place_all(self, pods: Sequence[NewPod]) -> Placement:
        """Places pods and those that were refused, those of higher priority first, those of one group together."""
        before, self.refused = self.refused, []
        there = {id(unplaced.new) for unplaced in before if unplaced.denied is None}
        for unit in scheduling_order([*(unplaced.new for unplaced in before), *pods]):
            self.place_unit(unit, there)
        self._try_again()
        return self.placement()

    def end(self, pods: Sequence[Pod]) -> None:
        """Pods of a former template end."""
        self.state = self.state.moved(ended(pods, self.state.cluster))
        self._given_up.clear()

    def place_unit(self, unit: Sequence[NewPod], there: Collection[int] = ()) -> None:
        """Creates and places one pod, or those of one group; pods that are ``there``, by id, are created already."""
        created = [new for new in unit if id(new) in there or self._create(new)]
        if created and created[0].group[2]:
            self._place_group(created)
        elif created:
            self._place(created[0])
        if self._progress is not None and len(self.placed_pods) % _TOLD_EVERY == 0:
            self._progress(f"placing pods: {len(self.placed_pods)} have a node")

    def _create(self, new: NewPod) -> bool:
        """Whether quotas let the API server create the pod and its claims, or it exists."""
        if new.exists and not new.refused:
            return True
        created = denied(new, self.state.snapshot)
        if created.denied is not None:
            self.refused.append(Unplaced(new, self.state, denied=created.denied))
        elif created.quotas is not None:
            self.state = self.state.moved(self.state.cluster.editing(*created.quotas))
        return created.denied is None

    def _try_again(self) -> None:
        """Pods that others have made fit since they were refused: by affinity, or by how pods are spread."""
        while waiting := [unplaced for unplaced in self.refused if self._may_fit_now(unplaced)]:
            before = len(self.placed_pods)
            again = {id(unplaced) for unplaced in waiting}
            self.refused = [unplaced for unplaced in self.refused if id(unplaced) not in again]
            self._given_up.clear()
            for unplaced in waiting:
                self._place(unplaced.new)
            if len(self.placed_pods) == before:
                return

    def _may_fit_now(self, unplaced: Unplaced) -> bool:
        outcome = self._outcomes.get(unplaced.new.likeness)
        changed = not unplaced.state.as_good_as(self.state)
        return changed and unplaced.denied is None and not unplaced.alone and outcome is not None and not outcome.local

    def _place(self, new: NewPod, nodes: frozenset[str] | None = None) -> bool:
        if new.held or new.pod.scheduling_gates or self._cannot_be_added(new):
            self.refused.append(Unplaced(new, self.state))
            return False
        if (known := self._hopeless(new)) is not None:
            self.refused.append(Unplaced(new, self.state, known.outcome))
            return False
        outcome = self._attempt(new)
        taking = outcome.taking
        within = taking if nodes is None else [name for name in taking if name in nodes]
        if within:
            node, chosen, instead = self._choose(outcome, within)
            self._give_node(new, outcome, node, chosen, instead=instead)
            return True
        if nodes is None and not new.group[2] and self._make_room(new, outcome):
            return True
        refused = Unplaced(new, self.state, outcome)
        self.refused.append(refused)
        if nodes is None:
            self._given_up[new.likeness] = refused
        return False

    def _cannot_be_added(self, new: NewPod) -> bool:
        """Whether the pod names a claim to which the scheduler can add no pod."""
        names = (
            (new.pod.metadata.namespace, pod_claim.claim_name) for pod_claim in new.pod.claims if pod_claim.claim_name
        )
        claims = (self.state.snapshot.claims.get(name) for name in names)
        return any(claim is not None and takes_no_pod(claim, self.state.cycle.features) for claim in claims)

    def _hopeless(self, new: NewPod) -> Unplaced | None:
        """A pod of the same likeness that was refused, where nothing has changed since that could help."""
        known, outcome = self._given_up.get(new.likeness), self._outcomes.get(new.likeness)
        if known is None:
            return None
        same = known.state.as_good_as(self.state) or (outcome is not None and outcome.local)
        return known if same else None

    def _attempt(self, new: NewPod) -> Outcome:
        known = self._outcomes.get(new.likeness)
        # A claim that pods name is reserved for those before this one: the pod that stands for its likeness is one.
        if known is None or any(pod_claim.claim_name for pod_claim in new.pod.claims):
            outcome = attempt(new, self.state, self._budget)
        else:
            outcome = known.after(self.state)
        self._outcomes[new.likeness] = outcome
        return outcome

    def _choose(self, outcome: Outcome, feasible: Collection[str]) -> tuple[str, Chosen, tuple[str, ...]]:
        """A node, how it was chosen, and the nodes to avoid that the scheduler may take instead."""
        if len(feasible) == 1:
            return next(iter(feasible)), Chosen.ONLY, ()
        self._scored += len(feasible)
        if self._scored <= MOST_SCORED:
            self._budget.charge(len(feasible) // SCORED_PER_STEP)
            best = winner_among(outcome.chain, tuple(feasible))
            self._unknown |= dict.fromkeys(best.unknown)
            if best.exact and len(best.nodes) == 1:
                return best.nodes[0], Chosen.BEST, ()
            if best.exact:
                return self._any_of(best.nodes), Chosen.TIE, self._avoided(best.nodes)
            if best.nodes and self._chance.always_first:
                likely = [name for name in best.nodes if name not in self._avoid]
                return self._any_of(likely or self._good(feasible)), Chosen.OPEN, self._avoided(feasible)
        if not self._chance.always_first:
            return self._any_of(tuple(feasible)), Chosen.OPEN, ()
        self._free = True
        good = self._good(feasible)
        empty = next((name for name in good if name not in self._on), None)
        return empty or min(good, key=self._on.__getitem__), Chosen.OPEN, self._avoided(feasible)

    def _good(self, names: Collection[str]) -> Sequence[str]:
        """Those that are not to be avoided, or all where there is none."""
        return [name for name in names if name not in self._avoid] or list(names)

    def _avoided(self, names: Collection[str]) -> tuple[str, ...]:
        return tuple(name for name in names if name in self._avoid)

    def _any_of(self, names: Sequence[str]) -> str:
        self._free = True
        return self._chance.of(self._good(names) if self._chance.always_first else names)

    def _give_node(
        self,
        new: NewPod,
        outcome: Outcome,
        node: str,
        chosen: Chosen,
        evicted: tuple[Pod, ...] = (),
        instead: tuple[str, ...] = (),
    ) -> None:
        self._look_at_volumes(outcome, node)
        state = self.state.moved(self.state.cluster.editing(*new.claims.values()))
        self.state = bound(new.pod, node, state, outcome.devices.on(node))
        self._budget.charge(PLACED_POD)
        claims = tuple(_claims(new.pod, self.state))
        others = tuple(name for name in instead if name != node)
        self.placed_pods.append(PlacedPod(new, node, chosen, evicted, others, claims))
        self._on[node] = self._on.get(node, 0) + 1

    def _look_at_volumes(self, outcome: Outcome, node: str) -> None:
        binding = next((plugin for plugin in outcome.chain.plugins if isinstance(plugin, VolumeBinding)), None)
        if binding is None:
            return
        self._volumes_open = self._volumes_open or self._volumes_taken
        pod_volumes = binding.placement(self.state.nodes[node])
        # What is made for a claim of the pod's own concerns no other pod, unless room for it is counted.
        common = (
            provisioned.capacity is not None or not provisioned.claim.metadata.owners
            for provisioned in pod_volumes.provisioned
        )
        self._volumes_taken = self._volumes_taken or bool(pod_volumes.matched) or any(common)

    def _make_room(self, new: NewPod, outcome: Outcome) -> bool:
        """What the scheduler does by itself for a pod that no node takes, and whether it has one then."""
        if outcome.preemption is not None and outcome.preemption.best and self._evict(new, outcome.preemption.best):
            return True
        if outcome.freed is None or outcome.next is None or not outcome.next.feasible:
            return False
        self.state = self.state.moved(self.state.cluster.editing(outcome.freed.deallocated()))
        self._given_up.clear()
        return self._place(new)

    def _evict(self, new: NewPod, best: Sequence[Candidate]) -> bool:
        """The scheduler ends pods of lower priority, and then gives the pod that node."""
        chosen = self._chance.of(best)
        own = {placed_pod.new.pod.key for placed_pod in self.placed_pods}
        if any(pod.key in own for pod in chosen.victims):
            return False
        self.state = self.state.moved(self.state.cluster.ending(chosen.victims))
        self._given_up.clear()
        outcome = self._attempt(new)
        if chosen.node not in outcome.taking:
            return False
        self._give_node(new, outcome, chosen.node, Chosen.ONLY if len(best) == 1 else Chosen.TIE, chosen.victims)
        return True

    def _place_group(self, unit: Sequence[NewPod]) -> None:
        """Places the pods of a group: all that fit, or none where too few do."""
        first = unit[0]
        gang = gang_of(first.pod, self.state)
        if isinstance(gang, Reason) or any(priority_differs(new.pod, self.state) for new in unit):
            self.refused.extend(Unplaced(new, self.state) for new in unit)
            return
        if gang is None:
            for new in unit:
                self._place(new)
            return
        domains = domains_of(gang, self.state)
        if domains is None:
            self.refused.extend(Unplaced(new, self.state) for new in unit)
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
            self.refused.extend(Unplaced(new, self.state) for new in unit)
            return
        self.restore(best[1])
        if best[0] + running >= gang.minimum:
            return
        tried = {unplaced.new.pod.key: unplaced for unplaced in self.refused}
        self.restore(before)
        for new in unit:
            self.refused.append(tried.get(new.pod.key) or Unplaced(new, self.state, alone=True))

    def saved(self) -> Saved:
        """What has come of it so far, to return to."""
        return Saved(self.state, tuple(self.placed_pods), tuple(self.refused), dict(self._given_up), dict(self._on))

    def restore(self, saved: Saved) -> None:
        """Returns to what had come of it before."""
        self.state = saved.state
        self.placed_pods, self.refused = list(saved.placed_pods), list(saved.refused)
        self._given_up, self._on = dict(saved.given_up), dict(saved.on)


def attempt(new: NewPod, state: ClusterState, budget: Budget, only: Collection[str] | None = None) -> Outcome:
    """An attempt for a pod that stands for all of its likeness; ``only``: no other nodes are asked."""
    pod = new.pod
    if not new.exists:
        # Whichever of them is placed first, it is another one than the pod that stands for the next.
        pod = structs.replace(pod, metadata=structs.replace(pod.metadata, uid=""))
    return Scheduler.attempt_in(state, pod, budget, only=only, retried=True, claims=tuple(new.claims.values()))


def scheduling_order(pods: Sequence[NewPod]) -> Iterator[list[NewPod]]:
    """The pods in the order in which the scheduler tries them, those of one group together at the first of them."""
    groups: dict[tuple[object, ...], list[NewPod]] = {}
    for number, new in enumerate(sorted(pods, key=lambda new_pod: -new_pod.pod.priority)):
        key = new.group if new.group[2] else (number,)
        groups.setdefault(key, []).append(new)
    yield from groups.values()


def _claims(pod: Pod, state: ClusterState) -> Iterator[ResourceClaim]:
    stored = state.snapshot.pods[pod.metadata.namespace, pod.metadata.name]
    for name in sorted(stored.claim_names):
        claim = state.snapshot.claims.get((pod.metadata.namespace, name))
        if claim is not None:
            yield claim


def evicted(placed_pods: Iterable[PlacedPod]) -> list[Pod]:
    """The pods that the scheduler ends for those that are placed."""
    return [pod for placed_pod in placed_pods for pod in placed_pod.evicted]
