"""The scheduler's last message about a pod."""

from __future__ import annotations

from typing import Final, NamedTuple

from kubectl_dra.api.pods import Pod
from kubectl_dra.cluster.snapshot import Snapshot

_SCALERS: Final = ("cluster-autoscaler", "karpenter")


class LastWord(NamedTuple):
    """A message and its time, empty if it has none; ``event``: from an event, else from the pod's condition."""

    event: bool
    message: str
    time: str


def last_word(pod: Pod, snapshot: Snapshot) -> LastWord | None:
    """The scheduler's last message about a waiting pod; None if there is none."""
    condition = pod.condition("PodScheduled")
    events = [
        event
        for event in snapshot.events_about("Pod", pod.metadata.namespace, pod.metadata.name)
        if event.reason == "FailedScheduling"
        and event.component not in _SCALERS
        and (not event.uid or not pod.metadata.uid or event.uid == pod.metadata.uid)
    ]
    if events and not (condition and condition.last_transition_time > events[-1].last):
        return LastWord(True, events[-1].message, events[-1].last)
    if condition is not None and condition.status == "False":
        return LastWord(False, condition.message, condition.last_transition_time)
    return None
