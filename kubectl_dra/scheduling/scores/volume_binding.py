"""VolumeBinding: nodes whose storage would have more left score higher (gate StorageCapacityScoring)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from kubectl_dra.api.pods import Pod
from kubectl_dra.scheduling.framework import ClusterState, NodeState, ScorePlugin
from kubectl_dra.scheduling.pod_claims import class_of_claim
from kubectl_dra.scheduling.reasons import PluginName
from kubectl_dra.scheduling.scores.normalize import MAX, along
from kubectl_dra.scheduling.volume_binding import PodVolumes, VolumeBinding
from kubectl_dra.scheduling.volume_matching import in_nanos, stored

_GATE: Final = "StorageCapacityScoring"
_GIGA: Final = 1_000_000_000
_LESS_IS_BETTER: Final = [(0, MAX), (100, 0)]


class VolumeBindingScore(ScorePlugin):
    """The plugin for one pod."""

    name = PluginName.VOLUME_BINDING

    def __init__(self, pod: Pod, state: ClusterState, nodes: Sequence[NodeState]) -> None:
        super().__init__(pod, state, nodes)
        self._binding = VolumeBinding(pod, state)
        self.skipped = _GATE not in state.gates or self._binding.skipped or self._binding.rejection is not None

    def scores(self) -> Mapping[str, int]:
        written = self.state.profile.args.volume_binding.shape
        shape = [(point.utilization, point.score * 10) for point in written] or _LESS_IS_BETTER
        return {node.name: _score(self._binding.placement(node), shape) for node in self.nodes}


def _score(placement: PodVolumes, shape: Sequence[tuple[int, int]]) -> int:
    """The mean over storage classes of what would be left, in percent."""
    requested: dict[str, int] = {}
    capacity: dict[str, int] = {}
    if placement.matched:
        for claim, volume in placement.matched:
            name = volume.spec.storage_class_name
            requested[name] = requested.get(name, 0) + _bytes(stored(claim.spec.resources.requests))
            capacity[name] = capacity.get(name, 0) + _bytes(stored(volume.spec.capacity))
    else:
        for entry in placement.provisioned:
            if entry.capacity is not None:
                name = class_of_claim(entry.claim)
                requested[name] = requested.get(name, 0) + _bytes(stored(entry.claim.spec.resources.requests))
                # One pool serves all claims of a class.
                capacity[name] = _bytes(in_nanos(entry.capacity.capacity))
    if not requested:
        return 0
    left = [along(shape, _used(requested[name], capacity[name])) for name in requested]
    return math.floor(sum(left) / len(left) + 0.5)


def _used(requested: int, capacity: int) -> int:
    return MAX if not capacity or requested > capacity else requested * MAX // capacity


def _bytes(nano: int) -> int:
    return -(-nano // _GIGA)
