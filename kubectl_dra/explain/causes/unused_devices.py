"""A container names a request that its claim does not have: the pod starts, and the container gets no device."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_dra.api.pods import Pod
from kubectl_dra.explain.cause_kinds import CauseKind, Family, Look, NextStep
from kubectl_dra.explain.causes.registry import Finder, QuestionContext, When
from kubectl_dra.explain.diagnosis import Evidence, Finding, Remedy
from kubectl_dra.explain.phrase import say, subject
from kubectl_dra.explain.question.resolve import Question
from kubectl_dra.text import nearest

NO_SUCH_REQUEST = CauseKind(
    code="request-not-in-claim",
    family=Family.REQUEST,
    look=Look.LINT,
    passes=True,
    queued="once that is corrected",
    state="would run without devices",
)


def _no_such_request(context: QuestionContext) -> Iterator[Finding]:
    if (pod := context.question.waiting_pod) is None:
        return
    claims = {entry.entry: entry.claim for entry in context.question.claims if entry.claim is not None}
    for container in (*pod.spec.init_containers, *pod.spec.containers):
        for entry, request in container.claims:
            claim = claims.get(entry)
            known = [each.name for each in claim.requests] if claim is not None else []
            if not request or not known or request in known:
                continue
            names = {"container": container.name, "request": request, "entry": entry, "known": known}
            fix = "Write {known:or} in its place, or leave the request out to get all devices of the claim."
            text = 'container {container} uses request "{request}" of claim entry {entry}, which has {known:some}'
            where = say("{container} · resources.claims", container=container.name)
            yield Finding(
                NO_SUCH_REQUEST,
                say(text, **names),
                (Evidence(subject("Pod", pod), where, say("{entry}, request {request}", **names)),),
                Remedy(say(fix, known=[*nearest(request, known)] or known)),
                next=NextStep(Look.POD, pod.metadata.name, pod.metadata.namespace) if context.question.exists else None,
            )


def unused_claims(question: Question, pod: Pod) -> Iterator[str]:
    """The claim entries of a pod that none of its containers uses. That of extended resources is nobody's to use."""
    used = {entry for each in (*pod.spec.init_containers, *pod.spec.containers) for entry, _ in each.claims}
    unused = {entry.name for entry in pod.claims} - used
    return (entry.entry for entry in question.claims if entry.claim is not None and entry.entry in unused)


FINDERS = (Finder(When.QUESTION, _no_such_request, 8),)
