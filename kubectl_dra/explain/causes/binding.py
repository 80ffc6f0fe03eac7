"""The pod is placed, and not bound yet: a device that it is to get has conditions for that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta

from kubectl_dra.api.claims import DeviceResult, ResourceClaim
from kubectl_dra.api.meta import JSONObject
from kubectl_dra.api.pods import Pod
from kubectl_dra.cluster.claim_relation import relation_of
from kubectl_dra.explain.analysis import Analysis
from kubectl_dra.explain.cause_kinds import CauseKind, Family, Look
from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.clock import Clock
from kubectl_dra.explain.diagnosis import Evidence, Finding, Remedy
from kubectl_dra.explain.phrase import Joined, Words, say, subject
from kubectl_dra.scheduling.outcome import SCHEDULER_ERROR

BINDING_PENDING = CauseKind(
    code="binding-condition-pending",
    state="has its devices, but is not bound to its node yet",
    family=Family.CLAIM,
    look=Look.CLAIM,
)
BINDING_FAILED = CauseKind(code="binding-failed", family=Family.CLAIM, look=Look.CLAIM)
ATTACHED = timedelta(minutes=1)
"""Time to attach a device before somebody should look after it."""


def _before_binding(analysis: Analysis) -> Iterator[Finding]:
    pod = analysis.pod
    if pod is not None and not pod.node_name and not pod.finished:
        yield from _not_ready(analysis)


def _of_claim(analysis: Analysis) -> Iterator[Finding]:
    if analysis.pod is None:
        yield from _not_ready(analysis)


def _not_ready(analysis: Analysis) -> Iterator[Finding]:
    if not analysis.view.cycle.features.binding_conditions:
        return
    for claim in analysis.allocated:
        for result in claim.results:
            conditions = claim.reported(result)
            true = {name for name, condition in conditions.items() if condition.get("status") == "True"}
            for name in result.binding_failure_conditions:
                if name in true:
                    yield _failed(claim, result, name, _said(conditions[name]))
                    return
            missing = [name for name in result.binding_conditions if name not in true]
            if missing:
                yield _pending(analysis, claim, result, missing, conditions)
                return


def _said(condition: JSONObject) -> tuple[str, ...]:
    return tuple(part for name in ("reason", "message") if (part := condition.get(name)))


def _field(result: DeviceResult, name: str) -> Words:
    return say("status.devices[{device}] {name}", device=result.device, name=name)


def _failed(claim: ResourceClaim, result: DeviceResult, name: str, parts: tuple[str, ...]) -> Finding:
    said = Joined(parts, ": ")
    return Finding(
        BINDING_FAILED,
        say(
            "device {device} of claim {claim} failed to get ready: {name} is True{said}",
            device=result.device,
            claim=claim.key,
            name=name,
            said=say(" ({said})", said=said) if parts else "",
        ),
        (
            Evidence(
                subject("ResourceClaim", claim),
                _field(result, name),
                say("True, {said}", said=said),
            ),
        ),
        claim=claim.key,
        request=result.request,
    )


def _pending(
    analysis: Analysis,
    claim: ResourceClaim,
    result: DeviceResult,
    missing: Sequence[str],
    conditions: Mapping[str, JSONObject],
) -> Finding:
    pod, snapshot = analysis.pod, analysis.snapshot
    own = subject("ResourceClaim", claim)
    evidence = [Evidence(own, _field(result, name), _state(conditions.get(name))) for name in missing]
    if claim.allocation is not None and claim.allocation.timestamp:
        evidence.append(Evidence(own, "status.allocation.allocationTimestamp", claim.allocation.timestamp))
    text = "device {device} of claim {claim} is not ready: the scheduler waits for {missing}"
    since = claim.allocation.timestamp if claim.allocation is not None else ""
    remedy = None
    if pod is not None and _given_up(pod, claim):
        text = (
            "device {device} of claim {claim} was not ready in time: the scheduler has given up waiting for {missing}, "
            "takes the device back and tries again"
        )
    elif since and Clock(snapshot).age(since) < ATTACHED:
        change = (
            "Wait: the device was allocated at {since}, and is attached to its node within minutes. If it takes "
            "longer, look at the driver or fabric controller that sets the condition."
        )
        remedy = Remedy(say(change, since=since))
    return Finding(
        BINDING_PENDING,
        say(text, device=result.device, claim=claim.key, missing=tuple(missing)),
        tuple(evidence),
        remedy,
        claim=claim.key,
        request=result.request,
        normal=remedy is not None,
    )


def _given_up(pod: Pod, claim: ResourceClaim) -> bool:
    """Whether the scheduler has waited until its bindingTimeout: it then gives the reservation back, and reports."""
    condition = pod.condition("PodScheduled")
    return condition.reason == SCHEDULER_ERROR and not relation_of(claim, pod).listed


def _state(condition: JSONObject | None) -> Words:
    """A condition that is not True."""
    if condition is None:
        return "not set"
    said, status = _said(condition), condition.get("status") or "no status"
    return say("{state}, {said}" if said else "{state}", state=status, said=Joined(said, ": "))


FINDERS = (
    Finder(When.SCENE, _before_binding, 20),
    Finder(When.PLACED, _of_claim),
)
