"""What keeps a pod out of the scheduler's queue (PreEnqueue): it is never tried, and its condition does not say why."""

from __future__ import annotations

from kubectl_dra.api.pods import Pod
from kubectl_dra.scheduling import dynamic_resources, gang_scheduling
from kubectl_dra.scheduling.framework import ClusterState
from kubectl_dra.scheduling.profile import Point
from kubectl_dra.scheduling.reasons import PluginName, Reason, Rejection


class Gated(Reason, frozen=True):
    """The pod waits for the gates of ``spec.schedulingGates`` to be removed (SchedulingGates)."""

    TEXT = "Scheduling is blocked due to non-empty scheduling gates"
    gates: tuple[str, ...]


def kept_out(pod: Pod, state: ClusterState) -> Rejection | None:
    """Why the scheduler does not try the pod at all; None if it does."""
    if gates := pod.scheduling_gates:
        return Rejection(PluginName.SCHEDULING_GATES, (Gated(gates),))
    if state.profile.runs(PluginName.DYNAMIC_RESOURCES, Point.PRE_ENQUEUE):
        for resolved in dynamic_resources.resolve(pod, state):
            if isinstance(resolved, Reason):
                return Rejection(PluginName.DYNAMIC_RESOURCES, (resolved,))
    if state.profile.runs(PluginName.GANG_SCHEDULING, Point.PRE_ENQUEUE):
        return gang_scheduling.in_queue(pod, state)
    return None
