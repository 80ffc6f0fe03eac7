"""Extended resources that devices serve, or a device plugin does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from kubectl_dra.allocation.extended_resources import (
    CLAIM_NAME,
    IMPLICIT_PREFIX,
    MADE_FOR_EXTENDED,
    amount_of,
    class_by_resource,
    eligible_name,
    resources_of,
)
from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.command import deleting
from kubectl_dra.exit_codes import Verdict
from kubectl_dra.explain.analysis import Analysis
from kubectl_dra.explain.cause_kinds import CauseKind, Family, Look
from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.diagnosis import Evidence, Finding, Remedy
from kubectl_dra.explain.node_reasons import ResourceShort
from kubectl_dra.explain.outcomes import choice
from kubectl_dra.explain.phrase import ObjectName, Subject, Words, by_name, say, subject, the_node
from kubectl_dra.text import edit_distance, nearest

STALE_CLAIM = CauseKind(code="extended-resource-claim-stale", family=Family.EXTENDED, look=Look.RESOURCES_OF_CLASSES)


def _left_over(analysis: Analysis) -> Iterator[Finding]:
    pod = analysis.question.waiting_pod
    if pod is None or not pod.metadata.uid:
        return
    for claim in analysis.snapshot.claims.values():
        owner = claim.metadata.controller()
        of_scheduler = claim.metadata.annotations.get(MADE_FOR_EXTENDED) == "true"
        if not of_scheduler or owner is None or owner.uid != pod.metadata.uid:
            continue
        own = subject("ResourceClaim", claim)
        text = "claim {claim}, made by the scheduler for extended resources of the pod, is of an earlier attempt"
        facts = (
            Evidence(own, say("annotation {name}", name=MADE_FOR_EXTENDED), "true"),
            Evidence(own, "status.allocation", "set" if claim.allocation is not None else "not set"),
            Evidence(subject("Pod", pod), "spec.nodeName", "not set"),
        )
        delete = deleting("resourceclaim", claim.metadata.name, claim.metadata.namespace)
        remedy = Remedy(STALE_CLAIM.fix, commands=(delete,))
        yield Finding(STALE_CLAIM, say(text, claim=claim.key), facts, remedy, claim=claim.key)


# Another class of the same extended resource would serve the pod, but is not used.

TWO_CLASSES = CauseKind(code="extended-resource-two-classes", family=Family.EXTENDED, look=Look.RESOURCES_OF_CLASSES)


def _two_classes(analysis: Analysis) -> Iterator[Finding]:
    extended = analysis.extended
    for resource, winner in extended.classes.items() if extended else ():
        for other in sorted(analysis.view.cycle.classes.values(), key=lambda device_class: device_class.name):
            if other.extended_resource_name != resource or other is winner:
                continue
            claims = [_of_class(claim, winner.name, other.name) for claim in analysis.claims]
            proof = analysis.what_if.asking(claims).proof()
            if proof is None:
                continue
            names = {"winner": winner.name, "other": other.name, "resource": resource}
            text = (
                "DeviceClasses {winner} and {other} both offer {resource}; {winner} serves it, but has too few "
                "devices, and {other} is not asked"
            )
            field = "metadata.creationTimestamp"
            facts = tuple(
                Evidence(by_name("DeviceClass", known.name), field, known.metadata.creation_timestamp or "not set")
                for known in (winner, other)
            )
            change = say("Remove extendedResourceName {resource} from DeviceClass {winner}.", **names)
            yield Finding(TWO_CLASSES, say(text, **names), facts, Remedy(change, proof))
            return


def _of_class(claim: ResourceClaim, old: str, new: str) -> ResourceClaim:
    """The claim for extended resources with one class replaced; other claims unchanged."""
    if claim.metadata.name != CLAIM_NAME:
        return claim
    requests = [
        replace(request, exactly=replace(request.exactly, device_class=new))
        if request.exactly is not None and request.exactly.device_class == old
        else request
        for request in claim.requests
    ]
    return replace(claim, requests=tuple(requests))


# Nothing serves an extended resource of the pod: neither a device plugin nor an eligible class.

UNBACKED = CauseKind(code="extended-resource-unknown", family=Family.EXTENDED, look=Look.RESOURCES_OF_CLASSES)
GATE_OFF = CauseKind(code="extended-resource-gate-off", family=Family.EXTENDED, look=Look.RESOURCES_OF_CLASSES)
NOT_ELIGIBLE = CauseKind(
    code="extended-resource-name-not-eligible", family=Family.EXTENDED, look=Look.RESOURCES_OF_CLASSES
)


def _unserved(analysis: Analysis) -> Iterator[Finding]:
    """Extended resources of the pod that no node's device plugin offers and no class serves."""
    pod, nodes = analysis.question.waiting_pod, analysis.snapshot.nodes.values()
    if pod is None or not any(node.allocatable for node in nodes):
        return
    if analysis.snapshot.missing("DeviceClass"):
        return
    classes, release = analysis.view.cycle.classes, str(analysis.scheduler.release)
    backed = class_by_resource(classes)
    for resource in resources_of(pod):
        if _offering(resource, analysis.snapshot):
            continue
        device_class = backed.get(resource)
        field = say("status.allocatable {resource}", resource=resource)
        nowhere = Evidence(say("{count:node}", count=len(nodes)), field, "none")
        if device_class is None:
            names = sorted((known.name, known.extended_resource_name or "not set") for known in classes.values())
            pair = "{name} ({resource})"
            listed = [say(pair, name=ObjectName("DeviceClass", name), resource=own) for name, own in names]
            have = say("{listed:some else no DeviceClass}", listed=listed)
            text = "no node offers {resource} by a device plugin, and no DeviceClass names it"
            facts = (nowhere, Evidence("DeviceClasses", "spec.extendedResourceName", have))
            yield Finding(UNBACKED, say(text, resource=resource), facts, _name_meant(resource, classes, backed))
        elif not analysis.view.cycle.features.extended_resources:
            text = (
                "DeviceClass {name} offers {resource}, but the feature gate DRAExtendedResource is off (Kubernetes "
                "{release})"
            )
            change = (
                "Ask with a claim of class {name} instead of {resource}; kubectl dra migrate rewrites manifests so. Or "
                "turn the gate on in every component: it is on by default from 1.36."
            )
            words = {"name": device_class.name, "resource": resource, "release": release}
            off = Evidence(Subject("Kubernetes", release), "feature gate DRAExtendedResource", "off")
            yield Finding(GATE_OFF, say(text, **words), (nowhere, off), Remedy(say(change, **words)))


def _offering(resource: str, snapshot: Snapshot) -> list[str]:
    """The nodes whose device plugin offers a resource."""
    return [name for name, node in snapshot.nodes.items() if amount_of(node.allocatable.get(resource))]


def _name_meant(resource: str, classes: Iterable[str], offered: Iterable[str]) -> Remedy | None:
    """To ask by the name that is nearly the same, of a class or of a resource that a class offers."""
    near: Iterable[str]
    if resource.startswith(IMPLICIT_PREFIX):
        near = [f"{IMPLICIT_PREFIX}{name}" for name in nearest(resource.removeprefix(IMPLICIT_PREFIX), classes, 1)]
    else:
        near = [name for name in offered if edit_distance(resource, name, 2) is not None][:1]
    text = "Write {near} if that is meant. If not: {fix}"
    return next((Remedy(say(text, near=name, fix=UNBACKED.fix)) for name in near), None)


def _not_eligible(analysis: Analysis) -> Iterator[Finding]:
    """Resources that no node offers, and a class only under a name that devices cannot serve."""
    if (pod := analysis.question.waiting_pod) is None:
        return
    requested = {name for container in pod.containers for name, value in container.requests.items() if amount_of(value)}
    for device_class in sorted(analysis.view.cycle.classes.values(), key=lambda device_class: device_class.name):
        resource = device_class.extended_resource_name
        if resource not in requested or eligible_name(resource):
            continue
        if _offering(resource, analysis.snapshot):
            continue
        text = "DeviceClass {name} offers {resource}, but devices cannot serve a resource of that name"
        fact = Evidence(by_name("DeviceClass", device_class.name), "spec.extendedResourceName", resource)
        yield Finding(NOT_ELIGIBLE, say(text, name=device_class.name, resource=resource), (fact,))


# Every node whose device plugin offers an extended resource has too little of it left.

MAX_NODES = 6
PLUGIN_EXHAUSTED = CauseKind(code="device-plugin-exhausted", family=Family.EXTENDED, look=Look.ALL_PODS)


def _exhausted(analysis: Analysis) -> Iterator[Finding]:
    pod = analysis.pod
    if analysis.view.nodes or pod is None:
        return
    for resource in resources_of(pod):
        offering = _offering(resource, analysis.snapshot)
        reasons = {name: analysis.view.ineligible.get(name) for name in offering}
        short = {
            name: reason
            for name, reason in reasons.items()
            if isinstance(reason, ResourceShort) and reason.name == resource
        }
        if not short or len(short) < len(offering):
            continue
        where: Words = say("each of the {count} nodes that offer it", count=len(short))
        if len(short) == 1:
            where = "the only node that offers it"
        text = "too little {resource} is left on {where} by device plugin: {first}"
        summary = say(text, resource=resource, where=where, first=next(iter(short.values())).numbers)
        facts = (Evidence(the_node(name), resource, reason) for name, reason in list(short.items())[:MAX_NODES])
        yield Finding(PLUGIN_EXHAUSTED, summary, tuple(facts))
        return


# A pod with a claim and an extended resource fits only where a device plugin serves the resource.

MIXED = CauseKind(
    code="claim-and-device-plugin", family=Family.EXTENDED, look=Look.RESOURCES_OF_CLASSES, never_binds=True
)


def never_bound(analysis: Analysis) -> set[str]:
    """Nodes that pass the filters and then fail to bind (``ExtendedRequests.never_binds``)."""
    extended = analysis.extended
    if extended is None:
        return set()
    return {name for name in analysis.fitting if extended.never_binds(analysis.view.node_by_name[name])}


def _mixed(analysis: Analysis) -> Iterator[Finding]:
    never, extended = never_bound(analysis), analysis.extended
    if not never or extended is None:
        return
    text = (
        "the pod uses claims and {resources}, and fits only on nodes that serve {resources} by device plugin: "
        "{nodes:some}"
    )
    if not set(analysis.fitting) - set(analysis.unavailable) <= never:
        # It would fit elsewhere, but each attempt takes the node that scores best.
        chosen = choice(analysis, Verdict.SCHEDULABLE)
        if chosen is None or not chosen.certain or not never.issuperset(chosen.nodes):
            return
        never = set(chosen.nodes)
        text = (
            "the pod uses claims and {resources}, and the scheduler takes {nodes:some}, which scores best and serves "
            "{resources} by device plugin"
        )
    resources = sorted(extended.amounts)
    facts = []
    for name in sorted(never)[:MAX_NODES]:
        amounts = analysis.view.node_by_name[name].allocatable
        for resource in resources:
            field = say("status.allocatable {resource}", resource=resource)
            facts.append(Evidence(the_node(name), field, str(amounts.get(resource))))
    yield Finding(MIXED, say(text, resources=resources, nodes=sorted(never)), tuple(facts))


FINDERS = (
    Finder(When.FITS, _left_over, 50),
    Finder(When.REQUESTS, _two_classes),
    Finder(When.SCENE, _unserved, 10),
    Finder(When.SCENE, _not_eligible, 30),
    Finder(When.FAILS, _exhausted, 20),
    Finder(When.FITS, _mixed, 30),
)
