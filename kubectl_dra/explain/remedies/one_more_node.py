"""One more node like one that exists: of the kinds of nodes with devices, the first on which the pod would fit."""

from __future__ import annotations

from collections.abc import Hashable
from itertools import islice
from typing import Final

from msgspec.structs import replace

from kubectl_dra.cluster.cluster import NodeCopy
from kubectl_dra.explain.diagnosis import Way
from kubectl_dra.explain.phrase import ObjectName
from kubectl_dra.explain.remedies.proof import NEW_NODE
from kubectl_dra.explain.remedies.prove import Change, World
from kubectl_dra.explain.remedies.step import ChangeStep, Price, StepKind, StepTarget
from kubectl_dra.explain.trial import Trial
from kubectl_dra.scheduling.framework import ClusterState
from kubectl_dra.scheduling.node_copy import node_copies

MAX_KINDS: Final = 8


class AddNode(Change, frozen=True):
    """One more node like another one, with the devices that this one publishes by itself."""

    TEXT = "add one more node like {node}"
    ASIDE = frozenset(("copy",))
    like: str
    copy: NodeCopy

    @property
    def node(self) -> ObjectName:
        """The node that the new one is like."""
        return ObjectName("Node", self.like)

    @property
    def about(self) -> Hashable:
        return "new node"

    @property
    def price(self) -> Price:
        return Price.BUY

    def made_in(self, world: World) -> World:
        return world.moved(world.cluster.adding_node(self.copy))

    def step(self, world: World) -> ChangeStep:
        return ChangeStep(StepKind.ADD_NODE, StepTarget(nodes=(self.like,)))


def one_more_node(trial: Trial) -> Way | None:
    """One more node with which the claims fit, proved with a copy of a node and of its slices; None without one."""
    world, settings = trial.world, trial.scene.settings
    around = world.surroundings
    if around is not None:
        state = around.state
    else:
        state = ClusterState(world.cluster, settings.release, settings.gates, settings.patch)
    with_devices = (more for more in node_copies(state, world.cycle.index) if more.slices)
    for more in islice(with_devices, MAX_KINDS):
        change = AddNode(more.like, more)
        if proof := change.made_in(world).proof([more.node]):
            there = replace(proof, node=NEW_NODE, like=more.like, devices=())
            return Way((change,), there, steps=(change.step(world),))
    return None
