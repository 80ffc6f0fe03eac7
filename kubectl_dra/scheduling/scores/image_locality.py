"""ImageLocality: nodes that already have more of the pod's images, by size, score higher."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from kubectl_dra.api.behaviour import IMAGE_VOLUMES_COUNT
from kubectl_dra.api.pods import Pod
from kubectl_dra.scheduling.framework import ClusterState, NodeState, ScorePlugin
from kubectl_dra.scheduling.reasons import PluginName
from kubectl_dra.scheduling.scores.normalize import MAX

_MIB: Final = 1 << 20
_LEAST, _MOST_EACH = 23 * _MIB, 1000 * _MIB


class ImageLocality(ScorePlugin):
    """The plugin for one pod."""

    name = PluginName.IMAGE_LOCALITY

    def __init__(self, pod: Pod, state: ClusterState, nodes: Sequence[NodeState]) -> None:
        super().__init__(pod, state, nodes)
        volumes = [volume.image.reference for volume in pod.spec.volumes if volume.image is not None]
        self._images = [_full_name(name) for name in (*(entry.image for entry in pod.containers), *volumes)]
        self._places = len(pod.containers)
        if state.release in IMAGE_VOLUMES_COUNT:
            self._places += len(volumes)
        self._sizes: dict[str, int] = {}
        self._nodes_with: dict[str, set[str]] = {name: set() for name in self._images}
        for node in state.nodes.values():
            for image in node.node.status.images:
                for name in image.names:
                    if name in self._nodes_with:
                        self._nodes_with[name].add(node.name)
                        self._sizes.setdefault(name, image.size_bytes)
        self.skipped = not self._sizes

    def scores(self) -> Mapping[str, int]:
        return {node.name: self._score(node.name) for node in self.nodes}

    def _score(self, node: str) -> int:
        total = len(self.state.nodes)
        size = 0
        for image in self._images:
            having = self._nodes_with[image]
            if node in having:
                # An image that few nodes have counts less, so that pods do not all go there.
                size += int(self._sizes[image] * (len(having) / total))
        most = _MOST_EACH * self._places
        return MAX * (min(max(size, _LEAST), most) - _LEAST) // (most - _LEAST)


def _full_name(image: str) -> str:
    return f"{image}:latest" if image.rfind(":") <= image.rfind("/") else image
