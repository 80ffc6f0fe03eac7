"""Causes in the state of a claim that is allocated already, or listed twice."""

from __future__ import annotations

from kubectl_dra.explain.diagnosis import CauseKind

ELSEWHERE = CauseKind(
    code="claim-allocated-elsewhere",
    title="The claim is allocated for nodes where the pod cannot run",
    why="An allocation is bound to the nodes of its devices. While another pod consumes the claim it stays "
    "there, and every further consumer has to run on the same nodes.",
    fix="Let the pod run on that node, wait for the other consumer to end, or give each pod its own claim by a "
    "template.",
    seen_as="resourceclaim not available on the node … still not schedulable",
)
ELSEWHERE_UNUSED = CauseKind(
    code="claim-allocated-elsewhere-unused",
    title="The claim is allocated for other nodes, but nobody else consumes it",
    why="The scheduler deallocates such a claim by itself and tries again.",
    fix="Wait for the next attempt; if it repeats, see what else keeps the pod off the claim's node.",
    seen_as="deallocation of ResourceClaim completed",
)
STUCK = CauseKind(
    code="claim-stuck-elsewhere",
    title="An unused allocation on other nodes is not given up, because another claim of the pod fails",
    why="The scheduler gives up an unused allocation on the wrong nodes only when nothing else fails there. While "
    "another claim of the pod cannot be allocated it reports that one alone, and never touches this one.",
    fix="Free devices for the other claim, or delete this claim and make it again: both are then allocated together.",
    seen_as="cannot allocate all claims",
)
TWICE = CauseKind(
    code="claim-listed-twice",
    title="The pod lists one claim twice",
    why="Two entries of spec.resourceClaims resolve to the same claim; the second reservation always fails.",
    fix="Keep one entry and refer to it from several containers.",
    seen_as="claim … got allocated elsewhere in the meantime",
)
TOO_MANY_CONSUMERS = CauseKind(
    code="claim-consumers-exhausted",
    title="The claim has 256 consumers already",
    why="A claim lists its consumers in status.reservedFor, which holds at most 256 entries.",
    fix="Use more claims.",
    seen_as="status.reservedFor: Too many: 257: must have at most 256 items",
)
BINDING_PENDING = CauseKind(
    code="binding-condition-pending",
    title="An allocated device is not ready to be bound",
    why="The scheduler waits until every binding condition of the device is True in the claim's status.",
    fix="Look at the driver or fabric controller that sets the condition.",
    seen_as="BindingConditionsPending, later device binding timeout",
)
BINDING_FAILED = CauseKind(
    code="binding-failed",
    title="An allocated device reports a binding failure",
    why="A binding failure condition of the device is True; the scheduler gives the device up and tries again.",
    fix="Repair the device that the condition names.",
    seen_as="device binding failed",
)
IN_FLIGHT = CauseKind(
    code="claim-allocation-in-flight",
    title="The claim is being allocated for another pod",
    why="The scheduler has chosen devices for another pod that uses the same claim, and has not written them yet. "
    "Until it has, nobody else can use the claim. Such a choice is in the scheduler's memory only.",
    fix="Wait some seconds. If it stays, that other pod hangs while it is bound: explain it.",
    seen_as="resource claim … is in the process of being allocated",
)
CHANGED = CauseKind(
    code="claim-changed-meanwhile",
    title="Somebody else changed the claim while the pod was bound",
    why="Between the scheduler's decision and its write the claim was allocated, deallocated or deleted by somebody "
    "else. The scheduler tries again by itself.",
    fix="Wait for the next attempt. If it repeats, look for a second scheduler or controller that writes the same "
    "claims.",
    seen_as="SchedulerError: claim … got allocated elsewhere, deallocated elsewhere, or deleted in the meantime",
)
TOO_MANY_CONFIGS = CauseKind(
    code="too-many-configs",
    title="The allocation would hold more than 64 configurations",
    why="An allocation copies the configuration of the classes and of the claim, 64 entries at most. Up to 1.36 an "
    "entry of the claim that names several requests is copied once for each of them. The API server refuses a "
    "larger allocation.",
    fix="Use fewer entries in spec.devices.config, or leave requests out of those that are for all of them.",
    seen_as="SchedulerError: add allocation and reservation to claim …: Too many",
)

KINDS = (
    ELSEWHERE,
    ELSEWHERE_UNUSED,
    STUCK,
    TWICE,
    TOO_MANY_CONSUMERS,
    BINDING_PENDING,
    BINDING_FAILED,
    IN_FLIGHT,
    CHANGED,
    TOO_MANY_CONFIGS,
)
