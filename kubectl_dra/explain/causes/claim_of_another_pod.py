"""The claim with the pod's generated name belongs to an earlier pod."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.diagnosis import CauseKind, Evidence, Family, Finding, Look, Remedy
from kubectl_dra.explain.phrase import Subject, named, say
from kubectl_dra.explain.question.resolve import Question, Unresolved

CLAIM_NOT_OWNED = CauseKind(code="claim-of-another-pod", family=Family.POD, look=Look.POD)


def _not_owned(question: Question, _: Snapshot, __: Sequence[Finding]) -> Iterator[Finding]:
    for entry in question.claims:
        claim, pod = entry.claim, question.pod
        if claim is None or pod is None or entry.unresolved is not Unresolved.OF_ANOTHER_POD:
            continue
        owner = claim.metadata.controller()
        uid = owner.uid if owner else "none"
        command = "kubectl delete resourceclaim -n {namespace:shell} {name:shell}"
        yield Finding(
            CLAIM_NOT_OWNED,
            say("ResourceClaim {claim} belongs to another pod of that name", claim=claim.key),
            (
                Evidence(
                    Subject("ResourceClaim", named("ResourceClaim", claim)),
                    "metadata.ownerReferences[controller].uid",
                    uid,
                ),
                Evidence(Subject("Pod", named("Pod", pod)), "metadata.uid", pod.metadata.uid),
            ),
            Remedy(say(command, namespace=claim.metadata.namespace, name=claim.metadata.name)),
        )


FINDERS = (Finder(When.QUESTION, _not_owned, 82),)
