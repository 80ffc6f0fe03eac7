"""The scheduler does not look at the pod: it is not created, has gates, or belongs to another scheduler or none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from kubectl_dra.admission.plugins import (
    AdmissionPlugin,
    FieldRefused,
    NamespaceMissing,
    PriorityContradicted,
    Refusal,
    VersionNotServed,
)
from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.meta import FAILED_PREPARE
from kubectl_dra.api.neighbour_kinds import kind_here
from kubectl_dra.api.pods import Pod, owner_of
from kubectl_dra.api.releases import GROUP
from kubectl_dra.cluster.claim_relation import relation_of
from kubectl_dra.cluster.cluster import key_of
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.command import CommandEffect, as_written, creating_namespace, deleting, kubectl
from kubectl_dra.data.messages import AUTOSCALERS
from kubectl_dra.explain.analysis import Analysis
from kubectl_dra.explain.cause_kinds import CauseKind, Family, Look, NextStep
from kubectl_dra.explain.causes.kueue import of_workload, without_workload
from kubectl_dra.explain.causes.on_node import started
from kubectl_dra.explain.causes.other_schedulers_groups import placed_without_dra
from kubectl_dra.explain.causes.registry import Finder, QuestionContext, When, of_question
from kubectl_dra.explain.clock import SCHEDULER, under_way
from kubectl_dra.explain.diagnosis import Evidence, Finding, Remedy
from kubectl_dra.explain.phrase import ObjectName, Phrase, Subject, named, say, subject
from kubectl_dra.explain.question.resolve import Question
from kubectl_dra.neighbours.decider import Layer, decider, layer_of
from kubectl_dra.neighbours.gangs import bind_request_of, group_of, group_unread
from kubectl_dra.neighbours.kueue import WORKLOAD, queue_name, standing, workload_of
from kubectl_dra.neighbours.no_pod import is_suspended, maker_of
from kubectl_dra.scheduling.profile import DEFAULT_SCHEDULER
from kubectl_dra.text import nearest

if TYPE_CHECKING:
    # Its arithmetic is loaded where a quota is.
    from kubectl_dra.admission.quantities import AmountsRequired

SCHEDULING_GATED = CauseKind(code="scheduling-gated", family=Family.POD, look=Look.POD, passes=True)


def _gated(context: QuestionContext) -> Iterator[Finding]:
    pod = context.question.pod
    if pod is None:
        return
    # Queues that have let nobody in speak for their own gates.
    layer = decider(pod).layer if any(finding.kind.queued for finding in context.found) else Layer.NONE
    if (group := group_of(pod, context.snapshot)) is not None and group.held:
        layer = decider(pod).layer
    held = [gate for gate in pod.scheduling_gates if layer is Layer.NONE or layer_of(gate) is not layer]
    if not held:
        return
    remedy: Remedy | None = None
    seen: tuple[Evidence, ...] = ()
    if any(layer_of(gate) is Layer.KUEUE for gate in held):
        text = (
            "Kueue removes the gate when it admits the workload. Check that deviceClassMappings in its configuration "
            "name the claim's class."
        )
        space = pod.metadata.namespace
        remedy = Remedy(text, commands=(kubectl("get", "workloads.kueue.x-k8s.io", namespace=space),))
        # Otherwise what they say stands in place of this.
        seen = tuple(
            Evidence("Workload", "of Kueue for this pod", say("not read ({why})", why=gap.reason))
            for gap in context.snapshot.unread((WORKLOAD,), space)
        )
    gates = say("{gates}", gates=tuple(held))
    yield Finding(
        SCHEDULING_GATED,
        say("the pod is held back by scheduling {count:gate|gates} {gates}", count=len(held), gates=gates),
        (Evidence(subject("Pod", pod), "spec.schedulingGates", gates), *seen),
        remedy,
    )


# The pod names another scheduler, which has not reacted to it.

_TRIED = ("FailedScheduling", "Unschedulable")
"""Reasons of events of a scheduler that has looked at a pod; the second one is KAI's."""
OTHER_SCHEDULER = CauseKind(code="other-scheduler", family=Family.POD, look=Look.POD, passes=True)


def _ignored(analysis: Analysis) -> Iterator[Finding]:
    question, snapshot, settings = analysis.question, analysis.snapshot, analysis.settings
    pod = question.waiting_pod
    if pod is None or not question.exists or settings.scheduler.schedules(pod):
        return
    name = pod.scheduler_name
    if pod.condition("PodScheduled").type or of_question(question, snapshot):
        return
    events = snapshot.events_about("Pod", *key_of(pod))
    # A group that its scheduler looks after shows that it runs.
    tried = any(event.reason in _TRIED and event.speaker not in AUTOSCALERS for event in events)
    tried = tried or any(event.component == name for event in events) or bind_request_of(pod, snapshot) is not None
    if tried or group_of(pod, snapshot) is not None or group_unread(pod, snapshot):
        return
    from kubectl_dra.explain.remedies.claim_edits import place_to_edit

    place = place_to_edit(pod, "schedulerName") if owner_of(pod) is not None else "a new pod"
    text = "Check that {name} runs and supports ResourceClaims, or name {default} in {place}."
    own = subject("Pod", pod)
    facts = (Evidence(own, "spec.schedulerName", name), Evidence(own, "status.conditions", "no PodScheduled"))
    yield Finding(
        OTHER_SCHEDULER,
        say("the pod asks for scheduler {name}, and no scheduler has looked at it yet", name=name),
        facts,
        Remedy(say(text, name=name, default=DEFAULT_SCHEDULER, place=place)),
        under_way=under_way(name, pod.metadata.creation_timestamp, snapshot),
    )


# The pod was bound to a node without going through the scheduler.

BOUND_BY_HAND = CauseKind(code="bypassed-scheduler", family=Family.POD, look=Look.POD)


def _bound(context: QuestionContext) -> Iterator[Finding]:
    pod = context.question.pod
    if pod is None or not pod.node_name or pod.finished:
        return
    if not context.question.exists:
        yield from _names_its_node(pod, context.question)
        return
    unallocated = [
        claim_entry.claim
        for claim_entry in context.question.claims
        if claim_entry.claim is not None and claim_entry.claim.allocation is None and not claim_entry.hypothetical
    ]
    scheduled = pod.condition("PodScheduled")
    if unallocated and not started(pod) and not (scheduled.status == "True" and scheduled.reason):
        text = "the pod was bound to node {node} without the scheduler, so nobody allocates {claims}"
        # Claims are read beside the pods: what was written just before the pod was bound may have been missed.
        waits = under_way(SCHEDULER, scheduled.last_transition_time, context.snapshot)
        yield Finding(
            BOUND_BY_HAND,
            say(text, node=pod.node_name, claims=[claim.key for claim in unallocated]),
            (
                Evidence(subject("Pod", pod), "spec.nodeName", ObjectName("Node", pod.node_name)),
                Evidence(subject("ResourceClaim", unallocated[0]), "status.allocation", "not set"),
            ),
            placed_without_dra(pod),
            under_way=None if _refused_claim(pod, context.snapshot) else waits,
        )
    yield from _misplaced(pod, context.question.existing_claims, context.snapshot)


def _names_its_node(pod: Pod, question: Question) -> Iterator[Finding]:
    """The pod of a manifest that no scheduler is going to see."""
    needing = [entry.claim.key for entry in question.claims if entry.claim is not None and not entry.claim.allocation]
    if needing:
        from kubectl_dra.explain.remedies.claim_edits import place_to_edit

        text = "the pod names node {node} itself, so the scheduler never sees it, and nobody allocates {claims}"
        change = "Leave out {place}; kubernetes.io/hostname in a nodeSelector does the same."
        remedy = Remedy(say(change, place=place_to_edit(pod, "nodeName")))
        fact = Evidence(subject("Pod", pod), "spec.nodeName", pod.node_name)
        yield Finding(BOUND_BY_HAND, say(text, node=pod.node_name, claims=needing), (fact,), remedy)


def _refused_claim(pod: Pod, snapshot: Snapshot) -> bool:
    """Whether the kubelet has said that the pod may not use a claim: then it will not be allocated."""
    events = snapshot.events_of(pod, FAILED_PREPARE)
    return any("is not allowed to use ResourceClaim" in event.message for event in events)


def _misplaced(pod: Pod, claims: Sequence[ResourceClaim], snapshot: Snapshot) -> Iterator[Finding]:
    """The pod's node is one where its allocated claim cannot be used."""
    node = snapshot.nodes.get(pod.node_name)
    if node is None or pod.phase not in ("", "Pending"):
        return
    for claim in claims:
        if claim.allocation is None or relation_of(claim, pod).listed or claim.allocation.usable_on(node):
            continue
        selector = claim.allocation.node_selector
        text = "the pod was bound to node {node} without the scheduler, but claim {claim} is allocated for {selector}"
        facts = (
            Evidence(subject("Pod", pod), "spec.nodeName", ObjectName("Node", node.name)),
            Evidence(subject("ResourceClaim", claim), "status.allocation.nodeSelector", str(selector)),
        )
        summary = say(text, node=node.name, claim=claim.key, selector=str(selector))
        yield Finding(BOUND_BY_HAND, summary, facts, claim=claim.key)
        return


# The API server would refuse a manifest: quotas, limits, classes that do not exist, Pod Security, fields, and changes
# of what nobody can change.


POD_REFUSED = CauseKind(code="pod-refused", family=Family.POD, look=Look.AS_WRITTEN, passes=True)
OBJECT_REFUSED = CauseKind(code="object-refused", family=Family.POD, look=Look.LINT)

CHANGE_REFUSED = CauseKind(
    code="change-refused", family=Family.POD, look=Look.AS_WRITTEN, state="cannot be changed like that"
)
REFUSED = (POD_REFUSED, OBJECT_REFUSED, CHANGE_REFUSED)
"""What the API server refuses, whatever the cluster has."""
_KINDS = {"pod": "Pod", "claim": "ResourceClaim"}
_FIXES = {
    AdmissionPlugin.NAMESPACE_LIFECYCLE: say("Create the namespace, or use one that exists and is not being deleted."),
    AdmissionPlugin.LIMIT_RANGER: say("Set requests and limits of the containers within those bounds."),
    AdmissionPlugin.POD_SECURITY: say("Set the security fields that it names, or use a namespace that allows them."),
    AdmissionPlugin.RESOURCE_QUOTA: say("Ask for less, end pods that are not needed, or raise the quota."),
    AdmissionPlugin.RUNTIME_CLASS: say(
        "Name a RuntimeClass that exists, and leave spec.overhead out: it is copied from the class."
    ),
    AdmissionPlugin.SERVICE_ACCOUNT: say("Create the service account, or name one that exists."),
    AdmissionPlugin.VALIDATION: say("Correct the field: lint says what it must be."),
}


def _refused(context: QuestionContext) -> Iterator[Finding]:
    for refusal in context.question.refusals:
        concerned = refusal.concerned
        name = f"{concerned.namespace}/{concerned.name}" if concerned.namespace else concerned.name
        of_pod = not isinstance(refusal, FieldRefused) or concerned.kind == "Pod"
        lint_tells = type(refusal) is FieldRefused
        if isinstance(refusal, VersionNotServed):
            lint_tells = refusal.instead.startswith(f"{GROUP}/")
        commands = (creating_namespace(concerned.name),) if isinstance(refusal, NamespaceMissing) else ()
        text = "the API server refuses to create the pod: {words}"
        yield Finding(
            POD_REFUSED if of_pod else OBJECT_REFUSED,
            say(
                text if of_pod else "the API server refuses {kind} {name} of the manifest: {words}",
                kind=concerned.kind,
                name=name,
                words=refusal.words,
            ),
            (_seen(refusal, name, context.question),),
            Remedy(_fix(refusal, context.question, context.snapshot), commands=commands),
            next=NextStep(Look.LINT) if lint_tells else None,
        )


def _seen(refusal: Refusal, name: str, question: Question) -> Evidence:
    """What is refused: the object that decides, or the pod itself where no class gives its priority."""
    if isinstance(refusal, PriorityContradicted) and not name and question.pod is not None:
        field = "spec.preemptionPolicy" if refusal.policy else "spec.priority"
        return Evidence(subject("Pod", question.pod), field, refusal.written)
    return Evidence(Subject(refusal.concerned.kind, name), refusal.plugin.value, refusal.words)


def _fix(refusal: Refusal, question: Question, snapshot: Snapshot) -> Phrase:
    from kubectl_dra.explain.remedies.claim_edits import place_to_edit

    if isinstance(refusal, VersionNotServed):
        of_claims = refusal.instead.startswith(f"{GROUP}/")
        text = "Write apiVersion: {version}, and the fields as that version has them." if of_claims else ""
        return say(text or "Write apiVersion: {version}.", version=refusal.instead)
    if isinstance(refusal, NamespaceMissing) and (alike := nearest(refusal.concerned.name, snapshot.namespaces)):
        return say("Use namespace {names:or}, or create {name}.", names=alike, name=refusal.concerned.name)
    if refusal.plugin is AdmissionPlugin.RUNTIME_CLASS and question.pod is not None and not question.pod.spec.overhead:
        return say("Name a RuntimeClass that exists.")
    if refusal.plugin is AdmissionPlugin.RESOURCE_QUOTA:
        from kubectl_dra.admission.quantities import AmountsRequired

        if isinstance(refusal, AmountsRequired):
            return _amounts_to_set(refusal, question)
    if isinstance(refusal, PriorityContradicted) and question.pod is not None:
        place = place_to_edit(question.pod, "preemptionPolicy" if refusal.policy else "priority")
        text = "Leave {place} out: PriorityClass {name} says it."
        if not refusal.concerned.name:
            text = "Leave {place} out, or name a PriorityClass that says so (priorityClassName)."
        return say(text, place=place, name=refusal.concerned.name)
    if refusal.plugin is not AdmissionPlugin.PRIORITY:
        return _FIXES[refusal.plugin]
    known = sorted(name for _, name in snapshot.others.get("PriorityClass", {}))
    near = nearest(refusal.concerned.name, known) or [name for name in known if not name.startswith("system-")]
    if not near:
        pod = question.pod
        place = place_to_edit(pod, "priorityClassName") if pod is not None else "priorityClassName"
        return say("Leave {place} out, or create the PriorityClass.", place=place)
    return say("Name a PriorityClass that exists: {names}.", names=near)


def _amounts_to_set(refusal: AmountsRequired, question: Question) -> Phrase:
    """Which amounts containers have to say, as a quota counts them."""
    from kubectl_dra.explain.remedies.claim_edits import place_to_edit

    whole = ("requests.", "limits.")
    fields = [name if name.startswith(whole) else f"requests.{name}" for name, _ in refusal.missing]
    containers = dict.fromkeys(name for _, names in refusal.missing for name in names)
    place = place_to_edit(question.pod, "containers") if question.pod is not None else "spec.containers"
    text = "Set {fields} of {count:container|containers} {containers} in {place}."
    names = [f"resources.{field}" for field in fields]
    return say(text, fields=names, count=len(containers), containers=[*containers], place=place)


def _unchangeable(context: QuestionContext) -> Iterator[Finding]:
    if not context.snapshot.refused:
        return
    from kubectl_dra.explain.question.new_pod import refused_changes

    question = context.question
    for change in refused_changes(question, context.snapshot):
        name = f"{change.namespace}/{change.name}"
        itself = (change.kind, change.name) == (_KINDS[question.kind], question.name)
        who = "it" if itself else "{kind} {name}"
        text = f"{who} exists already, and the API server lets nobody change its {{fields}}"
        differs = say("differs in the manifest")
        advice = (
            "Leave {fields} in the manifest as the cluster has {count:it|them}, or give it another name there; or "
            "delete it first."
        )
        command = deleting(change.kind.lower(), change.name, change.namespace)
        if change.by_its_pods:
            text = f"{who} exists already, as pods of it show, and the API server lets nobody change its {{fields}}"
            differs = say("differs from what its pods show; it was not read")
            advice = (
                "Compare {fields} with that of the cluster, and leave {count:it|them} as there, or give it another "
                "name in the manifest."
            )
            command = as_written(change.kind.lower(), change.name, change.namespace)
        yield Finding(
            CHANGE_REFUSED,
            say(text, kind=change.kind, name=name, fields=change.fields),
            tuple(Evidence(Subject(change.kind, name), field, differs) for field in change.fields),
            Remedy(say(advice, fields=change.fields, count=len(change.fields)), commands=(command,)),
            state="" if itself else "is not made like that",
        )


# The workload is suspended, so it has no pod: who holds it back, and what would come of its pods.

SUSPENDED = CauseKind(
    code="workload-suspended",
    family=Family.POD,
    look=Look.AS_WRITTEN,
    passes=True,
    queued="once resumed",
    state="is not created",
)


def _suspended(context: QuestionContext) -> Iterator[Finding]:
    pod, snapshot = context.question.pod, context.snapshot
    maker = maker_of(pod, snapshot) if pod is not None else None
    owner = pod.metadata.controller() if pod is not None else None
    if pod is None or maker is None or owner is None or not is_suspended(maker):
        return
    workload = workload_of(pod, snapshot)
    if workload is not None:
        yield of_workload(workload, standing(workload), pod, snapshot)
        return
    kind = kind_here(owner.kind, owner.api_version)
    seen = Evidence(Subject(owner.kind, named(kind, maker)), "spec.suspend", "true")
    above = next((above_owner for above_owner in pod.metadata.owners if not above_owner.controller), None)
    if above is not None:
        text = "{kind} {name} is suspended by {above} {of}, which made it"
        summary = say(text, kind=owner.kind, name=owner.name, above=above.kind, of=above.name)
        show = kubectl("describe", kind=above.kind.lower(), name=above.name, namespace=pod.metadata.namespace)
        yield Finding(SUSPENDED, summary, (seen,), Remedy("See why in its conditions.", commands=(show,)))
        return
    queue = queue_name(pod, snapshot)
    if queue and snapshot.missing(WORKLOAD, pod.metadata.namespace) is None:
        # Kueue suspends such a job again at once: whoever resumes it only hides what is wrong.
        label = Evidence(Subject(owner.kind, named(kind, maker)), "label kueue.x-k8s.io/queue-name", queue)
        yield without_workload(label, pod, snapshot)
        return
    gap = next(iter(snapshot.unread((WORKLOAD,), pod.metadata.namespace)), None)
    more = Evidence("Workload", "of Kueue for it", say("not read ({why})", why=gap.reason) if gap else "none")
    text = "{kind} {name} is suspended, and has no pods"
    resume = kubectl(
        "patch",
        kind=owner.kind.lower(),
        name=owner.name,
        namespace=pod.metadata.namespace,
        more=("--type", "merge", "-p", '{"spec":{"suspend":false}}'),
        effect=CommandEffect.WRITES,
    )
    # Where a queue may hold it, nobody is told to go round the queue.
    remedy = Remedy(SUSPENDED.fix, commands=() if gap else (resume,))
    yield Finding(SUSPENDED, say(text, kind=owner.kind, name=owner.name), (seen, more), remedy)


FINDERS = (
    Finder(When.QUESTION, _gated, 20),
    Finder(When.SCENE, _ignored, 90),
    Finder(When.QUESTION, _bound, 60),
    Finder(When.QUESTION, _unchangeable, 4),
    Finder(When.QUESTION, _refused, 5),
    Finder(When.QUESTION, _suspended, 3),
)
