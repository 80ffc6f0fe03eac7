"""The deciders about a pod before, or in place of, kube-scheduler: by gates, schedulerName, labels and owners."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Final, NamedTuple

from kubectl_dra.api.pods import Pod
from kubectl_dra.data.messages import Speaker

KUEUE: Final = "kueue.x-k8s.io/"
_VOLCANO_GATE: Final = "scheduling.volcano.sh/queue-allocation-gate"


class Layer(Enum):
    """What stands before the default scheduler; the value is its name for people."""

    NONE = ""
    KUEUE = Speaker.KUEUE.value
    VOLCANO = Speaker.VOLCANO.value
    KAI = Speaker.KAI.value
    YUNIKORN = Speaker.YUNIKORN.value
    POD_GROUP = "its PodGroup"
    GATE = "the owner of a scheduling gate"
    OTHER_SCHEDULER = "another scheduler"


SCHEDULERS: Final = {"volcano": Layer.VOLCANO, "kai-scheduler": Layer.KAI, "yunikorn": Layer.YUNIKORN}
"""By ``spec.schedulerName``."""
DEFAULT: Final = "default-scheduler"


class Decider(NamedTuple):
    """The layer that decides about a pod, with the field that tells so and its value."""

    layer: Layer
    field: str = ""
    value: str = ""


def decider(pod: Pod) -> Decider:
    """The first to act for a pod that has no node: the owner of a gate, then its scheduler, then its group."""
    return next(_deciders(pod))


def layer_of(gate: str) -> Layer:
    """The controller that takes a scheduling gate away."""
    if gate.startswith(KUEUE):
        return Layer.KUEUE
    return Layer.VOLCANO if gate == _VOLCANO_GATE else Layer.GATE


def _deciders(pod: Pod) -> Iterator[Decider]:
    for gate in sorted(pod.scheduling_gates, key=lambda gate: layer_of(gate) is Layer.GATE):
        yield Decider(layer_of(gate), "spec.schedulingGates", gate)
    if pod.scheduler_name != DEFAULT:
        layer = SCHEDULERS.get(pod.scheduler_name, Layer.OTHER_SCHEDULER)
        yield Decider(layer, "spec.schedulerName", pod.scheduler_name)
    if pod.pod_group:
        yield Decider(Layer.POD_GROUP, "spec.schedulingGroup.podGroupName", pod.pod_group)
    yield Decider(Layer.NONE)


def is_queued_by_kueue(pod: Pod) -> bool:
    """Whether Kueue manages the pod, or the job that made it."""
    named = (*pod.metadata.labels, *pod.metadata.annotations)
    return any(gate.startswith(KUEUE) for gate in pod.scheduling_gates) or any(key.startswith(KUEUE) for key in named)
