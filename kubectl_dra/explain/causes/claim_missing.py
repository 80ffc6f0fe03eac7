"""An entry of the pod names an object that does not exist, or names nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kubectl_dra.api.pods import Pod
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.diagnosis import CauseKind, Evidence, Family, Finding, Look, NextStep, Remedy
from kubectl_dra.explain.phrase import Joined, Phrase, Subject, Words, named, say
from kubectl_dra.explain.question.resolve import ClaimEntry, Question, Unresolved
from kubectl_dra.explain.scene.clock import CLAIM_CONTROLLER, under_way
from kubectl_dra.names import nearest

CLAIM_MISSING = CauseKind(code="claim-missing", family=Family.POD, look=Look.POD, missing="ResourceClaim")
TEMPLATE_MISSING = CauseKind(code="template-missing", family=Family.POD, look=Look.POD, missing="ResourceClaimTemplate")
ENTRY_WITHOUT_SOURCE = CauseKind(code="claim-entry-without-source", family=Family.POD, look=Look.POD)


def _missing(question: Question, snapshot: Snapshot, _: Sequence[Finding]) -> Iterator[Finding]:
    pod = question.pod
    for entry in question.claims if pod is not None else ():
        if pod is None:
            return
        if entry.unresolved is Unresolved.CLAIM_MISSING:
            yield _claim(pod, entry, snapshot, exists=question.exists)
        elif entry.unresolved is Unresolved.TEMPLATE_MISSING:
            yield _template(pod, entry, snapshot, exists=question.exists)
        elif entry.unresolved is Unresolved.MADE_CLAIM_GONE:
            status = say("{entry}: {claim}", entry=entry.entry, claim=entry.name)
            yield Finding(
                CLAIM_MISSING,
                say(
                    "ResourceClaim {namespace}/{claim}, made for this pod, does not exist any more",
                    namespace=question.namespace,
                    claim=entry.name,
                ),
                (Evidence(Subject("Pod", named("Pod", pod)), "status.resourceClaimStatuses", status),),
                Remedy("Delete the pod so that its owner makes a new one."),
                object=entry.name,
                # Claims are read beside the pods: one that was just made may have been missed.
                under_way=under_way(CLAIM_CONTROLLER, pod.metadata.creation_timestamp, snapshot),
            )
        elif entry.unresolved is Unresolved.NO_SOURCE:
            yield Finding(
                ENTRY_WITHOUT_SOURCE,
                say('entry "{entry}" of spec.resourceClaims names neither a claim nor a template', entry=entry.entry),
                (
                    Evidence(
                        Subject("Pod", named("Pod", pod)),
                        say("spec.resourceClaims[{entry}]", entry=entry.entry),
                        "no resourceClaimName, no resourceClaimTemplateName",
                    ),
                ),
                _name_it(pod, snapshot, exists=question.exists),
                next=NextStep(Look.WEBHOOKS) if question.exists else None,
            )


def _name_it(pod: Pod, snapshot: Snapshot, *, exists: bool) -> Remedy:
    """What the entry could name, and who may have dropped it."""
    here = sorted(name for space, name in snapshot.templates if space == pod.metadata.namespace)
    text = "Write resourceClaimName or resourceClaimTemplateName into {where}{hint}."
    if exists:
        text += " If the manifest has one, a mutating webhook that does not know the field has dropped it."
    hint = say(" (templates here: {here:some})", here=here) if here else ""
    return Remedy(say(text, where=_where(exists), hint=hint))


def _claim(pod: Pod, entry: ClaimEntry, snapshot: Snapshot, *, exists: bool) -> Finding:
    namespace, name = pod.metadata.namespace, entry.name
    near = nearest(name, [other for space, other in snapshot.claims if space == namespace])
    elsewhere = sorted(space for space, other in snapshot.claims if other == name)
    names = {"namespace": namespace, "name": name, "near": near, "elsewhere": elsewhere, "where": _where(exists)}
    hint: Words = ""
    change = say("Create ResourceClaim {name} in namespace {namespace}, or name an existing one in a new pod.", **names)
    if near:
        change = say(
            "Write resourceClaimName: {first} in {where}. Or: create ResourceClaim {name} in namespace {namespace}.",
            first=near[0],
            **names,
        )
    if (namespace, name) in snapshot.templates:
        hint = say("; {name} is a ResourceClaimTemplate: use resourceClaimTemplateName", **names)
        change = say("Write resourceClaimTemplateName: {name} instead of resourceClaimName in a new pod.", **names)
    elif near:
        hint = say("; nearest: {near}", **names)
    elif elsewhere:
        hint = say("; one of that name is in namespace {elsewhere}", **names)
    return Finding(
        CLAIM_MISSING,
        say("ResourceClaim {namespace}/{name} does not exist{hint}", hint=hint, **names),
        (_named(pod, entry, "resourceClaimName", name),),
        Remedy(change),
        object=name,
    )


def _template(pod: Pod, entry: ClaimEntry, snapshot: Snapshot, *, exists: bool) -> Finding:
    namespace, name = pod.metadata.namespace, entry.template
    here = sorted(other for space, other in snapshot.templates if space == namespace)
    near = nearest(name, [other for space, other in snapshot.templates if space == namespace])
    elsewhere = sorted(space for space, other in snapshot.templates if other == name)
    names = {"namespace": namespace, "name": name, "near": near, "elsewhere": elsewhere, "where": _where(exists)}
    hint: list[Phrase] = []
    change = say("Create ResourceClaimTemplate {name} in namespace {namespace}; the claim follows by itself.", **names)
    if near:
        change = say(
            "Write resourceClaimTemplateName: {first} in {where}. Or: create ResourceClaimTemplate {name} in namespace "
            "{namespace}; the claim follows by itself.",
            first=near[0],
            **names,
        )
    if (namespace, name) in snapshot.claims:
        hint = [say("; {name} is a ResourceClaim: use resourceClaimName", **names)]
        change = say("Write resourceClaimName: {name} instead of resourceClaimTemplateName in a new pod.", **names)
    else:
        if near:
            hint.append(say("; nearest: {near}", **names))
        elif here:
            hint.append(say("; templates here: {here:some}", here=here))
        if elsewhere:
            hint.append(say("; one of that name is in namespace {elsewhere}", **names))
    return Finding(
        TEMPLATE_MISSING,
        say("ResourceClaimTemplate {namespace}/{name} does not exist{hint}", hint=Joined(tuple(hint), ""), **names),
        (_named(pod, entry, "resourceClaimTemplateName", name),),
        Remedy(change),
        object=name,
    )


def _where(exists: bool) -> str:
    return "a new pod" if exists else "the manifest"


def _named(pod: Pod, entry: ClaimEntry, field: str, name: str) -> Evidence:
    path = say("spec.resourceClaims[{entry}].{field}", entry=entry.entry, field=field)
    return Evidence(Subject("Pod", named("Pod", pod)), path, name)


FINDERS = (Finder(When.QUESTION, _missing, 80),)
