"""Known defects of kubelets, told by the state that they leave and the release of the node's kubelet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from kubectl_dra.allocation.extended_resources import IMPLICIT_PREFIX
from kubectl_dra.api.pods import Pod
from kubectl_dra.api.releases import JOINS_UNPREPARED, OUT_OF_EXTENDED, UNPREPARED_IN_USE, Defect, parse_release
from kubectl_dra.cluster.relation import ClaimRelation, consumers_of
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.explain.analysis import Analysis
from kubectl_dra.explain.diagnosis import Evidence, Finding, Remedy
from kubectl_dra.explain.phrase import ObjectName, Phrase, Subject, say

_OUT_OF: Final = "OutOf"
"""How the kubelet's reasons begin that name a resource of which it has too little (pkg/kubelet/lifecycle)."""


def kubelet_has(defect: Defect, node: str, snapshot: Snapshot) -> bool | None:
    """Whether the kubelet of a node has a defect; None if its release is not known."""
    known = snapshot.nodes.get(node)
    try:
        release = parse_release(known.status.node_info.kubelet_version if known is not None else "")
    except ValueError:
        return None
    return defect.affects(release.without_patch, release.patch)


def with_defect(found: Finding, pod: Pod, snapshot: Snapshot) -> Finding:
    """The kubelet's refusal of a pod, with the defect behind it: the resource is served by devices of a claim."""
    resource = pod.status.reason.removeprefix(_OUT_OF)
    if resource == pod.status.reason or not _of_devices(resource, pod, snapshot):
        return found
    if kubelet_has(OUT_OF_EXTENDED, pod.node_name, snapshot) is False:
        return found
    node = ObjectName("Node", pod.node_name)
    text = (
        "It is a defect of kubelets before 1.{gone} ({reference}): ask for the devices with a claim instead of "
        "{resource}, or upgrade the kubelet of {node}. This pod never runs again: make a new one."
    )
    words = {"gone": OUT_OF_EXTENDED.gone, "reference": OUT_OF_EXTENDED.reference, "resource": resource, "node": node}
    why = "a driver serves it, and this kubelet looks for a device plugin"
    fact = Evidence(Subject("resource", resource), "is refused because", why)
    return replace(found, evidence=(fact, *found.evidence), remedy=Remedy(say(text, **words)))


def _of_devices(resource: str, pod: Pod, snapshot: Snapshot) -> bool:
    """Whether devices of a driver serve an extended resource of a pod."""
    if resource.startswith(IMPLICIT_PREFIX):
        return True
    return any(entry.extended_resource_name == resource for entry in snapshot.classes.values())


def kubelet_notes(analysis: Analysis) -> Iterator[Phrase]:
    """That a pod which shares its claim may lose the devices, because another pod of it is just ending."""
    pod, snapshot = analysis.question.pod, analysis.scene.snapshot
    if pod is None or not pod.node_name or pod.finished or pod.metadata.deletion_timestamp:
        return
    defects = [each for each in (UNPREPARED_IN_USE, JOINS_UNPREPARED) if kubelet_has(each, pod.node_name, snapshot)]
    for claim in analysis.scene.allocated if defects else ():
        for use in consumers_of(claim, snapshot.pods).entries:
            other = use.pod
            if use.relation is ClaimRelation.ENDING and other is not None and other.node_name == pod.node_name:
                text = (
                    "pod {other} of the same claim is ending on {node}, and kubelets before 1.37 may take the devices "
                    "from this pod with it ({references:some}): make the pod again if its devices are dead"
                )
                references = [defect.reference for defect in defects]
                yield say(text, other=other.key, node=ObjectName("Node", pod.node_name), references=references)
                return
