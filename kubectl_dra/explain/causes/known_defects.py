"""Known defects beside the allocator, told by the state that they leave and the release that has them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from kubectl_dra.allocation.extended_resources import IMPLICIT_PREFIX
from kubectl_dra.api.behaviour import (
    HALF_A_CLAIM,
    JOINS_UNPREPARED,
    LATER_CLAIMS_UNPREPARED,
    OUT_OF_EXTENDED,
    UNPREPARED_IN_USE,
    Defect,
)
from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.limits import MAX_RESULTS
from kubectl_dra.api.meta import OUT_OF
from kubectl_dra.api.pods import Pod, replaced_by
from kubectl_dra.api.releases import parse_release
from kubectl_dra.cluster.claim_relation import ClaimRelation, consumers_of
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.explain.analysis import Analysis
from kubectl_dra.explain.diagnosis import Evidence, Finding, Remedy
from kubectl_dra.explain.phrase import ObjectName, Phrase, Subject, known_defect, say

_SEVERAL: Final = 2


def kubelet_has(defect: Defect, node: str, snapshot: Snapshot) -> bool | None:
    """Whether the kubelet of a node has a defect; None if its release is not known."""
    known = snapshot.nodes.get(node)
    try:
        release = parse_release(known.status.node_info.kubelet_version if known is not None else "")
    except ValueError:
        return None
    return defect.affects(release.without_patch, release.patch)


def with_defect(finding: Finding, pod: Pod, snapshot: Snapshot) -> Finding:
    """The kubelet's refusal of a pod, with the defect behind it: the resource is served by devices of a claim."""
    resource = pod.status.reason.removeprefix(OUT_OF)
    if resource == pod.status.reason or not _of_devices(resource, pod, snapshot):
        return finding
    if kubelet_has(OUT_OF_EXTENDED, pod.node_name, snapshot) is False:
        return finding
    node = ObjectName("Node", pod.node_name)
    text = (
        "Ask for the devices with a claim instead of {resource}, or upgrade the kubelet of {node}. This is {defect}. "
        "This pod never runs again{next}."
    )
    owner = replaced_by(pod)
    again = (
        say("; {owner} makes the next one, which is refused as well", owner=str(owner))
        if owner is not None
        else ": make a new one"
    )
    words = {
        "next": again,
        "defect": known_defect(OUT_OF_EXTENDED.reference, *OUT_OF_EXTENDED.fixes),
        "resource": resource,
        "node": node,
    }
    why = "a driver serves it, and this kubelet looks for a device plugin{though}"
    though = ", although the scheduler had allocated devices for it" if pod.extended_resource_claim else ""
    fact = Evidence(Subject("resource", resource), "is refused because", say(why, though=though))
    return replace(finding, evidence=(fact, *finding.evidence), remedy=Remedy(say(text, **words)))


def _of_devices(resource: str, pod: Pod, snapshot: Snapshot) -> bool:
    """Whether devices of a driver serve an extended resource of a pod."""
    if resource.startswith(IMPLICIT_PREFIX):
        return True
    return any(device_class.extended_resource_name == resource for device_class in snapshot.classes.values())


def kubelet_notes(analysis: Analysis) -> Iterator[Phrase]:
    """Note that a pod which shares its claim may lose the devices, because another pod of it is just ending."""
    pod, snapshot = analysis.pod, analysis.snapshot
    if pod is None or not pod.node_name or pod.finished or pod.metadata.deletion_timestamp:
        return
    defects = [
        defect for defect in (UNPREPARED_IN_USE, JOINS_UNPREPARED) if kubelet_has(defect, pod.node_name, snapshot)
    ]
    for claim in analysis.allocated if defects else ():
        for use in consumers_of(claim, snapshot.pods).entries:
            other = use.pod
            if use.relation is ClaimRelation.ENDING and other is not None and other.node_name == pod.node_name:
                text = (
                    "pod {other} of the same claim is ending on {node}, and kubelets before {fix} may take the devices "
                    "from this pod with it ({references:some}): create the pod again if its devices are dead"
                )
                words = {"references": [defect.reference for defect in defects], "fix": defects[0].fixes[-1]}
                yield say(text, other=other.key, node=ObjectName("Node", pod.node_name), **words)
                return


def left_unprepared(finding: Finding, pod: Pod, claims: Sequence[ResourceClaim], snapshot: Snapshot) -> Finding:
    """Finding that the kubelet did not prepare a claim of a container, with the defect that may be behind it.

    It shows where another pod of the node uses one of the pod's claims already.
    """
    defect = LATER_CLAIMS_UNPREPARED
    if len(claims) < _SEVERAL or kubelet_has(defect, pod.node_name, snapshot) is False:
        return finding
    for claim in claims:
        for use in consumers_of(claim, snapshot.pods).entries:
            other = use.pod
            if use.relation is not ClaimRelation.RUNNING or other is None or other.key == pod.key:
                continue
            if other.node_name != pod.node_name:
                continue
            words = {"claim": claim.key, "other": other.key, "node": ObjectName("Node", pod.node_name)}
            means = (
                "pod {other} uses claim {claim} already, and then the kubelet leaves the pod's other claims unprepared"
            )
            text = (
                "Upgrade the kubelet of {node}: it is {defect}. Until then "
                "put all that the pod needs into one claim, or start it before pod {other}."
            )
            change = say(text, defect=known_defect(defect.reference, *defect.fixes), **words)
            fact = Evidence(Subject("the kubelet of", words["node"]), "means", say(means, **words))
            return replace(finding, evidence=(fact, *finding.evidence), remedy=Remedy(change))
    return finding


def devices_halved(analysis: Analysis) -> Iterator[Phrase]:
    """Note that the scheduler of the cluster's release serves, or may, no request as large as one of the question's."""
    release, patch = analysis.snapshot.release, analysis.snapshot.server_patch
    if release is None or HALF_A_CLAIM.affects(release, patch) is False:
        return
    who = say("the scheduler of {release}", release=release)
    if patch is None:
        who = say("an early scheduler of {release}, as this may be,", release=release)
    for claim in analysis.claims:
        before = 0
        for request in claim.requests:
            largest = max((spec.count for spec in request.alternatives()), default=0)
            # It counts those of the request that it has taken twice.
            if before + 2 * largest - 1 > MAX_RESULTS >= before + largest:
                text = (
                    "request {request} of claim {claim} asks for {count} devices, and {who} serves none for more than "
                    "{most} ({reference}, fixed in {fixes:some}): upgrade, or make several claims"
                )
                words = {"request": request.name, "claim": claim.key, "count": largest, "most": MAX_RESULTS // 2}
                known = {"reference": HALF_A_CLAIM.reference, "fixes": HALF_A_CLAIM.fixes, "who": who}
                yield say(text, **words, **known)
                return
            before += largest
