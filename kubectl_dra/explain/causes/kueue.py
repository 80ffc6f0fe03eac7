"""Kueue holds the pod back: it waits for quota, is rejected, deactivated, or nobody has queued it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from kubectl_dra.api.kueue import ClusterQueue, KueueCheckState, KueueWorkload
from kubectl_dra.api.pods import Pod
from kubectl_dra.cluster.snapshot import ABSENT, NOT_SERVED, Snapshot
from kubectl_dra.command import CommandEffect, CommandLine, deleting, kubectl
from kubectl_dra.data.speakers import Speaker
from kubectl_dra.explain.causes.provisioning import of_request, seen_of_request
from kubectl_dra.explain.causes.registry import Finder, QuestionContext, When
from kubectl_dra.explain.diagnosis import CauseKind, Evidence, Family, Finding, Look, Remedy
from kubectl_dra.explain.phrase import Joined, ObjectName, Phrase, Subject, Words, named, say, subject
from kubectl_dra.neighbours.decider import Layer, decider, is_queued_by_kueue
from kubectl_dra.neighbours.kueue import (
    CLUSTER_QUEUE,
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
from kubectl_dra.neighbours.kueue_controller import claim_gate, configuration, controller, settings_of
from kubectl_dra.neighbours.kueue_quota import (
    COHORT,
    FlavorQuota,
    MappedClass,
    flavor_quotas,
    mapped_classes,
    short,
)
from kubectl_dra.neighbours.provisioning import request_of
from kubectl_dra.neighbours.provisioning import state_of as state_of_request

if TYPE_CHECKING:
    from kubectl_dra.data.messages import Understood

_RESOURCE = "workloads.kueue.x-k8s.io"
_SAYS = (Speaker.KUEUE,)
MAX_QUOTAS = 3
_ADVICE = {
    KueueStanding.ADMITTED: (
        "Wait some seconds; if that stays so, see whether Kueue's controller runs and, in its log, whether the API "
        "server or an admission webhook refuses its update of the pod."
    ),
    KueueStanding.EVICTING: (
        "Wait some seconds until its pods have ended. If that stays so, delete the Workload: Kueue makes another one "
        "for the job, and frees the quota."
    ),
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
    held_back = state.standing not in (KueueStanding.CHECKS, KueueStanding.ADMITTED, KueueStanding.EVICTING)
    quotas = flavor_quotas(workload, queue, snapshot) if queue is not None and held_back else ()
    classes = mapped_classes(workload, queue, snapshot) if held_back else ()
    odd = [each for each in classes if not each.resource or each.covered is False]
    rejected = state.standing in (KueueStanding.REJECTED, KueueStanding.UNFIT)
    facts = (
        *_checks(workload),
        *(seen_of_request(pod, snapshot) if _open_checks(workload) else ()),
        *_conditions(workload, state.said),
        *_classes(classes if rejected else odd, queue, snapshot),
        *_quotas(quotas, queue, state.said),
        *(_of_kueue(snapshot) if held_back and _has_claims(workload) else ()),
        *(_unread(workload, queue, snapshot) if held_back else ()),
    )
    names = {"workload": workload.metadata.name, "said": state.said or state.reason}
    if state.standing is KueueStanding.DEACTIVATED:
        text = "Kueue has deactivated Workload {workload}, so that it is never queued again{why}"
        why = say(": {said}", said=state.said) if state.said else ""
        return Finding(DEACTIVATED, say(text, **names, why=why), facts, _reactivating(workload, known))
    if state.standing is KueueStanding.REJECTED:
        text = "Kueue has rejected Workload {workload} and does not queue it again: {said}"
        return Finding(REJECTED, say(text, **names), facts, _anew(workload, known, classes, snapshot))
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
    never = lacking is not None and all(each.never for each in short(quotas))
    if state.standing is KueueStanding.WAITS and lacking and never and not state.said and not partial:
        text = "Kueue cannot admit Workload {workload} however long it waits: {lacking}"
        less = "Ask for less, or have the ClusterQueue's quota raised; waiting does not help."
        return Finding(REJECTED, say(text, **names, lacking=lacking), facts, Remedy(less))
    advice = _ADVICE.get(state.standing, "") or _advice(known, WAITS)
    if state.standing is KueueStanding.EVICTED and _open_checks(workload):
        advice = "See why the admission check failed; what it asked for did not come."
    if state.standing is KueueStanding.CHECKS and not _open_checks(workload):
        advice = "See what condition Admitted says; if it stays so, look into the log of Kueue's controller."
    waits = _waiting(workload, state, pod, snapshot)
    if state.standing is KueueStanding.WAITS and lacking:
        waits = say("{waits}; {lacking}" if state.said else "{waits}: {lacking}", waits=waits, lacking=lacking)
    meta = workload.metadata
    anew = (deleting(_RESOURCE, meta.name, meta.namespace),) if state.standing is KueueStanding.EVICTING else ()
    return Finding(WAITS, waits, facts, Remedy(advice, commands=anew))


def _waiting(workload: KueueWorkload, state: WorkloadState, pod: Pod, snapshot: Snapshot) -> Phrase:
    """What the Workload waits for, which comes by itself."""
    name, requeue = workload.metadata.name, workload.status.requeue_state
    if state.standing is KueueStanding.ADMITTED:
        text = "Workload {name} is admitted{when}, and Kueue has not taken the gate {gate} away yet"
        if not pod.scheduling_gates:
            text = "Workload {name} is admitted{when}, and Kueue has not let its job go on yet"
        when = say(" since {since}", since=state.since) if state.since else ""
        return say(text, name=name, when=when, gate=decider(pod).value)
    if state.standing is KueueStanding.EVICTING:
        text = "Kueue evicts Workload {name}{when} ({reason}: {said}), and its quota is not free yet"
        when = say(" since {since}", since=state.since) if state.since else ""
        return say(text, name=name, when=when, reason=state.reason, said=state.said)
    if state.standing is KueueStanding.CHECKS:
        open_ = _open_checks(workload)
        since = say(" since {since}", since=state.since) if state.since else ""
        if not open_:
            text = "Workload {name} has its quota{since}, and is not admitted yet{said}"
            return say(text, name=name, since=since, said=say(": {said}", said=state.said) if state.said else "")
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


def _anew(
    workload: KueueWorkload, known: Understood | None, classes: Sequence[MappedClass], snapshot: Snapshot
) -> Remedy:
    text = "{repair} What is repaired does not reach this Workload: delete it afterwards, and Kueue makes another one."
    meta = workload.metadata
    command = deleting(_RESOURCE, meta.name, meta.namespace)
    gate = claim_gate(snapshot)
    mapped = known is not None and known.entry.maps and all(each.resource and each.covered for each in classes)
    turned_on = known is not None and gate is not None and gate.on and known.gate == gate.name
    if (mapped and classes) or turned_on:
        text = (
            "Its configuration {does} by now. Kueue reads that at its start only: restart Kueue if it runs "
            "since before, then delete the Workload, and Kueue makes another one."
        )
        does = say("turns {gate} on", gate=gate.name) if turned_on and gate is not None else say("maps the class")
        return Remedy(say(text, does=does), commands=(command,))
    if known is not None and "elete the Workload" in known.entry.do:
        return Remedy(known.do, commands=(command,))
    return Remedy(say(text, repair=_advice(known, REJECTED)), commands=(command,))


def _on(workload: KueueWorkload, verb: str, *more: str, effect: CommandEffect = CommandEffect.READS) -> CommandLine:
    meta = workload.metadata
    return kubectl(verb, kind=_RESOURCE, name=meta.name, namespace=meta.namespace, more=more, effect=effect)


def _conditions(workload: KueueWorkload, message: str) -> Iterator[Evidence]:
    """What the conditions say besides ``message``, which the answer has already."""
    about = Subject("Workload", named(WORKLOAD, workload))
    for kind in ("QuotaReserved", "Requeued", "Evicted"):
        condition = workload.condition(kind)
        if condition is not None:
            more = say(": {message}", message=condition.message) if condition.message != message else ""
            value = say("{status} ({reason}){more}", status=condition.status, reason=condition.reason, more=more)
            yield Evidence(about, kind, value)
    if not workload.spec.active:
        yield Evidence(about, "spec.active", "false")


def _quotas(quotas: Sequence[FlavorQuota], queue: ClusterQueue | None, said: str) -> Iterator[Evidence]:
    """What the ClusterQueue has of the resources that are short or that Kueue speaks of, else of all."""
    if queue is None:
        return
    about = Subject("ClusterQueue", queue.metadata.name)
    spoken = [quota for quota in quotas if quota.resource in said.split()]
    for quota in (list(short(quotas)) or spoken or list(quotas))[:MAX_QUOTAS]:
        field = say("{resource} of flavor {flavor}", resource=quota.resource, flavor=quota.flavor)
        parts: list[Words] = [say("{held} of {quota} held", held=str(quota.held), quota=str(quota.nominal))]
        if quota.lent:
            parts[0] = say("{held} of {quota} held, {lent} borrowed", **_amounts(quota))
        if queue.cohort:
            room = say("what cohort {cohort} has left was not read", cohort=queue.cohort)
            if quota.free is not None:
                room = say("{free} left with cohort {cohort}", cohort=queue.cohort, **_amounts(quota))
            parts.append(room)
        if quota.wanted is not None:
            parts.append(say("the Workload asks for {wanted}", wanted=str(quota.wanted)))
        if quota.never:
            parts.append(say("more than the {most} that there can be", most=str(quota.most)))
        elif quota.missing:
            parts.append(say("{missing} missing", missing=str(quota.missing)))
        yield Evidence(about, field, Joined(tuple(parts), ", ") if len(parts) > 1 else parts[0])
    if not queue.spec.resource_groups:
        yield Evidence(about, "spec.resourceGroups", "none")


def _unread(workload: KueueWorkload, queue: ClusterQueue | None, snapshot: Snapshot) -> Iterator[Evidence]:
    """What would say which quota is short, and may not be read."""
    kinds = [CLUSTER_QUEUE, *([COHORT] if queue is not None and queue.cohort else ())]
    if _has_claims(workload):
        kinds.append("ConfigMap")
    for gap in snapshot.unread(kinds):
        if gap.reason != ABSENT:
            yield Evidence(f"{gap.kind.partition('.')[0]}s", "read", say("no ({reason})", reason=gap.reason))


def _has_claims(workload: KueueWorkload) -> bool:
    return any(pods.template.spec.resource_claims for pods in workload.spec.pod_sets)


def _of_kueue(snapshot: Snapshot) -> Iterator[Evidence]:
    """Which Kueue it is and whether it counts claims, as far as known; or that its configuration is not there."""
    running, gate = controller(snapshot), claim_gate(snapshot)
    if running is not None and running.release:
        yield Evidence(subject("Pod", running.pod), "release of Kueue", running.release)
    if gate is not None and gate.settings is not None:
        value = say("{gate}={on}", gate=gate.name, on=str(gate.on).lower())
        space, name = gate.settings
        yield Evidence(Subject("ConfigMap", ObjectName("ConfigMap", name, space)), "featureGates", value)
    if configuration(snapshot) is None and not snapshot.unread(("ConfigMap",)):
        space, name = settings_of(running)
        yield Evidence("Kueue's configuration", "read", say("no (there is no ConfigMap {key})", key=f"{space}/{name}"))


def _amounts(quota: FlavorQuota) -> dict[str, str]:
    return {
        "held": str(quota.held),
        "quota": str(quota.nominal),
        "lent": str(quota.lent),
        "free": str(quota.free),
    }


def _classes(classes: Sequence[MappedClass], queue: ClusterQueue | None, snapshot: Snapshot) -> Iterator[Evidence]:
    """As which resource Kueue counts the devices, where it does not, or the ClusterQueue has no quota for it."""
    known = configuration(snapshot)
    if known is None:
        return
    (space, name), _ = known
    about = Subject("ConfigMap", ObjectName("ConfigMap", name, space))
    for each in classes:
        value = say("none names it")
        if each.resource:
            value = say("counted as {resource}", resource=each.resource)
        if each.covered is False and queue is not None:
            text = "counted as {resource}, which ClusterQueue {queue} does not cover"
            value = say(text, resource=each.resource, queue=queue.metadata.name)
        yield Evidence(about, say("deviceClassMappings of DeviceClass {name}", name=each.name), value)


def _lacking(quotas: Sequence[FlavorQuota], queue: ClusterQueue | None) -> Phrase | None:
    """The first resource of which a ClusterQueue has too little; None where nothing is known to be short."""
    lacking = short(quotas)
    if not lacking or queue is None:
        return None
    one = lacking[0]
    names = {"wanted": str(one.wanted), "resource": one.resource, "queue": queue.metadata.name}
    flavors = [quota.flavor for quota in lacking if quota.resource == one.resource]
    if len(flavors) > 1:
        text = "it asks for {wanted} {resource}, and no flavor of ClusterQueue {queue} has so much left ({flavors:all})"
        return say(text, **names, flavors=flavors)
    if one.never:
        text = "it asks for {wanted} {resource}, and flavor {flavor} of ClusterQueue {queue} has {most} at most"
        return say(text, **names, flavor=one.flavor, most=str(one.most))
    text = "it asks for {wanted} {resource}, and flavor {flavor} of ClusterQueue {queue} has {free} left of {nominal}"
    if queue.cohort:
        text = "it asks for {wanted} {resource}, and ClusterQueue {queue} with its cohort has {free} of {flavor} left"
    return say(text, **names, flavor=one.flavor, free=str(one.free), nominal=str(one.nominal))


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
    gate = claim_gate(snapshot) if _has_claims(workload) else None
    text = (
        "Kueue has admitted it (Workload {workload}{when}), and now the scheduler decides: Kueue counts devices and "
        "does not know which node has a free one{before}"
    )
    if pod.scheduling_gates:
        text = "Kueue has admitted it (Workload {workload}{when}), and takes no gates of others away{before}"
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


FINDERS = (Finder(When.QUESTION, _held_back, 19),)
