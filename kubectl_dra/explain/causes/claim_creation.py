"""A claim from a template does not exist: its controller has not created it yet, or the API server refuses it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.pods import Pod
from kubectl_dra.api.quantity import Quantity, QuantityError
from kubectl_dra.cluster.cluster import Cluster, key_of
from kubectl_dra.cluster.snapshot import Event, Snapshot
from kubectl_dra.command import CommandEffect, CommandLine, kubectl
from kubectl_dra.explain.cause_kinds import CauseKind, Family, Look
from kubectl_dra.explain.causes import pod_group
from kubectl_dra.explain.causes.claim_quotas import (
    ADMIN_LABEL,
    needs,
    only_written,
    to_create,
    used_in_cluster,
    with_created_claims,
    without_admin_label,
)
from kubectl_dra.explain.causes.registry import Finder, QuestionContext, When
from kubectl_dra.explain.clock import CLAIM_CONTROLLER, under_way
from kubectl_dra.explain.diagnosis import Evidence, Finding, Remedy
from kubectl_dra.explain.phrase import ObjectName, Subject, Words, named, say, subject
from kubectl_dra.explain.question.resolve import ClaimEntry, Unresolved

CREATION_FAILED = "FailedResourceClaimCreation"
OLD_ADMIN_LABEL = "resource.k8s.io/admin-access"
"""What Kubernetes 1.33 called the label; later releases ignore this one."""
_ZERO = Quantity.parse("0")

NOT_CREATED = CauseKind(code="claim-not-created", family=Family.POD, look=Look.POD, passes=True)
CREATION_DENIED = CauseKind(code="claim-creation-denied", family=Family.POD, look=Look.POD, passes=True)
QUOTA = CauseKind(code="claim-quota-exceeded", family=Family.POD, look=Look.QUOTAS, passes=True)
ADMIN_NAMESPACE = CauseKind(code="admin-access-not-allowed", family=Family.POD, look=Look.POD, passes=True)


def _refused(context: QuestionContext) -> Iterator[Finding]:
    """What prevents creating the claims, judging by the snapshot, unless an event already says so."""
    pod = context.question.pod
    claims = [
        claim_entry.claim
        for claim_entry in context.question.claims
        if claim_entry.claim is not None and claim_entry.hypothetical
    ]
    written = [
        claim_entry.claim
        for claim_entry in context.question.claims
        if claim_entry.claim is not None and not claim_entry.hypothetical and only_written(claim_entry.claim)
    ]
    if pod is None:
        own = context.question.claims[0].claim
        claims = [own] if own and (own.metadata.namespace, own.metadata.name) not in context.snapshot.claims else []
    elif pod.node_name or pod.finished:
        return
    event = None if pod is None else creation_failed(pod, context.snapshot)
    cause_kind = _said_by(event) if event and any(map(_waits, context.question.claims)) else None
    for claim in (*claims, *(written_claim for written_claim in written if written_claim not in claims)):
        if without_admin_label(claim, context.snapshot):
            yield from (finding for finding in _admin(claim, context.snapshot) if finding.kind is not cause_kind)
    snapshot = context.snapshot
    entries = (claim_entry.claim for claim_entry in context.question.claims if not claim_entry.hypothetical)
    named = [claim for claim in entries if claim is not None and claim not in claims and to_create(claim, snapshot)]
    if named or (claims and snapshot.created):
        # Before any pod, the server creates those claims of the manifest for which there is room.
        asked = {(claim.metadata.namespace, claim.metadata.name): claim for claim in named}
        snapshot = with_created_claims(Cluster(snapshot).editing(*asked.values()).snapshot)
        claims += [snapshot.claims[key] for key in asked if to_create(snapshot.claims[key], snapshot)]
    if claims:
        yield from (finding for finding in _quotas(claims, snapshot) if finding.kind is not cause_kind)


def _waits(claim_entry: ClaimEntry) -> bool:
    return claim_entry.unresolved is Unresolved.NOT_CREATED


def _not_created(context: QuestionContext) -> Iterator[Finding]:
    pod = context.question.pod
    for claim_entry in context.question.claims if pod is not None else ():
        if not _waits(claim_entry) or pod is None:
            continue
        event = creation_failed(pod, context.snapshot)
        if event is not None:
            yield _denied(pod, claim_entry.entry, event)
        elif pod.pod_group:
            yield pod_group.claim_unknown(pod, claim_entry.entry, context.snapshot)
        elif not any(other.kind in (QUOTA, ADMIN_NAMESPACE) for other in context.found):
            # That a claim is refused says also that it is not there.
            yield _waiting(pod, claim_entry, context.snapshot)


def _waiting(pod: Pod, claim_entry: ClaimEntry, snapshot: Snapshot) -> Finding:
    return Finding(
        NOT_CREATED,
        say(
            'the claim for entry "{entry}" has not been created from template {template} yet',
            entry=claim_entry.entry,
            template=claim_entry.template,
        ),
        (
            Evidence(
                subject("Pod", pod),
                "status.resourceClaimStatuses",
                say("no entry {entry}", entry=claim_entry.entry),
            ),
        ),
        Remedy(
            "Look for FailedResourceClaimCreation. If there is no such event, check that kube-controller-manager runs.",
            commands=(
                kubectl(
                    "get",
                    "events",
                    namespace=pod.metadata.namespace,
                    more=("--field-selector", f"involvedObject.name={pod.metadata.name}"),
                    others=(pod.metadata.name,),
                ),
            ),
        ),
        under_way=under_way(CLAIM_CONTROLLER, pod.metadata.creation_timestamp, snapshot),
    )


def creation_failed(pod: Pod, snapshot: Snapshot) -> Event | None:
    """The event that says why a claim of the pod was not created."""
    events = snapshot.events_about("Pod", *key_of(pod))
    return next((event for event in events if event.reason == CREATION_FAILED), None)


def _said_by(event: Event) -> CauseKind:
    """The meaning of the API server's text in the event."""
    if "exceeded quota" in event.message:
        return QUOTA
    return ADMIN_NAMESPACE if "admin access" in event.message else CREATION_DENIED


def _denied(pod: Pod, name: str, event: Event) -> Finding:
    why = event.message.rpartition("is forbidden: ")[2]
    kind = _said_by(event)
    return Finding(
        kind,
        say('the claim for entry "{entry}" cannot be created: {why}', entry=name, why=why),
        (Evidence(Subject("Event on Pod", named("Pod", pod)), event.reason, event.message),),
        _labelling(pod.metadata.namespace) if kind is ADMIN_NAMESPACE else None,
    )


def allowing_admin(namespace: str) -> CommandLine:
    """The command that allows admin access in a namespace."""
    label = f"{ADMIN_LABEL}=true"
    return kubectl("label", kind="namespace", name=namespace, more=(label,), effect=CommandEffect.WRITES)


def _labelling(namespace: str) -> Remedy:
    text = "Let an administrator label namespace {namespace} to allow it, or leave adminAccess out."
    return Remedy(say(text, namespace=namespace), commands=(allowing_admin(namespace),))


def _admin(claim: ResourceClaim, snapshot: Snapshot) -> Iterator[Finding]:
    namespace = snapshot.namespaces[claim.metadata.namespace]
    has: Words = namespace.labels.get(ADMIN_LABEL, "not set")
    if OLD_ADMIN_LABEL in namespace.labels:
        has = say("{has} ({old} is set, but only 1.33 reads that label)", has=has, old=OLD_ADMIN_LABEL)
    names = {"claim": claim.key, "namespace": namespace.name, "label": ADMIN_LABEL}
    yield Finding(
        ADMIN_NAMESPACE,
        say("claim {claim} asks for admin access, which namespace {namespace} does not allow", **names),
        (Evidence(Subject("Namespace", ObjectName("Namespace", namespace.name)), say("label {label}", **names), has),),
        _labelling(namespace.name),
        claim=claim.key,
    )


def _quotas(claims: Sequence[ResourceClaim], snapshot: Snapshot) -> Iterator[Finding]:
    namespace = claims[0].metadata.namespace
    wanted = needs(claims, snapshot.classes)
    for quota in snapshot.quotas:
        if quota.metadata.namespace != namespace:
            continue
        for key, hard in quota.hard.items():
            need = wanted.get(key)
            if not need:
                continue
            used = _amount(quota.used.get(key, "0"))
            if used + Quantity.of(need) <= _amount(hard):
                continue
            stored = _amount(used_in_cluster(quota, key))
            before = used - stored if stored < used else _ZERO
            numbers = {"quota": quota.metadata.key, "hard": hard, "key": key, "used": used, "need": need}
            text = "ResourceQuota {quota} allows {hard} of {key}: {used} used, {need} more needed"
            if before != _ZERO:
                numbers |= {"used": stored, "before": before}
                text = (
                    "ResourceQuota {quota} allows {hard} of {key}: {used} used, {before} needed before by the "
                    "manifest, {need} more needed"
                )
            yield Finding(
                QUOTA,
                say(text, **numbers),
                (
                    Evidence(
                        subject("ResourceQuota", quota),
                        say("status.used {key}", **numbers),
                        say("{used} of {hard}", **numbers),
                    ),
                    Evidence(say("claims {keys}", keys=[claim.key for claim in claims]), "count as", need),
                ),
                # Where nothing is used nothing can be deleted.
                Remedy("Raise the quota.") if stored == _ZERO else None,
            )


def _amount(text: str) -> Quantity:
    try:
        return Quantity.parse(text)
    except QuantityError:
        return _ZERO


FINDERS = (Finder(When.QUESTION, _refused, 50), Finder(When.QUESTION, _not_created, 85))
