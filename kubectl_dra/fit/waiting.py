"""Other pods that wait for devices, and that the scheduler may place before those of a workload."""

from __future__ import annotations

from collections.abc import Sequence, Set

from msgspec import Struct

from kubectl_dra.allocation.budgets import RIVALS_STEPS, RIVALS_TRIED, RIVALS_WORK, Budget
from kubectl_dra.api.pods import Pod
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.explain.pending_alike import pods_waiting
from kubectl_dra.explain.rivals import Queue, Run
from kubectl_dra.explain.settings import Settings
from kubectl_dra.scheduling.binding import Chance
from kubectl_dra.scheduling.framework import ClusterState


def others_waiting(own: Set[str], snapshot: Snapshot, settings: Settings) -> int:
    """The number of pods that wait for devices, but the workloads' ``own``."""
    return sum(pod.is_queued and pod.key not in own for pod in pods_waiting(snapshot, settings))


class PodsWaiting(Struct, frozen=True):
    """The pods that wait, but those of the workloads and those that come after them by their priority."""

    queue: Queue
    pods: tuple[Pod, ...]
    settings: Settings

    @classmethod
    def beside(cls, own: Set[str], priority: int, snapshot: Snapshot, settings: Settings) -> PodsWaiting:
        """Those beside the workloads' ``own`` pods, as keys, of which the least important has this priority."""
        queue = Queue(snapshot, settings)
        pods = tuple(pod for pod in queue.pods if pod.key not in own and pod.priority >= priority)
        return cls(queue, pods, settings)

    def placed_in(self, state: ClusterState) -> tuple[Sequence[Pod], ClusterState]:
        """Those that get a node in a cluster, as far as they can be tried, and the cluster with them."""
        if not self.pods:
            return (), state
        there = self.settings.scheduler.sees(state.cluster, *self.pods)
        run = Run(self.queue, self.pods, None, Chance.of_try(0))
        size = len(there.nodes) + len(there.snapshot.slices)
        run.place(there, Budget(RIVALS_STEPS), min(RIVALS_TRIED, RIVALS_WORK // max(1, size)))
        return [pod for pod in self.pods if pod.key in run.served], state.moved(run.state.cluster)
