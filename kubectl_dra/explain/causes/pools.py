"""Causes in ResourceSlices and pools."""

from __future__ import annotations

from kubectl_dra.explain.diagnosis import CauseKind

NO_SLICES = CauseKind(
    code="driver-publishes-nothing",
    title="No driver publishes such devices",
    why="Devices exist for the scheduler only through ResourceSlices, which the driver's kubelet plugin "
    "publishes. Without slices a class has nothing to select from.",
    fix="Install or repair the driver: look at its DaemonSet, its pods on the nodes, and its node selector.",
    seen_as="cannot allocate all claims",
)
NOT_FOR_NODE = CauseKind(
    code="no-devices-on-eligible-nodes",
    title="The devices are on nodes where the pod cannot run",
    why="Slices belong to nodes. Where every node with devices is ruled out by the pod's placement rules, by node "
    "taints, or does not exist, none is left.",
    fix="Correct the pod's nodeSelector, affinity or tolerations, or run the driver on the nodes meant.",
    seen_as="node counts by other filters, or cannot allocate all claims",
)
INCOMPLETE = CauseKind(
    code="pool-incomplete",
    title="A pool is incomplete",
    why="A pool is used only when as many slices of its newest generation exist as each of them announces. It is "
    "so for a moment while a driver updates; for longer it is a driver that died half-way, or left-over slices.",
    fix="Wait; if it stays, restart the driver on that node, and delete left-over slices of a dead driver.",
    seen_as="cannot allocate all claims; with allocationMode All: … is currently being updated",
)
OBSOLETE = CauseKind(
    code="pool-obsolete-for-node",
    title="A pool's newest generation does not cover the node",
    why="A newer generation exists only for other nodes, so this node's older slices are ignored.",
    fix="Wait for the driver to publish again; restart it if it does not.",
    seen_as="cannot allocate all claims",
)
INVALID = CauseKind(
    code="pool-invalid",
    title="A pool is invalid",
    why="A pool with a duplicate device name, a duplicate counter set, or a device that consumes an unknown "
    "counter offers no devices.",
    fix="Report it to the driver's maintainers; restarting the driver may help.",
    seen_as="invalid resource pools were encountered",
)
ALL_BLOCKED = CauseKind(
    code="all-blocked-by-pool",
    title="A request for all devices meets an unusable pool",
    why="Mode All fails for the whole pod when any pool that the node sees is incomplete or invalid, even one of "
    "another driver that the request could never match.",
    fix="Repair that pool's driver, or ask for a count instead of All.",
    seen_as="SchedulerError: asks for all devices, but resource pool … is currently …",
)
BAD_NODE_SELECTOR = CauseKind(
    code="slice-node-selector-invalid",
    title="A ResourceSlice has a node selector that cannot be parsed",
    why="The scheduler gives up on the pod when it meets such a slice.",
    fix="Report it to the driver's maintainers; delete the slice.",
    seen_as="SchedulerError: gather pool information: failed to perform node selection for slice …",
)

NEEDS_FEATURE = CauseKind(
    code="device-needs-feature",
    title="The devices use a feature that is off",
    why="The scheduler passes over devices that need a feature gate which is off: binding conditions, shared "
    "counters, or node selection per device.",
    fix="Turn the feature gate on in kube-apiserver and kube-scheduler, or let the driver publish without it.",
    seen_as="cannot allocate all claims",
)

KINDS = (NO_SLICES, NOT_FOR_NODE, INCOMPLETE, OBSOLETE, INVALID, ALL_BLOCKED, BAD_NODE_SELECTOR, NEEDS_FEATURE)
