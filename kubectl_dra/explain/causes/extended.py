"""Causes in extended resources, with or without a DeviceClass behind them."""

from __future__ import annotations

from kubectl_dra.explain.diagnosis import CauseKind

UNBACKED = CauseKind(
    code="extended-resource-unknown",
    title="Nothing offers the extended resource",
    why="No node lists the resource in status.allocatable (no device plugin), and no DeviceClass names it in "
    "spec.extendedResourceName.",
    fix="Install the device plugin, or set extendedResourceName on the DeviceClass that shall serve it.",
    seen_as="Insufficient <resource>",
)
GATE_OFF = CauseKind(
    code="extended-resource-gate-off",
    title="A DeviceClass offers the extended resource, but the feature is off",
    why="Serving extended resources by DRA needs the feature gate DRAExtendedResource (on by default from 1.36) in "
    "all components.",
    fix="Turn DRAExtendedResource on, or write a ResourceClaim.",
    seen_as="Insufficient <resource>",
)
PLUGIN_EXHAUSTED = CauseKind(
    code="device-plugin-exhausted",
    title="The device plugin has too few devices left",
    why="A node that lists the resource in status.allocatable serves it by its device plugin, never by DRA.",
    fix="Free devices, or move the node from the device plugin to the DRA driver.",
    seen_as="Insufficient <resource>",
)
MIXED = CauseKind(
    code="claim-and-device-plugin",
    title="A pod with a claim and an extended resource lands on a device plugin node",
    why="With a normal claim and an extended resource that a class backs, a node that serves the resource by device "
    "plugin passes the filter and then always fails to bind (defect of 1.36).",
    fix="Keep such a pod off device plugin nodes, or use claims for both.",
    seen_as="SchedulerError: nil or empty request mappings",
)

TWO_CLASSES = CauseKind(
    code="extended-resource-two-classes",
    title="Two DeviceClasses offer the same extended resource",
    why="If several classes name one extended resource, the newest of them serves it, of equally old ones the first "
    "by name; the others are not asked.",
    fix="Let one class have the name: remove extendedResourceName from the other.",
    seen_as="cannot allocate all claims",
)
STALE_CLAIM = CauseKind(
    code="extended-resource-claim-stale",
    title="The claim of an earlier attempt is left over",
    why="For extended resources the scheduler makes a claim of its own. One that is left from an attempt that did not"
    " end makes every node fail once; the scheduler then deletes it, and the next attempt works.",
    fix="Wait for the next attempt. If the claim stays, delete it.",
    seen_as="cannot schedule extended resource claim, then deletion of ResourceClaim completed",
)
NOT_ELIGIBLE = CauseKind(
    code="extended-resource-name-not-eligible",
    title="The name is none that devices can serve",
    why="Devices serve an extended resource only if its name has a domain that is not one of kubernetes.io and does "
    "not start with requests. — whatever a DeviceClass says.",
    fix="Give the DeviceClass an extendedResourceName with a domain of your own, and use that in the pod; or use a "
    "claim.",
    seen_as="Insufficient <resource>",
)

KINDS = (UNBACKED, GATE_OFF, PLUGIN_EXHAUSTED, MIXED, TWO_CLASSES, STALE_CLAIM, NOT_ELIGIBLE)
