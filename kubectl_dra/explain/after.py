"""What goes wrong once devices are chosen: binding, reservations, preparing them on the node, eviction."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from kubectl_dra.api.claims import DeviceResult, ResourceClaim
from kubectl_dra.api.nodes import Node
from kubectl_dra.api.pods import Pod
from kubectl_dra.api.taints import DeviceTaint
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.explain.causes import claim as claim_causes
from kubectl_dra.explain.causes import node as node_causes
from kubectl_dra.explain.model import Cause, Evidence
from kubectl_dra.explain.phrases import amount, join

MAX_CONSUMERS = 256
"""Entries of ``status.reservedFor`` (``ResourceClaimReservedForMaxSize``)."""
EVICTION_REASON = "DeletionByDeviceTaintManager"
_UNREGISTERED = re.compile(r"not registered|registered DRA plugins|no registered DRA|DRA driver \S+ not found")
_NOT_ALLOWED = re.compile(r"is not allowed to use ResourceClaim")


def full(pod: Pod, claims: Sequence[ResourceClaim]) -> Iterator[Cause]:
    """Claims of the pod that have no room for another consumer."""
    for claim in claims:
        if len(claim.reserved_for) >= MAX_CONSUMERS and not reserved(pod, claim):
            kind = claim_causes.TOO_MANY_CONSUMERS
            yield Cause(
                kind,
                f"claim {claim.key} has {len(claim.reserved_for)} consumers, and no claim can have more",
                (Evidence(f"ResourceClaim {claim.key}", "status.reservedFor", f"{len(claim.reserved_for)} entries"),),
                kind.fix,
                claim=claim.key,
            )


def reserved(pod: Pod, claim: ResourceClaim) -> bool:
    """Whether the claim lists the pod, or its group, as a consumer."""
    for entry in claim.reserved_for:
        if entry.resource == "pods" and (
            entry.uid == pod.metadata.uid if entry.uid and pod.metadata.uid else entry.name == pod.metadata.name
        ):
            return True
        if entry.resource == "podgroups" and entry.name == pod.pod_group:
            return True
    return False


def binding(claims: Sequence[ResourceClaim]) -> Iterator[Cause]:
    """Allocated devices that the scheduler does not bind: a failure condition is True, or a condition is not yet."""
    for claim in claims:
        for result in claim.allocation.results if claim.allocation else ():
            conditions = _conditions(claim, result)
            for name in result.binding_failure_conditions:
                if conditions.get(name, ("",))[0] == "True":
                    yield _binding_failed(claim, result, name, conditions[name][1])
                    return
            missing = [name for name in result.binding_conditions if conditions.get(name, ("",))[0] != "True"]
            if missing:
                yield _binding_pending(claim, result, missing)
                return


def _conditions(claim: ResourceClaim, result: DeviceResult) -> dict[str, tuple[str, str]]:
    """Type to (status, reason and message) of what is reported about a device of the allocation."""
    out: dict[str, tuple[str, str]] = {}
    for entry in claim.device_statuses:
        if entry.device == result.device and entry.share_id == result.share_id:
            for condition in entry.conditions:
                said = ": ".join(part for part in (condition.get("reason"), condition.get("message")) if part)
                out[condition.get("type") or ""] = (condition.get("status") or "", said)
    return out


def _binding_failed(claim: ResourceClaim, result: DeviceResult, name: str, said: str) -> Cause:
    kind = claim_causes.BINDING_FAILED
    return Cause(
        kind,
        f"device {result.device} of claim {claim.key} failed to get ready: {name} is True"
        + (f" ({said})" if said else ""),
        (Evidence(f"ResourceClaim {claim.key}", f"status.devices[{result.device}] {name}", f"True, {said}"),),
        kind.fix,
        claim=claim.key,
        request=result.request,
    )


def _binding_pending(claim: ResourceClaim, result: DeviceResult, missing: Sequence[str]) -> Cause:
    kind = claim_causes.BINDING_PENDING
    evidence = [
        Evidence(f"ResourceClaim {claim.key}", f"status.devices[{result.device}] {name}", "not True")
        for name in missing
    ]
    if claim.allocation is not None and claim.allocation.timestamp:
        evidence.append(
            Evidence(f"ResourceClaim {claim.key}", "status.allocation.allocationTimestamp", claim.allocation.timestamp)
        )
    return Cause(
        kind,
        f"device {result.device} of claim {claim.key} is not ready: the scheduler waits for {join(missing)}",
        tuple(evidence),
        kind.fix,
        claim=claim.key,
        request=result.request,
    )


def on_node(pod: Pod, claims: Sequence[ResourceClaim], snapshot: Snapshot) -> Iterator[Cause]:
    """What keeps a placed pod with allocated claims from starting."""
    if pod.phase not in ("", "Pending"):
        return
    for claim in claims:
        if not reserved(pod, claim):
            consumers = join(f"{entry.resource} {entry.name}" for entry in claim.reserved_for) or "nobody"
            yield Cause(
                node_causes.NOT_RESERVED,
                f"claim {claim.key} is allocated, but not reserved for this pod",
                (Evidence(f"ResourceClaim {claim.key}", "status.reservedFor", consumers),),
                node_causes.NOT_RESERVED.fix,
                claim=claim.key,
            )
    events = [
        event
        for event in snapshot.events_about("Pod", pod.metadata.namespace, pod.metadata.name)
        if event.reason == "FailedPrepareDynamicResources"
        and (not event.uid or not pod.metadata.uid or event.uid == pod.metadata.uid)
    ]
    if not events or _NOT_ALLOWED.search(events[-1].message):
        return
    event = events[-1]
    kind, what = node_causes.PREPARE_FAILED, "the driver could not prepare the devices"
    if _UNREGISTERED.search(event.message):
        kind, what = node_causes.NOT_REGISTERED, "its kubelet does not know the driver"
        node = snapshot.nodes.get(pod.node_name)
        if node is not None and node.ready is False:
            kind, what = node_causes.DRIVER_GONE, "nothing is ready, and its ResourceSlices are left over"
    yield Cause(
        kind,
        f"the claims are allocated, but on node {pod.node_name} {what}: {event.message}",
        (
            Evidence(f"Event on Pod {pod.key}", event.reason, event.message),
            *_node_state(snapshot.nodes.get(pod.node_name)),
            *_drivers(pod.node_name, claims, snapshot),
        ),
        kind.fix,
    )


def _node_state(node: Node | None) -> Iterator[Evidence]:
    if node is not None and node.ready is False:
        yield Evidence(f"Node {node.name}", "condition Ready", "not True")


def _drivers(node: str, claims: Sequence[ResourceClaim], snapshot: Snapshot) -> Iterator[Evidence]:
    """What the drivers of the allocated devices still publish for the node."""
    drivers = {
        result.device.driver for claim in claims for result in (claim.allocation.results if claim.allocation else ())
    }
    for driver in sorted(drivers):
        own = [entry for entry in snapshot.slices if entry.driver == driver and entry.scope.node_name == node]
        created = sorted(entry.creation_timestamp for entry in own if entry.creation_timestamp)
        since = f", the newest created at {created[-1]}" if created else ""
        yield Evidence(f"driver {driver}", f"publishes for node {node}", f"{amount(len(own), 'ResourceSlice')}{since}")


def evicted(pod: Pod, claims: Sequence[ResourceClaim], snapshot: Snapshot) -> Iterator[Cause]:
    """The cause of a pod that the device taint controller ended."""
    condition = pod.condition("DisruptionTarget")
    if condition is None or condition.status != "True" or condition.reason != EVICTION_REASON:
        return
    kind, fix = node_causes.EVICTED, node_causes.EVICTED.fix
    evidence = [Evidence(f"Pod {pod.key}", "condition DisruptionTarget", condition.message or condition.reason)]
    text = ""
    for claim in claims:
        for result in claim.allocation.results if claim.allocation else ():
            for taint in _no_execute(result, snapshot):
                source = f" (DeviceTaintRule {taint.rule})" if taint.rule else " (set by the driver)"
                evidence.append(Evidence(f"device {result.device}", "taint", f"{taint}{source}"))
                text = text or f": device {result.device} has taint {taint}{source}"
                tolerated = [entry for entry in result.tolerations if entry.tolerates(taint)]
                shown = join(f"{entry.key or '*'} effect {entry.effect or 'not set'}" for entry in tolerated) or "none"
                evidence.append(
                    Evidence(f"ResourceClaim {claim.key}", f"tolerations of {result.device} that cover it", shown)
                )
                if tolerated and not any(entry.effect == "NoExecute" for entry in tolerated):
                    fix = "Write effect: NoExecute into the toleration: without an effect it does not protect."
    yield Cause(kind, f"the pod is evicted because of a device taint{text}", tuple(evidence), fix)


def _no_execute(result: DeviceResult, snapshot: Snapshot) -> Iterator[DeviceTaint]:
    """NoExecute taints of a device: from its pool's newest generation, and from DeviceTaintRules."""
    driver, pool, name = result.device
    slices = [entry for entry in snapshot.slices if entry.pool == (driver, pool)]
    newest = max((entry.generation for entry in slices), default=0)
    for entry in slices:
        for device in entry.devices if entry.generation == newest else ():
            if device.name == name:
                yield from (taint for taint in device.taints if taint.effect == "NoExecute")
    for rule in snapshot.taint_rules:
        if rule.taint.effect == "NoExecute" and rule.selects(driver, pool, name):
            yield rule.taint
