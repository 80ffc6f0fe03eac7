"""From a manifest and a cluster to the answer: the pods, where they go, what stops the next one, what would help."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from random import Random
from typing import Final

from msgspec import structs

from kubectl_dra.allocation.budgets import (
    CHOICES,
    CHOICES_STEPS,
    FOLLOWING_TRIED,
    MOST_PODS,
    PLACE_STEPS,
    ROLES_TRIED,
    Budget,
    unlimited,
)
from kubectl_dra.api.pods import Pod
from kubectl_dra.cluster.cluster import Cluster, key_of
from kubectl_dra.cluster.snapshot import Progress, Snapshot
from kubectl_dra.errors import UsageError
from kubectl_dra.exit_codes import Verdict
from kubectl_dra.explain.assumptions import refused_notes
from kubectl_dra.explain.attributes_read import complete
from kubectl_dra.explain.causes.claim_creation import with_created_claims
from kubectl_dra.explain.causes.kueue import kueue_notes
from kubectl_dra.explain.not_starting import troubled_nodes
from kubectl_dra.explain.outcomes import depends_on
from kubectl_dra.explain.phrase import Words, say
from kubectl_dra.explain.pipeline import diagnose
from kubectl_dra.explain.settings import Settings
from kubectl_dra.fit.changes import Again, Changes, without_own
from kubectl_dra.fit.place import Placement, Placer, Unplaced, scheduling_order
from kubectl_dra.fit.plan import FitPlan, plans_of
from kubectl_dra.fit.pod_factory import NewPod
from kubectl_dra.fit.rests_on import PodsWaiting, counted, others_waiting, resting_on, with_range
from kubectl_dra.fit.result import FirstUnplaced, FitAnswer, FitOptions, FormerPods, WorkloadFit
from kubectl_dra.fit.rollout import Rolling, roll
from kubectl_dra.fit.starting import Starting, starting
from kubectl_dra.fit.unclear import (
    never_all,
    nodes_without,
    not_modelled,
    own_pods_unseen,
    unclear_before,
    unclear_groups,
)
from kubectl_dra.fit.workload import WorkloadPods, why_none, with_controllers
from kubectl_dra.scheduling.framework import ClusterState
from kubectl_dra.scheduling.gang_scheduling import Gang, gang_of, priority_differs
from kubectl_dra.scheduling.scheduler import Scheduler
from kubectl_dra.text import amount


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
    before = with_created_claims(with_controllers(snapshot, workloads))
    plans, snapshot = plans_of(workloads, before, settings, options)
    every = plans[0].own if plans else frozenset()
    refused = {change for plan in plans for change in plan.refused}
    stays = [change for change in snapshot.refused if change not in refused]
    for plan in plans:
        for factory in plan.factories:
            snapshot = complete(factory.question, snapshot, settings)
    state = _state_for(snapshot, plans, settings.scheduler)
    priority = min((pod.priority for pod in _first_pods(plans)), default=0)
    wanted = options.changes or options.others_asked
    waiting = PodsWaiting.beside(every, priority, snapshot, settings) if wanted else None
    count_others = options.others_asked or options.others_first or not options.only_counts
    first = waiting.placed_in(state) if waiting is not None and count_others else ((), state)
    if options.others_first:
        state = _state_for(first[1].snapshot, plans, settings.scheduler)
    budget = unlimited(PLACE_STEPS)
    placer = Placer(state, budget, progress, avoid=troubled_nodes(snapshot))
    limited = False
    if options.most:
        replicas, placement, limited = _most(placer, plans[0], snapshot)
        plans = [structs.replace(plans[0], replicas=replicas)]
    else:
        placement = _placed(placer, plans, snapshot)

    def replay(start: ClusterState, instead: Sequence[FitPlan] = plans) -> Placement:
        return _placed(Placer(start, budget, avoid=troubled_nodes(snapshot)), instead, snapshot)

    # What one workload gains by a change another one may take.
    steps = any(plan.rollout is not None or plan.surplus.count for plan in plans)
    again = Again(state, replay) if len(plans) > 1 or steps else None
    results = []
    for plan in plans:
        progress(f"looking at what stops {plan.workload.title}")
        result = _result(plan, placement, snapshot, settings, options, budget, waiting, again, limited=limited)
        results.append(
            structs.replace(result, replaced=_replaced(plan, plans, placement, lambda other: replay(state, other)))
        )
    unread: list[Words] = []
    if any(plan.unread for plan in plans):
        progress("placing pods as if all that run had to be replaced")
        instead, after = plans_of(workloads, before, settings, options, replaced=True)
        other = _placed(Placer(_state_for(after, instead, settings.scheduler), budget), instead, after)
        for number, (plan, changed) in enumerate(zip(plans, instead, strict=True)):
            if plan.unread and not results[number].unclear:
                results[number], notes = _if_replaced(results[number], plan, changed, other, most=options.most)
                unread += notes
    if not options.most:
        chances = _by_chance(plans, placement, state, snapshot, budget)
        others: list[int] = []
        if first[0] and not (options.others_first or options.others_apart):
            progress("placing pods after those that wait")
            others = counted(plans, replay(_state_for(first[1].snapshot, plans, settings.scheduler)))
        results = [
            with_range(result, plan, placement, chances[number], others[number] if others else None, first[0])
            for number, (result, plan) in enumerate(zip(results, plans, strict=True))
        ]
    answer = FitAnswer(
        tuple(results),
        settings.scheduler.version,
        settings.release_source,
        tuple(sorted(settings.scheduler.gates)),
        waiting=others_waiting(every, snapshot, settings),
        first=tuple(pod.key for pod in first[0]),
        notes=(
            *refused_notes(stays),
            *unread,
            *_notes(plans, snapshot),
        ),
        other_nodes=_other_nodes(placement, snapshot),
    )
    return resting_on(answer, settings.new_nodes, snapshot) if settings.new_nodes else answer


_UNREAD: Final = (
    "whether the manifest changes the template of the pods of {workload} that run is not known: {what:some 2} was not "
    "read; if it does, they are replaced, and {fit}"
)


def _if_replaced(
    result: WorkloadFit, plan: FitPlan, changed: FitPlan, other: Placement, *, most: bool
) -> tuple[WorkloadFit, list[Words]]:
    """The result, undetermined where it depends on whether pods that run have to be replaced; else with a note of it.

    ``changed`` and ``other`` are what is to be placed if they are, and what comes of it.
    """
    placed = changed.running + sum(placed_pod.new.workload == plan.number for placed_pod in other.placed_pods)
    all_fit = all(unplaced.new.workload != plan.number for unplaced in other.refused)
    fit: Words = "as many fit" if placed == result.placed else f"{placed:,} of {amount(result.pods, 'pod')} fit"
    if changed.unclear:
        fit = "how is not modelled"
    why = say(_UNREAD, workload=plan.workload.title, what=list(plan.unread), fit=fit)
    if most or (all_fit and not changed.unclear) == (result.verdict is Verdict.SCHEDULABLE):
        return result, [why]
    return structs.replace(result, verdict=Verdict.UNDETERMINED, unclear=(why,), more=()), []


def _placed(
    placer: Placer, plans: Sequence[FitPlan], snapshot: Snapshot, chance: Random | None = None, last: int | None = None
) -> Placement:
    """What comes of all pods; ``chance`` mixes those that may come in any order, those of role ``last`` last."""
    workloads = []
    for plan in plans:
        pods = [new for replica in range(plan.tried) for new in plan.pods_of(replica, snapshot)]
        rollout = plan.rollout
        if chance is not None:
            pods = _mixed(pods, plan, chance, last)
            rollout = rollout.mixed(chance) if rollout is not None else None
        workloads.append(Rolling(plan.number, pods, rollout, plan.running, plan.surplus, chance))
    return roll(placer, workloads)


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
    again: Again | None,
    *,
    limited: bool,
) -> WorkloadFit:
    workload = plan.workload
    placed_pods = tuple(placed_pod for placed_pod in placement.placed_pods if placed_pod.new.workload == plan.number)
    refused = [unplaced for unplaced in placement.refused if unplaced.new.workload == plan.number]
    unclear: list[Words] = list(not_modelled(plan, snapshot))
    if not unclear and not options.only_counts:
        unclear.extend(unclear_before(plan, snapshot, settings))
    stop = _stop(plan, refused, placement, settings)
    if stop is not None and stop.diagnosis.verdict is Verdict.UNDETERMINED:
        unclear.extend(stop.diagnosis.unclear or ("the search did not end in time",))
    unseen = [*own_pods_unseen(plan, snapshot)] if refused else []
    unclear.extend(unseen)
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
    changes = Changes(placement, refused if looked_for else (), wanted, budget, plan.own, cause, waiting, again)
    placed = plan.running + len(placed_pods)
    begin = starting(placed_pods, snapshot, placement.state)
    settled = placement.settled and not (options.most or unseen)
    certain = settled and stop is not None and never_all(unclear, stop.diagnosis)
    unclear_verdict = Verdict.UNSCHEDULABLE if certain else Verdict.UNDETERMINED
    return WorkloadFit(
        workload,
        _verdict(plan, placed, refused, begin, most=options.most) if not unclear else unclear_verdict,
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
        former=plan.former,
        refused=bool(plan.refused),
        surplus=plan.surplus,
        progress=plan.progress,
        without=tuple(nodes_without(plan, refused, settings)) if not options.only_counts else (),
        no_node=why_none(workload, snapshot) if workload.of_each_node and not plan.replicas else "",
    )


def _replaced(
    plan: FitPlan, plans: Sequence[FitPlan], placement: Placement, replay: Callable[[Sequence[FitPlan]], Placement]
) -> FormerPods | None:
    """What comes of the pods of a former template."""
    rollout = plan.rollout
    if rollout is None:
        return None
    there = placement.state.snapshot.pods
    left = sum(there.get(key_of(pod)) == pod for pod in rollout.old)
    former = FormerPods(len(rollout.old), left)
    # What is tried is what a Deployment can say; its fix may be another one.
    if not left or rollout.in_order or not rollout.replicas:
        return former

    def fit_with(number: int) -> bool:
        surge = 0 if rollout.by_node else rollout.surge
        eased = structs.replace(plan, rollout=structs.replace(rollout, surge=surge, unavailable=number))
        after = replay([eased if other is plan else other for other in plans])
        return all(unplaced.new.workload != plan.number for unplaced in after.refused)

    # If fewer pods have to be there, no fewer new ones get a node.
    enough, too_few = rollout.replicas, rollout.unavailable
    if enough <= too_few or not fit_with(enough):
        return former
    enough = nearest_that_fits(enough, too_few, fit_with)
    if rollout.by_node:
        return structs.replace(former, unavailable=enough, first=enough)
    first = len(rollout.old) + plan.running - (rollout.replicas - enough)
    return structs.replace(former, unavailable=enough, first=min(first, len(rollout.old)))


def nearest_that_fits(fitting: int, other: int, fits: Callable[[int], bool]) -> int:
    """The number with which all fit that comes next to another one with which they do not."""
    while abs(other - fitting) > 1:
        number = (fitting + other) // 2
        if fits(number):
            fitting = number
        else:
            other = number
    return fitting


def _verdict(plan: FitPlan, placed: int, refused: Sequence[Unplaced], begin: Starting, *, most: bool) -> Verdict:
    if (most or plan.workload.of_each_node) and not plan.replicas:
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


def _stop(plan: FitPlan, refused: Sequence[Unplaced], placement: Placement, settings: Settings) -> FirstUnplaced | None:
    """What stops the first pod that does not fit."""
    if not refused:
        return None
    first = next((unplaced for unplaced in refused if not (unplaced.alone or unplaced.later)), refused[0])
    state = first.state
    factory = plan.factories[first.new.role]
    question = factory.question_about(first.new, state.snapshot, settings)
    diagnosis = diagnose(question, state.snapshot, settings)
    if settings.added:
        from kubectl_dra.explain.on_new_nodes import with_new_nodes

        diagnosis = with_new_nodes(diagnosis, question, state.snapshot, settings)
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


def _by_chance(
    plans: Sequence[FitPlan], placement: Placement, state: ClusterState, snapshot: Snapshot, budget: Budget
) -> list[set[int]]:
    """The numbers of pods of each workload that other choices lead to."""
    counts = [{number} for number in counted(plans, placement)]
    # By chance alone what takes most comes last only now and then.
    roles = max((len(plan.factories) for plan in plans), default=0)
    last = range(roles) if 1 < roles <= ROLES_TRIED else ()
    end = budget.steps + CHOICES_STEPS
    for number, role in enumerate((*last, *(None,) * CHOICES) if not placement.settled else (), 1):
        if budget.steps > end:
            break
        chance = Random(number)
        again = _placed(Placer(state, budget, chance=chance), plans, snapshot, chance, role)
        for seen, placed in zip(counts, counted(plans, again), strict=True):
            seen.add(placed)
    return counts


def _mixed(pods: Sequence[NewPod], plan: FitPlan, chance: Random, last: int | None) -> list[NewPod]:
    """The pods of each replica in another order: which of them a controller creates first is unknown."""
    mixed: list[NewPod] = []
    for _, own in groupby(pods, key=lambda new: new.ordinal.replica):
        replica = list(own)
        if plan.workload.raw or replica[0].group[2]:
            chance.shuffle(replica)
            replica.sort(key=lambda new: new.role == last)
        mixed.extend(replica)
    return mixed


def _other_nodes(placement: Placement, snapshot: Snapshot) -> Words:
    """Why the pods may get other nodes; empty where nothing is open."""
    if not placement.placed_pods or not placement.unknown:
        return ""
    return say("which nodes they get depends on {what}", what=depends_on(placement.unknown, snapshot))


def _notes(plans: Sequence[FitPlan], snapshot: Snapshot) -> Iterator[Words]:
    layers = (kueue_notes(factory.question.pod, snapshot) for plan in plans for factory in plan.factories)
    yield from dict.fromkeys(note for notes in layers for note in notes)
    for plan in plans:
        if plan.surplus.count and len(plans) > 1:
            text = "the pods of the others are placed once those that are too many of {workload} have ended"
            yield say(text, workload=plan.workload.title)
        if not plan.workload.counted and not plan.workload.of_each_node:
            yield say(
                "how many pods a {kind} makes is not known here: one of each template is placed",
                kind=plan.workload.kind,
            )
