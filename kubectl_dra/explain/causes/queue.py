"""The scheduler does not look at the pod: gates, another scheduler, none at all, or no node comes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.pods import Pod
from kubectl_dra.cluster.relation import relation_of
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.explain.causes.on_node import started
from kubectl_dra.explain.causes.registry import Finder, When, of_question
from kubectl_dra.explain.diagnosis import CauseKind, Evidence, Family, Finding, Look, Remedy
from kubectl_dra.explain.phrase import ObjectName, Subject, named, say
from kubectl_dra.explain.question.resolve import Question
from kubectl_dra.explain.scene.holders import SCHEDULER, under_way
from kubectl_dra.explain.trial import Trial
from kubectl_dra.scheduling.profile import DEFAULT_SCHEDULER

_KUEUE = "kueue.x-k8s.io/"
SCHEDULING_GATED = CauseKind(code="scheduling-gated", family=Family.POD, look=Look.POD, passes=True)


def _gated(question: Question, _: Snapshot, __: Sequence[Finding]) -> Iterator[Finding]:
    pod = question.pod
    if pod is None or not pod.scheduling_gates:
        return
    remedy = None
    if any(gate.startswith(_KUEUE) for gate in pod.scheduling_gates):
        text = (
            "Kueue removes the gate when it admits the workload: kubectl get workloads -n {namespace}. Check that "
            "deviceClassMappings in its configuration name the claim's class."
        )
        remedy = Remedy(say(text, namespace=pod.metadata.namespace))
    gates = say("{gates}", gates=tuple(pod.scheduling_gates))
    text = "the pod is held back by scheduling {count:gate|gates} {gates}"
    yield Finding(
        SCHEDULING_GATED,
        say(
            "the pod is held back by scheduling {count:gate|gates} {gates}",
            count=len(pod.scheduling_gates),
            gates=gates,
        ),
        (Evidence(Subject("Pod", named("Pod", pod)), "spec.schedulingGates", gates),),
        remedy,
    )


# The pod names another scheduler, which has not reacted to it.

OTHER_SCHEDULER = CauseKind(code="other-scheduler", family=Family.POD, look=Look.POD, passes=True)


def _ignored(trial: Trial) -> Iterator[Finding]:
    question, snapshot, settings = trial.question, trial.scene.snapshot, trial.scene.settings
    pod = question.pod
    if pod is None or not question.exists or pod.node_name or pod.finished or settings.scheduler.schedules(pod):
        return
    name = pod.scheduler_name
    if pod.condition("PodScheduled") is not None or of_question(question, snapshot):
        return
    events = snapshot.events_about("Pod", pod.metadata.namespace, pod.metadata.name)
    if any(event.reason == "FailedScheduling" for event in events):
        return
    text = "Check that {name} runs and supports ResourceClaims, or name {default} in a new pod."
    yield Finding(
        OTHER_SCHEDULER,
        say("the pod asks for scheduler {name}, and no scheduler has looked at it yet", name=name),
        (
            Evidence(Subject("Pod", named("Pod", pod)), "spec.schedulerName", name),
            Evidence(Subject("Pod", named("Pod", pod)), "status.conditions", "no PodScheduled"),
        ),
        Remedy(say(text, name=name, default=DEFAULT_SCHEDULER)),
    )


# The pod was bound to a node without going through the scheduler.

BOUND_BY_HAND = CauseKind(code="bypassed-scheduler", family=Family.POD, look=Look.POD)


def _bound(question: Question, snapshot: Snapshot, _: Sequence[Finding]) -> Iterator[Finding]:
    pod = question.pod
    if pod is None or not pod.node_name or pod.finished:
        return
    unallocated = [
        entry.claim
        for entry in question.claims
        if entry.claim is not None and entry.claim.allocation is None and not entry.hypothetical
    ]
    scheduled = pod.condition("PodScheduled")
    if unallocated and not started(pod) and not (scheduled and scheduled.status == "True" and scheduled.reason):
        text = "the pod was bound to node {node} without the scheduler, so nobody allocates {claims}"
        yield Finding(
            BOUND_BY_HAND,
            say(text, node=pod.node_name, claims=[claim.key for claim in unallocated]),
            (
                Evidence(Subject("Pod", named("Pod", pod)), "spec.nodeName", ObjectName("Node", pod.node_name)),
                Evidence(
                    Subject("ResourceClaim", named("ResourceClaim", unallocated[0])), "status.allocation", "not set"
                ),
            ),
            # Claims are read beside the pods: what was written just before the pod was bound may have been missed.
            under_way=None
            if _refused_claim(pod, snapshot)
            else under_way(SCHEDULER, scheduled.last_transition_time if scheduled else "", snapshot),
        )
    yield from _misplaced(pod, question.existing_claims, snapshot)


def _refused_claim(pod: Pod, snapshot: Snapshot) -> bool:
    """Whether the kubelet has said that the pod may not use a claim: then nobody is about to allocate it."""
    return any(
        event.reason == "FailedPrepareDynamicResources"
        and "is not allowed to use ResourceClaim" in event.message
        and event.uid in ("", pod.metadata.uid)
        for event in snapshot.events_about("Pod", pod.metadata.namespace, pod.metadata.name)
    )


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
        yield Finding(
            BOUND_BY_HAND,
            say(text, node=node.name, claim=claim.key, selector=str(selector)),
            (
                Evidence(Subject("Pod", named("Pod", pod)), "spec.nodeName", ObjectName("Node", node.name)),
                Evidence(
                    Subject("ResourceClaim", named("ResourceClaim", claim)),
                    "status.allocation.nodeSelector",
                    str(selector),
                ),
            ),
            claim=claim.key,
        )
        return


# A cluster autoscaler considered the pod and adds no node.

NO_SCALE_UP = CauseKind(code="no-scale-up", family=Family.POD, look=Look.POD)


def _not_scaled(trial: Trial) -> Iterator[Finding]:
    pod = trial.question.pod
    if pod is None or pod.node_name:
        return
    events = [
        event
        for event in trial.scene.snapshot.events_about("Pod", pod.metadata.namespace, pod.metadata.name)
        if event.reason == "NotTriggerScaleUp"
        or (event.component == "karpenter" and event.reason == "FailedScheduling")
    ]
    if not events:
        return
    event = events[-1]
    slices = trial.view.cycle.index.slices
    bound = sum(1 for entry in slices if entry.scope.node_name)
    scope = say(
        "{bound} of {total} name an existing node" if slices else "there are none", bound=bound, total=len(slices)
    )
    who = event.component or "the autoscaler"
    text, remedy = "{who} adds no node for the pod: {message}", None
    if not any(entry.devices for entry in slices):
        text = "no node has devices yet, and {who} does not know that a new one would: {message}"
        remedy = Remedy(
            say(
                "Add a node with such devices yourself, and keep one: give the node group a minimum of 1, or Karpenter "
                "a static NodePool. What a group of no nodes would publish, {who} learns only from its cloud provider, "
                "and few say it.",
                who=who,
            )
        )
    yield Finding(
        NO_SCALE_UP,
        say(text, who=who, message=event.message),
        (
            Evidence(Subject("Event on Pod", named("Pod", pod)), event.reason, event.message),
            Evidence("ResourceSlices", "nodes", scope),
        ),
        remedy,
    )


FINDERS = (
    Finder(When.QUESTION, _gated, 20),
    Finder(When.SCENE, _ignored, 90),
    Finder(When.QUESTION, _bound, 60),
    Finder(When.FAILS_TOO, _not_scaled, 20),
)
