"""What to read of other layers for pods: only what they point to, directly or through what was read before."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from typing import Final

from kubectl_dra.api.neighbour_kinds import NEIGHBOUR_KINDS
from kubectl_dra.api.pods import Pod
from kubectl_dra.cluster.pointed_objects import Pointer, merged
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.data.messages import CLUSTER_AUTOSCALER
from kubectl_dra.neighbours import autoscalers, gangs, kueue, operators
from kubectl_dra.neighbours.kueue_controller import controller_in, settings_of

_LAYERS: Final[tuple[Callable[[Pod, Snapshot], Iterator[Pointer]], ...]] = (
    kueue.pointers,
    gangs.pointers,
    autoscalers.pointers,
    operators.pointers,
)
"""Each says what a pod, and what was read for it so far, points to; nothing of a pod that has no sign of the layer."""


def pointers(pods: Iterable[Pod], snapshot: Snapshot) -> list[Pointer]:
    """What these pods point to, one request for each kind. A pod that runs, or has ended, points to nothing."""
    waiting = [pod for pod in pods if not pod.finished and (not pod.node_name or pod.phase in ("", "Pending"))]
    return merged(pointer for pod in waiting for layer in _LAYERS for pointer in layer(pod, snapshot))


def saved(served: Mapping[str, str], speakers: Container[str] = (), pods: Iterable[Pod] = ()) -> list[Pointer]:
    """All objects of the layers that a cluster has; the jobs of Kubernetes where a layer may hold them back.

    ``speakers`` have written events: of cluster-autoscaler there is no kind. Of Kueue also its configuration, which is
    beside its controller, one of the ``pods``.
    """
    custom = [kind for kind in served if "." in NEIGHBOUR_KINDS[kind].group]
    maps = [Pointer("ConfigMap", *autoscalers.STATUS_MAP)] if CLUSTER_AUTOSCALER in speakers else []
    if kueue.WORKLOAD in served:
        maps.append(Pointer("ConfigMap", *settings_of(controller_in(pods))))
    return [*(Pointer(kind) for kind in (*custom, *(["Job.batch"] if custom else ()))), *maps]


def kinds_pointed_to(pod: Pod, snapshot: Snapshot) -> frozenset[str]:
    """The kinds of other layers that an answer about the pod depends on."""
    return frozenset(pointer.kind for pointer in pointers([pod], snapshot))
