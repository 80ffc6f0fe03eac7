"""Changes of the cluster that let more pods fit, each proved by placing the remaining pods with it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import islice
from typing import Final

from kubectl_dra.allocation.budgets import ROOM_STEPS
from kubectl_dra.fit.holders import WithRoom, with_room
from kubectl_dra.fit.lane import Lane
from kubectl_dra.fit.place import Placement, Placer, Unplaced
from kubectl_dra.fit.pod_factory import NewPod
from kubectl_dra.fit.result import ClusterChange, More, OneMoreNode
from kubectl_dra.scheduling.framework import ClusterState
from kubectl_dra.scheduling.node_copy import node_copies

MAX_KINDS: Final = 8
"""Of nodes of which one more is tried, the most frequent first."""
MAX_SHOWN: Final = 3
"""Of either sort: holders and nodes."""


class Changes:
    """Looks for changes. ``found`` are those that help: holders, the first to ask first, then nodes, the best first.

    ``tried`` counts all.
    """

    def __init__(self, placement: Placement, refused: Sequence[Unplaced], wanted: Sequence[NewPod]) -> None:
        """``refused`` are the pods that do not fit, ``wanted`` those to place with each change."""
        denied = {id(one.new) for one in refused if one.denied is not None or one.new.pod.scheduling_gates}
        self._wanted = wanted
        self._left = [new for new in wanted if id(new) not in denied]
        self.tried = 0
        self.found: tuple[More, ...] = ()
        first = next((one for one in refused if id(one.new) not in denied), None)
        if self._left and first is not None:
            # What makes a replica whole is worth more than what does not.
            holders = sorted(self._holders(placement, first), key=lambda one: not one.replicas)
            nodes = sorted(self._nodes(placement.ground), key=lambda one: -one.pods)
            self.found = (*holders, *nodes)

    def _holders(self, placement: Placement, first: Unplaced) -> list[More]:
        found: list[More] = []
        spent = placement.ground.cycle.budget
        end = spent.steps + ROOM_STEPS
        for room in with_room(placement, first, self._helps):
            if more := self._with(room.change, room.ground):
                found.append(more)
            if len(found) == MAX_SHOWN or spent.steps > end:
                break
        return found

    def _nodes(self, ground: ClusterState) -> list[More]:
        found: list[More] = []
        for more in islice(node_copies(ground, ground.cycle.index), MAX_KINDS):
            self.tried += 1
            there = ground.moved(ground.cluster.adding_node(more))
            change = OneMoreNode(more.like, more.exist)
            if self._takes(there, (more.node.name,)) and (helped := self._with(change, there)):
                found.append(helped)
        return found[:MAX_SHOWN]

    def _helps(self, room: WithRoom) -> bool:
        self.tried += 1
        return self._takes(room.ground, room.nodes)

    def _takes(self, ground: ClusterState, nodes: Collection[str] | None) -> bool:
        """Whether a changed node takes any remaining sort of pod; groups are tried as a whole later."""
        if any(new.group[2] for new in self._left):
            return True
        kinds = {new.likeness: new for new in self._left}
        return any(Lane(new, ground, nodes).feasible for new in kinds.values())

    def _with(self, change: ClusterChange, ground: ClusterState) -> More | None:
        """How many of the remaining pods fit with a change; None if none does."""
        after = Placer(ground).place_all(self._left)
        if not after.seats:
            return None
        placed = {id(seat.new) for seat in after.seats}
        still = {new.ordinal.replica for new in self._wanted if id(new) not in placed}
        whole = {new.ordinal.replica for new in self._wanted} - still
        return More(change, len(after.seats), len(whole))
