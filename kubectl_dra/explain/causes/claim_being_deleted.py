"""A claim is being deleted and will never be allocated again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kubectl_dra.cluster.relation import Consumers, all_pods_known, consumers_of, relation_of
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.diagnosis import CauseKind, Evidence, Family, Finding, Look, NextStep, Remedy
from kubectl_dra.explain.phrase import Phrase, Subject, named, say
from kubectl_dra.explain.question.resolve import Question
from kubectl_dra.explain.scene.holders import consumers_named

CLAIM_DELETING = CauseKind(code="claim-being-deleted", family=Family.POD, look=Look.POD)


def _deleting(question: Question, snapshot: Snapshot, _: Sequence[Finding]) -> Iterator[Finding]:
    for claim in question.existing_claims:
        since = claim.metadata.deletion_timestamp
        if not since:
            continue
        own = Subject("ResourceClaim", named("ResourceClaim", claim))
        finalizers = say("{names: else none}", names=tuple(claim.metadata.finalizers))
        consumers = consumers_named(claim)
        listed = consumers_of(claim, snapshot.pods, complete=all_pods_known(snapshot, claim.metadata.namespace))
        users = _users(listed, question)
        first = next(iter(claim.reserved_for), None)
        text = "ResourceClaim {claim} is being deleted"
        if users:
            text += ", and {users:some} still {count:uses|use} it"
        yield Finding(
            CLAIM_DELETING,
            say(text, claim=claim.key, users=users, count=len(users)),
            (
                Evidence(own, "metadata.deletionTimestamp", since),
                Evidence(own, "status.reservedFor", say("{consumers: else nobody}", consumers=consumers)),
                Evidence(own, "metadata.finalizers", finalizers),
            ),
            _remedy(listed, users, finalizers),
            next=NextStep(Look.POD, first.name, claim.metadata.namespace) if users and first is not None else None,
        )


def _users(listed: Consumers, question: Question) -> list[Phrase]:
    """The pods that keep the claim, with what they do; none where something else than pods does, or this pod alone."""
    if question.pod is not None and relation_of(listed.claim, question.pod).listed:
        return []
    out: list[Phrase] = []
    for use in listed.entries:
        if not use.relation.of_pod:
            return []
        since = use.pod.metadata.deletion_timestamp if use.pod is not None else ""
        text = "pod {name} (Terminating since {since})" if since else "pod {name}"
        if not use.relation.stale:
            out.append(say(text, name=use.entry.name, since=since))
    return out


def _remedy(listed: Consumers, users: Sequence[Phrase], finalizers: Phrase) -> Remedy | None:
    claim = listed.claim
    if listed.entries and all(use.relation.stale for use in listed.entries):
        text = "Wait a few seconds: its pods have ended, and kube-controller-manager then lets it go."
        return Remedy(text)
    if not claim.reserved_for and claim.metadata.finalizers:
        text = "Nobody uses it: what keeps it is finalizer {finalizers}, which its controller has to remove."
        return Remedy(say(text, finalizers=finalizers))
    if not users:
        return None
    text = (
        "Get {users:some} to end: then the claim goes, and one of its name can be created again. Or make another "
        "claim, and a pod that names it."
    )
    if claim.metadata.controller() is not None:
        text = "Get {users:some} to end: then the claim goes. Or delete this pod: the next one gets a claim of its own."
    return Remedy(say(text, users=list(users)))


FINDERS = (Finder(When.QUESTION, _deleting, 84),)
