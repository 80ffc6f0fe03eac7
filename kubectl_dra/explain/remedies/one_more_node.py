"""One more node like one that exists: of the kinds of nodes with devices, the first on which the pod would fit."""

from __future__ import annotations

from collections.abc import Hashable
from itertools import islice
from typing import Final

from msgspec.structs import replace

from kubectl_dra.allocation.pools import SliceIndex
from kubectl_dra.allocation.state import taken
from kubectl_dra.api.slices import ResourceSlice
from kubectl_dra.explain.diagnosis import Way
from kubectl_dra.explain.phrase import ObjectName
from kubectl_dra.explain.remedies.proof import NEW_NODE
from kubectl_dra.explain.remedies.prove import Change, World
from kubectl_dra.explain.remedies.step import ChangeStep, Price, StepKind, StepTarget
from kubectl_dra.explain.trial import Trial
from kubectl_dra.scheduling.framework import ClusterState, NodeCopy
from kubectl_dra.scheduling.node_copy import node_copies

MAX_KINDS: Final = 8


class AddNode(Change, frozen=True):
    """One more node like another one, with the devices that this one publishes by itself.

    ``everywhere`` are the slices of devices that belong to no single node.
    """

    TEXT = "add one more node like {node}"
    ASIDE = frozenset(("copy", "everywhere"))
    like: str
    copy: NodeCopy
    everywhere: tuple[ResourceSlice, ...]

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
        index = SliceIndex((*self.everywhere, *self.copy.slices))
        around = world.surroundings
        there = around.with_node(self.copy) if around is not None else None
        state = taken(world.cycle.state, self.copy.claims, world.cycle.features)
        return replace(world, cycle=world.cycle.changed(index=index, state=state), surroundings=there)

    def step(self, world: World) -> ChangeStep:
        return ChangeStep(StepKind.ADD_NODE, StepTarget(nodes=(self.like,)))


def one_more_node(trial: Trial) -> Way | None:
    """One more node with which the claims fit, proved with a copy of a node and of its slices; None without one."""
    world, view, settings = trial.world, trial.view, trial.scene.settings
    around = world.surroundings
    state = around.state if around is not None else None
    if state is None:
        state = ClusterState(trial.scene.snapshot, settings.release, settings.gates, settings.patch)
    slices = world.cycle.index.slices
    everywhere = [entry for entry in slices if not entry.scope.node_name]
    with_devices = (more for more in node_copies(state, world.cycle.index) if more.slices)
    for more in islice(with_devices, MAX_KINDS):
        # Verdicts are remembered by a device's identity.
        view.supposed.extend(device for entry in more.slices for device in entry.devices)
        change = AddNode(more.like, more, tuple(everywhere))
        if proof := change.made_in(world).proof([more.node]):
            there = replace(proof, node=NEW_NODE, like=more.like, devices=())
            return Way((change,), there, steps=(change.step(world),))
    return None
