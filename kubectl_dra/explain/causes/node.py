"""Causes after the allocation: the devices are there, but the pod does not run."""

from __future__ import annotations

from kubectl_dra.explain.diagnosis import CauseKind

NOT_REGISTERED = CauseKind(
    code="driver-not-registered",
    title="The node's kubelet does not know the driver",
    why="Devices are prepared by the driver's plugin on the node, which registers with the kubelet. ResourceSlices "
    "outlive a driver, so the scheduler can still place pods where nobody prepares their devices.",
    fix="Start or restart the driver's pod on the node. If the driver is gone for good, delete its ResourceSlices.",
    seen_as="FailedPrepareDynamicResources: … DRA driver … is not registered",
)
NO_ANSWER = CauseKind(
    code="driver-not-answering",
    title="The node's driver does not answer the kubelet",
    why="The driver registered with the kubelet once, but nobody listens on its socket now: its pod on the node is "
    "gone, restarting or hung. Its ResourceSlices stay, so the scheduler goes on to place pods there.",
    fix="Look at the driver's pod on the node, and start or restart it. If the driver is gone for good, delete its "
    "ResourceSlices.",
    seen_as="FailedPrepareDynamicResources: … code = Unavailable … connection refused",
)
PREPARE_FAILED = CauseKind(
    code="prepare-failed",
    title="The driver could not prepare the devices on the node",
    why="The claim is allocated; scheduling is done. The driver's plugin on the node answered with an error, and the "
    "kubelet keeps trying.",
    fix="Read what the driver says in the event and in its log on that node.",
    seen_as="FailedPrepareDynamicResources: NodePrepareResources failed for ResourceClaim …",
)
NOT_RESERVED = CauseKind(
    code="claim-not-reserved",
    title="The claim is not reserved for the pod",
    why="A pod may use an allocated claim only when status.reservedFor lists it. The scheduler enters it; for a pod "
    "that was bound without the scheduler kube-controller-manager does, when the claim is allocated.",
    fix="Let the scheduler place the pod; if it did, look for who removed the reservation.",
    seen_as="FailedPrepareDynamicResources: pod … is not allowed to use ResourceClaim …",
)
EVICTED = CauseKind(
    code="evicted-by-taint",
    title="The pod is evicted because a device of it is tainted",
    why="A NoExecute taint ends pods that use the device. Only tolerations in the allocation protect, as they were "
    "when it was made, and only those with effect NoExecute: one without an effect lets a pod start on the device, "
    "but not stay.",
    fix="Repair the device or end the maintenance; for a pod that may stay, tolerate the taint with effect: NoExecute.",
    seen_as="condition DisruptionTarget, reason DeletionByDeviceTaintManager; event DeviceTaintManagerEviction",
)
DRIVER_GONE = CauseKind(
    code="slices-outlive-driver",
    title="The node is not ready, and its ResourceSlices are left over",
    why="ResourceSlices stay when a driver or its node dies, and the scheduler goes on to place pods on them. Nobody "
    "prepares the devices there.",
    fix="Bring the node and its driver back, or delete the ResourceSlices of the node; then delete the pod so that it"
    " is placed again.",
    seen_as="FailedPrepareDynamicResources on the node",
)

KINDS = (NOT_REGISTERED, NO_ANSWER, PREPARE_FAILED, NOT_RESERVED, EVICTED, DRIVER_GONE)
