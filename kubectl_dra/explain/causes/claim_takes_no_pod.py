"""A claim of the pod takes no further consumer: it is full, or was allocated in a way that cannot be added to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.limits import MAX_CONSUMERS
from kubectl_dra.cluster.relation import relation_of
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.diagnosis import CauseKind, Evidence, Family, Finding, Look, Remedy
from kubectl_dra.explain.phrase import Subject, named, say
from kubectl_dra.explain.question.resolve import Question
from kubectl_dra.explain.scene.holders import consumers_named
from kubectl_dra.explain.trial import Trial

TOO_MANY_CONSUMERS = CauseKind(code="claim-consumers-exhausted", family=Family.CLAIM, look=Look.POD)
WITHOUT_TIME = CauseKind(code="allocation-without-timestamp", family=Family.CLAIM, look=Look.CLAIM, never_binds=True)


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


def _without_time(trial: Trial) -> Iterator[Finding]:
    pod = trial.question.pod
    if pod is None or pod.node_name or not trial.scene.allocated:
        return
    from kubectl_dra.scheduling.binding import takes_no_pod

    for claim in trial.scene.allocated:
        if takes_no_pod(claim, trial.view.cycle.features) and not relation_of(claim, pod).listed:
            yield _finding(claim)


def _finding(claim: ResourceClaim) -> Finding:
    own, users = Subject("ResourceClaim", named("ResourceClaim", claim)), consumers_named(claim)
    text = "claim {claim} was allocated without a timestamp, and the scheduler can add no further pod to such a claim"
    names = {"namespace": claim.metadata.namespace, "name": claim.metadata.name, "users": users}
    change = (
        "Let {users:some} end: the claim then gives its devices back, and is allocated anew for the next pod. If they "
        "cannot end, start kube-scheduler with --feature-gates=DRADeviceBindingConditions=false until they have."
    )
    if not users:
        change = (
            "Delete the claim (kubectl delete resourceclaim -n {namespace:shell} {name:shell}) and create it again."
        )
    return Finding(
        WITHOUT_TIME,
        say(text, claim=claim.key),
        (
            Evidence(own, "status.allocation.allocationTimestamp", "not set"),
            Evidence(own, "status.reservedFor", say("{users: else nobody}", users=users)),
        ),
        Remedy(say(change, **names)),
        claim=claim.key,
    )


FINDERS = (Finder(When.QUESTION, _full, 40), Finder(When.FITS, _without_time, 5))
