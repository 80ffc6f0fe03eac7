"""The pod's devices exist, but not with what they take of the node's own resources (KEP-5517, alpha in 1.37)."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_dra.explain import confirm
from kubectl_dra.explain.causes.claim_allocated_elsewhere import elsewhere
from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.diagnosis import CauseKind, Evidence, Family, Finding, Look, NextStep
from kubectl_dra.explain.phrase import ObjectName, Subject, Words, by_key, say
from kubectl_dra.explain.scene.holders import consumers_named
from kubectl_dra.explain.scene.node_reasons import ShortForDevices, reason_of
from kubectl_dra.explain.trial import Trial
from kubectl_dra.scheduling.node_resources_of_devices import (
    DeviceGone,
    InsufficientForDevices,
    MappedClaimInUse,
    NothingConsumed,
    PodLimitExceeded,
    PodRequestExceeded,
)
from kubectl_dra.scheduling.reasons import Reason

_PROVED_BY = 6

_WHAT_DEVICES_TAKE = confirm.Check(
    "What each device takes of its node: `nodeAllocatableResources`.", confirm.SLICES_OF_DRIVER
)

TOO_MUCH = CauseKind(
    code="node-resources-for-devices",
    title="The devices take more of the node's own resources than are left",
    why=(
        "A device can stand for cores, memory or huge pages of its node, or need some of them besides "
        "(nodeAllocatableResources). The scheduler adds that to the requests of the containers, and the node must have "
        "it all."
    ),
    fix="Make room on the node, or ask for fewer or smaller devices.",
    seen_as="Insufficient cpu; Insufficient memory",
    normal="Where drivers manage cores or memory by DRA and the nodes are full.",
    confirm=(
        _WHAT_DEVICES_TAKE,
        confirm.Check("What the node has (`Allocatable`), and what its pods request.", confirm.NODE),
        confirm.Check(
            "Its pods. In the status of each: what its devices take already (`nodeAllocatableResourceClaimStatuses`).",
            confirm.PODS_ON_NODE,
        ),
    ),
    family=Family.DEVICES,
    look=Look.PODS_ON_NODE,
)
IN_USE = CauseKind(
    code="claim-of-node-resources-in-use",
    title="The claim stands for resources of a node, and another pod uses it",
    why=(
        "A claim with a device that stands for cores, memory or huge pages of its node (a mapping in "
        "nodeAllocatableResources) is for one pod alone: what two pods take cannot be told apart."
    ),
    fix="Give each pod a claim of its own by a template, or wait until the other pod has ended.",
    seen_as="node allocatable resource claim … has a mapped device and cannot be shared across pods",
    normal="Never: such a claim serves one pod.",
    confirm=(
        confirm.Check("Another pod than this one is listed.", confirm.CONSUMERS),
        confirm.Check("Its devices …", confirm.ALLOCATION),
        _WHAT_DEVICES_TAKE,
    ),
    family=Family.CLAIM,
    look=Look.POD,
)
EXCEEDED = CauseKind(
    code="pod-level-resources-too-small",
    title="The pod-level resources do not cover what the devices take",
    why=(
        "Resources that are requested or limited for the pod as a whole include what its devices take of the node. "
        "The API server cannot check that, because it does not know the devices; the scheduler does."
    ),
    fix="Raise the request or limit in spec.resources, or leave the resource out of it.",
    seen_as="pod level request for cpu is insufficient to cover the aggregated container and node-allocatable DRA "
    "requests; pod level limit for cpu is insufficient to cover …",
    normal="Never: the pod stays pending until it is made again with larger resources.",
    confirm=(
        confirm.Check(
            "The resources of the pod as a whole.",
            "kubectl get pod POD -n NAMESPACE -o jsonpath='{.spec.resources}'",
        ),
        _WHAT_DEVICES_TAKE,
    ),
    family=Family.DEVICES,
    look=Look.POD,
)
UNKNOWN = CauseKind(
    code="node-resources-not-computable",
    title="The scheduler cannot compute what the claim's devices take of the node",
    why=(
        "It reads that from the ResourceSlices. A device that is not published any more, or one whose amount follows "
        "from a consumed capacity although it cannot be shared, ends the attempt with an error."
    ),
    fix="Delete the claim and create it again if a device is gone; otherwise correct what the driver publishes.",
    seen_as='running "DynamicResources" filter plugin: claim …: device … not found in pool …',
    normal="For a moment, while a driver replaces its slices.",
    confirm=(
        confirm.Check("The devices of the claim …", confirm.ALLOCATION),
        confirm.Check("… and those that are published.", confirm.SLICES_OF_DRIVER),
    ),
    family=Family.DEVICES,
    look=Look.SLICES,
)
_ERRORS = (DeviceGone, NothingConsumed)


def _too_much(trial: Trial) -> Iterator[Finding]:
    """Also the claims that are allocated for other nodes, unless the scheduler takes them back and goes on."""
    if not trial.overtaxed or trial.after_giving_back:
        return
    if failed := list(_not_computable(trial)):
        # The error ends the attempt, whatever is found elsewhere.
        yield from failed
        return
    found = [*_in_use(trial), *_exceeded(trial), *_short(trial)]
    yield from found
    told = {finding.claim for finding in found}
    if found:
        yield from (finding for finding in elsewhere(trial) if finding.claim not in told)


def _short(trial: Trial) -> Iterator[Finding]:
    """Nodes with too little left, the one that lacks least as the example."""
    short = {name: reason_of(trial.overtaxed[name]) for name, _ in _reasons(trial, InsufficientForDevices)}
    if not short:
        return
    nearest = min(short, key=lambda name: _lacking(short[name]))
    node = ObjectName("Node", nearest)
    text = "node {node} has {why}"
    if len(short) > 1:
        text = "{count:node} have the devices but too little of their own resources: {node} has {why}"
    names = sorted(short, key=lambda name: name != nearest)[:_PROVED_BY]
    facts = tuple(Evidence(Subject("node", ObjectName("Node", name)), "rejects the pod", short[name]) for name in names)
    summary = say(text, count=len(short), node=node, why=short[nearest])
    yield Finding(TOO_MUCH, summary, facts, next=NextStep(Look.ONE_NODE, nearest))


def _lacking(why: Words) -> float:
    return why.lacking if isinstance(why, ShortForDevices) else 2.0


def _in_use(trial: Trial) -> Iterator[Finding]:
    keys = {reason.claim for _, reason in _reasons(trial, MappedClaimInUse) if isinstance(reason, MappedClaimInUse)}
    for claim in trial.scene.allocated:
        if claim.key in keys:
            text = "claim {claim} stands for resources of its node, so only one pod can use it, and {users:some} does"
            users = [entry.name for entry in claim.reserved_for]
            fact = Evidence(
                Subject("ResourceClaim", by_key("ResourceClaim", claim.key)),
                "status.reservedFor",
                say("{consumers: else nobody}", consumers=consumers_named(claim)),
            )
            yield Finding(IN_USE, say(text, claim=claim.key, users=users), (fact,), claim=claim.key)


def _exceeded(trial: Trial) -> Iterator[Finding]:
    yield from _grouped(trial, EXCEEDED, PodRequestExceeded, PodLimitExceeded)


def _not_computable(trial: Trial) -> Iterator[Finding]:
    yield from _grouped(trial, UNKNOWN, *_ERRORS)


def _grouped(trial: Trial, kind: CauseKind, *of: type[Reason]) -> Iterator[Finding]:
    names = {name for name, _ in _reasons(trial, *of)}
    if names:
        from kubectl_dra.explain.refused_nodes import by_reason, evidence

        groups = by_reason({name: reason_of(trial.overtaxed[name]) for name in trial.overtaxed if name in names})
        # They differ from node to node by little but the devices.
        yield Finding(kind, groups[0].reason, evidence(groups))


def _reasons(trial: Trial, *of: type[Reason]) -> Iterator[tuple[str, Reason]]:
    for name, rejection in trial.overtaxed.items():
        for reason in rejection.reasons:
            if isinstance(reason, of):
                yield name, reason


FINDERS = (Finder(When.FAILS, _too_much, 35),)
