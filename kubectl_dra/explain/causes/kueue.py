"""Kueue holds the pod back: it waits for quota, is rejected, deactivated, or was never queued."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from kubectl_dra.api.kueue import ClusterQueue, KueueWorkload
from kubectl_dra.api.pods import Pod
from kubectl_dra.cluster.snapshot import NOT_SERVED, Snapshot
from kubectl_dra.command import CommandEffect, as_written, deleting, kubectl
from kubectl_dra.data.messages import Speaker, understood
from kubectl_dra.explain.cause_kinds import CauseKind, Family, Look
from kubectl_dra.explain.causes.kueue_evidence import (
    checks_open,
    classes_mapped,
    conditions,
    has_claims,
    of_kueue,
    open_checks,
    quotas_of,
    shapes_taken,
    unread,
)
from kubectl_dra.explain.causes.registry import Finder, QuestionContext, When
from kubectl_dra.explain.causes.scale_up import of_request, seen_of_request
from kubectl_dra.explain.clock import Clock
from kubectl_dra.explain.diagnosis import Evidence, Finding, Remedy
from kubectl_dra.explain.phrase import Phrase, Words, say, subject
from kubectl_dra.neighbours.autoscalers import request_of, state_of_request
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
    shut_queue_of,
    standing,
    state_of,
    workload_of,
)
from kubectl_dra.neighbours.kueue_controller import KueueController, claim_gate, controller, refusals, taken_shapes
from kubectl_dra.neighbours.kueue_quota import FlavorQuota, MappedClass, flavor_quotas, mapped_classes, short

if TYPE_CHECKING:
    from kubectl_dra.data.messages import Understood

_RESOURCE = "workloads.kueue.x-k8s.io"
_SAYS = (Speaker.KUEUE,)
_RETRIED = "Internal error: "
"""Prefix of errors that Kueue retries, such as that an object does not exist (``hasInternalError``)."""
_ADVICE = {
    KueueStanding.ADMITTED: (
        "Wait a few seconds; if nothing changes, see whether Kueue's controller runs and, in its log, whether the API "
        "server or an admission webhook refuses its update of the pod."
    ),
    KueueStanding.EVICTING: (
        "Wait a few seconds until its pods have ended. If they do not end, see what keeps them. Once the Workload is "
        "deleted, Kueue makes another one for the job, and frees the quota."
    ),
    KueueStanding.CHECKS: (
        "Find out what the admission check waits for; its controller sets it to Ready, and then Kueue admits it."
    ),
}
_PATIENCE = timedelta(minutes=10)
"""So long pods may take to end."""
_STOPPED = ("ClusterQueueStopped", "LocalQueueStopped")
"""Reasons of evictions that last until the queue is started again."""
_THEN = "once admitted"
_FAMILY, _LOOK = Family.POD, Look.POD
WAITS = CauseKind(code="kueue-waits", family=_FAMILY, look=_LOOK, passes=True, queued=_THEN, state="waits for Kueue")
REJECTED = CauseKind(code="kueue-rejected", family=_FAMILY, look=_LOOK, passes=True, queued=_THEN)
DEACTIVATED = CauseKind(code="kueue-deactivated", family=_FAMILY, look=_LOOK, passes=True, queued=_THEN)
NOT_QUEUED = CauseKind(code="kueue-not-queued", family=_FAMILY, look=_LOOK, passes=True, queued=_THEN)


def _held_back(context: QuestionContext) -> Iterator[Finding]:
    pod, snapshot = context.question.waiting_pod, context.snapshot
    if pod is None:
        return
    if not context.question.exists and not pod.metadata.uid and is_queued_by_kueue(pod):
        yield from _refused_ahead(pod, snapshot)
        return
    if decider(pod).layer is not Layer.KUEUE:
        return
    state, workload = state_of(pod, snapshot), workload_of(pod, snapshot)
    if workload is not None:
        yield of_workload(workload, state, pod, snapshot)
    elif state.standing is KueueStanding.NO_WORKLOAD:
        gate = Evidence(subject("Pod", pod), "spec.schedulingGates", decider(pod).value)
        yield without_workload(gate, pod, snapshot)


def _refused_ahead(pod: Pod, snapshot: Snapshot) -> Iterator[Finding]:
    """Finding that Kueue would refuse a pod that does not exist yet."""
    shapes, running = taken_shapes((pod.spec,), pod.metadata.namespace, snapshot), controller(snapshot)
    said = next(iter(refusals(shapes)), "")
    if running is not None and said:
        text = "Kueue {release}, which queues it, will refuse it: {said}"
        yield Finding(
            REJECTED, say(text, release=running.release, said=said), tuple(shapes_taken(shapes)), _mending(said)
        )


def _mending(said: str) -> Remedy:
    """What to do before Kueue refuses something."""
    return Remedy(_advice(understood(said, _SAYS), REJECTED))


def of_workload(workload: KueueWorkload, state: WorkloadState, pod: Pod, snapshot: Snapshot) -> Finding:
    """What keeps a Workload, and so the pods that it stands for."""

    queue = cluster_queue_of(pod, snapshot)
    known = understood(state.said, _SAYS) if state.said else None
    held_back = state.standing not in (KueueStanding.CHECKS, KueueStanding.ADMITTED, KueueStanding.EVICTING)
    quotas = flavor_quotas(workload, queue, snapshot) if queue is not None and held_back else ()
    classes = mapped_classes(workload, queue, snapshot) if held_back else ()
    odd = [mapped for mapped in classes if not mapped.resource or mapped.covered is False]
    rejected = state.standing in (KueueStanding.REJECTED, KueueStanding.UNFIT)
    specs = tuple(pods.template.spec for pods in workload.spec.pod_sets)
    shapes = taken_shapes(specs, workload.metadata.namespace, snapshot) if held_back else ()
    refused = [refusal for refusal in refusals(shapes) if refusal not in state.said]
    facts = (
        *checks_open(workload),
        *(seen_of_request(pod, snapshot) if open_checks(workload) else ()),
        *conditions(workload, state.said),
        *classes_mapped(classes if rejected else odd, queue, snapshot),
        *shapes_taken(shapes),
        *quotas_of(quotas, queue, state.said),
        *(of_kueue(snapshot) if held_back and has_claims(workload) else ()),
        *(unread(workload, queue, snapshot) if held_back else ()),
    )
    meta = workload.metadata
    names = {"workload": meta.name, "said": state.said or state.reason}
    if state.standing is KueueStanding.DEACTIVATED:
        text = "Kueue has deactivated Workload {workload}, so that it is never queued again{why}"
        why = say(": {said}", said=state.said) if state.said else ""
        patch = ("--type", "merge", "-p", '{"spec":{"active":true}}')
        again = kubectl(
            "patch", kind=_RESOURCE, name=meta.name, namespace=meta.namespace, more=patch, effect=CommandEffect.WRITES
        )
        remedy = Remedy(_advice(known, DEACTIVATED), commands=(again,))
        return Finding(DEACTIVATED, say(text, **names, why=why), facts, remedy)
    if state.standing is KueueStanding.REJECTED and _RETRIED in state.said:
        text = "Kueue cannot count what Workload {workload} asks for, and tries again from time to time: {said}"
        return Finding(REJECTED, say(text, **names), facts, Remedy(_advice(known, REJECTED)))
    if state.standing is KueueStanding.REJECTED:
        text = "Kueue has rejected Workload {workload} and does not queue it again: {said}"
        return Finding(REJECTED, say(text, **names), facts, _anew(workload, known, classes, refused, snapshot))
    if state.standing is KueueStanding.WAITS and refused and not state.said:
        text = "Kueue cannot admit Workload {workload}, and will report it: {refused}"
        return Finding(REJECTED, say(text, **names, refused=refused[0]), facts, _mending(refused[0]))
    if state.standing is KueueStanding.UNFIT:
        text = "Kueue cannot admit Workload {workload} however long it waits: {said}"
        return Finding(REJECTED, say(text, **names), facts, Remedy(_advice(known, REJECTED)))
    shut = shut_queue_of(pod, snapshot) if state.standing in (KueueStanding.WAITS, KueueStanding.EVICTED) else None
    # Who still counts quota for it has its queue.
    if shut is not None and (shut.said or not state.said):
        text = "Kueue cannot admit Workload {workload} however long it waits: {shut}"
        return Finding(REJECTED, say(text, **names, shut=_shut(shut)), facts, _opening(shut, pod))
    lacking = _lacking(quotas, queue)
    partial = any(pods.min_count is not None for pods in workload.spec.pod_sets)
    never = lacking is not None and all(quota.never for quota in short(quotas))
    if state.standing is KueueStanding.WAITS and lacking and never and not state.said and not partial:
        text = "Kueue cannot admit Workload {workload} however long it waits: {lacking}"
        less = "Ask for less, or raise the ClusterQueue's quota; waiting does not help."
        return Finding(REJECTED, say(text, **names, lacking=lacking), facts, Remedy(less))
    advice = _ADVICE.get(state.standing, "") or _advice(known, WAITS)
    if state.standing is KueueStanding.EVICTING and Clock(snapshot).age(state.since) > _PATIENCE:
        advice = (
            "Its pods should have ended long ago: see what keeps them. Once the Workload is deleted, Kueue makes "
            "another one for the job, and frees the quota."
        )
    if state.standing is KueueStanding.EVICTED and open_checks(workload):
        advice = "See why the admission check failed; what it asked for did not come."
    if state.standing is KueueStanding.CHECKS and not open_checks(workload):
        advice = "See what condition Admitted says; if nothing changes, look into the log of Kueue's controller."
    waits = _waiting(workload, state, pod, snapshot)
    if state.standing is KueueStanding.WAITS and lacking:
        waits = say("{waits}; {lacking}" if state.said else "{waits}: {lacking}", waits=waits, lacking=lacking)
    anew = (deleting(_RESOURCE, meta.name, meta.namespace),) if state.standing is KueueStanding.EVICTING else ()
    return Finding(WAITS, waits, facts, Remedy(advice, commands=anew))


def _waiting(workload: KueueWorkload, state: WorkloadState, pod: Pod, snapshot: Snapshot) -> Phrase:
    """What the Workload waits for, which comes by itself."""
    name, requeue = workload.metadata.name, workload.status.requeue_state
    since = say(" since {since}", since=state.since) if state.since else ""
    said = say(": {said}", said=state.said) if state.said else ""
    if state.standing is KueueStanding.ADMITTED:
        text = "Workload {name} is admitted{when}, and Kueue has not removed the gate {gate} yet"
        if not pod.scheduling_gates:
            text = "Workload {name} is admitted{when}, and Kueue has not let its job go on yet"
        return say(text, name=name, when=since, gate=decider(pod).value)
    if state.standing is KueueStanding.EVICTING:
        text = "Kueue evicts Workload {name}{when} ({reason}: {said}), and its quota is not free yet"
        return say(text, name=name, when=since, reason=state.reason, said=state.said)
    if state.standing is KueueStanding.CHECKS:
        open_ = open_checks(workload)
        if not open_:
            text = "Workload {name} has its quota{since}, and is not admitted yet{said}"
            return say(text, name=name, since=since, said=said)
        text = "Workload {name} has its quota, and waits for admission {count:check|checks} {checks:some}{since}{which}"
        request = request_of(pod, snapshot)
        which = say(": {state}", state=of_request(state_of_request(request))) if request is not None else ""
        checks = [check.name for check in open_]
        return say(text, name=name, count=len(open_), checks=checks, since=since, which=which)
    if state.standing is KueueStanding.EVICTED:
        again = say(", for the {count}. time", count=requeue.count) if requeue and requeue.count > 1 else ""
        then = say(" at a time that it does not say")
        if requeue is not None and requeue.requeue_at:
            then = say(" after {at}", at=requeue.requeue_at)
        if state.reason in _STOPPED:
            then = say(" only when that queue goes on")
        text = "Kueue took the quota of Workload {name} back{again} ({reason}: {said}), and queues it again{then}"
        return say(text, name=name, again=again, reason=state.reason, said=state.said, then=then)
    text = "Workload {name} is in LocalQueue {queue}{since}, and has no quota yet{said}"
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
    text = "Create or repair the objects that it names."
    if queue.stopped:
        text = "Ask who stopped it and why; it goes on when its spec.stopPolicy is None."
    elif not queue.said:
        text = "Create it, or name another LocalQueue in label kueue.x-k8s.io/queue-name."
        show = kubectl("get", "localqueues.kueue.x-k8s.io", namespace=pod.metadata.namespace)
        return Remedy(text, commands=(show,))
    resource = "localqueues.kueue.x-k8s.io" if local else "clusterqueues.kueue.x-k8s.io"
    show = as_written(resource, queue.name, pod.metadata.namespace if local else "")
    return Remedy(text, commands=(show,))


def _advice(known: Understood | None, kind: CauseKind) -> Words:
    return known.do if known is not None else kind.fix


def _anew(
    workload: KueueWorkload,
    known: Understood | None,
    classes: Sequence[MappedClass],
    refused: Sequence[str],
    snapshot: Snapshot,
) -> Remedy:
    text = "{repair} What is repaired does not reach this Workload: delete it afterwards, and Kueue makes another one."
    if refused:
        text = (
            "{repair} Also repair what it would refuse next: {refused}. Then delete the Workload, and Kueue makes "
            "another one."
        )
    meta = workload.metadata
    command = deleting(_RESOURCE, meta.name, meta.namespace)
    gate = claim_gate(snapshot)
    mapped = (
        known is not None
        and known.entry.maps
        and all(mapped_class.resource and mapped_class.covered for mapped_class in classes)
    )
    turned_on = known is not None and gate is not None and gate.on and known.gate == gate.name
    if (mapped and classes) or turned_on:
        text = (
            "Its configuration now {does}. Kueue reads that only when it starts: restart Kueue if it started "
            "earlier, then delete the Workload, and Kueue makes another one."
        )
        does = say("turns {gate} on", gate=gate.name) if turned_on and gate is not None else say("maps the class")
        return Remedy(say(text, does=does), commands=(command,))
    if known is not None and "elete the Workload" in known.entry.do and not refused:
        return Remedy(known.do, commands=(command,))
    next_one = refused[0] if refused else ""
    return Remedy(say(text, repair=_advice(known, REJECTED), refused=next_one), commands=(command,))


def _lacking(quotas: Sequence[FlavorQuota], queue: ClusterQueue | None) -> Phrase | None:
    """The first resource of which a ClusterQueue has too little; None where nothing is known to be short."""
    lacking = short(quotas)
    if not lacking or queue is None:
        return None
    first, name = lacking[0], queue.metadata.name
    flavors = [quota.flavor for quota in lacking if quota.resource == first.resource]
    text = "flavor {first.flavor} of ClusterQueue {queue} has {first.free} left of {first.nominal}"
    if len(flavors) > 1:
        text = "no flavor of ClusterQueue {queue} has that much left ({flavors:all})"
    elif first.never:
        text = "flavor {first.flavor} of ClusterQueue {queue} has {first.most} at most"
    elif queue.cohort:
        text = "ClusterQueue {queue} with its cohort has {first.free} of {first.flavor} left"
    wanted = "it asks for {first.wanted} {first.resource}, and "
    return say(wanted + text, first=first, queue=name, flavors=flavors)


def without_workload(sign: Evidence, pod: Pod, snapshot: Snapshot) -> Finding:
    """The pod is Kueue's, by a ``sign``, and has no Workload: no queue of that name, or no Kueue any more."""
    gap = snapshot.missing(WORKLOAD)
    if gap is not None and gap.reason == NOT_SERVED:
        text = "it has a gate of Kueue, and the cluster does not serve kueue.x-k8s.io: nothing removes the gate"
        fix = "Install Kueue again, or create the pod anew without label kueue.x-k8s.io/queue-name."
        return Finding(NOT_QUEUED, say(text), (sign,), Remedy(fix))
    queue = queue_name(pod, snapshot)
    unread = snapshot.unread((LOCAL_QUEUE,), pod.metadata.namespace)
    if queue and not unread and local_queue_of(pod, snapshot) is None:
        text = "LocalQueue {queue} does not exist in namespace {space}, so Kueue cannot queue the pod"
        return Finding(NOT_QUEUED, say(text, queue=queue, space=pod.metadata.namespace), (sign,))
    text = "Kueue has created no Workload for it"
    return Finding(NOT_QUEUED, say(text), (sign, Evidence("Workloads", "for this pod", "none")))


def kueue_notes(pod: Pod | None, snapshot: Snapshot) -> Iterator[Phrase]:
    """Note that Kueue has let the pod go, so that what keeps it now is the scheduler's."""
    if pod is None or pod.node_name or pod.finished or decider(pod).layer is Layer.KUEUE or not is_queued_by_kueue(pod):
        return
    if not pod.metadata.uid and (running := controller(snapshot)) is not None:
        yield from _ahead(pod, running, snapshot)
        return
    workload = workload_of(pod, snapshot)
    if workload is None or (state := standing(workload)).standing is not KueueStanding.ADMITTED:
        return
    gate = claim_gate(snapshot) if has_claims(workload) else None
    text = (
        "Kueue has admitted it (Workload {workload}{when}), and now the scheduler decides: Kueue counts devices and "
        "does not know which node has a free one{before}"
    )
    if pod.scheduling_gates:
        text = "Kueue has admitted it (Workload {workload}{when}), and does not remove gates of others{before}"
    elif gate is not None and not gate.on:
        text = (
            "Kueue has admitted it (Workload {workload}{when}) without counting its claims, as feature gate {gate} is "
            "off{where}, and now the scheduler decides{before}"
        )
    when = say(", since {since}", since=state.since) if state.since else ""
    times = workload.status.requeue_state.count if workload.status.requeue_state else 0
    before = say("; it took the quota back {times:time} before, as pods were not ready in time", times=times)
    about: dict[str, Words] = {"workload": workload.metadata.name, "when": when, "before": before if times else ""}
    if gate is not None and not gate.on:
        where = say(" (ConfigMap {key})", key="/".join(gate.settings)) if gate.settings else ""
        about |= {"gate": gate.name, "where": where}
    yield say(text, **about)


def _ahead(pod: Pod, running: KueueController, snapshot: Snapshot) -> Iterator[Phrase]:
    """What Kueue will count for a pod that does not exist yet."""
    shapes = taken_shapes((pod.spec,), pod.metadata.namespace, snapshot)
    if not refusals(shapes):
        text = (
            "Kueue has to admit it first (LocalQueue {queue}): it counts quota, and does not know which node has a "
            "free device"
        )
        yield say(text, queue=queue_name(pod, snapshot))
    for shape in shapes:
        if shape.counts:
            text = "Kueue {release} counts {kind} {name} ({place}) {how}"
            about = {"kind": shape.kind, "name": shape.name, "place": shape.place, "how": shape.counts}
            yield say(text, release=running.release, **about)


FINDERS = (Finder(When.QUESTION, _held_back, 19),)
