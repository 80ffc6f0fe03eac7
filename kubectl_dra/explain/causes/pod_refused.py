"""The API server would refuse to create the pod: quotas, limits, classes that do not exist, Pod Security, fields."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kubectl_dra.admission.refusal import AdmissionPlugin, Refusal
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.explain import confirm
from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.diagnosis import CauseKind, Evidence, Family, Finding, Look, Remedy
from kubectl_dra.explain.phrase import Phrase, Subject, say
from kubectl_dra.explain.question.resolve import Question
from kubectl_dra.names import nearest

POD_REFUSED = CauseKind(
    code="pod-refused",
    title="The API server refuses to create the pod",
    why=(
        "Before a pod exists, the API server completes it and checks its fields, its namespace, LimitRanges, "
        "ResourceQuotas, its PriorityClass, RuntimeClass and ServiceAccount, and Pod Security of the namespace. No "
        "scheduler sees a pod that the API server refuses; its Deployment or Job has an event with the reason "
        "(FailedCreate)."
    ),
    fix="Change what the message names, or ask the owner of the quota, the limits or the namespace.",
    seen_as='Error from server (Forbidden): pods "…" is forbidden: …; FailedCreate at its Deployment or Job',
    normal="Where quotas, limits or Pod Security are meant to hold.",
    confirm=(
        confirm.Check(
            "The server's words, without creating anything.", "kubectl create -n NAMESPACE --dry-run=server -f MANIFEST"
        ),
        confirm.Check(
            "For a Deployment: `FailedCreate` at its ReplicaSet.",
            "kubectl get events -n NAMESPACE --field-selector reason=FailedCreate",
        ),
    ),
    family=Family.POD,
    look=Look.AS_WRITTEN,
    passes=True,
)

_FIXES = {
    AdmissionPlugin.NAMESPACE_LIFECYCLE: say("Create the namespace, or use one that exists and is not being deleted."),
    AdmissionPlugin.LIMIT_RANGER: say("Set requests and limits of the containers within those bounds."),
    AdmissionPlugin.POD_SECURITY: say("Set the security fields that it names, or use a namespace that allows them."),
    AdmissionPlugin.RESOURCE_QUOTA: say("Ask for less, end pods that are not needed, or have the quota raised."),
    AdmissionPlugin.RUNTIME_CLASS: say("Name a RuntimeClass that exists, and leave its overhead to it."),
    AdmissionPlugin.SERVICE_ACCOUNT: say("Create the service account, or name one that exists."),
    AdmissionPlugin.VALIDATION: say("Correct the field."),
}


def _refused(question: Question, snapshot: Snapshot, _: Sequence[Finding]) -> Iterator[Finding]:
    for refusal in question.refusals:
        yield Finding(
            POD_REFUSED,
            say("the API server refuses to create the pod: {words}", words=refusal.words),
            (Evidence(_subject(refusal), refusal.plugin.value, refusal.words),),
            Remedy(_fix(refusal, snapshot)),
        )


def _subject(refusal: Refusal) -> Subject:
    concerned = refusal.concerned
    name = f"{concerned.namespace}/{concerned.name}" if concerned.namespace else concerned.name
    return Subject(concerned.kind, name)


def _fix(refusal: Refusal, snapshot: Snapshot) -> Phrase:
    if refusal.plugin is not AdmissionPlugin.PRIORITY:
        return _FIXES[refusal.plugin]
    known = sorted(name for _, name in snapshot.others.get("PriorityClass", {}))
    near = nearest(refusal.concerned.name, known) or [name for name in known if not name.startswith("system-")]
    if not near:
        return say("Leave priorityClassName out, or have the PriorityClass created.")
    return say("Name a PriorityClass that exists: {names}.", names=near)


FINDERS = (Finder(When.QUESTION, _refused, 5),)
