"""A manifest changes a pod or claim that exists in fields that nobody can change: the API server refuses it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.explain import confirm
from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.diagnosis import CauseKind, Evidence, Family, Finding, Look, Remedy
from kubectl_dra.explain.phrase import Subject, say
from kubectl_dra.explain.question.resolve import Question

CHANGE_REFUSED = CauseKind(
    code="change-refused",
    title="The API server refuses to change what exists already",
    why=(
        "The manifest has the name of a pod or claim that exists, and differs from it in fields that nobody can "
        "change once they are stored: the spec of a ResourceClaim, and nearly all of that of a Pod. `kubectl apply` "
        "fails, and the object stays as it is."
    ),
    fix="Delete the object first, or give the one of the manifest another name.",
    seen_as="spec: Invalid value: …: field is immutable; spec: Forbidden: pod updates may not change fields other than",
    normal="For every Pod and ResourceClaim: both are replaced, not changed.",
    confirm=(confirm.Check("The server's words, without changing anything.", "kubectl diff -n NAMESPACE -f MANIFEST"),),
    family=Family.POD,
    look=Look.AS_WRITTEN,
    state="cannot be changed like that",
)
_RESOURCES = {"pod": ("Pod", "pod"), "claim": ("ResourceClaim", "resourceclaim")}


def _refused(question: Question, snapshot: Snapshot, _: Sequence[Finding]) -> Iterator[Finding]:
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
                    say(
                        "Delete it first (kubectl delete {resource} {name} -n {namespace}), or give the one of the "
                        "manifest another name.",
                        resource=resource,
                        name=question.name,
                        namespace=question.namespace,
                    )
                ),
            )


FINDERS = (Finder(When.QUESTION, _refused, 4),)
