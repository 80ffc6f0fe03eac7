"""Causes in known defects of releases, other than those that the allocation itself shows."""

from __future__ import annotations

from kubectl_dra.api.known_defects import COUNTERS_KEYED_BY_POOL_NAME, CRASH_ON_ALL
from kubectl_dra.api.known_defects import RULES_UNSEEN as UNSEEN
from kubectl_dra.explain.diagnosis import CauseKind

POOL_NAME_SHARED = CauseKind(
    code="pool-name-shared",
    title="Two drivers use one pool name, and their counters are mixed up",
    why=f"Before {COUNTERS_KEYED_BY_POOL_NAME.fixed_in(36)} the scheduler keeps shared counters by the name of the"
    " pool, without the driver. If two drivers"
    " with counters use one name, the devices of one are counted against the sets of the other; which, depends on"
    " the node that is looked at first.",
    fix=f"Upgrade the scheduler to {COUNTERS_KEYED_BY_POOL_NAME.fixed_in(36)} or later, or let one driver name its "
    "pools otherwise.",
    seen_as="cannot allocate all claims, now and then",
)
RULES_UNSEEN = CauseKind(
    code="taint-rules-crash",
    title="The scheduler of this release does not understand DeviceTaintRules",
    why=f"Schedulers of {UNSEEN.patches(36)} with DRADeviceTaintRules on watch the rules in a version that they cannot "
    "read: a rule has no effect, and a change of one can end the process. While the scheduler restarts no pod is "
    "placed.",
    fix=f"Upgrade to {UNSEEN.fixed_in(36)} or later. Until then delete the rules, and taint devices in the driver.",
    seen_as="nothing, or kube-scheduler in CrashLoopBackOff",
)
PANIC = CauseKind(
    code="scheduler-crashes",
    title="The scheduler of this release crashes on this request",
    why=f"Schedulers of {CRASH_ON_ALL.patches(35)} and of {CRASH_ON_ALL.patches(36)} crash when a request for all "
    "devices meets a device that uses shared counters. No pod is placed until the request is gone.",
    fix=f"Upgrade to {CRASH_ON_ALL.fixed_in(35)}, {CRASH_ON_ALL.fixed_in(36)} or later; until then ask for a count "
    "instead of All.",
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
