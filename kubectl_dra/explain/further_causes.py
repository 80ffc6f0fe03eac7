"""What keeps a pod besides the causes that were found: the question as it would be with those mended.

Somebody who mends one cause must not find the pod stuck on another. So the question is asked again without what the
first causes refuse; what keeps the pod then is a further cause.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeVar

from msgspec.structs import replace

from kubectl_dra.allocation.extended_resources import amount_of
from kubectl_dra.api.claims import DeviceRequest, Request, ResourceClaim
from kubectl_dra.api.nodes import NodeTaint, PodAffinity, Toleration
from kubectl_dra.api.pods import Container, Pod, ResourceRequirements
from kubectl_dra.api.taints import DeviceToleration
from kubectl_dra.explain.analysis import NOT_ASKED, Analysis
from kubectl_dra.explain.cause_kinds import CauseKind
from kubectl_dra.explain.causes.devices_held import TOO_FEW
from kubectl_dra.explain.causes.devices_not_given import TAINTED, TOLERATION
from kubectl_dra.explain.causes.devices_published import CLASS_MISSING, NOT_FOR_NODE
from kubectl_dra.explain.causes.extended_resources import GATE_OFF, NOT_ELIGIBLE, UNBACKED
from kubectl_dra.explain.causes.selectors import SELECTOR_MATCHES_NOTHING
from kubectl_dra.explain.causes.together import COMPETITION
from kubectl_dra.explain.diagnosis import Finding, Remedy, RemedyPlan
from kubectl_dra.explain.phrase import say
from kubectl_dra.explain.question.resolve import ClaimEntry, Question, Unresolved
from kubectl_dra.explain.remedies.claim_edits import each_container, on_any_labels, tolerating, with_spec, without_label
from kubectl_dra.explain.remedies.proof_result import Beside, Price, Proof
from kubectl_dra.explain.remedies.prove import Change, WhatIf
from kubectl_dra.scheduling.node_resources import Insufficient
from kubectl_dra.scheduling.reasons import PluginName, Reason, Rejection
from kubectl_dra.scheduling.simple_filters import CORDON, NodeDoesNotMatch, UntoleratedTaint

C = TypeVar("C", bound=Container)

_RESOURCES: Final = (UNBACKED, GATE_OFF, NOT_ELIGIBLE)
_UNUSABLE: Final = frozenset(Unresolved) - {Unresolved.NOT_CREATED}


def question_past(question: Question, analysis: Analysis, findings: Sequence[Finding]) -> Question | None:
    """The question about the pod or claim without what these findings object to.

    None where nothing is known that would mend all of them, or where one is proved to be all that keeps it.
    """
    if not findings or any(finding.kind.ends_pod or finding.normal for finding in findings):
        return None
    if any(finding.proof is not None and finding.proof.enough for finding in findings):
        return None
    if question.pod is not None and (question.pod.node_name or question.pod.finished):
        return None
    if not analysis.tries:
        past = _without_unusable(question, analysis, findings)
    elif not analysis.view.nodes or any(finding.kind is NOT_FOR_NODE for finding in findings):
        past = _on_any_node(question, analysis)
    else:
        past = _with_other_devices(question, findings)
    return past if past != question else None


def supposing(further: Finding, findings: Sequence[Finding]) -> Finding:
    """A further cause, which says what it supposes of a request: another selector, or that it asks for one device.

    Nobody ends pods that work for devices of another kind than the request asks for.
    """
    if further.kind is COMPETITION and any(finding.kind is TOO_FEW for finding in findings):
        # As it is written, one of them does not fit alone.
        return replace(further, summary=say("with count 1 there, {summary}", summary=further.summary))
    if all(finding.kind is not SELECTOR_MATCHES_NOTHING for finding in findings):
        return further
    remedy = further.remedy
    if remedy is not None and remedy.price >= Price.END_RUNNING:
        remedy = Remedy(further.kind.fix, not_alone=True)
    return replace(further, summary=say("without that selector, {summary}", summary=further.summary), remedy=remedy)


def beside(finding: Finding, others: Sequence[Finding], what_if: WhatIf | None = None) -> Finding:
    """The finding, whose fix does not end these other causes, unless it is enough in the cluster as it is."""
    remedy = finding.remedy
    if remedy is None or remedy.proof is None:
        return finding
    if what_if is not None and any(change.ended_pods for change in remedy.offers):
        alone = what_if.with_all((*remedy.with_others, *remedy.offers)).proof()
        if alone is not None and alone.enough:
            return replace(finding, remedy=replace(remedy, proof=alone))
    return replace(finding, remedy=replace(remedy, proof=resting_on(remedy.proof, others)))


def resting_on(proof: Proof, others: Sequence[Finding]) -> Proof:
    """The proof, with causes that have to be mended as well."""
    known = proof.beside or Beside()
    codes = tuple(dict.fromkeys((*(other.kind.code for other in others), *known.causes)))
    return replace(proof, beside=replace(known, causes=codes)) if codes else proof


def not_offered_yet(ways: Iterable[RemedyPlan], findings: Sequence[Finding]) -> Iterator[RemedyPlan]:
    """The ways, but those that end what a finding's fix ends, which is enough."""
    enough = [finding.remedy for finding in findings if finding.proof is not None and finding.proof.enough]
    ended = [_ended(remedy.offers) for remedy in enough if remedy is not None]
    return (way for way in ways if not (gone := _ended(way.changes)) or gone not in ended)


def _ended(changes: Sequence[Change]) -> set[str]:
    """The pods that the only change ends; empty where there are several, or it does not end pods."""
    return {pod.key for pod in changes[0].ended_pods} if len(changes) == 1 else set()


# What is missing: claims, classes of requests, and resources that nothing offers.


def _without_unusable(question: Question, analysis: Analysis, findings: Sequence[Finding]) -> Question:
    """The question without claims, requests and extended resources that cannot be served at all."""
    # A claim in which only a class is missing is asked about without that request.
    refused = {finding.claim for finding in findings if not finding.kind.passes and finding.kind is not CLASS_MISSING}
    missing = {(finding.claim, finding.request) for finding in findings if finding.kind is CLASS_MISSING}
    kept: list[ClaimEntry] = []
    dropped: set[str] = set()
    for entry in question.claims:
        claim = entry.claim
        if entry.unresolved in _UNUSABLE or (claim is not None and claim.key in refused):
            dropped.add(entry.entry)
        elif claim is not None and (left := _without_requests(claim, missing)) is not claim:
            kept.append(replace(entry, claim=left))
        else:
            kept.append(entry)
    pod = question.pod
    names = (
        _unserved(pod, analysis) if pod is not None and any(finding.kind in _RESOURCES for finding in findings) else ()
    )
    if pod is not None and (dropped or names):
        pod = _without_resources(_without_claims(pod, dropped), names)
    return replace(question, pod=pod, claims=tuple(kept))


def _unserved(pod: Pod, analysis: Analysis) -> set[str]:
    """Extended resources of the pod that no node offers, and no device serves."""
    nodes = analysis.snapshot.nodes.values()
    served = analysis.extended.classes if analysis.extended is not None else {}
    wanted = {name for container in pod.containers for name in container.requests if "/" in name and name not in served}
    return {name for name in wanted if not any(amount_of(node.allocatable.get(name)) for node in nodes)}


def _without_requests(claim: ResourceClaim, missing: Collection[tuple[str, str]]) -> ResourceClaim:
    """The claim without requests and alternatives whose class is missing, and without constraints on them."""
    requests = [_with_classes(claim, request, missing) for request in claim.requests]
    if requests == [*claim.requests]:
        return claim
    kept = tuple(request for request in requests if request.alternatives())
    names = {request.name for request in claim.requests} - {request.name for request in kept}
    constraints = (constraint for constraint in claim.constraints if names.isdisjoint(constraint.requests))
    return replace(claim, requests=kept, constraints=tuple(constraints))


def _with_classes(claim: ResourceClaim, request: Request, missing: Collection[tuple[str, str]]) -> Request:
    kept = tuple(spec for spec in request.alternatives() if (claim.key, request.result_name(spec)) not in missing)
    if request.first_available:
        return replace(request, first_available=kept)
    return request if kept else replace(request, exactly=None)


def _without_claims(pod: Pod, entries: Collection[str]) -> Pod:
    def without(container: C) -> C:
        used = tuple(use for use in container.resources.claims if use.name not in entries)
        return replace(container, resources=replace(container.resources, claims=used))

    kept = tuple(entry for entry in pod.spec.resource_claims if entry.name not in entries)
    return with_spec(each_container(pod, without), resource_claims=kept)


def _without_resources(pod: Pod, names: Collection[str]) -> Pod:
    def lacking(resources: ResourceRequirements) -> ResourceRequirements:
        requests, limits = (
            {name: amount for name, amount in table.items() if name not in names}
            for table in (resources.requests, resources.limits)
        )
        return replace(resources, requests=requests, limits=limits)

    def without(container: C) -> C:
        return replace(container, resources=lacking(container.resources))

    whole = lacking(pod.spec.resources) if pod.spec.resources is not None else None
    overhead = {name: amount for name, amount in pod.spec.overhead.items() if name not in names}
    return with_spec(each_container(pod, without), resources=whole, overhead=overhead)


# What nodes refuse.


def _on_any_node(question: Question, analysis: Analysis) -> Question:
    """The question about a pod that does not mind why the nodes refuse it; the same if that is not known of all."""
    pod, outcome = question.pod, analysis.pod_outcome
    if pod is None or outcome is None:
        return question
    eased = pod
    for reason, plugin in _reasons(analysis, outcome.filtered).items():
        if _past(pod, plugin, reason) == pod:
            return question
        eased = _past(eased, plugin, reason)
    return replace(question, pod=eased)


def _reasons(analysis: Analysis, filtered: Mapping[str, Rejection]) -> dict[Reason, PluginName]:
    """Each reason of the nodes that were asked, with the plugin that has it; of a resource, the first shortage."""
    reasons: dict[Hashable, tuple[Reason, PluginName]] = {}
    for name, why in analysis.view.ineligible.items():
        for reason in filtered[name].reasons if why is not NOT_ASKED else ():
            about = reason.resource if isinstance(reason, Insufficient) else reason
            reasons.setdefault(about, (reason, filtered[name].plugin))
    return dict(reasons.values())


def _past(pod: Pod, plugin: PluginName, reason: Reason) -> Pod:
    """The pod as it would be without a plugin's reason; the same pod where it is not the pod that has to change."""
    match plugin, reason:
        case PluginName.NODE_UNSCHEDULABLE, _:
            return _tolerating(pod, CORDON)
        case PluginName.TAINT_TOLERATION, UntoleratedTaint(taint=taint):
            return _tolerating(pod, taint)
        case PluginName.NODE_AFFINITY, NodeDoesNotMatch(selector=selector):
            # As the answer names the first that does not hold, the others are further causes.
            return without_label(pod, selector[0][0]) if selector else on_any_labels(pod)
        case PluginName.NODE_RESOURCES_FIT, Insufficient(resource=resource):
            return _without_resources(pod, (resource,))
        case PluginName.NODE_PORTS, _:

            def without(container: C) -> C:
                return replace(container, ports=())

            return each_container(pod, without)
        case PluginName.POD_TOPOLOGY_SPREAD, _:
            return with_spec(pod, topology_spread_constraints=())
        case PluginName.INTER_POD_AFFINITY, _:
            # Rules of other pods select it by its labels.
            pod, affinity = replace(pod, metadata=replace(pod.metadata, labels={})), pod.spec.affinity
            if affinity is None:
                return pod
            eased = replace(affinity, pod_affinity=PodAffinity(), pod_anti_affinity=PodAffinity())
            return with_spec(pod, affinity=eased)
    return with_spec(pod, volumes=()) if plugin in _OF_VOLUMES else pod


_OF_VOLUMES: Final = (
    PluginName.VOLUME_RESTRICTIONS,
    PluginName.NODE_VOLUME_LIMITS,
    PluginName.VOLUME_BINDING,
    PluginName.VOLUME_ZONE,
)


def _tolerating(pod: Pod, taint: NodeTaint) -> Pod:
    return tolerating(pod, Toleration(taint.key, "Exists", effect=taint.effect))


# What a request refuses.


def _any_taint(spec: DeviceRequest) -> DeviceRequest:
    # One without an effect does not protect a pod from being evicted in every release.
    every = (DeviceToleration(operator="Exists", effect=effect) for effect in ("NoSchedule", "NoExecute"))
    return replace(spec, tolerations=(*spec.tolerations, *every))


_WIDER: Final[Mapping[CauseKind, Callable[[DeviceRequest], DeviceRequest]]] = {
    SELECTOR_MATCHES_NOTHING: lambda spec: replace(spec, selectors=()),
    TAINTED: _any_taint,
    TOLERATION: _any_taint,
    TOO_FEW: lambda spec: replace(spec, count=1),
}


def _with_other_devices(question: Question, findings: Sequence[Finding]) -> Question:
    """The question with requests that admit the devices that they refuse; the same if one of them cannot."""
    # What comes before the scheduler asks nothing of devices.
    asking = [finding for finding in findings if not finding.kind.passes]
    if any(finding.kind not in _WIDER for finding in asking):
        return question
    wider = {(finding.claim, finding.request): _WIDER[finding.kind] for finding in asking}
    entries = (
        replace(entry, claim=_with_requests(entry.claim, wider)) if entry.claim is not None else entry
        for entry in question.claims
    )
    return replace(question, claims=tuple(entries))


def _with_requests(
    claim: ResourceClaim, wider: Mapping[tuple[str, str], Callable[[DeviceRequest], DeviceRequest]]
) -> ResourceClaim:
    def widened(request: Request) -> Request:
        edit = wider.get((claim.key, request.name))
        return request if edit is None or request.exactly is None else replace(request, exactly=edit(request.exactly))

    if not any(key == claim.key for key, _ in wider):
        return claim
    return replace(claim, requests=tuple(map(widened, claim.requests)))
