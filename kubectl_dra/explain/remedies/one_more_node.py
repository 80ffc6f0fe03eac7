"""One more node like one that exists: of the kinds of nodes with devices, the first on which the pod would fit."""

from __future__ import annotations

from collections import defaultdict
from itertools import islice
from typing import Final

from msgspec.structs import replace

from kubectl_dra.allocation.pools import SliceIndex
from kubectl_dra.api.slices import PoolID, ResourceSlice
from kubectl_dra.explain.diagnosis import Way
from kubectl_dra.explain.phrase import ObjectName, say
from kubectl_dra.explain.remedies.prove import Proof
from kubectl_dra.explain.trial import Trial
from kubectl_dra.scheduling.framework import ClusterState
from kubectl_dra.scheduling.node_copy import node_copies

MAX_KINDS: Final = 8
_THERE: Final = "the new node"


def one_more_node(trial: Trial) -> Way | None:
    """One more node with which the claims fit, proved with a copy of a node and of its slices; None without one."""
    world, view, settings = trial.world, trial.view, trial.scene.settings
    around = world.surroundings
    state = around.state if around is not None else None
    if state is None:
        state = ClusterState(trial.scene.snapshot, settings.release, settings.gates, settings.patch)
    slices = world.cycle.index.slices
    local = _local(slices)
    everywhere = [entry for entry in slices if not entry.scope.node_name]
    with_devices = (more for more in node_copies(state, local) if more.slices)
    for more in islice(with_devices, MAX_KINDS):
        # Verdicts are remembered by a device's identity.
        view.supposed.extend(device for entry in more.slices for device in entry.devices)
        index = SliceIndex((*everywhere, *more.slices))
        there = around.with_node(more) if around is not None else None
        changed = replace(world, cycle=world.cycle.changed(index=index), surroundings=there)
        if changed.proof([more.node]) is not None:
            change = say("add one more node like {node}", node=ObjectName("Node", more.like))
            return Way((change,), Proof(_THERE))
    return None


def _local(slices: tuple[ResourceSlice, ...]) -> dict[str, list[ResourceSlice]]:
    """The newest slices of the pools that are of one node alone, by this node."""
    pools: dict[PoolID, list[ResourceSlice]] = defaultdict(list)
    for entry in slices:
        pools[entry.pool].append(entry)
    found: dict[str, list[ResourceSlice]] = defaultdict(list)
    for entries in pools.values():
        newest = max(entry.generation for entry in entries)
        home = entries[0].scope.node_name
        if home and all(entry.scope.node_name == home for entry in entries):
            found[home].extend(entry for entry in entries if entry.generation == newest)
    return found
