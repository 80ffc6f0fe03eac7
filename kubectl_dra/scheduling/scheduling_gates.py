"""SchedulingGates: a pod with ``spec.schedulingGates`` does not enter the scheduler's queue."""

from __future__ import annotations

from kubectl_dra.api.pods import Pod
from kubectl_dra.scheduling.reasons import PluginName, Reason, Rejection


class Gated(Reason, frozen=True):
    """The pod waits for these gates to be removed."""

    gates: tuple[str, ...]

    @property
    def words(self) -> str:
        return "Scheduling is blocked due to non-empty scheduling gates"


def gated(pod: Pod) -> Rejection | None:
    """The rejection before the queue; None if the pod has no gates."""
    gates = pod.scheduling_gates
    return Rejection(PluginName.SCHEDULING_GATES, (Gated(gates),)) if gates else None
