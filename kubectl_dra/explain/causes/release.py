"""Causes in known defects of releases, other than those that the allocation itself shows."""

from __future__ import annotations

from kubectl_dra.explain.diagnosis import CauseKind

POOL_NAME_SHARED = CauseKind(
    code="pool-name-shared",
    title="Two drivers use one pool name, and their counters are mixed up",
    why="Up to 1.36.3 the scheduler keeps shared counters by the name of the pool, without the driver. If two drivers"
    " with counters use one name, the devices of one are counted against the sets of the other; which, depends on"
    " the node that is looked at first.",
    fix="Upgrade the scheduler to 1.36.4 or later, or let one driver name its pools otherwise.",
    seen_as="cannot allocate all claims, now and then",
)
RULES_UNSEEN = CauseKind(
    code="taint-rules-crash",
    title="The scheduler of this release does not understand DeviceTaintRules",
    why="Schedulers of 1.36.0 to 1.36.2 with DRADeviceTaintRules on watch the rules in a version that they cannot "
    "read: a rule has no effect, and a change of one can end the process. While the scheduler restarts no pod is "
    "placed.",
    fix="Upgrade to 1.36.3 or later. Until then delete the rules, and taint devices in the driver.",
    seen_as="nothing, or kube-scheduler in CrashLoopBackOff",
)
PANIC = CauseKind(
    code="scheduler-crashes",
    title="The scheduler of this release crashes on this request",
    why="Schedulers of 1.35.0 to 1.35.5 and of 1.36.0 and 1.36.1 crash when a request for all devices meets a device "
    "that uses shared counters. No pod is placed until the request is gone.",
    fix="Upgrade to 1.35.6, 1.36.2 or later; until then ask for a count instead of All.",
    seen_as="kube-scheduler in CrashLoopBackOff",
)
OLD_SLICES = CauseKind(
    code="slice-form-outdated",
    title="The driver publishes counters and devices in one ResourceSlice",
    why="In 1.34 a slice held the devices and the counters that they share. From 1.35 counters stand in slices of "
    "their own; the devices of a slice that has both are passed over.",
    fix="Upgrade the driver to a version for this Kubernetes release.",
    seen_as="cannot allocate all claims",
)

KINDS = (POOL_NAME_SHARED, RULES_UNSEEN, PANIC, OLD_SLICES)
