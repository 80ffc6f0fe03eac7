"""One exclusive device is in the allocations of two claims: the scheduler gave it out twice."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.defects_beside_allocator import ALLOCATED_TWICE
from kubectl_dra.api.slices import DeviceID
from kubectl_dra.cluster.claim_relation import consumers_of
from kubectl_dra.drivers.concerns import exclusive
from kubectl_dra.explain.analysis import Analysis
from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.diagnosis import CauseKind, Evidence, Family, Finding, Look, Relation, Remedy
from kubectl_dra.explain.phrase import ObjectName, Words, pods_named, say, subject

TWICE = CauseKind(
    code="device-allocated-twice",
    family=Family.RELEASE,
    look=Look.VERSION,
    state="has a device that another claim has as well",
)


def _twice(analysis: Analysis) -> Iterator[Finding]:
    own = {device: claim for claim in analysis.allocated for device in exclusive(claim)}
    if not own:
        return
    snapshot = analysis.snapshot
    for other in snapshot.claims.values():
        device = next((each for each in exclusive(other) if each in own), None)
        if device is None or other.metadata.key == own[device].metadata.key:
            continue
        mine = own[device]
        younger = max((mine, other), key=_allocated_at)
        text = "device {device} is allocated to claim {one} and to claim {other}"
        yield Finding(
            TWICE,
            say(text, device=device, one=mine.key, other=other.key),
            tuple(_holders(device, (mine, other), analysis)),
            Remedy(_change(younger, analysis)),
            claim=mine.key,
            device=device,
        )
        return


def _allocated_at(claim: ResourceClaim) -> tuple[str, str]:
    allocation = claim.allocation
    return (allocation.timestamp if allocation is not None else "", claim.metadata.creation_timestamp)


def _holders(device: DeviceID, claims: tuple[ResourceClaim, ...], analysis: Analysis) -> Iterator[Evidence]:
    for claim in claims:
        pods = consumers_of(claim, analysis.snapshot.pods).pods
        who = pods_named(pod.key for pod in pods)
        about = subject("ResourceClaim", claim)
        value = say("{device}, for {pods:some 2 else nobody}", device=device, pods=who)
        yield Evidence(about, "has", value, relation=Relation.DOES)


def _change(younger: ResourceClaim, analysis: Analysis) -> Words:
    pods = consumers_of(younger, analysis.snapshot.pods).pods
    names = tuple(ObjectName("Pod", pod.metadata.name, pod.metadata.namespace) for pod in pods)
    text = (
        "Make claim {claim}, which got it later, and {pods:some 2 else its pods} again, so that they get another one. "
        "It is a defect of schedulers before {fixed:some 3} ({reference}): upgrade kube-scheduler."
    )
    fixed, reference = ALLOCATED_TWICE.fixes, ALLOCATED_TWICE.reference
    return say(text, claim=younger.key, pods=names, fixed=fixed, reference=reference)


FINDERS = (Finder(When.PLACED, _twice, -10),)
