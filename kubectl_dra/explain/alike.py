"""Groups questions with the same answer: the many pods of a workload differ only in their names."""

from __future__ import annotations

from msgspec import structs

from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.explain.causes.registry import of_question
from kubectl_dra.explain.question.resolve import Question


def shape(question: Question, snapshot: Snapshot) -> str:
    """What determines the answer, as one text: the pod's placement and claims, without names that differ per pod."""
    pod = question.pod
    placement = None if pod is None else (structs.replace(pod.spec, resource_claims=()), pod.extended_resource_claim)
    names = [entry.claim.metadata.name if entry.claim else "" for entry in question.claims]
    claims = [
        # Which entries mean one and the same claim is part of it.
        (entry.entry, entry.template, names.index(name), entry.unresolved, _content(entry.claim))
        for entry, name in zip(question.claims, names, strict=True)
    ]
    found = [(finding.kind.code, finding.summary) for finding in of_question(question, snapshot)]
    return repr((question.kind, question.namespace, placement, claims, found))


def _content(claim: ResourceClaim | None) -> object:
    if claim is None or claim.allocation is not None:
        return claim and claim.key
    return claim.requests, claim.constraints, claim.config
