"""Who speaks of pods: the scheduler, the kubelet, autoscalers, queues and other schedulers."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Speaker(StrEnum):
    """Who writes events and conditions about pods: its name for people, which the files of messages use as well."""

    KUBE_SCHEDULER = "kube-scheduler"
    KUBELET = "kubelet"
    CLUSTER_AUTOSCALER = "cluster-autoscaler"
    KARPENTER = "Karpenter"
    KAI = "KAI"
    KUEUE = "Kueue"
    VOLCANO = "Volcano"
    YUNIKORN = "YuniKorn"
    KUBERNETES = "Kubernetes"
    """A controller, or nobody known."""


_COMPONENTS: Final = {
    "default-scheduler": Speaker.KUBE_SCHEDULER,
    "karpenter": Speaker.KARPENTER,
    "kai-scheduler": Speaker.KAI,
    "binder": Speaker.KAI,
    "volcano": Speaker.VOLCANO,
    "yunikorn": Speaker.YUNIKORN,
    **{speaker.value: speaker for speaker in (Speaker.KUBELET, Speaker.CLUSTER_AUTOSCALER)},
}
"""By the component that an event names, which a scheduler's is called as in ``spec.schedulerName``."""


def speaker_of(component: str) -> Speaker:
    """Who calls itself so in its events."""
    return _COMPONENTS.get(component, Speaker.KUBERNETES)
