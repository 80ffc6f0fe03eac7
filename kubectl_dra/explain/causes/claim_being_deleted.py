"""A claim is being deleted and will never be allocated again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.explain import confirm
from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.diagnosis import CauseKind, Evidence, Family, Finding, Look, Remedy
from kubectl_dra.explain.phrase import Subject, named, say
from kubectl_dra.explain.question.consumers import consumers_named
from kubectl_dra.explain.question.resolve import Question

CLAIM_DELETING = CauseKind(
    code="claim-being-deleted",
    title="The claim is being deleted",
    why="A claim with a deletion timestamp is never allocated. Its finalizers are removed when no pod uses it.",
    fix="Wait for its consumers to end, or make a new claim and pod.",
    seen_as='nothing; the scheduler\'s log says: resourceclaim "…" is being deleted',
    normal="For as long as a pod uses the claim: its finalizer waits for that.",
    confirm=(
        confirm.Check(
            "A time under `deletionTimestamp`, the finalizers that keep the claim, and `reservedFor` with its users.",
            confirm.CLAIM,
        ),
    ),
    family=Family.POD,
    look=Look.POD,
)


def _deleting(question: Question, _: Snapshot, __: Sequence[Finding]) -> Iterator[Finding]:
    for claim in question.existing_claims:
        since = claim.metadata.deletion_timestamp
        if not since:
            continue
        finalizers = say("{names: else none}", names=tuple(claim.metadata.finalizers))
        remedy = None
        if not claim.reserved_for and claim.metadata.finalizers:
            text = "Nobody uses it: what keeps it is finalizer {finalizers}, which its controller has to remove."
            remedy = Remedy(say(text, finalizers=finalizers))
        own = Subject("ResourceClaim", named("ResourceClaim", claim))
        consumers = consumers_named(claim)
        yield Finding(
            CLAIM_DELETING,
            say("ResourceClaim {claim} is being deleted since {since}", claim=claim.key, since=since),
            (
                Evidence(own, "metadata.deletionTimestamp", since),
                Evidence(own, "metadata.finalizers", finalizers),
                Evidence(own, "status.reservedFor", say("{consumers: else nobody}", consumers=consumers)),
            ),
            remedy,
        )


FINDERS = (Finder(When.QUESTION, _deleting, 84),)
