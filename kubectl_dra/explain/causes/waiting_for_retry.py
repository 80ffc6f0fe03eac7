"""The pod fits but is not placed: the scheduler's last message, and whether something has changed since."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from kubectl_dra.api.pods import Pod
from kubectl_dra.cluster.relation import waiting_for
from kubectl_dra.explain import confirm
from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.causes.search_too_slow import SLOW
from kubectl_dra.explain.diagnosis import CauseKind, Evidence, Family, Finding, Look
from kubectl_dra.explain.phrase import ObjectName, Phrase, Subject, named, say
from kubectl_dra.explain.question.last_word import last_word
from kubectl_dra.explain.trial import Trial

IN_FLIGHT = CauseKind(
    code="claim-allocation-in-flight",
    title="The claim is being allocated for another pod",
    why=(
        "The scheduler has chosen devices for another pod that uses the same claim, but has not written them yet. "
        "Until then, nobody else can use the claim. The choice exists only in the scheduler's memory."
    ),
    fix="Wait a few seconds. If it stays, binding the other pod hangs: explain that pod.",
    seen_as="resource claim … is in the process of being allocated",
    normal="For a second or two, while the first pod is bound.",
    confirm=(
        confirm.Check("`is in the process of being allocated`.", confirm.SCHEDULER_SAYS),
        confirm.Check("The other pods with this claim.", confirm.PODS_BY_CLAIM),
    ),
    family=Family.CLAIM,
    look=Look.POD_OF_SAME_CLAIM,
)
CHANGED = CauseKind(
    code="claim-changed-meanwhile",
    title="Somebody else changed the claim while the pod was bound",
    why=(
        "Between the scheduler's decision and its write, somebody else allocated, deallocated or deleted the claim. "
        "The scheduler tries again by itself."
    ),
    fix="Wait for the next attempt. If it repeats, look for a second scheduler or controller that writes the same "
    "claims.",
    seen_as="SchedulerError: claim … got allocated elsewhere, deallocated elsewhere, or deleted in the meantime",
    normal="Occasionally, if pods that share a claim start at the same time.",
    confirm=(
        confirm.Check("`in the meantime`.", confirm.SCHEDULER_SAYS),
        confirm.Check(
            "Who wrote the claim last (`managedFields`).",
            "kubectl get resourceclaim CLAIM -n NAMESPACE --show-managed-fields -o yaml",
        ),
    ),
    family=Family.CLAIM,
    look=Look.POD,
)
RETRY = CauseKind(
    code="waiting-for-retry",
    title="The pod seems to fit, but the scheduler said otherwise",
    why=(
        "The scheduler's last message still applies, and no visible object is newer. Either the message is out of "
        "date: deletions and released devices leave no trace, and the scheduler tries again when something changes "
        "that may help, or else after 5 minutes; deleting a slice or a class triggers nothing. Or the scheduler "
        "considers something that is not in the cluster's objects, such as a plugin of its own."
    ),
    fix=(
        "Wait up to 5 minutes, or trigger it: any change to the pod (for instance a label) makes the scheduler try "
        "again. Then ask again."
    ),
    seen_as="the last FailedScheduling event",
    normal="For up to 5 minutes: that is how often the scheduler retries without a trigger.",
    confirm=(
        confirm.Check("The scheduler's last word, and when.", confirm.SCHEDULER_SAYS),
        confirm.Check("The claims are as they were: nothing here is newer.", confirm.CLAIMS),
    ),
    family=Family.POD,
    look=Look.POD,
)
CHANGED_SINCE = CauseKind(
    code="changed-since-last-attempt",
    title="Something changed after the scheduler last looked",
    why=(
        "The scheduler decides from its own copy of the cluster. It did not consider changes made after its last "
        "message about the pod, or moments before."
    ),
    fix="Ask again in a few seconds.",
    seen_as="the last FailedScheduling event, which is older than the change",
    normal="For seconds, until the scheduler notices the change and tries again.",
    confirm=(
        confirm.Check("When the scheduler looked last.", confirm.SCHEDULER_SAYS),
        confirm.Check(
            "What was made since, the newest last.", "kubectl get resourceslices --sort-by=.metadata.creationTimestamp"
        ),
    ),
    family=Family.POD,
    look=Look.POD,
)
BINDING_DENIED = CauseKind(
    code="scheduler-not-permitted",
    title="The scheduler may not write the allocation",
    why=(
        "The scheduler found devices, but the API server refuses its write. From 1.36 on a scheduler also needs the "
        "verbs of its role on resourceclaims/binding; your own scheduler, with an older role, lacks them."
    ),
    fix="Grant the scheduler update and patch on resourceclaims/binding and resourceclaims/status.",
    seen_as="SchedulerError: … changing status.allocation or status.reservedFor requires …",
    normal="Never for kube-scheduler; with your own scheduler, after an upgrade to 1.36.",
    confirm=(
        confirm.ERROR,
        confirm.Check(
            "`no`: the permission is missing. SCHEDULER is system:kube-scheduler, or "
            "system:serviceaccount:NAMESPACE:NAME for one that runs as a pod.",
            "kubectl auth can-i update resourceclaims.resource.k8s.io --subresource=binding --as=SCHEDULER",
        ),
    ),
    family=Family.POD,
    look=Look.POD,
    never_binds=True,
)

# What kube-scheduler writes: its own words are all that tells.
_SAID: Final[tuple[tuple[re.Pattern[str], CauseKind], ...]] = (
    (re.compile(r"is in the process of being allocated"), IN_FLIGHT),
    (re.compile(r"got (?:deleted|(?:de)?allocated elsewhere) in the meantime"), CHANGED),
    (re.compile(r"timed out trying to allocate devices"), SLOW),
    (re.compile(r"changing status\.allocation or status\.reservedFor requires"), BINDING_DENIED),
)


def _waiting(trial: Trial) -> Iterator[Finding]:
    """At most one cause. With a hypothetical change, causes that resolve themselves do not count."""
    pod, scene = trial.question.pod, trial.scene
    if pod is None or not trial.question.exists or pod.node_name or pod.finished:
        return
    if not scene.settings.schedules(pod):
        return
    word = last_word(pod, scene.snapshot)
    if word is None or not word.message:
        return
    about = Subject("Event on Pod" if word.event else "Pod", named("Pod", pod))
    said = Evidence(about, say("said at {time}", time=word.time) if word.time else "said", word.message)
    from kubectl_dra.explain.changed_since import changes

    since = changes(trial, pod, word)
    supposed = bool(scene.settings.supposed)
    for pattern, kind in _SAID:
        if pattern.search(word.message) and (kind.never_binds or not supposed):
            summary = say("the scheduler says: {message}", message=word.message)
            yield Finding(kind, summary, (said, *since, *_other_consumers(trial, pod)), contrary=not since)
            return
    if supposed:
        return
    if since:
        summary = say("{object} changed after the scheduler's last attempt", object=since[0].object)
        yield Finding(CHANGED_SINCE, summary, (said, *since))
        return
    unseen = Evidence("what changed since", "not seen", "a deletion, or an update: objects do not tell when")
    text = "the scheduler{when} said otherwise, and nothing that can be seen has changed since: {message}"
    when = say(" at {time}", time=word.time) if word.time else ""
    yield Finding(RETRY, say(text, when=when, message=word.message), (said, unseen), contrary=True)


def _other_consumers(trial: Trial, asking: Pod) -> Iterator[Evidence]:
    """Other pods that use the claims to be allocated."""
    for claim in trial.claims:
        states: list[Phrase] = []
        for pod in waiting_for(claim, trial.scene.snapshot):
            if pod.key != asking.key:
                where = say("on {node}", node=ObjectName("Node", pod.node_name)) if pod.node_name else pod.phase or "?"
                states.append(say("{pod} ({where})", pod=named("Pod", pod), where=where))
        if states:
            shown = say("{states:some}", states=states)
            yield Evidence(Subject("ResourceClaim", named("ResourceClaim", claim)), "other pods that use it", shown)


FINDERS = (Finder(When.FITS, _waiting, 60),)
