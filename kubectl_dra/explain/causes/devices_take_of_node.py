"""The pod's devices exist, but not with what they take from the node's own resources (KEP-5517, alpha in 1.37)."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_dra.explain.analysis import Analysis
from kubectl_dra.explain.cause_kinds import CauseKind, Family, Look, NextStep
from kubectl_dra.explain.causes.claim_elsewhere import elsewhere
from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.diagnosis import Evidence, Finding
from kubectl_dra.explain.holders import consumers_named
from kubectl_dra.explain.node_reasons import ShortForDevices, reason_of
from kubectl_dra.explain.phrase import ObjectName, Subject, Words, by_key, say
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


TOO_MUCH = CauseKind(code="node-resources-for-devices", family=Family.DEVICES, look=Look.PODS_ON_NODE)
IN_USE = CauseKind(code="claim-of-node-resources-in-use", family=Family.CLAIM, look=Look.POD)
EXCEEDED = CauseKind(code="pod-level-resources-too-small", family=Family.DEVICES, look=Look.POD)
UNKNOWN = CauseKind(code="node-resources-not-computable", family=Family.DEVICES, look=Look.SLICES)
_ERRORS = (DeviceGone, NothingConsumed)


def _too_much(analysis: Analysis) -> Iterator[Finding]:
    """Also the claims that are allocated for other nodes, unless the scheduler takes them back and goes on."""
    if not analysis.overtaxed or analysis.after_giving_back:
        return
    if failed := list(_grouped(analysis, UNKNOWN, *_ERRORS)):
        # The error ends the attempt, whatever is found elsewhere.
        yield from failed
        return
    findings = [*_in_use(analysis), *_exceeded(analysis), *_short(analysis)]
    yield from findings
    claims = {finding.claim for finding in findings}
    if findings:
        yield from (finding for finding in elsewhere(analysis) if finding.claim not in claims)


def _short(analysis: Analysis) -> Iterator[Finding]:
    """Nodes with too little left, the one that lacks least as the example."""
    short = {name: reason_of(analysis.overtaxed[name]) for name, _ in _reasons(analysis, InsufficientForDevices)}
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


def _in_use(analysis: Analysis) -> Iterator[Finding]:
    keys = {reason.claim for _, reason in _reasons(analysis, MappedClaimInUse) if isinstance(reason, MappedClaimInUse)}
    for claim in analysis.allocated:
        if claim.key in keys:
            text = "claim {claim} stands for resources of its node, so only one pod can use it, and {users:some} does"
            users = [consumer.name for consumer in claim.reserved_for]
            fact = Evidence(
                Subject("ResourceClaim", by_key("ResourceClaim", claim.key)),
                "status.reservedFor",
                say("{consumers: else nobody}", consumers=consumers_named(claim)),
            )
            yield Finding(IN_USE, say(text, claim=claim.key, users=users), (fact,), claim=claim.key)


def _exceeded(analysis: Analysis) -> Iterator[Finding]:
    yield from _grouped(analysis, EXCEEDED, PodRequestExceeded, PodLimitExceeded)


def _grouped(analysis: Analysis, kind: CauseKind, *of: type[Reason]) -> Iterator[Finding]:
    names = {name for name, _ in _reasons(analysis, *of)}
    if names:
        from kubectl_dra.explain.outcomes import by_reason, evidence

        groups = by_reason({name: reason_of(analysis.overtaxed[name]) for name in analysis.overtaxed if name in names})
        # They differ from node to node by little but the devices.
        yield Finding(kind, groups[0].reason, evidence(groups))


def _reasons(analysis: Analysis, *of: type[Reason]) -> Iterator[tuple[str, Reason]]:
    for name, rejection in analysis.overtaxed.items():
        for reason in rejection.reasons:
            if isinstance(reason, of):
                yield name, reason


FINDERS = (Finder(When.FAILS, _too_much, 35),)
