"""Causes in extended resources: nothing serves them, the device plugin is out of them, or two classes do."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from kubectl_dra.allocation.attempt import Attempt
from kubectl_dra.allocation.attempt import Verdict as Outcome
from kubectl_dra.allocation.extended import CLAIM_NAME, MADE_FOR_EXTENDED, amount_of, class_by_resource, eligible_name
from kubectl_dra.api.claims import DeviceRequest, Request, ResourceClaim
from kubectl_dra.api.pods import Pod
from kubectl_dra.explain.causes import extended
from kubectl_dra.explain.diagnosis import Cause, Evidence
from kubectl_dra.explain.remedies.prove import WhatIf
from kubectl_dra.explain.scene.prepare import Case
from kubectl_dra.wording import amount, join, some

MAX_NODES = 6


def resources_of(pod: Pod) -> list[str]:
    """The extended resources that a pod asks for, by name."""
    return sorted(
        {
            name
            for container in pod.containers
            for name, value in container.requests.items()
            if eligible_name(name) and amount_of(value)
        }
    )


def unserved(case: Case) -> Iterator[Cause]:
    """Extended resources of the pod that no node's device plugin offers and no class serves."""
    pod = case.question.pod
    nodes = case.snapshot.nodes.values()
    if pod is None or pod.node_name or not any(node.allocatable for node in nodes):
        return
    if case.snapshot.missing("DeviceClass"):
        return
    backed = class_by_resource(case.view.cycle.classes)
    for resource in resources_of(pod):
        if any(amount_of(node.allocatable.get(resource)) for node in nodes):
            continue
        device_class = backed.get(resource)
        nowhere = Evidence(amount(len(nodes), "node"), f"status.allocatable {resource}", "none")
        if device_class is None:
            names = [
                f"{entry.name} ({entry.extended_resource_name or 'not set'})"
                for entry in case.view.cycle.classes.values()
            ]
            have = Evidence("DeviceClasses", "spec.extendedResourceName", some(sorted(names)) or "no DeviceClass")
            kind = extended.UNBACKED
            yield Cause(
                kind,
                f"no node offers {resource} by a device plugin, and no DeviceClass names it",
                (nowhere, have),
                kind.fix,
            )
        elif not case.view.cycle.features.extended_resources:
            kind = extended.GATE_OFF
            gate = Evidence(f"Kubernetes {case.settings.release}", "feature gate DRAExtendedResource", "off")
            yield Cause(
                kind,
                f"DeviceClass {device_class.name} offers {resource}, but DRAExtendedResource is off",
                (nowhere, gate),
                kind.fix,
            )


def not_eligible(case: Case) -> Iterator[Cause]:
    """Resources that a class offers under a name which devices cannot serve, and no node offers."""
    pod = case.question.pod
    if pod is None or pod.node_name:
        return
    asked = {name for container in pod.containers for name, value in container.requests.items() if amount_of(value)}
    for device_class in sorted(case.view.cycle.classes.values(), key=lambda entry: entry.name):
        resource = device_class.extended_resource_name
        if resource not in asked or eligible_name(resource):
            continue
        if any(amount_of(node.allocatable.get(resource)) for node in case.snapshot.nodes.values()):
            continue
        kind = extended.NOT_ELIGIBLE
        yield Cause(
            kind,
            f"DeviceClass {device_class.name} offers {resource}, but devices cannot serve a resource of that name",
            (Evidence(f"DeviceClass {device_class.name}", "spec.extendedResourceName", resource),),
            kind.fix,
        )


def left_over(case: Case) -> Iterator[Cause]:
    """A claim that the scheduler made for extended resources in an attempt that did not end."""
    pod = case.question.pod
    if pod is None or pod.node_name or pod.finished or not pod.metadata.uid:
        return
    for claim in case.snapshot.claims.values():
        owner = claim.metadata.controller()
        made = claim.metadata.annotations.get(MADE_FOR_EXTENDED) == "true"
        if not made or owner is None or owner.uid != pod.metadata.uid:
            continue
        kind = extended.STALE_CLAIM
        state = "set" if claim.allocation is not None else "not set"
        yield Cause(
            kind,
            f"claim {claim.key}, which the scheduler made for the pod's extended resources, is left from an earlier "
            "attempt",
            (
                Evidence(f"ResourceClaim {claim.key}", f"annotation {MADE_FOR_EXTENDED}", "true"),
                Evidence(f"ResourceClaim {claim.key}", "status.allocation", state),
                Evidence(f"Pod {pod.key}", "spec.nodeName", "not set"),
            ),
            f"{kind.fix} kubectl delete resourceclaim -n {claim.metadata.namespace} {claim.metadata.name}",
            claim=claim.key,
        )


def plugin_exhausted(case: Case) -> Cause | None:
    """The cause where every node that offers a resource by a device plugin has too little of it left."""
    pod = case.question.pod
    for resource in resources_of(pod) if pod is not None else ():
        offering = [node for node in case.snapshot.nodes.values() if amount_of(node.allocatable.get(resource))]
        reasons = {node.name: case.view.ineligible.get(node.name, "") for node in offering}
        short = {name: reason for name, reason in reasons.items() if reason.startswith(f"Insufficient {resource}:")}
        if not short or len(short) < len(offering):
            continue
        kind = extended.PLUGIN_EXHAUSTED
        first = next(iter(short.values())).removeprefix(f"Insufficient {resource}: ")
        where = "the only node that offers it" if len(short) == 1 else f"each of the {len(short)} nodes that offer it"
        return Cause(
            kind,
            f"too little {resource} is left on {where} by device plugin: {first}",
            tuple(Evidence(f"node {name}", resource, reason) for name, reason in list(short.items())[:MAX_NODES]),
            kind.fix,
        )
    return None


def never_bound(case: Case, attempts: Mapping[str, Attempt]) -> set[str]:
    """Nodes that pass the filter and then fail to bind: a claim, and extended resources served by a device plugin.

    Such a pod gets an empty claim for its extended resources there, which the scheduler refuses to record.
    """
    pod = case.question.pod
    if case.extended is None or pod is None or not pod.claims:
        return set()
    return {
        name
        for name, attempt in attempts.items()
        if attempt.verdict is Outcome.ALLOCATED and not case.delegated(case.view.node_by_name[name])
    }


def mixed(case: Case, nodes: Collection[str]) -> Cause:
    """The cause where only nodes of ``never_bound`` would fit."""
    assert case.extended is not None
    kind = extended.MIXED
    resources = join(sorted(case.extended.amounts))
    return Cause(
        kind,
        f"the pod uses claims and {resources}, and fits only on nodes that serve {resources} by device plugin: "
        f"{some(sorted(nodes))}",
        tuple(
            Evidence(f"node {name}", f"status.allocatable {resource}", str(node.allocatable.get(resource)))
            for name in sorted(nodes)[:MAX_NODES]
            for resource in sorted(case.extended.amounts)
            if (node := case.view.node_by_name[name])
        ),
        kind.fix,
    )


def two_classes(case: Case, whatif: WhatIf) -> Cause | None:
    """The cause where another class of the same resource name would serve the pod, but is not asked."""
    if case.extended is None:
        return None
    for resource, winner in case.extended.classes.items():
        for other in sorted(case.view.cycle.classes.values(), key=lambda entry: entry.name):
            if other.extended_resource_name != resource or other is winner:
                continue
            proof = whatif.with_claims([_of_class(claim, winner.name, other.name) for claim in case.unallocated])
            if proof is None:
                continue
            kind = extended.TWO_CLASSES
            return Cause(
                kind,
                f"DeviceClasses {winner.name} and {other.name} both offer {resource}; {winner.name} serves it, but has "
                f"too few devices, and {other.name} is not asked",
                tuple(
                    Evidence(
                        f"DeviceClass {entry.name}",
                        "metadata.creationTimestamp",
                        entry.metadata.creation_timestamp or "not set",
                    )
                    for entry in (winner, other)
                ),
                f"Remove extendedResourceName {resource} from DeviceClass {winner.name}.",
                str(proof),
            )
    return None


def _of_class(claim: ResourceClaim, old: str, new: str) -> ResourceClaim:
    """The claim for extended resources with one class in place of another; other claims as they are."""
    if claim.metadata.name != CLAIM_NAME:
        return claim
    return replace(claim, requests=tuple(_request_of(entry, old, new) for entry in claim.requests))


def _request_of(entry: Request, old: str, new: str) -> Request:
    spec: DeviceRequest | None = entry.exactly
    if spec is None or spec.device_class != old:
        return entry
    return replace(entry, exactly=replace(spec, device_class=new))
