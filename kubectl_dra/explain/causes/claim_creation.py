"""A claim does not exist yet, or the API server refuses it; and what claims count as in quotas."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import json, structs

from kubectl_dra.allocation.extended_resources import IMPLICIT_PREFIX
from kubectl_dra.api.claims import ALL, DeviceClass, ResourceClaim
from kubectl_dra.api.limits import MAX_RESULTS
from kubectl_dra.api.meta import Amount
from kubectl_dra.api.pod_resources import amounts
from kubectl_dra.api.pods import Pod
from kubectl_dra.api.policy import ResourceQuota
from kubectl_dra.api.quantity import Quantity
from kubectl_dra.cluster.cluster import Cluster, key_of
from kubectl_dra.cluster.snapshot import Event, Snapshot
from kubectl_dra.command import CommandEffect, CommandLine, kubectl
from kubectl_dra.explain.cause_kinds import CauseKind, Family, Look
from kubectl_dra.explain.causes import pod_group
from kubectl_dra.explain.causes.registry import Finder, QuestionContext, When
from kubectl_dra.explain.clock import CLAIM_CONTROLLER, under_way
from kubectl_dra.explain.diagnosis import Evidence, Finding, Remedy
from kubectl_dra.explain.phrase import Subject, Words, by_name, named, say, subject
from kubectl_dra.explain.question.resolve import ClaimEntry, Unresolved

CREATION_FAILED = "FailedResourceClaimCreation"
OLD_ADMIN_LABEL = "resource.k8s.io/admin-access"
"""What Kubernetes 1.33 called the label; later releases ignore this one."""

NOT_CREATED = CauseKind(code="claim-not-created", family=Family.POD, look=Look.POD, passes=True)
CREATION_DENIED = CauseKind(code="claim-creation-denied", family=Family.POD, look=Look.POD, passes=True)
QUOTA = CauseKind(code="claim-quota-exceeded", family=Family.POD, look=Look.QUOTAS, passes=True)
ADMIN_NAMESPACE = CauseKind(code="admin-access-not-allowed", family=Family.POD, look=Look.POD, passes=True)


def _refused(context: QuestionContext) -> Iterator[Finding]:
    """What prevents creating the claims, judging by the snapshot, unless an event already says so."""
    pod, entries = context.question.pod, context.question.claims
    claims = [entry.claim for entry in entries if entry.claim is not None and entry.hypothetical]
    existing = [entry.claim for entry in entries if entry.claim is not None and not entry.hypothetical]
    written = [claim for claim in existing if only_written(claim)]
    if pod is None:
        own = entries[0].claim
        claims = [own] if own and (own.metadata.namespace, own.metadata.name) not in context.snapshot.claims else []
    elif pod.node_name or pod.finished:
        return
    event = None if pod is None else creation_failed(pod, context.snapshot)
    cause_kind = _said_by(event) if event and any(map(_waits, entries)) else None
    for claim in (*claims, *(other for other in written if other not in claims)):
        if without_admin_label(claim, context.snapshot):
            yield from (finding for finding in _admin(claim, context.snapshot) if finding.kind is not cause_kind)
    snapshot = context.snapshot
    named = [claim for claim in existing if claim not in claims and to_create(claim, snapshot)]
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
    text = 'the claim for entry "{entry}" has not been created from template {template} yet'
    summary = say(text, entry=claim_entry.entry, template=claim_entry.template)
    absent = say("no entry {entry}", entry=claim_entry.entry)
    fix = "Look for FailedResourceClaimCreation. If there is no such event, check that kube-controller-manager runs."
    meta = pod.metadata
    about = ("--field-selector", f"involvedObject.name={meta.name}")
    look = kubectl("get", "events", namespace=meta.namespace, more=about, others=(meta.name,))
    fact = Evidence(subject("Pod", pod), "status.resourceClaimStatuses", absent)
    waits = under_way(CLAIM_CONTROLLER, meta.creation_timestamp, snapshot)
    return Finding(NOT_CREATED, summary, (fact,), Remedy(fix, commands=(look,)), under_way=waits)


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
    summary = say('the claim for entry "{entry}" cannot be created: {why}', entry=name, why=why)
    fact = Evidence(Subject("Event on Pod", named("Pod", pod)), event.reason, event.message)
    remedy = _labelling(pod.metadata.namespace) if kind is ADMIN_NAMESPACE else None
    return Finding(kind, summary, (fact,), remedy)


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
    summary = say("claim {claim} asks for admin access, which namespace {namespace} does not allow", **names)
    fact = Evidence(by_name("Namespace", namespace.name), say("label {label}", **names), has)
    yield Finding(ADMIN_NAMESPACE, summary, (fact,), _labelling(namespace.name), claim=claim.key)


def _quotas(claims: Sequence[ResourceClaim], snapshot: Snapshot) -> Iterator[Finding]:
    wanted, needed = needs(claims, snapshot.classes), wanted_by(claims, snapshot)
    for quota in snapshot.quotas:
        own = quota.metadata.namespace == claims[0].metadata.namespace
        for key in short_of(quota, needed) if own else ():
            used, stored = amounts(quota.status.used).get(key, _NONE), _stored(quota, key)
            numbers = {"quota": quota.metadata.key, "hard": quota.hard[key], "key": key, "used": used}
            numbers["need"] = wanted[key]
            text = "ResourceQuota {quota} allows {hard} of {key}: {used} used, {need} more needed"
            if stored < used:
                numbers |= {"used": stored, "before": used - stored}
                text = (
                    "ResourceQuota {quota} allows {hard} of {key}: {used} used, {before} needed before by the "
                    "manifest, {need} more needed"
                )
            about, value = say("status.used {key}", **numbers), say("{used} of {hard}", **numbers)
            asking = say("claims {keys}", keys=[claim.key for claim in claims])
            yield Finding(
                QUOTA,
                say(text, **numbers),
                (Evidence(subject("ResourceQuota", quota), about, value), Evidence(asking, "count as", wanted[key])),
                # Where nothing is used nothing can be deleted.
                Remedy("Raise the quota.") if stored == _NONE else None,
            )


# What claims count as in quotas, and which claims of a manifest the quotas let the API server create.

ADMIN_LABEL: Final = "resource.kubernetes.io/admin-access"
CLAIM_COUNT: Final = "count/resourceclaims.resource.k8s.io"
CLASS_DEVICES: Final = ".deviceclass.resource.k8s.io/devices"
USED: Final = "kubectl-dra/used"
"""An annotation of quotas that were charged with what only a manifest brings: what the cluster says is used."""
_NONE: Final = Quantity.of(0)


def needs(claims: Sequence[ResourceClaim], classes: Mapping[str, DeviceClass]) -> dict[str, int]:
    """What the claims count as, by quota key. All counts as 32 devices, a list as its largest amount per
    class.

    Devices of a class with an extended resource name also count as that resource (KEP-5004).
    """
    out = {CLAIM_COUNT: len(claims)}
    for claim in claims:
        for request in claim.requests:
            largest: dict[str, int] = {}
            for spec in request.alternatives():
                amount = MAX_RESULTS if spec.allocation_mode == ALL else spec.count
                largest[spec.device_class] = max(amount, largest.get(spec.device_class, 0))
            for name, amount in largest.items():
                for key in _keys(name, classes):
                    out[key] = out.get(key, 0) + amount
    return out


def wanted_by(claims: Sequence[ResourceClaim], snapshot: Snapshot) -> dict[str, Quantity]:
    """The same as quantities; nothing of no claims."""
    counted = needs(claims, snapshot.classes) if claims else {}
    return {key: Quantity.of(count) for key, count in counted.items()}


def _keys(name: str, classes: Mapping[str, DeviceClass]) -> Iterator[str]:
    """The quota keys under which devices of a class count."""
    yield f"{name}{CLASS_DEVICES}"
    extended = classes[name].extended_resource_name if name in classes else ""
    if extended:
        yield f"requests.{IMPLICIT_PREFIX}{name}"
        yield f"requests.{extended}"


def short_of(quota: ResourceQuota, wanted: Mapping[str, Quantity]) -> list[str]:
    """The keys of which a quota has too little left for these amounts."""
    used, hard = amounts(quota.status.used), amounts(quota.status.hard or quota.spec.hard)
    return [key for key, most in hard.items() if key in wanted and used.get(key, _NONE) + wanted[key] > most]


def charged(quota: ResourceQuota, more: Iterable[Mapping[str, Quantity]], sign: int = 1) -> ResourceQuota:
    """The quota after what it limits of these amounts was used, or is not any more; it keeps what a cluster says."""
    used, written = amounts(quota.status.used), quota.status.used
    for usage in more:
        for key in usage.keys() & (quota.status.hard or quota.spec.hard).keys():
            before = used.get(key, _NONE)
            used[key] = before + usage[key] if sign > 0 else max(_NONE, before - usage[key])
    noted = {USED: json.encode(written).decode(), **quota.metadata.annotations}
    after: dict[str, Amount] = {key: str(amount) for key, amount in used.items()}
    status = structs.replace(quota.status, used=after)
    return structs.replace(quota, metadata=structs.replace(quota.metadata, annotations=noted), status=status)


def _stored(quota: ResourceQuota, key: str) -> Quantity:
    """How much of an amount the cluster says is used: what only a manifest brings may have been charged since."""
    noted = quota.metadata.annotations.get(USED)
    return amounts(json.decode(noted) if noted else quota.status.used).get(key, _NONE)


# A manifest creates its ResourceClaims before its pods, and quotas count them.


def only_written(claim: ResourceClaim) -> bool:
    """Whether a claim is only in a manifest: a server has given it nothing yet."""
    return not (claim.metadata.uid or claim.metadata.creation_timestamp) and claim.allocation is None


def to_create(claim: ResourceClaim, snapshot: Snapshot) -> bool:
    """Whether the manifest brings a claim that the server has not created yet, whatever uid is written there."""
    key = ("ResourceClaim", claim.metadata.namespace, claim.metadata.name)
    return key in snapshot.created and claim.allocation is None and claim.metadata.uid != _created(claim)


def _created(claim: ResourceClaim) -> str:
    """The uid that stands for the one that the server gives a claim."""
    return f"created:{claim.key}"


def without_admin_label(claim: ResourceClaim, snapshot: Snapshot) -> bool:
    """Whether a claim asks for admin access in a namespace that does not allow it, as far as that was read."""
    namespace = snapshot.namespaces.get(claim.metadata.namespace)
    asks = any(spec.admin_access for spec in claim.alternatives())
    return asks and namespace is not None and namespace.labels.get(ADMIN_LABEL) != "true"


def with_created_claims(snapshot: Snapshot) -> Snapshot:
    """The cluster after the server created the claims of the manifest that quotas leave room for, one after another.

    Those have a uid then, and the quotas count them. Where a namespace has no quota, its claims stay as they are.
    """
    quotas, created = list(snapshot.quotas), list[ResourceClaim]()
    new = [claim for claim in snapshot.claims.values() if to_create(claim, snapshot)] if snapshot.created else []
    for claim in new:
        own = [at for at, quota in enumerate(quotas) if quota.metadata.namespace == claim.metadata.namespace]
        if not own or without_admin_label(claim, snapshot):
            continue
        wanted = wanted_by([claim], snapshot)
        if any(short_of(quotas[at], wanted) for at in own):
            continue
        for at in own:
            quotas[at] = charged(quotas[at], [wanted])
        metadata = structs.replace(claim.metadata, uid=_created(claim))
        created.append(structs.replace(claim, metadata=metadata))
    return Cluster(snapshot).editing(*quotas, *created).snapshot if created else snapshot


FINDERS = (
    Finder(When.QUESTION, _refused, 50),
    Finder(When.QUESTION, _not_created, 85),
)
