"""DynamicResources: nodes that can serve earlier subrequests (firstAvailable) score higher."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from kubectl_dra.api.behaviour import DEVICE_SCORES
from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.pods import Pod
from kubectl_dra.scheduling.framework import ClusterState, NodeState, ScorePlugin
from kubectl_dra.scheduling.reasons import PluginName
from kubectl_dra.scheduling.scores.normalize import share_of_best

_MOST_SUBREQUESTS: Final = 8


class DynamicResourcesScore(ScorePlugin):
    """The plugin for one pod. ``preference`` maps each node to the ``preference`` of its allocation."""

    name = PluginName.DYNAMIC_RESOURCES

    def __init__(
        self, pod: Pod, state: ClusterState, nodes: Sequence[NodeState], preference: Mapping[str, int]
    ) -> None:
        super().__init__(pod, state, nodes)
        self._preference = preference
        self.skipped = not preference or state.release not in DEVICE_SCORES

    def scores(self) -> Mapping[str, int]:
        return share_of_best({node.name: self._preference.get(node.name, 0) for node in self.nodes})


def preference(claim: ResourceClaim, requests: Iterable[str]) -> int:
    """How close an allocation is to the claim's first choices: 8 per first subrequest, 7 per second …

    ``requests`` are the requests of its results, ``request/subrequest`` if there are subrequests.
    """
    chosen = set(requests)
    return sum(
        _MOST_SUBREQUESTS - place
        for request in claim.requests
        for place, entry in enumerate(request.first_available)
        if f"{request.name}/{entry.name}" in chosen
    )
