"""Kueue holds the pod back: it waits for quota, is rejected, deactivated, or nobody has queued it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kubectl_dra.api.kueue import ClusterQueue, KueueCheckState, KueueWorkload
from kubectl_dra.api.pods import Pod
from kubectl_dra.cluster.snapshot import NOT_SERVED, Snapshot
from kubectl_dra.command import CommandEffect, CommandLine, deleting, kubectl
from kubectl_dra.data.speakers import Speaker
from kubectl_dra.explain.causes.registry import Finder, QuestionContext, When
from kubectl_dra.explain.diagnosis import CauseKind, Evidence, Family, Finding, Look, Remedy
from kubectl_dra.explain.phrase import Phrase, Subject, Words, named, say, subject
from kubectl_dra.neighbours.decider import Layer, decider, is_queued_by_kueue
from kubectl_dra.neighbours.kueue import (
    LOCAL_QUEUE,
    WORKLOAD,
    KueueStanding,
    ShutQueue,
    WorkloadState,
    cluster_queue_of,
    local_queue_of,
    queue_name,
    quota_use,
    shut_queue_of,
    standing,
    state_of,
    workload_of,
)

if TYPE_CHECKING:
    from kubectl_dra.data.messages import Understood

_RESOURCE = "workloads.kueue.x-k8s.io"
_SAYS = (Speaker.KUEUE,)
MAX_QUOTAS = 3
_ADVICE = {
    KueueStanding.ADMITTED: "Wait some seconds; if the gate stays, see whether Kueue's controller runs.",
    KueueStanding.CHECKS: (
        "Find out what the admission check waits for; its controller sets it to Ready, and then Kueue admits it."
    ),
}
_STOPPED = ("ClusterQueueStopped", "LocalQueueStopped")
"""Reasons of evictions that last until somebody starts the queue again."""
_THEN = "once admitted"
_FAMILY, _LOOK = Family.POD, Look.POD
WAITS = CauseKind(code="kueue-waits", family=_FAMILY, look=_LOOK, passes=True, queued=_THEN, state="waits for Kueue")
REJECTED = CauseKind(code="kueue-rejected", family=_FAMILY, look=_LOOK, passes=True, queued=_THEN)
DEACTIVATED = CauseKind(code="kueue-deactivated", family=_FAMILY, look=_LOOK, passes=True, queued=_THEN)
NOT_QUEUED = CauseKind(code="kueue-not-queued", family=_FAMILY, look=_LOOK, passes=True, queued=_THEN)


def _held_back(context: QuestionContext) -> Iterator[Finding]:
    pod, snapshot = context.question.pod, context.snapshot
    if pod is None or pod.node_name or pod.finished or decider(pod).layer is not Layer.KUEUE:
        return
    state, workload = state_of(pod, snapshot), workload_of(pod, snapshot)
    if workload is not None:
        yield of_workload(workload, state, pod, snapshot)
    elif state.standing is KueueStanding.NO_WORKLOAD:
        gate = Evidence(subject("Pod", pod), "spec.schedulingGates", decider(pod).value)
        yield without_workload(gate, pod, snapshot)


def of_workload(workload: KueueWorkload, state: WorkloadState, pod: Pod, snapshot: Snapshot) -> Finding:
    """What keeps a Workload, and so the pods that it stands for."""
    from kubectl_dra.data.messages import understood

    queue = cluster_queue_of(pod, snapshot)
    known = understood(state.said, _SAYS) if state.said else None
    facts = (*_checks(workload), *_conditions(workload, state.said), *_quotas(queue, state.said))
    names = {"workload": workload.metadata.name, "said": state.said or state.reason}
    if state.standing is KueueStanding.DEACTIVATED:
        text = "Kueue has deactivated Workload {workload}, so that it is never queued again{why}"
        why = say(": {said}", said=state.said) if state.said else ""
        return Finding(DEACTIVATED, say(text, **names, why=why), facts, _reactivating(workload, known))
    if state.standing is KueueStanding.REJECTED:
        text = "Kueue has rejected Workload {workload} and does not queue it again: {said}"
        return Finding(REJECTED, say(text, **names), facts, _anew(workload, known))
    if state.standing is KueueStanding.UNFIT:
        text = "Kueue cannot admit Workload {workload} however long it waits: {said}"
        return Finding(REJECTED, say(text, **names), facts, Remedy(_advice(known, REJECTED)))
    shut = shut_queue_of(pod, snapshot) if state.standing in (KueueStanding.WAITS, KueueStanding.EVICTED) else None
    # Who still counts quota for it has its queue.
    if shut is not None and (shut.said or not state.said):
        text = "Kueue cannot admit Workload {workload} however long it waits: {shut}"
        return Finding(REJECTED, say(text, **names, shut=_shut(shut)), facts, _opening(shut, pod))
    advice = _ADVICE.get(state.standing, "") or _advice(known, WAITS)
    if state.standing is KueueStanding.CHECKS and not _open_checks(workload):
        advice = "See what condition Admitted says; if it stays so, look into the log of Kueue's controller."
    return Finding(WAITS, _waiting(workload, state, pod, snapshot), facts, Remedy(advice))


def _waiting(workload: KueueWorkload, state: WorkloadState, pod: Pod, snapshot: Snapshot) -> Phrase:
    """What the Workload waits for, which comes by itself."""
    name, requeue = workload.metadata.name, workload.status.requeue_state
    if state.standing is KueueStanding.ADMITTED:
        text = "Workload {name} is admitted{when}, and Kueue has not taken the gate {gate} away yet"
        when = say(" since {since}", since=state.since) if state.since else ""
        return say(text, name=name, when=when, gate=decider(pod).value)
    if state.standing is KueueStanding.CHECKS:
        open_ = _open_checks(workload)
        since = say(" since {since}", since=state.since) if state.since else ""
        if not open_:
            text = "Workload {name} has its quota{since}, and is not admitted yet{said}"
            return say(text, name=name, since=since, said=say(": {said}", said=state.said) if state.said else "")
        text = "Workload {name} has its quota, and waits for admission {count:check|checks} {checks:some}{since}"
        return say(text, name=name, count=len(open_), checks=[check.name for check in open_], since=since)
    if state.standing is KueueStanding.EVICTED:
        again = say(", for the {count}. time", count=requeue.count) if requeue and requeue.count > 1 else ""
        then = say(" after {at}", at=requeue.requeue_at) if requeue and requeue.requeue_at else ""
        if state.reason in _STOPPED:
            then = say(" only when that queue goes on")
        text = "Kueue took the quota of Workload {name} back{again} ({reason}: {said}), and queues it again{then}"
        return say(text, name=name, again=again, reason=state.reason, said=state.said, then=then)
    text = "Workload {name} is in LocalQueue {queue}{since}, and has no quota yet{said}"
    since = say(" since {since}", since=state.since) if state.since else ""
    said = say(": {said}", said=state.said) if state.said else ""
    return say(text, name=name, queue=queue_name(pod, snapshot), since=since, said=said)


def _shut(queue: ShutQueue) -> Phrase:
    """What is the matter with a queue that nothing passes."""
    text = "{kind} {name} does not exist"
    if queue.stopped:
        text = "{kind} {name} is stopped (stopPolicy {said})"
    elif queue.said:
        text = "{kind} {name} is not active: {said}"
    return say(text, kind=queue.kind.partition(".")[0], name=queue.name, said=queue.said)


def _opening(queue: ShutQueue, pod: Pod) -> Remedy:
    """What lets Workloads pass again, and where to look."""
    local = queue.kind == LOCAL_QUEUE
    space = pod.metadata.namespace if local else ""
    text = "Have what it names created or repaired."
    if queue.stopped:
        text = "Ask who stopped it and why; it goes on when its spec.stopPolicy is None."
    elif not queue.said:
        text = "Have it created, or name another LocalQueue in label kueue.x-k8s.io/queue-name."
        show = kubectl("get", "localqueues.kueue.x-k8s.io", namespace=pod.metadata.namespace)
        return Remedy(text, commands=(show,))
    resource = "localqueues.kueue.x-k8s.io" if local else "clusterqueues.kueue.x-k8s.io"
    return Remedy(
        text, commands=(kubectl("get", kind=resource, name=queue.name, namespace=space, more=("-o", "yaml")),)
    )


def _advice(known: Understood | None, kind: CauseKind) -> Words:
    return known.do if known is not None else kind.fix


def _reactivating(workload: KueueWorkload, known: Understood | None) -> Remedy:
    patch = ("--type", "merge", "-p", '{"spec":{"active":true}}')
    return Remedy(
        _advice(known, DEACTIVATED),
        commands=(_on(workload, "patch", *patch, effect=CommandEffect.WRITES),),
    )


def _anew(workload: KueueWorkload, known: Understood | None) -> Remedy:
    text = "{repair} What is repaired does not reach this Workload: delete it afterwards, and Kueue makes another one."
    meta = workload.metadata
    command = deleting(_RESOURCE, meta.name, meta.namespace)
    if known is not None and "elete the Workload" in known.entry.do:
        return Remedy(known.do, commands=(command,))
    return Remedy(say(text, repair=_advice(known, REJECTED)), commands=(command,))


def _on(workload: KueueWorkload, verb: str, *more: str, effect: CommandEffect = CommandEffect.READS) -> CommandLine:
    meta = workload.metadata
    return kubectl(verb, kind=_RESOURCE, name=meta.name, namespace=meta.namespace, more=more, effect=effect)


def _conditions(workload: KueueWorkload, told: str) -> Iterator[Evidence]:
    """What the conditions say besides what the answer has ``told``."""
    about = Subject("Workload", named(WORKLOAD, workload))
    for kind in ("QuotaReserved", "Requeued", "Evicted"):
        condition = workload.condition(kind)
        if condition is not None:
            more = say(": {message}", message=condition.message) if condition.message != told else ""
            value = say("{status} ({reason}){more}", status=condition.status, reason=condition.reason, more=more)
            yield Evidence(about, kind, value)
    if not workload.spec.active:
        yield Evidence(about, "spec.active", "false")


def _quotas(queue: ClusterQueue | None, said: str) -> Iterator[Evidence]:
    """What the ClusterQueue has of the resources that Kueue speaks of, else of all."""
    if queue is None:
        return
    about = Subject("ClusterQueue", queue.metadata.name)
    all_ = list(quota_use(queue))
    meant = [use for use in all_ if use.resource in said.split()] or all_
    for use in meant[:MAX_QUOTAS]:
        field = say("{resource} of flavor {flavor}", resource=use.resource, flavor=use.flavor)
        yield Evidence(about, field, say("{held} of {quota} held", held=use.held, quota=use.quota))
    if not all_:
        yield Evidence(about, "spec.resourceGroups", "none")


def _open_checks(workload: KueueWorkload) -> list[KueueCheckState]:
    return [check for check in workload.status.admission_checks if check.state != "Ready"]


def _checks(workload: KueueWorkload) -> Iterator[Evidence]:
    about = Subject("Workload", named(WORKLOAD, workload))
    for check in _open_checks(workload):
        field = say("admission check {name}", name=check.name)
        yield Evidence(about, field, say("{state}: {said}", state=check.state, said=check.message))


def without_workload(sign: Evidence, pod: Pod, snapshot: Snapshot) -> Finding:
    """The pod is Kueue's, by a ``sign``, and has no Workload: no queue of that name, or no Kueue any more."""
    gap = snapshot.missing(WORKLOAD)
    if gap is not None and gap.reason == NOT_SERVED:
        text = "it has a gate of Kueue, and the cluster does not serve kueue.x-k8s.io: nobody takes the gate away"
        fix = "Install Kueue again, or create the pod anew without label kueue.x-k8s.io/queue-name."
        return Finding(NOT_QUEUED, say(text), (sign,), Remedy(fix))
    queue = queue_name(pod, snapshot)
    unread = snapshot.unread((LOCAL_QUEUE,), pod.metadata.namespace)
    if queue and not unread and local_queue_of(pod, snapshot) is None:
        text = "LocalQueue {queue} does not exist in namespace {space}, so Kueue queues the pod nowhere"
        return Finding(NOT_QUEUED, say(text, queue=queue, space=pod.metadata.namespace), (sign,))
    text = "Kueue has made no Workload for it"
    return Finding(NOT_QUEUED, say(text), (sign, Evidence("Workloads", "for this pod", "none")))


def kueue_notes(pod: Pod | None, snapshot: Snapshot) -> Iterator[Phrase]:
    """That Kueue has let the pod go, so that what keeps it now is the scheduler's."""
    if pod is None or pod.node_name or pod.finished or decider(pod).layer is Layer.KUEUE or not is_queued_by_kueue(pod):
        return
    workload = workload_of(pod, snapshot)
    if workload is None or (state := standing(workload)).standing is not KueueStanding.ADMITTED:
        return
    text = (
        "Kueue has admitted it (Workload {workload}{when}), and now the scheduler decides: Kueue counts devices and "
        "does not know which node has a free one{before}"
    )
    when = say(", since {since}", since=state.since) if state.since else ""
    times = workload.status.requeue_state.count if workload.status.requeue_state else 0
    before = say("; it took the quota back {times} times before, as pods were not ready in time", times=times)
    yield say(text, workload=workload.metadata.name, when=when, before=before if times else "")


FINDERS = (Finder(When.QUESTION, _held_back, 19),)
