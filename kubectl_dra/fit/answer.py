"""From a manifest and a cluster to the answer: the pods, where they go, what stops the next one, what would help."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from random import Random
from typing import Final

from msgspec import Struct, structs

from kubectl_dra.allocation.budgets import (
    CHOICES,
    CHOICES_STEPS,
    FEWEST_TRIED,
    FOLLOWING_TRIED,
    MOST_PODS,
    MOST_TRIED,
    PLACE_STEPS,
    Budget,
    unlimited,
)
from kubectl_dra.api.behaviour import GROUP_OF_ONE_PRIORITY
from kubectl_dra.api.pod_resources import amounts
from kubectl_dra.api.pods import Pod
from kubectl_dra.api.policy import PodGroup
from kubectl_dra.cluster.cluster import Cluster
from kubectl_dra.cluster.snapshot import Key, Progress, Snapshot
from kubectl_dra.errors import UsageError
from kubectl_dra.exit_codes import Verdict
from kubectl_dra.explain.assumptions import refused_notes
from kubectl_dra.explain.attributes_read import complete
from kubectl_dra.explain.causes.ending import AT_ONCE
from kubectl_dra.explain.not_starting import troubled_nodes
from kubectl_dra.explain.outcomes import depends_on
from kubectl_dra.explain.phrase import Words, say
from kubectl_dra.explain.pipeline import diagnose
from kubectl_dra.explain.settings import Settings
from kubectl_dra.explain.unclear import OBSTACLES
from kubectl_dra.fit import pod_factory as existing
from kubectl_dra.fit.changes import Changes, without_own
from kubectl_dra.fit.place import Placement, Placer, Unplaced, scheduling_order
from kubectl_dra.fit.pod_factory import NewPod, PodFactory, PodPlace
from kubectl_dra.fit.pod_names import held_name, ordinals, with_free_names
from kubectl_dra.fit.result import FirstUnplaced, FitAnswer, FitOptions, WorkloadFit
from kubectl_dra.fit.starting import Starting, starting
from kubectl_dra.fit.waiting import PodsWaiting, others_waiting
from kubectl_dra.fit.workload import WorkloadPods, with_controllers
from kubectl_dra.scheduling.framework import ClusterState
from kubectl_dra.scheduling.gang_scheduling import Gang, Obstacle, domains_of, gang_of, group_priority, priority_differs
from kubectl_dra.scheduling.node_resources import PODS
from kubectl_dra.scheduling.scheduler import Scheduler

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


_NANOS: Final = 10**9
_EXCLUSIVE: Final = frozenset(
    (
        "alpha.jobset.sigs.k8s.io/exclusive-topology",
        "leaderworkerset.sigs.k8s.io/exclusive-topology",
        "leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology",
    )
)
"""Annotations by which controllers add affinity to pods, one after the other as they get nodes."""


class FitPlan(Struct, frozen=True):
    """A workload with all that is needed to place it, and its ``existing`` pods by their places.

    ``own`` are the keys of all pods of the manifest's workloads that exist: ending one only makes its successor wait.
    Of each role ``most`` pods are tried, more than nodes can take: a count may be larger than any list.
    """

    workload: WorkloadPods
    number: int
    factories: tuple[PodFactory, ...]
    replicas: int
    existing: Mapping[PodPlace, Pod]
    most: int
    own: frozenset[str] = frozenset()

    @property
    def tried(self) -> int:
        """How many replicas are tried; the nodes have no room for those after."""
        return min(self.replicas, _replicas(self.workload, self.most))

    @property
    def listed(self) -> int:
        """How many pods are tried, or run already."""
        return self.tried * sum(min(role.each, self.most) for role in self.workload.roles)

    @property
    def running(self) -> int:
        """How many of its pods have a node already."""
        return sum(bool(pod.node_name) for pod in self.existing.values())

    def pods_of(self, replica: int, snapshot: Snapshot) -> list[NewPod]:
        """The pods of one replica, but those that run already."""
        pods = []
        for number, (factory, role) in enumerate(zip(self.factories, self.workload.roles, strict=True)):
            for ordinal in ordinals(role, replica, self.most):
                known = self.existing.get(PodPlace(number, ordinal))
                if known is None:
                    pods.append(factory.make(ordinal, snapshot))
                elif not known.node_name:
                    pods.append(factory.keep(known, ordinal, snapshot))
        return pods


def fit(
    workloads: Sequence[WorkloadPods], snapshot: Snapshot, settings: Settings, options: FitOptions, progress: Progress
) -> FitAnswer:
    """Places the workloads on a cluster, one after the other by priority.

    Args:
        workloads: those of the manifest.
        snapshot: the cluster, with everything of the manifest but its pods.
        settings: what is assumed of the scheduler.
        options: how many replicas to place.
        progress: is told what is done.

    Raises:
        UsageError: a number of replicas for more than one workload.
    """
    if (options.most or options.replicas is not None) and len(workloads) != 1:
        raise UsageError(f"--replicas and --max are about one workload; the manifest has {len(workloads)}")
    snapshot = with_controllers(snapshot, workloads)
    most = _room(snapshot)
    plans, names = [], dict[Key, tuple[str, str]]()
    every_own = [existing.pods_of(workload, snapshot) for workload in workloads]
    workloads = with_free_names(workloads, every_own, snapshot, most)
    for number, (workload, own) in enumerate(zip(workloads, every_own, strict=True)):
        factories = tuple(
            PodFactory(workload, number, role, snapshot, settings, names) for role in range(len(workload.roles))
        )
        replicas = workload.replicas if options.replicas is None else options.replicas
        # A pod that waits is made anew where it ends, or is no longer as it is written.
        outdated = {pod.key: pod for pod in own if workload.raw and not pod.node_name and not _stays(pod, factories)}
        snapshot = Cluster(snapshot).ending(outdated.values()).snapshot
        kept = existing.filled(
            workload, [pod for pod in own if pod.key not in outdated], min(replicas, _replicas(workload, most)), most
        )
        plans.append(FitPlan(workload, number, factories, replicas, kept, most, frozenset(pod.key for pod in own)))
    every = frozenset[str]().union(*(plan.own for plan in plans))
    plans = [structs.replace(plan, own=every) for plan in plans]
    for plan in plans:
        for factory in plan.factories:
            snapshot = complete(factory.question, snapshot, settings)
    state = _state_for(snapshot, plans, settings.scheduler)
    priority = min((pod.priority for pod in _first_pods(plans)), default=0)
    waiting = PodsWaiting.beside(every, priority, snapshot, settings) if options.changes else None
    asked = waiting is not None and (options.others_first or not options.only_counts)
    first = waiting.placed_in(state) if waiting is not None and asked else ((), state)
    if options.others_first:
        state = _state_for(first[1].snapshot, plans, settings.scheduler)
    budget = unlimited(PLACE_STEPS)
    placer = Placer(state, budget, progress, avoid=troubled_nodes(snapshot))
    limited = False
    if options.most:
        replicas, placement, limited = _most(placer, plans[0], snapshot)
        plans = [structs.replace(plans[0], replicas=replicas)]
    else:
        placement = placer.place_all(_pods(plans, snapshot))
    results = []
    for plan in plans:
        progress(f"looking at what stops {plan.workload.title}")
        results.append(_result(plan, placement, snapshot, settings, options, budget, waiting, limited=limited))
    if not placement.settled and not options.most:
        results = _with_ranges(results, plans, state, snapshot, budget)
    return FitAnswer(
        tuple(results),
        settings.scheduler.version,
        settings.release_source,
        tuple(sorted(settings.scheduler.gates)),
        waiting=others_waiting(every, snapshot, settings),
        first=tuple(pod.key for pod in first[0]),
        notes=(*refused_notes(snapshot.refused), *_notes(plans)),
        other_nodes=_other_nodes(placement, snapshot),
    )


def _room(snapshot: Snapshot) -> int:
    """More pods than the nodes can take beside those that are there, and than any small workload has."""
    limits = (amounts(node.allocatable).get(PODS) for node in snapshot.nodes.values())
    room = sum(limit.nanos // _NANOS for limit in limits if limit is not None) + len(snapshot.pods) + 1
    return min(max(FEWEST_TRIED, room), MOST_TRIED)


def _replicas(workload: WorkloadPods, most: int) -> int:
    """How many replicas of a workload have so many pods."""
    return -(-most // max(1, workload.size))


def _stays(pod: Pod, factories: Sequence[PodFactory]) -> bool:
    return pod.is_queued and any(factory.is_as_written(pod) for factory in factories)


def _pods(plans: Sequence[FitPlan], snapshot: Snapshot) -> list[NewPod]:
    return [new for plan in plans for replica in range(plan.tried) for new in plan.pods_of(replica, snapshot)]


def _state_for(snapshot: Snapshot, plans: Sequence[FitPlan], scheduler: Scheduler) -> ClusterState:
    return scheduler.sees(Cluster(snapshot).with_named_nodes(), *_first_pods(plans))


def _first_pods(plans: Sequence[FitPlan]) -> list[Pod]:
    """The first pod of each role."""
    return [factory.question.pod for plan in plans for factory in plan.factories if factory.question.pod is not None]


def _most(placer: Placer, plan: FitPlan, snapshot: Snapshot) -> tuple[int, Placement, bool]:
    """Places replica after replica until one does not fit whole: how many did, and whether it was ended before.

    The placement is without that replica, and tells why it is refused.
    """
    replica = 0
    while (replica + 1) * max(1, plan.workload.size) <= MOST_PODS:
        before = placer.saved() if plan.workload.size > 1 else None
        for unit in scheduling_order(plan.pods_of(replica, snapshot)):
            placer.place_unit(unit)
        if placer.refused:
            refused = tuple(placer.refused)
            if before is not None:
                placer.restore(before)
            return replica, structs.replace(placer.placement(), refused=refused), False
        replica += 1
    return replica, placer.placement(), True


def _result(
    plan: FitPlan,
    placement: Placement,
    snapshot: Snapshot,
    settings: Settings,
    options: FitOptions,
    budget: Budget,
    waiting: PodsWaiting | None,
    *,
    limited: bool,
) -> WorkloadFit:
    workload = plan.workload
    placed_pods = tuple(placed_pod for placed_pod in placement.placed_pods if placed_pod.new.workload == plan.number)
    refused = [unplaced for unplaced in placement.refused if unplaced.new.workload == plan.number]
    unclear: list[Words] = list(_not_modelled(plan, snapshot))
    if not unclear and not options.only_counts:
        unclear.extend(_unclear_before(plan, snapshot, settings))
    stop = _stop(plan, refused, placement, settings)
    if stop is not None and stop.diagnosis.verdict is Verdict.UNDETERMINED:
        unclear.extend(stop.diagnosis.unclear or ("the search did not end in time",))
    kinds = {
        new.likeness: new
        for new in (*(placed_pod.new for placed_pod in placed_pods), *(unplaced.new for unplaced in refused))
    }
    unclear.extend(unclear_groups(list(kinds.values()), refused, placement))
    if plan.listed < plan.replicas * workload.size and not refused and not options.most:
        unclear.append(say("only {number} pods are tried, and all of them fit", number=plan.listed))
    if placement.volumes_open:
        unclear.append("volumes are bound together with the pods; which are left for the next pod is not known")
    fitting = (
        plan.replicas if options.most else plan.tried - len({unplaced.new.ordinal.replica for unplaced in refused})
    )
    wanted = [unplaced.new for unplaced in refused] if not options.most else list(_following(plan, snapshot))
    looked_for = options.changes and not options.only_counts and not unclear
    cause = next(iter(stop.diagnosis.findings), None) if stop is not None else None
    changes = Changes(placement, refused if looked_for else (), wanted, budget, plan.own, cause, waiting)
    placed = plan.running + len(placed_pods)
    begin = starting(placed_pods, snapshot, placement.state)
    return WorkloadFit(
        workload,
        _verdict(plan, placed, refused, begin, most=options.most) if not unclear else Verdict.UNDETERMINED,
        plan.replicas,
        fitting,
        plan.replicas * workload.size,
        plan.running,
        placed_pods,
        stop,
        tuple(dict.fromkeys(unclear)),
        changes.found,
        dict(changes.tried),
        fewest=placed,
        greatest=placed,
        settled=placement.settled,
        as_many=options.most,
        at_least=limited,
        begin=begin,
    )


def _verdict(plan: FitPlan, placed: int, refused: Sequence[Unplaced], begin: Starting, *, most: bool) -> Verdict:
    if most and not plan.replicas:
        return Verdict.UNSCHEDULABLE
    if refused and not most:
        return Verdict.PARTLY if placed else Verdict.UNSCHEDULABLE
    if begin.lost:
        return Verdict.NOT_STARTING
    return Verdict.UNDETERMINED if begin.maybe else Verdict.SCHEDULABLE


def _following(plan: FitPlan, snapshot: Snapshot) -> Iterator[NewPod]:
    """The pods of replicas after those that fit, to be tried with changes."""
    size = max(1, plan.workload.size)
    for replica in range(plan.replicas, plan.replicas + max(1, FOLLOWING_TRIED // size)):
        yield from plan.pods_of(replica, snapshot)


def _not_modelled(plan: FitPlan, snapshot: Snapshot) -> Iterator[Words]:
    """What a controller does with the pods of a workload that is not known here."""
    workload = plan.workload
    if workload.of_each_node:
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


def _unclear_before(plan: FitPlan, snapshot: Snapshot, settings: Settings) -> Iterator[Words]:
    """Why nobody can say whether the first pod of a role fits at all."""
    quick = structs.replace(settings, with_ways=False)
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
    written = (workload.raw.get("metadata") or {}).get("annotations") or {}
    return frozenset(written).union(*(role.pod.metadata.annotations for role in workload.roles))


def _stop(plan: FitPlan, refused: Sequence[Unplaced], placement: Placement, settings: Settings) -> FirstUnplaced | None:
    """What stops the first pod that does not fit."""
    if not refused:
        return None
    first = next((unplaced for unplaced in refused if not unplaced.alone), refused[0])
    state = first.state
    factory = plan.factories[first.new.role]
    diagnosis = diagnose(factory.question_about(first.new, state.snapshot, settings), state.snapshot, settings)
    diagnosis = without_own(
        diagnosis, plan.own | {placed_pod.new.pod.key for placed_pod in placement.placed_pods}, state.snapshot
    )
    gang = gang_of(first.new.pod, state) if first.new.group[2] else None
    own = (unplaced for unplaced in refused if unplaced.new.group[2] and unplaced.new.group == first.new.group)
    differs = next((difference for unplaced in own if (difference := priority_differs(unplaced.new.pod, state))), None)
    others = len(refused) - 1 + plan.replicas * plan.workload.size - plan.listed
    stop = FirstUnplaced(first.new.pod.key, diagnosis, first.denied, differs=differs, others=others)
    if differs is not None or not isinstance(gang, Gang):
        return stop
    placed = sum(unplaced.alone for unplaced in refused)
    domain = gang.topology[0] if gang.topology and diagnosis.verdict is Verdict.SCHEDULABLE else ""
    return structs.replace(stop, minimum=gang.minimum, placed=placed, domain=domain)


def _with_ranges(
    workloads: Sequence[WorkloadFit], plans: Sequence[FitPlan], state: ClusterState, snapshot: Snapshot, budget: Budget
) -> list[WorkloadFit]:
    """The results with the numbers of pods that other choices lead to."""
    counts = [{workload.placed} for workload in workloads]
    end = budget.steps + CHOICES_STEPS
    pods = _pods(plans, snapshot)
    for number in range(1, CHOICES + 1):
        if budget.steps > end:
            break
        chance = Random(number)
        again = Placer(state, budget, chance=chance).place_all(_mixed(pods, plans, chance))
        for plan, seen in zip(plans, counts, strict=True):
            seen.add(plan.running + sum(placed_pod.new.workload == plan.number for placed_pod in again.placed_pods))
    return [
        structs.replace(workload, fewest=min(seen), greatest=max(seen))
        for workload, seen in zip(workloads, counts, strict=True)
    ]


def _mixed(pods: Sequence[NewPod], plans: Sequence[FitPlan], chance: Random) -> list[NewPod]:
    """The pods of each replica in another order: nobody knows which of them a controller creates first."""
    mixed: list[NewPod] = []
    for (number, _), own in groupby(pods, key=lambda new: (new.workload, new.ordinal.replica)):
        replica = list(own)
        if plans[number].workload.raw or replica[0].group[2]:
            chance.shuffle(replica)
        mixed.extend(replica)
    return mixed


def _other_nodes(placement: Placement, snapshot: Snapshot) -> Words:
    """Why the pods may get other nodes; empty where nothing is open."""
    if not placement.placed_pods or not placement.unknown:
        return ""
    return say("which nodes they get depends on {what}", what=depends_on(placement.unknown, snapshot))


def _notes(plans: Sequence[FitPlan]) -> Iterator[Words]:
    for plan in plans:
        if not plan.workload.counted and not plan.workload.of_each_node:
            yield say(
                "how many pods a {kind} makes is not known here: one of each template is placed",
                kind=plan.workload.kind,
            )
