"""The claim with the pod's generated name belongs to an earlier pod."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.explain import confirm
from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.diagnosis import CauseKind, Evidence, Family, Finding, Look, Remedy
from kubectl_dra.explain.phrase import Subject, named, say
from kubectl_dra.explain.question.resolve import Question, Unresolved

CLAIM_NOT_OWNED = CauseKind(
    code="claim-of-another-pod",
    title="The generated claim belongs to another pod",
    why="A claim made from a template is owned by one pod, by UID. A recreated pod of the same name cannot use "
    "the claim of its predecessor.",
    fix="Delete the old claim; the controller makes a new one for this pod.",
    seen_as="nothing; the scheduler's log says: Pod is not owner",
    normal="For seconds after a pod was replaced by one of the same name, until the old claim is gone.",
    confirm=(
        confirm.Check(
            "The UID of the pod that owns the claim …",
            "kubectl get resourceclaim CLAIM -n NAMESPACE -o jsonpath='{.metadata.ownerReferences[*].uid}'",
        ),
        confirm.Check("… is not that of this pod.", "kubectl get pod POD -n NAMESPACE -o jsonpath='{.metadata.uid}'"),
    ),
    family=Family.POD,
    look=Look.POD,
)


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
