"""A claim of the pod has no room for another consumer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kubectl_dra.api.limits import MAX_CONSUMERS
from kubectl_dra.cluster.relation import relation_of
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.explain import confirm
from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.diagnosis import CauseKind, Evidence, Family, Finding, Look
from kubectl_dra.explain.phrase import Subject, named, say
from kubectl_dra.explain.question.resolve import Question

TOO_MANY_CONSUMERS = CauseKind(
    code="claim-consumers-exhausted",
    title="The claim has 256 consumers already",
    why="A claim lists its consumers in status.reservedFor, which holds at most 256 entries.",
    fix="Use more claims.",
    seen_as="status.reservedFor: Too many: 257: must have at most 256 items",
    normal="If very many pods share one claim: the maximum is 256.",
    confirm=(
        confirm.Check(
            "256 names.", "kubectl get resourceclaim CLAIM -n NAMESPACE -o jsonpath='{.status.reservedFor[*].name}'"
        ),
    ),
    family=Family.CLAIM,
    look=Look.POD,
)


def _full(question: Question, _: Snapshot, __: Sequence[Finding]) -> Iterator[Finding]:
    pod = question.pod
    if pod is None or pod.node_name or pod.finished:
        return
    for claim in question.existing_claims:
        count = len(claim.reserved_for)
        if count >= MAX_CONSUMERS and not relation_of(claim, pod).listed:
            text = "claim {claim} has {count} consumers, and no claim can have more"
            facts = Evidence(
                Subject("ResourceClaim", named("ResourceClaim", claim)),
                "status.reservedFor",
                say("{count} entries", count=count),
            )
            yield Finding(TOO_MANY_CONSUMERS, say(text, claim=claim.key, count=count), (facts,), claim=claim.key)


FINDERS = (Finder(When.QUESTION, _full, 40),)
