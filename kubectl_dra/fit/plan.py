"""What is to be placed of each workload: its new pods, and what becomes of those that exist."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct, structs

from kubectl_dra.allocation.budgets import FEWEST_TRIED, MOST_TRIED
from kubectl_dra.api.pod_resources import amounts
from kubectl_dra.api.pods import Pod
from kubectl_dra.cluster.cluster import Cluster
from kubectl_dra.cluster.snapshot import Key, RefusedChange, Snapshot
from kubectl_dra.explain.phrase import Words
from kubectl_dra.explain.settings import Settings
from kubectl_dra.fit.existing_pods import (
    JobProgress,
    PodPlace,
    StoredTemplate,
    Surplus,
    as_applied,
    filled,
    job_progress,
    pods_of,
    stored_template,
    surplus,
)
from kubectl_dra.fit.pod_factory import NewPod, PodFactory, without
from kubectl_dra.fit.pod_names import ordinals, with_free_names
from kubectl_dra.fit.result import FitOptions
from kubectl_dra.fit.rollout import PodReplacement, keeps_pods, refused_change, what_becomes_of
from kubectl_dra.fit.workload import WorkloadPods, of_nodes
from kubectl_dra.scheduling.node_resources import PODS

_NANOS: Final = 10**9


class FitPlan(Struct, frozen=True):
    """A workload with all that is needed to place it, and its ``existing`` pods by their places.

    ``own`` are the keys of all pods of the manifest's workloads that exist: ending one only makes its successor wait.
    Of each role ``most`` pods are tried, more than nodes can take: a count may be larger than any list.
    ``rollout`` replaces pods of a former template, ``former`` is how many of them stay, and ``unclear`` why that is
    open. ``refused`` are changes of its pods, of it or of its templates that the API server refuses. ``surplus`` are
    the pods that end because there are more than replicas. ``unread`` is what would tell whether pods that run are of
    the template; empty where that is known, or does not matter. ``progress`` is how far a Job is.
    """

    workload: WorkloadPods
    number: int
    factories: tuple[PodFactory, ...]
    replicas: int
    existing: Mapping[PodPlace, Pod]
    most: int
    own: frozenset[str] = frozenset()
    rollout: PodReplacement | None = None
    former: int = 0
    unclear: Words = ""
    refused: tuple[RefusedChange, ...] = ()
    surplus: Surplus = Surplus()
    unread: tuple[str, ...] = ()
    progress: JobProgress | None = None

    @property
    def tried(self) -> int:
        """Number of replicas that are tried; the nodes have no room for those after."""
        return min(self.replicas, _replicas(self.workload, self.most))

    @property
    def listed(self) -> int:
        """Number of pods that are tried, or run already."""
        return self.tried * sum(min(role.each, self.most) for role in self.workload.roles)

    @property
    def running(self) -> int:
        """Number of its pods that have a node already."""
        changeable = (pod for place, pod in self.existing.items() if not self.factories[place.role].unchangeable)
        return sum(bool(pod.node_name) for pod in changeable)

    def pods_of(self, replica: int, snapshot: Snapshot) -> list[NewPod]:
        """The pods of one replica, but those that run already."""
        pods = []
        for number, (factory, role) in enumerate(zip(self.factories, self.workload.roles, strict=True)):
            for ordinal in ordinals(role, replica, self.most):
                known = self.existing.get(PodPlace(number, ordinal))
                if known is None:
                    pods.append(factory.make(ordinal, snapshot))
                elif factory.unchangeable:
                    pods.append(structs.replace(factory.keep(known, ordinal, snapshot), refused=True))
                elif not known.node_name:
                    pods.append(factory.keep(known, ordinal, snapshot))
        return pods


def _room(snapshot: Snapshot) -> int:
    """More pods than the nodes can take beside those that are there, and than any small workload has."""
    limits = (amounts(node.allocatable).get(PODS) for node in snapshot.nodes.values())
    room = sum(limit.nanos // _NANOS for limit in limits if limit is not None) + len(snapshot.pods) + 1
    return min(max(FEWEST_TRIED, room), MOST_TRIED)


def _replicas(workload: WorkloadPods, most: int) -> int:
    """Number of replicas of a workload that have so many pods."""
    return -(-most // max(1, workload.size))


def plans_of(
    workloads: Sequence[WorkloadPods],
    snapshot: Snapshot,
    settings: Settings,
    options: FitOptions,
    *,
    replaced: bool = False,
) -> tuple[list[FitPlan], Snapshot]:
    """What is to be placed of each workload, and the cluster without the pods that end before.

    ``replaced``: pods of which nobody knows whether they are of the template are taken for those of a former one.
    """
    most, names = _room(snapshot), dict[Key, tuple[str, str]]()
    every_own = [pods_of(workload, snapshot) for workload in workloads]
    workloads = [as_applied(workload, own, snapshot) for workload, own in zip(workloads, every_own, strict=True)]
    workloads = [of_nodes(workload, snapshot) for workload in workloads]
    workloads = with_free_names(workloads, every_own, snapshot, most)
    plans = list[FitPlan]()
    for number, (workload, own) in enumerate(zip(workloads, every_own, strict=True)):
        plan, snapshot = _plan(workload, number, own, snapshot, settings, options, most, names, replaced=replaced)
        plans.append(plan)
    every = frozenset(pod.key for own in every_own for pod in own)
    return [structs.replace(plan, own=every) for plan in plans], snapshot


def _plan(
    workload: WorkloadPods,
    number: int,
    own: Sequence[Pod],
    snapshot: Snapshot,
    settings: Settings,
    options: FitOptions,
    most: int,
    names: dict[Key, tuple[str, str]],
    *,
    replaced: bool,
) -> tuple[FitPlan, Snapshot]:
    def made() -> tuple[PodFactory, ...]:
        roles = range(len(workload.roles))
        return tuple(PodFactory(workload, number, role, snapshot, settings, names) for role in roles)

    factories, stored = made(), stored_template(workload, snapshot)
    change = refused_change(workload, own, _of_others(own, factories, stored), changed=stored.changed)
    if change is not None:
        snapshot = Cluster(snapshot).refusing(change).snapshot
        factories = made()
    refused = tuple(dict.fromkeys(change for factory in factories for change in factory.unchangeable))
    running = sum(bool(pod.node_name) for pod in own)
    replicas, progress = workload.replicas if options.replicas is None else options.replicas, None
    if options.replicas is None and not options.most and (progress := job_progress(workload, snapshot)) is not None:
        replicas = progress.wanted(replicas, running)
    if refused and workload.raw:
        # All stays as it is.
        return FitPlan(workload, number, factories, replicas, {}, most, refused=refused, progress=progress), snapshot
    open_ = [pod for pod in own if pod.node_name and stored.made(pod) is None and not keeps_pods(workload)]
    unread = [pod for pod in open_ if workload.raw and _stays(pod, factories, stored)]
    gone = [pod for pod in own if workload.raw and not _stays(pod, factories, stored)]
    if replaced:
        gone += unread
    former = what_becomes_of([pod for pod in gone if pod.node_name], workload, replicas, running)
    # A pod that waits is made anew where it ends, or is no longer as it is written.
    ended = [pod for pod in gone if not pod.node_name]
    if options.most and former.rollout is not None:
        ended += former.rollout.old
    snapshot = without(ended, snapshot)
    rolled = former.rollout.old if former.rollout is not None else ()
    away = {pod.key for pod in (*ended, *rolled)}
    there = [pod for pod in own if pod.key not in away]
    # Which of them end, a rollout says: these are not of its template.
    of_template = [pod for pod in there if pod not in former.kept]
    more = Surplus() if options.most else surplus(workload, of_template, own, max(0, replicas - len(former.kept)))
    away = {pod.key for pod in more.ended()}
    kept = filled(
        workload, [pod for pod in there if pod.key not in away], min(replicas, _replicas(workload, most)), most
    )
    plan = FitPlan(
        workload,
        number,
        factories,
        replicas,
        kept,
        most,
        rollout=former.rollout if not options.most else None,
        former=len(former.kept),
        unclear=former.unclear,
        refused=refused,
        surplus=more,
        unread=tuple(dict.fromkeys(stored.unread(workload, pod) for pod in unread)),
        progress=progress,
    )
    return plan, snapshot


def _stays(pod: Pod, factories: Sequence[PodFactory], stored: StoredTemplate) -> bool:
    """Whether a pod that exists counts as one of those that are wanted."""
    known = stored.made(pod)
    if known is None:
        known = any(factory.is_as_written(pod) for factory in factories)
    return known and bool(pod.node_name or pod.is_queued)


def _of_others(own: Sequence[Pod], factories: Sequence[PodFactory], stored: StoredTemplate) -> list[Pod]:
    """The pods that were made from another template."""
    if stored.changed is not None and not stored.by_set:
        return list(own) if stored.changed else []
    return [pod for pod in own if not any(factory.made(pod) for factory in factories)]
