"""What the pod says of its claims is wrong: an object is missing, being deleted, another pod's, listed twice, or takes
no further pod.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.limits import MAX_CONSUMERS
from kubectl_dra.api.pods import Pod, owner_of
from kubectl_dra.cluster.claim_relation import (
    ClaimRelation,
    Consumers,
    all_pods_known,
    consumers_of,
    relation_of,
    waiting_for,
)
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.command import CommandLine, as_written, deleting, kubectl
from kubectl_dra.explain.analysis import Analysis
from kubectl_dra.explain.cause_kinds import CauseKind, Family, Look, NextStep
from kubectl_dra.explain.causes.node_filters import reserved_for
from kubectl_dra.explain.causes.on_node import started
from kubectl_dra.explain.causes.registry import Finder, QuestionContext, When
from kubectl_dra.explain.clock import CLAIM_CONTROLLER, Clock, under_way
from kubectl_dra.explain.diagnosis import Evidence, Finding, Remedy
from kubectl_dra.explain.holders import consumers_named, late
from kubectl_dra.explain.phrase import Joined, Phrase, Words, say, subject
from kubectl_dra.explain.question.resolve import ClaimEntry, Question, Unresolved
from kubectl_dra.text import nearest

CLAIM_MISSING = CauseKind(code="claim-missing", family=Family.POD, look=Look.POD, missing="ResourceClaim")
TEMPLATE_MISSING = CauseKind(code="template-missing", family=Family.POD, look=Look.POD, missing="ResourceClaimTemplate")
ENTRY_WITHOUT_SOURCE = CauseKind(code="claim-entry-without-source", family=Family.POD, look=Look.POD)


def _missing(context: QuestionContext) -> Iterator[Finding]:
    pod = context.question.pod
    # The claims of a pod that has ended are gone, and those of one that runs are another cause's.
    if pod is None or pod.finished or started(pod):
        return
    for claim_entry in context.question.claims:
        if claim_entry.unresolved in (Unresolved.CLAIM_MISSING, Unresolved.TEMPLATE_MISSING):
            yield _not_there(pod, claim_entry, context.snapshot, exists=context.question.exists)
        elif claim_entry.unresolved is Unresolved.MADE_CLAIM_GONE:
            names = {"namespace": context.question.namespace, "entry": claim_entry.entry, "claim": claim_entry.name}
            status = say("{entry}: {claim}", **names)
            yield Finding(
                CLAIM_MISSING,
                say("ResourceClaim {namespace}/{claim}, made for this pod, does not exist any more", **names),
                (Evidence(subject("Pod", pod), "status.resourceClaimStatuses", status),),
                Remedy("Delete the pod so that its owner makes a new one."),
                object=claim_entry.name,
                # Claims are read beside the pods: one that was just made may have been missed.
                under_way=under_way(CLAIM_CONTROLLER, pod.metadata.creation_timestamp, context.snapshot),
            )
        elif claim_entry.unresolved is Unresolved.NO_SOURCE:
            text = 'entry "{entry}" of spec.resourceClaims names neither a claim nor a template'
            field = say("spec.resourceClaims[{entry}]", entry=claim_entry.entry)
            fact = Evidence(subject("Pod", pod), field, "no resourceClaimName, no resourceClaimTemplateName")
            remedy = _name_it(pod, context.snapshot, exists=context.question.exists)
            look = NextStep(Look.WEBHOOKS) if context.question.exists else None
            yield Finding(ENTRY_WITHOUT_SOURCE, say(text, entry=claim_entry.entry), (fact,), remedy, next=look)


def _name_it(pod: Pod, snapshot: Snapshot, *, exists: bool) -> Remedy:
    """What the entry could name, and who may have dropped it."""
    here = sorted(name for space, name in snapshot.templates if space == pod.metadata.namespace)
    text = "Write resourceClaimName or resourceClaimTemplateName into {where}{hint}."
    if exists:
        text += " If the manifest has one, a mutating webhook that does not know the field has dropped it."
    hint = say(" (templates here: {here:some})", here=here) if here else ""
    return Remedy(say(text, where=_where(pod, exists=exists), hint=hint))


def _not_there(pod: Pod, claim_entry: ClaimEntry, snapshot: Snapshot, *, exists: bool) -> Finding:
    """The claim or the template that an entry names does not exist."""
    of_claim = claim_entry.unresolved is Unresolved.CLAIM_MISSING
    claims = ("ResourceClaim", "resourceClaimName", snapshot.claims)
    templates = ("ResourceClaimTemplate", "resourceClaimTemplateName", snapshot.templates)
    (kind, field, known), (other, other_field, others) = (claims, templates) if of_claim else (templates, claims)
    namespace, name = pod.metadata.namespace, claim_entry.name if of_claim else claim_entry.template
    here = [own for space, own in known if space == namespace]
    near = nearest(name, here)
    elsewhere = sorted(space for space, own in known if own == name)
    names = {
        "kind": kind,
        "field": field,
        "other": other,
        "other_field": other_field,
        "namespace": namespace,
        "name": name,
        "near": near,
        "elsewhere": elsewhere,
        "here": sorted(here),
        "count": len(here),
        "where": _where(pod, exists=exists),
        "first": near[0] if near else "",
    }
    hints: list[Phrase] = []
    looks: tuple[CommandLine, ...] = ()
    change = "Create {kind} {name} in namespace {namespace}; the claim follows."
    if of_claim:
        change = "Create {kind} {name} in namespace {namespace}, or name an existing one in {where}."
    elif here:
        change = (
            "Create {kind} {name} in namespace {namespace}, or correct the name in {where}: there {count:is|are} "
            "{here:some 3}. The claim follows."
        )
    if near:
        change = "Write {field}: {first} in {where}. Or: create {kind} {name} in namespace {namespace}"
        change += "." if of_claim else "; the claim is created after that."
    if (namespace, name) in others:
        hints = [say("; {name} is a {other}: use {other_field}", **names)]
        change = "Write {other_field}: {name} instead of {field} in {where}."
    else:
        if elsewhere and not (of_claim and near):
            hints.append(say("; one of that name is in namespace {elsewhere}", **names))
        if elsewhere and not of_claim:
            looks = (as_written("resourceclaimtemplate", name, elsewhere[0]),)
            names["there"] = elsewhere[0]
            change = change if near else "Create {kind} {name} in namespace {namespace} as it is in {there}."
        if near:
            hints.append(say("; did you mean {near:or}?", **names))
        elif here and not of_claim:
            hints.append(say("; templates here: {here:some}", **names))
    if written := _of_manifest(kind, name, elsewhere, snapshot):
        names["written"], looks = written, ()
        hints = [say("; the manifest has one of that name in namespace {written}", **names)]
        change = "Write metadata.namespace: {namespace} into {kind} {name} of the manifest."
    field_of_entry = say("spec.resourceClaims[{entry}].{field}", entry=claim_entry.entry, field=field)
    return Finding(
        CLAIM_MISSING if of_claim else TEMPLATE_MISSING,
        say("{kind} {namespace}/{name} does not exist{hint}", hint=Joined(tuple(hints), ""), **names),
        (Evidence(subject("Pod", pod), field_of_entry, name),),
        Remedy(say(change, **names), commands=looks),
        object=name,
    )


def _of_manifest(kind: str, name: str, namespaces: Iterable[str], snapshot: Snapshot) -> str:
    """The first of these namespaces in which only a manifest has the object; empty where it has it in none."""
    known = snapshot.templates if kind == "ResourceClaimTemplate" else snapshot.claims
    made = ((space, known.get((space, name))) for space in namespaces if (kind, space, name) in snapshot.written)
    # What the cluster has already keeps its uid.
    return next((space for space, there in made if there is None or not there.metadata.uid), "")


def _where(pod: Pod, *, exists: bool) -> Words:
    if not exists:
        return "the manifest"
    from kubectl_dra.explain.remedies.claim_edits import place_to_edit

    return place_to_edit(pod, "resourceClaims") if owner_of(pod) is not None else "a new pod"


# Two entries of the pod refer to the same claim.

TWICE = CauseKind(code="claim-listed-twice", family=Family.CLAIM, look=Look.POD)


def _twice(context: QuestionContext) -> Iterator[Finding]:
    pod = context.question.pod
    seen: dict[str, str] = {}
    for claim_entry in context.question.claims if pod is not None else ():
        if claim_entry.claim is None or claim_entry.hypothetical or pod is None:
            continue
        first = seen.setdefault(claim_entry.claim.key, claim_entry.entry)
        if first is not claim_entry.entry:
            names = {"first": first, "second": claim_entry.entry, "claim": claim_entry.claim.key}
            fact = Evidence(subject("Pod", pod), "spec.resourceClaims", say("{first}, {second}", **names))
            yield Finding(
                TWICE, say('entries "{first}" and "{second}" are both ResourceClaim {claim}', **names), (fact,)
            )


# The claim with the pod's generated name belongs to an earlier pod.

CLAIM_NOT_OWNED = CauseKind(code="claim-of-another-pod", family=Family.POD, look=Look.POD)


def _not_owned(context: QuestionContext) -> Iterator[Finding]:
    for claim_entry in context.question.claims:
        claim, pod = claim_entry.claim, context.question.pod
        if claim is None or pod is None or claim_entry.unresolved is not Unresolved.OF_ANOTHER_POD:
            continue
        owner = claim.metadata.controller()
        uid = owner.uid if owner else "none"
        facts = (
            Evidence(subject("ResourceClaim", claim), "metadata.ownerReferences[controller].uid", uid),
            Evidence(subject("Pod", pod), "metadata.uid", pod.metadata.uid),
        )
        summary = say("ResourceClaim {claim} belongs to another pod of that name", claim=claim.key)
        yield Finding(CLAIM_NOT_OWNED, summary, facts, Remedy(CLAIM_NOT_OWNED.fix, commands=(_delete(claim),)))


def _delete(claim: ResourceClaim) -> CommandLine:
    return deleting("resourceclaim", claim.metadata.name, claim.metadata.namespace)


# A claim fits, but no pod refers to it.

NOBODY_CONSUMES = CauseKind(code="no-consumer", family=Family.POD, look=Look.POD)


def _nobody(analysis: Analysis) -> Iterator[Finding]:
    question, snapshot = analysis.question, analysis.snapshot
    if question.pod is not None or not question.exists or snapshot.missing("Pod") is not None:
        return
    claim = analysis.claims[0]
    if waiting_for(claim, snapshot):
        return
    names = {"namespace": claim.metadata.namespace, "name": claim.metadata.name}
    fact = Evidence(say("Pods in {namespace}", **names), "spec.resourceClaims", say("none names {name}", **names))
    summary = say("no pod in namespace {namespace} uses claim {name}", **names)
    yield Finding(NOBODY_CONSUMES, summary, (fact,), claim=claim.key)


# A claim is being deleted and will never be allocated again.

CLAIM_DELETING = CauseKind(code="claim-being-deleted", family=Family.POD, look=Look.POD)
PROTECTION = "resource.kubernetes.io/delete-protection"
"""kube-controller-manager removes it when no pod uses the claim any more."""
_HAS = frozenset((ClaimRelation.RUNNING, ClaimRelation.ENDING))


def _deleting(context: QuestionContext) -> Iterator[Finding]:
    for claim in context.question.existing_claims:
        since = claim.metadata.deletion_timestamp
        # It stays for the pods that have it.
        if not since or (context.question.pod is not None and relation_of(claim, context.question.pod) in _HAS):
            continue
        own = subject("ResourceClaim", claim)
        finalizers = say("{names: else none}", names=tuple(claim.metadata.finalizers))
        complete = all_pods_known(context.snapshot, claim.metadata.namespace)
        listed = consumers_of(claim, context.snapshot.pods, complete=complete)
        users = _users(listed, context.question)
        first = next(iter(claim.reserved_for), None)
        text = "ResourceClaim {claim} is being deleted"
        if users:
            text += ", and {users:some} still {count:uses|use} it"
        yield Finding(
            CLAIM_DELETING,
            say(text, claim=claim.key, users=users, count=len(users)),
            (
                Evidence(own, "metadata.deletionTimestamp", since),
                reserved_for(claim),
                Evidence(own, "metadata.finalizers", finalizers),
            ),
            _remedy(listed, users, context.snapshot),
            next=NextStep(Look.POD, first.name, claim.metadata.namespace) if users and first is not None else None,
            # The pods that have it keep its devices; nobody else gets them.
            state="takes no further pod" if claim.allocation is not None and context.question.pod is None else "",
        )


def _users(listed: Consumers, question: Question) -> list[Phrase]:
    """The pods that keep the claim, with what they do; none where something else than pods does, or this pod alone."""
    if question.pod is not None and relation_of(listed.claim, question.pod).listed:
        return []
    out: list[Phrase] = []
    for use in listed.entries:
        if not use.relation.of_pod:
            return []
        since = use.pod.metadata.deleted_at if use.pod is not None else ""
        text = "pod {name} (Terminating since {since})" if since else "pod {name}"
        if not use.relation.stale:
            out.append(say(text, name=use.entry.name, since=since))
    return out


def _remedy(listed: Consumers, users: Sequence[Phrase], snapshot: Snapshot) -> Remedy | None:
    """What is known of why the claim stays. That its pods end is enough only where no other finalizer keeps it."""
    claim = listed.claim
    others = tuple(name for name in claim.metadata.finalizers if name != PROTECTION)
    words = {"users": list(users), "others": others, "count": len(users), "kept": len(others)}
    kept = say(" Besides, {others:some} {kept:keeps|keep} it: see which controller has to remove that.", **words)
    further: Words = kept if others else ""
    if listed.entries and all(use.relation.stale for use in listed.entries):
        text = (
            "Wait a few seconds: its pods have ended, and kube-controller-manager then releases the claim. If it "
            "stays, see whether kube-controller-manager runs.{further}"
        )
        return Remedy(say(text, further=further))
    if not claim.reserved_for and others:
        text = (
            "No pod keeps it, but finalizer {others:some} does: see which controller has to remove {kept:it|them}, "
            "and why it has not."
        )
        look = as_written("resourceclaim", claim.metadata.name, claim.metadata.namespace)
        return Remedy(say(text, **words), commands=(look,))
    if not users:
        return None
    ending = [pod for pod in listed.pods if pod.metadata.deletion_timestamp]
    overdue = late(ending, Clock(snapshot))
    text = "Wait until {users:some} {count:has|have} ended: the claim is removed after that."
    if not ending:
        text = "End {users:some}, or wait: the claim is removed after that."
    elif overdue:
        text = "Get {users:some} to end (the grace period ended {overdue}): the claim is removed after that."
    text += (
        " Or delete this pod: the next one gets a claim of its own.{further}"
        if claim.metadata.controller() is not None
        else " Then create the claim again. Or name another claim in a new pod.{further}"
    )
    space, names = claim.metadata.namespace, [pod.metadata.name for pod in ending if overdue]
    looks = tuple(kubectl("dra", "explain", kind="pod", name=name, namespace=space) for name in names)
    return Remedy(say(text, further=further, overdue=overdue, **words), commands=looks)


# A claim of the pod takes no further consumer: it is full, or was allocated in a way that cannot be added to.

TOO_MANY_CONSUMERS = CauseKind(code="claim-consumers-exhausted", family=Family.CLAIM, look=Look.POD)
WITHOUT_TIME = CauseKind(code="allocation-without-timestamp", family=Family.CLAIM, look=Look.CLAIM, never_binds=True)


def _full(context: QuestionContext) -> Iterator[Finding]:
    if (pod := context.question.waiting_pod) is None:
        return
    for claim in context.question.existing_claims:
        count = len(claim.reserved_for)
        if count >= MAX_CONSUMERS and not relation_of(claim, pod).listed:
            text = "claim {claim} has {count} consumers, and no claim can have more"
            facts = Evidence(subject("ResourceClaim", claim), "status.reservedFor", say("{count} entries", count=count))
            yield Finding(TOO_MANY_CONSUMERS, say(text, claim=claim.key, count=count), (facts,), claim=claim.key)


def _without_time(analysis: Analysis) -> Iterator[Finding]:
    pod = analysis.pod
    if pod is None or pod.node_name or not analysis.allocated:
        return
    from kubectl_dra.scheduling.binding import takes_no_pod

    for claim in analysis.allocated:
        if takes_no_pod(claim, analysis.view.cycle.features) and not relation_of(claim, pod).listed:
            yield _takes_no_pod(claim)


def _takes_no_pod(claim: ResourceClaim) -> Finding:
    own, users = subject("ResourceClaim", claim), consumers_named(claim)
    text = "claim {claim} was allocated without a timestamp, and the scheduler can add no further pod to such a claim"
    change = (
        "Let {users:some} end: the claim then gives its devices back, and is allocated anew for the next pod. If they "
        "cannot end, start kube-scheduler with --feature-gates=DRADeviceBindingConditions=false until they have."
    )
    if not users:
        change = "Delete the claim and create it again."
    facts = (Evidence(own, "status.allocation.allocationTimestamp", "not set"), reserved_for(claim))
    remedy = Remedy(say(change, users=users), commands=() if users else (_delete(claim),))
    return Finding(WITHOUT_TIME, say(text, claim=claim.key), facts, remedy, claim=claim.key)


FINDERS = (
    Finder(When.QUESTION, _missing, 80),
    Finder(When.QUESTION, _twice, 70),
    Finder(When.QUESTION, _not_owned, 82),
    Finder(When.FITS, _nobody, 10),
    Finder(When.QUESTION, _deleting, 84),
    Finder(When.QUESTION, _full, 40),
    Finder(When.FITS, _without_time, 5),
)
