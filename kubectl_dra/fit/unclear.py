"""Why it is open whether the pods of a workload fit: what is not modelled; and on which nodes one does not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import structs

from kubectl_dra.api.behaviour import GROUP_OF_ONE_PRIORITY
from kubectl_dra.api.policy import PodGroup
from kubectl_dra.cluster.cluster import Cluster
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.drivers.daemons import node_of
from kubectl_dra.exit_codes import Verdict
from kubectl_dra.explain.causes.ending import AT_ONCE
from kubectl_dra.explain.diagnosis import Diagnosis
from kubectl_dra.explain.phrase import Words, say
from kubectl_dra.explain.pipeline import diagnose
from kubectl_dra.explain.settings import Settings
from kubectl_dra.explain.unclear import OBSTACLES
from kubectl_dra.explain.unread_kind import CHANGE_PODS, Unread, if_none
from kubectl_dra.fit.place import Placement, Unplaced
from kubectl_dra.fit.plan import FitPlan
from kubectl_dra.fit.pod_factory import NewPod
from kubectl_dra.fit.pod_names import held_name
from kubectl_dra.fit.result import NodeWithout
from kubectl_dra.fit.workload import WorkloadPods
from kubectl_dra.manifests.changes import fields_at
from kubectl_dra.scheduling.gang_scheduling import Gang, Obstacle, domains_of, gang_of, group_priority

_EXCLUSIVE: Final = frozenset(
    (
        "alpha.jobset.sigs.k8s.io/exclusive-topology",
        "leaderworkerset.sigs.k8s.io/exclusive-topology",
        "leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology",
    )
)
"""Annotations by which controllers add affinity to pods, one after the other as they get nodes."""
_TAKE_ROOM: Final = ("Pod", "ResourceClaim", *CHANGE_PODS)
"""Kinds of which more objects never let more pods fit, where none of them decides about affinity."""


# What is not modelled about groups of pods, so that it is undetermined whether they fit.


def unclear_groups(pods: Sequence[NewPod], refused: Sequence[Unplaced], placement: Placement) -> Iterator[Words]:
    """Why it is open whether the pods of a group fit.

    Args:
        pods: one of each sort.
        refused: those of the workload that do not fit.
        placement: what was placed.
    """
    state = placement.state
    for new in {new.group: new for new in pods if new.group[2]}.values():
        gang = gang_of(new.pod, state)
        if isinstance(gang, Gang) and gang.nested:
            yield say(OBSTACLES[Obstacle.NESTED], group=gang.name)
        elif isinstance(gang, Gang) and domains_of(gang, state) is None:
            yield say(OBSTACLES[Obstacle.DOMAIN], group=gang.name)
        group: PodGroup | None = state.others("PodGroup").get((new.pod.metadata.namespace, new.pod.pod_group))
        together = group is not None and state.release in GROUP_OF_ONE_PRIORITY
        if group is not None and together and group_priority(group, state) is None:
            text = "the priority of group {group} is not known: class {name} was not seen"
            yield say(text, group=new.pod.pod_group, name=group.spec.priority_class_name)
    for unplaced in refused:
        preemption = unplaced.outcome.preemption if unplaced.outcome is not None and unplaced.new.group[2] else None
        if preemption is not None and preemption.best:
            best = preemption.best[0]
            text = (
                "the scheduler may end pods of lower priority for the group, such as {victims:some 2} on {node}: whom "
                "it ends for several pods at a time is not modelled"
            )
            yield say(text, victims=[victim.key for victim in best.victims], node=best.node)
            return


def not_modelled(plan: FitPlan, snapshot: Snapshot) -> Iterator[Words]:
    """What a controller does with the pods of a workload that is not known here."""
    workload = plan.workload
    if plan.unclear:
        yield plan.unclear
    if workload.of_each_node and not workload.nodes and workload.replicas:
        yield (
            "a DaemonSet makes a pod for each node that its pods may run on, and one was placed: explain -f says on "
            "which nodes such a pod fits"
        )
    if pod := held_name(workload, snapshot, plan.most):
        text = "pod {pod} exists and is none of {workload}, which would give that name to a pod of its own"
        yield say(text, pod=pod, workload=workload.title)
    for annotation in sorted(_EXCLUSIVE & _annotations(workload))[:1]:
        text = (
            "{annotation} gives each group of pods nodes of its own: a controller adds the affinity for that after a "
            "first pod has its node, which is not modelled"
        )
        yield say(text, annotation=annotation)


def own_pods_unseen(plan: FitPlan, snapshot: Snapshot) -> Iterator[Unread]:
    """That pods which were not read may be of the workload: those that hold devices run already, or give way."""
    gap = snapshot.missing("Pod", plan.workload.namespace)
    if gap is not None and any(claim.allocation is not None for claim in snapshot.claims.values()):
        yield Unread(gap, "whether pods of it run already, or give way, is unknown")


def never_all(unclear: Sequence[Words], stop: Diagnosis) -> bool:
    """Whether not all pods fit, whatever the kinds hold that were not read: their objects take room, and make none.

    ``stop`` is about the first pod that does not fit where there are none of them.
    """
    takes = all(isinstance(why, Unread) and why.gap.kind in _TAKE_ROOM for why in unclear)
    # What only changes the pods is said as a condition.
    return takes and not if_none(unclear) and stop.verdict is Verdict.UNSCHEDULABLE


def unclear_before(plan: FitPlan, snapshot: Snapshot, settings: Settings) -> Iterator[Words]:
    """Reasons why it is open whether the first pod of a role fits at all, once pods that it replaces have ended."""
    quick = structs.replace(settings, with_ways=False)
    if plan.rollout is not None:
        snapshot = Cluster(snapshot).ending(pod for pod in snapshot.pods.values() if pod.key in plan.own).snapshot
    for factory, role in zip(plan.factories, plan.workload.roles, strict=True):
        if role.each and plan.replicas:
            first = factory.make(factory.first, snapshot)
            diagnosis = diagnose(factory.question_about(first, snapshot, settings), snapshot, quick)
            if diagnosis.verdict is Verdict.UNDETERMINED:
                yield from diagnosis.unclear or ("the search did not end in time",)
                return
            if diagnosis.findings and diagnosis.findings[0].kind is AT_ONCE:
                yield say("pods would be scheduled and evicted at once: {why}", why=diagnosis.findings[0].summary)
                return


def _annotations(workload: WorkloadPods) -> frozenset[str]:
    written = fields_at(workload.raw, "metadata", "annotations")
    return frozenset(written).union(*(role.pod.metadata.annotations for role in workload.roles))


# Nodes that have no pod of a DaemonSet.

_LOOKED_AT: Final = 10
"""Each node costs as much as an explanation."""


def nodes_without(plan: FitPlan, refused: Sequence[Unplaced], settings: Settings) -> Iterator[NodeWithout]:
    """The nodes for which a DaemonSet makes a pod that does not fit; none of others."""
    quick = structs.replace(settings, with_ways=False)
    old = {pod.node_name for pod in plan.rollout.old} if plan.rollout is not None else set[str]()
    for number, unplaced in enumerate(refused if plan.workload.nodes else ()):
        node, state = node_of(unplaced.new.pod), unplaced.state
        if node in old:
            # Its old pod runs on, or was there until now: the rollout stops.
            continue
        if number >= _LOOKED_AT:
            yield NodeWithout(node)
            continue
        question = plan.factories[unplaced.new.role].question_about(unplaced.new, state.snapshot, quick)
        findings = diagnose(question, state.snapshot, quick).findings
        yield NodeWithout(node, findings[0].kind.code if findings else "")
