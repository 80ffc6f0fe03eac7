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
from kubectl_dra.explain.causes import pod as pod_causes
from kubectl_dra.explain.diagnosis import Cause, Evidence
from kubectl_dra.explain.scene.node_eligibility import usable_on
from kubectl_dra.wording import amount, join

MAX_CONSUMERS = 256
"""Entries of ``status.reservedFor`` (``ResourceClaimReservedForMaxSize``)."""
EVICTION_REASON = "DeletionByDeviceTaintManager"
_UNREGISTERED = re.compile(r"not registered|registered DRA plugins|no registered DRA|DRA driver \S+ not found")
_NO_ANSWER = re.compile(r"connection error|connection refused|transport: Error while dialing|code = Unavailable")
"""The kubelet knows the driver's socket, and nobody listens there."""
_NOT_ALLOWED = re.compile(r"is not allowed to use ResourceClaim")
_LEAD = re.compile(r"^((Failed to )?prepare dynamic resources: )+")
"""What every such event starts with."""


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
    said = _conditions(claim, result)
    evidence = [
        Evidence(f"ResourceClaim {claim.key}", f"status.devices[{result.device}] {name}", _state(said.get(name)))
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


def _state(condition: tuple[str, str] | None) -> str:
    """A condition that is not True, in words."""
    if condition is None:
        return "not set"
    status, said = condition
    return ", ".join(part for part in (status or "no status", said) if part)


def misplaced(pod: Pod, claims: Sequence[ResourceClaim], snapshot: Snapshot) -> Iterator[Cause]:
    """The cause of a pod that was bound by hand to a node on which its allocated claim cannot be used."""
    node = snapshot.nodes.get(pod.node_name)
    if node is None or pod.phase not in ("", "Pending"):
        return
    for claim in claims:
        selector = claim.allocation.node_selector if claim.allocation else None
        if selector is None or reserved(pod, claim) or usable_on(selector, node):
            continue
        kind = pod_causes.BOUND_BY_HAND
        yield Cause(
            kind,
            f"the pod was bound to node {node.name} past the scheduler, but claim {claim.key} is allocated for "
            f"{selector}",
            (
                Evidence(f"Pod {pod.key}", "spec.nodeName", node.name),
                Evidence(f"ResourceClaim {claim.key}", "status.allocation.nodeSelector", str(selector)),
            ),
            kind.fix,
            claim=claim.key,
        )
        return


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
    node = snapshot.nodes.get(pod.node_name)
    if not events:
        if node is not None and node.ready is False:
            yield _node_gone(node, claims, snapshot)
        return
    if _NOT_ALLOWED.search(events[-1].message):
        return
    event = events[-1]
    kind, what = node_causes.PREPARE_FAILED, f"on node {pod.node_name} the driver could not prepare the devices"
    silent = _NO_ANSWER.search(event.message)
    if silent or _UNREGISTERED.search(event.message):
        kind, what = node_causes.NOT_REGISTERED, f"the kubelet of node {pod.node_name} does not know the driver"
        if silent:
            kind, what = node_causes.NO_ANSWER, f"the driver on node {pod.node_name} does not answer the kubelet"
        if node is not None and node.ready is False:
            kind = node_causes.DRIVER_GONE
            what = f"on node {pod.node_name} nothing is ready, and its ResourceSlices are left over"
    yield Cause(
        kind,
        f"{what}: {_LEAD.sub('', event.message)}",
        (
            Evidence(f"Event on Pod {pod.key}", event.reason, event.message),
            *_node_state(node),
            *_drivers(pod.node_name, claims, snapshot),
        ),
        kind.fix,
    )


def _node_gone(node: Node, claims: Sequence[ResourceClaim], snapshot: Snapshot) -> Cause:
    kind = node_causes.DRIVER_GONE
    return Cause(
        kind,
        f"node {node.name} is not ready, so nobody starts the pod there",
        (*_node_state(node), *_drivers(node.name, claims, snapshot)),
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
                late = _tolerated_in_spec(claim, result, taint) if not tolerated else ""
                if late:
                    shown += f", though request {late} tolerates it: the scheduler did not copy that"
                    fix = (
                        "Make a new claim and pod: only tolerations in the allocation protect. If the new allocation "
                        "lacks them too, upgrade the scheduler."
                    )
                evidence.append(
                    Evidence(f"ResourceClaim {claim.key}", f"tolerations of {result.device} that cover it", shown)
                )
                if taint.rule and fix is kind.fix:
                    fix = (
                        f"End the maintenance (kubectl delete devicetaintrule {taint.rule}). Until then a new pod gets "
                        "other devices; one that may stay has to tolerate the taint with effect: NoExecute."
                    )
                if tolerated and not any(entry.effect == "NoExecute" for entry in tolerated):
                    fix = "Write effect: NoExecute into the toleration: without an effect it does not protect."
    verb = "was" if pod.finished else "is"
    yield Cause(kind, f"the pod {verb} evicted because of a device taint{text}", tuple(evidence), fix)


def _tolerated_in_spec(claim: ResourceClaim, result: DeviceResult, taint: DeviceTaint) -> str:
    """The name of the result's request where that tolerates the taint for good, though the allocation does not."""
    for entry in claim.requests:
        for spec in entry.alternatives():
            if entry.result_name(spec) == result.request and any(
                toleration.effect == "NoExecute" and toleration.tolerates(taint) for toleration in spec.tolerations
            ):
                return result.request
    return ""


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
