"""Another scheduler's group of pods waits: for its queue, for members, or because that scheduler refuses the pod."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from kubectl_dra.api.gangs import BindRequest, VolcanoJob
from kubectl_dra.api.pods import Pod, PodCondition
from kubectl_dra.cluster.cluster import key_of
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.command import CommandLine, as_written, deleting, kubectl
from kubectl_dra.explain.analysis import Analysis
from kubectl_dra.explain.cause_kinds import CauseKind, Family, Look
from kubectl_dra.explain.causes.pod_group import placed_there
from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.diagnosis import Evidence, Finding, Remedy
from kubectl_dra.explain.phrase import ObjectName, Phrase, Subject, Words, by_key, named, pods_named, say, subject
from kubectl_dra.neighbours.decider import SCHEDULERS, Layer
from kubectl_dra.neighbours.gangs import (
    BIND_REQUEST,
    GroupState,
    bind_request_of,
    group_of,
    later_pods,
    members_of,
    part_of,
)
from kubectl_dra.neighbours.no_pod import VOLCANO_GROUP, VOLCANO_JOB, maker_of
from kubectl_dra.scheduling.gang_scheduling import Placed

if TYPE_CHECKING:
    from kubectl_dra.data.messages import Understood

_SPEAKING = (Layer.VOLCANO, Layer.KAI, Layer.YUNIKORN)
_QUEUE_KIND = {Layer.VOLCANO: "queues.scheduling.volcano.sh", Layer.KAI: "queues.scheduling.run.ai"}
_SKIPPED = "SchedulingSkipped"
_YUNIKORN_QUEUE = "yunikorn.apache.org/queue"
_TASK_GROUP = "yunikorn.apache.org/task-group-name"
_NEVER = "is never admitted by its queue"
_OPEN = "Create, open or enlarge the queue, or name another one; waiting does not help."
QUEUED = CauseKind(
    code="gang-waits-for-queue",
    family=Family.POD,
    look=Look.POD,
    passes=True,
    queued="once admitted",
    state="waits for its queue",
)
MEMBERS = CauseKind(code="gang-waits-for-members", family=Family.POD, look=Look.POD, passes=True)
REFUSED = CauseKind(code="other-scheduler-refuses", family=Family.POD, look=Look.POD, passes=True)


def _waits(analysis: Analysis) -> Iterator[Finding]:
    pod, snapshot = analysis.question.waiting_pod, analysis.snapshot
    job = maker_of(pod, snapshot) if pod is not None else None
    made = analysis.question.exists or isinstance(job, VolcanoJob)
    if pod is None or not made:
        return
    layer = SCHEDULERS.get(pod.scheduler_name)
    if layer not in _SPEAKING or analysis.scheduler.schedules(pod):
        return
    group, known = group_of(pod, snapshot), _known(pod, snapshot)
    request = bind_request_of(pod, snapshot)
    if request is not None and request.status.phase == "Failed":
        yield _not_bound(pod, layer, request)
    # What is generic says no more than that the group does not fit: the attempt says why.
    elif known is not None and not known[1].entry.normal and not known[1].entry.generic:
        yield _refused(pod, layer, *known)
    elif layer is Layer.YUNIKORN and (skipped := pod.condition("PodScheduled")) and skipped.reason == _SKIPPED:
        yield _over_quota(pod, layer, skipped)
    elif group is not None and group.held:
        yield _queued(pod, group, layer)
    elif isinstance(job, VolcanoJob):
        yield _without_pods(job, group, snapshot)
    elif group is not None:
        yield from _incomplete(analysis, pod, group)


def _not_bound(pod: Pod, layer: Layer, request: BindRequest) -> Finding:
    """KAI has placed it, and its binder fails."""
    text = "{scheduler} has chosen node {node} for it, and cannot bind it there{times}: {reason}"
    status, name = request.status, ObjectName(BIND_REQUEST, request.metadata.name, request.metadata.namespace)
    times = say(" ({count:attempt} failed)", count=status.failed_attempts) if status.failed_attempts else ""
    words = {"node": request.spec.selected_node, "times": times, "reason": status.reason or "no reason"}
    summary = say(text, scheduler=layer.value, **words)
    facts = (_of(pod), Evidence(Subject("BindRequest", name), "status.phase", status.phase))
    show = as_written("bindrequests.scheduling.run.ai", name.name, name.namespace)
    fix = (
        "Repair what the message names. If a write was forbidden on Kubernetes 1.36, use KAI 0.15.0 or newer. KAI then "
        "deletes the BindRequest and chooses again."
    )
    return Finding(REFUSED, summary, facts, Remedy(fix, commands=(show,)))


def _known(pod: Pod, snapshot: Snapshot) -> tuple[str, Understood] | None:
    """What the pod's scheduler said last of it or its group that is in the catalogue."""
    from kubectl_dra.data.messages import understood

    layer = SCHEDULERS[pod.scheduler_name]
    events = snapshot.events_about("Pod", *key_of(pod))
    said = [*(event.message for event in reversed(events)), pod.condition("PodScheduled").message]
    group = group_of(pod, snapshot)
    for text in (*said, *(group.said if group is not None else ())):
        meaning = understood(text, (layer.value,)) if text else None
        if meaning is not None and layer.value in meaning.entry.says:
            return text, meaning
    return None


def _refused(pod: Pod, layer: Layer, text: str, known: Understood) -> Finding:
    summary = say("{scheduler} does not schedule it: {text}", scheduler=layer.value, text=text)
    meant = Evidence(layer.value, "means", known.means)
    return Finding(REFUSED, summary, (_of(pod), meant), Remedy(known.do))


def _of(pod: Pod) -> Evidence:
    return Evidence(subject("Pod", pod), "spec.schedulerName", pod.scheduler_name)


def _over_quota(pod: Pod, layer: Layer, condition: PodCondition) -> Finding:
    """YuniKorn's queue has no quota left, which only the condition says: it has no objects."""
    text = "queue {queue} of {scheduler} has no quota left for it: {said}"
    labels, annotations = pod.metadata.labels, pod.metadata.annotations
    queue = labels.get(_YUNIKORN_QUEUE) or annotations.get(_YUNIKORN_QUEUE) or labels.get("queue") or "root.default"
    summary = say(text, queue=queue, scheduler=layer.value, said=condition.message)
    seen = Evidence(subject("Pod", pod), "condition PodScheduled", condition.reason)
    return Finding(QUEUED, summary, (seen,))


def _queued(pod: Pod, group: GroupState, layer: Layer) -> Finding:
    """The queue has not let the group in."""
    from kubectl_dra.data.messages import understood

    said: Words = group.said[0] if group.said else (group.reason or say("nothing is said about why"))
    text = "queue {queue} of {scheduler} has not admitted its PodGroup {group} yet: {said}"
    if group.never:
        text = "queue {queue} of {scheduler} does not admit its PodGroup {group}: {said}"
    summary = say(text, queue=group.queue, scheduler=layer.value, group=group.name, said=said)
    about = Subject("PodGroup", ObjectName(group.kind, group.name, pod.metadata.namespace))
    facts = []
    for use in group.uses:
        used = say("{used} of {most} used", used=use.used, most=use.most)
        facts.append(Evidence(Subject("Queue", group.queue), use.resource, used))
    if group.let_in and not group.never:
        others = say("{groups:some 3}", groups=list(group.let_in))
        facts.insert(0, Evidence(Subject("Queue", group.queue), "let in, and waiting for nodes", others))
    if group.phase:
        facts.append(Evidence(about, "status.phase", group.phase))
    if group.reason:
        facts.append(Evidence(about, "reason", group.reason))
    known = understood(group.said[0], (layer.value,)) if group.said else None
    advice: Words = _OPEN if group.never else known.do if known else QUEUED.fix
    show = as_written(_QUEUE_KIND[layer], group.queue)
    if group.let_in and not group.never:
        text = (
            "See why {groups:some 3} {count:finds|find} no nodes: {count:it was|they were} let in, and "
            "{count:counts|count} in the quota of queue {queue} meanwhile."
        )
        advice = say(text, groups=list(group.let_in), count=len(group.let_in), queue=group.queue)
        space = group.let_in[0].partition("/")[0]
        show = CommandLine(("kubectl", "dra", "explain", "-n", space))
    state = _NEVER if group.never else ""
    return Finding(QUEUED, summary, tuple(facts), Remedy(advice, commands=(show,)), state=state)


def _without_pods(job: VolcanoJob, group: GroupState | None, snapshot: Snapshot) -> Finding:
    """A Job of Volcano has no pods, and no queue keeps it."""
    state, meta = job.status.state, job.metadata
    about = Subject("Job", named(VOLCANO_JOB, job))
    phase = state.phase or say("without a phase")
    more = say(": {said}", said=state.message or state.reason) if state.message or state.reason else ""
    facts = [Evidence(about, "status.state", say("{phase}{more}", phase=phase, more=more))]
    show = kubectl("describe", kind="jobs.batch.volcano.sh", name=meta.name, namespace=meta.namespace)
    words = {"phase": phase, "more": more}
    text = "Volcano has made no PodGroup for the Job, which is {phase}{more}"
    fix = "See the Job's events, and whether Volcano's controller runs."
    if group is not None:
        text = "its PodGroup {group} is {phase}, and Volcano has made no pods of it"
        fix = "Wait a few seconds; if nothing changes, see its events, and whether Volcano's controller runs."
        words = {"group": group.name, "phase": group.phase}
        name = ObjectName(group.kind, group.name, meta.namespace)
        facts.append(Evidence(Subject("PodGroup", name), "status.phase", group.phase))
    elif snapshot.unread((VOLCANO_GROUP,), meta.namespace):
        text = "the Job has no pods; it is {phase}{more}, and its PodGroup could not be read"
    return Finding(MEMBERS, say(text, **words), tuple(facts), Remedy(fix, commands=(show,)))


def _incomplete(analysis: Analysis, pod: Pod, group: GroupState) -> Iterator[Finding]:
    """Too few members exist, or too few of them fit together; whether they fit is proved by the default scheduler's
    steps, for no scheduler gives a pod devices that are not there.
    """
    members = members_of(pod, analysis.snapshot)
    about = Subject("PodGroup", ObjectName(group.kind, group.name, pod.metadata.namespace))
    wanted = Evidence(about, "spec.minMember", group.minimum)
    counts = Counter(part_of(member) for member in members)
    short = next((part for part in group.parts if counts[part.name] < part.minimum), None)
    names = pods_named(member.key for member in members)
    seen = Evidence(about, "pods that have not ended", say("{pods:some}", pods=names))
    if short is not None:
        text = "its PodGroup {group} starts only when {part} has {minimum:pod}, and {count:,} {count:exists|exist}"
        summary = say(text, group=group.name, part=short.name, minimum=short.minimum, count=counts[short.name])
        yield Finding(MEMBERS, summary, (Evidence(about, short.field, short.name), seen))
        return
    if len(members) < group.minimum:
        text = "its PodGroup {group} starts {minimum:pod} together, and {count:,} {count:exists|exist}"
        summary = say(text, group=group.name, minimum=group.minimum, count=len(members))
        yield Finding(MEMBERS, summary, (wanted, seen))
        return
    placed = analysis.in_foreign_gang
    # Where no member fits, nor does this pod alone: its own causes say why.
    if not isinstance(placed, Placed) or placed.fits or not placed.count:
        return
    text = "only {count:,} of the {minimum:pod} that its PodGroup {group} starts together fit on the devices there are"
    summary = say(text, count=placed.count, minimum=group.minimum, group=group.name)
    facts = [*placed_there(about, placed), wanted]
    first = next(iter(placed.refused), "")
    if first:
        refused = placed.refused[first].message
        facts.insert(0, Evidence(Subject("Pod", by_key("Pod", first)), "fits nowhere then", refused))
    change = "Make room for {first}, or let the group start with fewer (minMember)." if first else MEMBERS.fix
    yield Finding(MEMBERS, summary, tuple(facts), Remedy(say(change, first=first)))


_WITHOUT_DRA = {
    Layer.VOLCANO: (
        "Scheduler volcano placed the pod without reserving the claim. It does so where DRA is off in it: turn on the "
        "scheduler's flag --feature-gates=DynamicResourceAllocation=true, and in its ConfigMap "
        "(volcano-scheduler.conf) predicate.DynamicResourceAllocationEnable: true; from Kubernetes 1.36 on take "
        "Volcano 1.15.0 or newer. Then delete the pod, so that it is placed anew."
    ),
    Layer.KAI: (
        "KAI placed the pod without reserving the claim. KAI supports DRA only if the API server served it when KAI "
        "started; from Kubernetes 1.36 on use KAI 0.15.0 or newer. Then delete the pod, so that it is placed anew."
    ),
}
"""Where DRA is turned on: docs/user-guide/how_to_enable_dra.md of Volcano, CHANGELOG.md of KAI."""


def placed_without_dra(pod: Pod) -> Remedy | None:
    """What to do where Volcano or KAI placed a pod and did nothing for its claims; None of another scheduler."""
    text = _WITHOUT_DRA.get(SCHEDULERS.get(pod.scheduler_name, Layer.NONE))
    again = deleting("pod", pod.metadata.name, pod.metadata.namespace)
    return Remedy(text, commands=(again,)) if text is not None else None


def gang_notes(analysis: Analysis) -> Iterator[Phrase]:
    """What another scheduler decides by rules of its own, and the pods that come later."""
    pod, snapshot = analysis.pod, analysis.snapshot
    if pod is None or pod.finished:
        return
    placed = analysis.in_foreign_gang
    if isinstance(placed, Placed) and placed.fits and placed.gang.minimum > 1:
        text = (
            "all {minimum:pod} that PodGroup {group} starts together fit, by devices and by the default scheduler's "
            "rules; how {scheduler} places groups is not modelled"
        )
        yield say(text, minimum=placed.gang.minimum, group=placed.gang.name, scheduler=pod.scheduler_name)
    if SCHEDULERS.get(pod.scheduler_name) is Layer.YUNIKORN and _TASK_GROUP in pod.metadata.annotations:
        text = (
            "YuniKorn's placeholders for task group {group} reserve cpu, memory and extended resources, but no "
            "devices of claims: a part of the group may start and wait for the rest"
        )
        yield say(text, group=pod.metadata.annotations[_TASK_GROUP])
    group = group_of(pod, snapshot)
    if group is not None and group.delay:
        text = "KAI ends no other pods for PodGroup {group} before it has waited {delay} (spec.preemptionDelay)"
        yield say(text, group=group.name, delay=group.delay)
    for later in dict.fromkeys(later_pods(pod, snapshot)):
        text = "{kind} {name} makes {what} only when {until}: they need devices too, and are not counted here"
        yield say(text, kind=later.kind, name=later.name, what=later.what, until=later.until)


FINDERS = (Finder(When.SCENE, _waits, 4),)
