"""The API server would refuse a manifest: quotas, limits, classes that do not exist, Pod Security, fields, and changes
of what nobody can change.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kubectl_dra.admission.refusal import AdmissionPlugin, Refusal
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.command import deleting
from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.diagnosis import CauseKind, Evidence, Family, Finding, Look, Remedy
from kubectl_dra.explain.phrase import Phrase, Subject, say
from kubectl_dra.explain.question.resolve import Question
from kubectl_dra.text import nearest

POD_REFUSED = CauseKind(code="pod-refused", family=Family.POD, look=Look.AS_WRITTEN, passes=True)

CHANGE_REFUSED = CauseKind(
    code="change-refused", family=Family.POD, look=Look.AS_WRITTEN, state="cannot be changed like that"
)
_RESOURCES = {"pod": ("Pod", "pod"), "claim": ("ResourceClaim", "resourceclaim")}
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


def _unchangeable(question: Question, snapshot: Snapshot, _: Sequence[Finding]) -> Iterator[Finding]:
    kind, resource = _RESOURCES[question.kind]
    for change in snapshot.refused:
        if question.exists and change[:3] == (kind, question.namespace, question.name):
            yield Finding(
                CHANGE_REFUSED,
                say("it exists already, and the API server lets nobody change its {fields}", fields=change.fields),
                tuple(
                    Evidence(
                        Subject(kind, f"{question.namespace}/{question.name}"), field, say("differs in the manifest")
                    )
                    for field in change.fields
                ),
                Remedy(
                    "Delete it first, or give the one of the manifest another name.",
                    commands=(deleting(resource, question.name, question.namespace),),
                ),
            )


FINDERS = (Finder(When.QUESTION, _unchangeable, 4), Finder(When.QUESTION, _refused, 5))
