"""Causes in devices that match but cannot be had."""

from __future__ import annotations

from kubectl_dra.explain.diagnosis import CauseKind

ALL_HELD = CauseKind(
    code="devices-held",
    title="The matching devices are held by other claims",
    why="A device that is allocated is free again when its claim is deallocated: when the last consuming pod has "
    "ended. Priority does not help; no pod is evicted to free a device.",
    fix="Wait for a holder to end, remove one, or add devices.",
    seen_as="cannot allocate all claims",
)
ORPHANED = CauseKind(
    code="allocation-orphaned",
    title="Devices are held by a claim that nobody consumes",
    why="The claim is allocated but reserved for no pod. Nothing frees its devices until a pod uses the claim or "
    "it is deleted.",
    fix="Delete the claim if it is not needed.",
    seen_as="cannot allocate all claims",
)
HOLDER_STUCK = CauseKind(
    code="holder-stuck",
    title="Devices are held for a consumer that will not release them",
    why="A pod in Terminating keeps its devices until it is gone; a consumer that is not a pod is never cleaned up.",
    fix="Find out why the pod does not end (its node may be gone), or remove the reservation.",
    seen_as="cannot allocate all claims",
)
TOO_FEW = CauseKind(
    code="too-few-on-one-node",
    title="No single node has enough matching devices",
    why="All devices of a pod come from what one node sees. Devices on several nodes do not add up.",
    fix="Ask for fewer devices, or use nodes with more of them.",
    seen_as="cannot allocate all claims",
)
TAINTED = CauseKind(
    code="devices-tainted",
    title="The matching devices are tainted",
    why="A device with a NoSchedule or NoExecute taint is allocated only to requests that tolerate it. Drivers "
    "taint unhealthy devices, administrators take devices out of service by DeviceTaintRules.",
    fix="Repair the device or end the maintenance; tolerate the taint only if the pod may use such a device.",
    seen_as="cannot allocate all claims",
)
TOLERATION = CauseKind(
    code="toleration-does-not-match",
    title="The request's toleration misses the taint",
    why="A toleration covers a taint when effect, key and, with operator Equal, the value are the same. An empty "
    "effect covers every effect, an empty key with operator Exists every key.",
    fix="Correct the part of the toleration that differs, in a new claim.",
    seen_as="cannot allocate all claims",
)
HELD_WHOLE = CauseKind(
    code="shareable-device-held-whole",
    title="A device that can be shared is held as a whole",
    why="An allocation made before the device could be shared has no share ID and holds all of it, whatever "
    "capacity is left on paper.",
    fix="Let the claim that holds it end; a new allocation of the device is a share.",
    seen_as="cannot allocate all claims",
)
OVERDRAWN = CauseKind(
    code="counters-overdrawn",
    title="A shared counter is overdrawn",
    why="The devices in use take more of a counter than the driver publishes now, for instance because a set became "
    "smaller. Until that ends no other device of the pool that uses counters can be allocated.",
    fix="Free the devices that overdraw the counter; report it to the driver's maintainers.",
    seen_as="cannot allocate all claims",
)
COUNTERS = CauseKind(
    code="counters-exhausted",
    title="Partitions that are in use leave too little of the shared counters",
    why="Partitions of one device draw on shared counters. A partition can be allocated only while its counters "
    "are left, so a partition in use can block the whole device and others of its partitions.",
    fix="Free a partition of the same device, or ask for a smaller one.",
    seen_as="cannot allocate all claims",
)
CAPACITY = CauseKind(
    code="capacity-insufficient",
    title="The devices have too little capacity left",
    why="Each request takes capacity of a device, rounded up by the device's policy; a capacity without policy "
    "that the request does not name is taken whole.",
    fix="Ask for less, or name every capacity of the device in the request.",
    seen_as="cannot allocate all claims",
)
CAPACITY_UNKNOWN = CauseKind(
    code="capacity-unknown",
    title="The devices have no capacity of that name",
    why="The name in capacity.requests has to equal the device's capacity key literally; no domain is added.",
    fix="Use the key as the driver publishes it.",
    seen_as="cannot allocate all claims",
)
CAPACITY_POLICY = CauseKind(
    code="capacity-policy",
    title="The requested capacity violates the device's policy",
    why="A request policy allows certain values, or a range with a step; a rounded request outside is refused.",
    fix="Ask for a value that the policy allows.",
    seen_as="cannot allocate all claims",
)
CONSTRAINT = CauseKind(
    code="constraint-unsatisfiable",
    title="A constraint between the devices cannot be met",
    why="With matchAttribute a claim wants one value on all devices, with distinctAttribute different ones; a device "
    "without the attribute never fits.",
    fix="Drop or widen the constraint, ask for fewer devices, or use nodes with other devices.",
    seen_as="cannot allocate all claims; with allocationMode All: … a claim constraint would not be satisfied",
)
ATTRIBUTE_MISSING = CauseKind(
    code="constraint-attribute-missing",
    title="Devices lack the attribute of a constraint",
    why="A device without the attribute never fits a matchAttribute or distinctAttribute. The name has to be the same "
    "with its domain; drivers often publish such a fact under names of their own.",
    fix="Use an attribute that all these devices have, or drop the constraint.",
    seen_as="cannot allocate all claims",
)
ADMIN_BLOCKS = CauseKind(
    code="admin-request-blocks",
    title="An admin request of the same pod takes the devices first",
    why="Admin access ignores who holds a device, but inside one pod a device that an admin request took is not "
    "given to an ordinary request as well.",
    fix="Put the admin request into a pod of its own, or into a later claim of the pod.",
    seen_as="cannot allocate all claims",
)
COMPETITION = CauseKind(
    code="requests-compete",
    title="The pod's requests fit one by one, but not together",
    why="Two requests or claims of the pod want the same devices of a node.",
    fix="Make the requests distinct, ask for fewer devices, or put them into separate pods.",
    seen_as="cannot allocate all claims",
)
DIFFERENT_NODES = CauseKind(
    code="claims-need-different-nodes",
    title="The pod's claims fit only on different nodes",
    why="All claims of a pod have to be usable on one node.",
    fix="Choose devices that one node has, or split the pod.",
    seen_as="cannot allocate all claims, or resourceclaim not available on the node",
)
ALL_INCOMPLETE = CauseKind(
    code="all-not-possible",
    title="A request for all devices meets one that cannot be had",
    why="Mode All needs every matching device of the node: one that is held, tainted or short of counters fails it.",
    fix="Exclude the device by a selector, or ask for a count.",
    seen_as="cannot allocate all claims",
)
SLOW = CauseKind(
    code="search-too-slow",
    title="The scheduler's search would not end in time",
    why="The scheduler tries combinations device by device and gives up after 10 seconds per node.",
    fix="Narrow the selectors or loosen constraints so that fewer combinations are left.",
    seen_as="SchedulerError: timed out trying to allocate devices",
)
KNOWN_DEFECT = CauseKind(
    code="allocator-defect",
    title="A known defect of the scheduler's allocator decides",
    why="With the known defects of this release the allocation fails; without them it would succeed.",
    fix="Upgrade to a release with the fix; until then ask in separate claims, or for other devices.",
    seen_as="cannot allocate all claims",
)
NO_NODE = CauseKind(
    code="no-eligible-node",
    title="No node may run the pod",
    why="Every node is ruled out by the pod's nodeSelector or affinity, by node taints, or because it is cordoned. "
    "Devices do not matter then.",
    fix="Correct the placement rules or tolerations, or add nodes.",
    seen_as="node counts by other filters",
)

KINDS = (
    ALL_HELD,
    ORPHANED,
    HOLDER_STUCK,
    TOO_FEW,
    TAINTED,
    TOLERATION,
    HELD_WHOLE,
    COUNTERS,
    OVERDRAWN,
    CAPACITY,
    CAPACITY_UNKNOWN,
    CAPACITY_POLICY,
    CONSTRAINT,
    ATTRIBUTE_MISSING,
    COMPETITION,
    ADMIN_BLOCKS,
    DIFFERENT_NODES,
    ALL_INCOMPLETE,
    SLOW,
    KNOWN_DEFECT,
    NO_NODE,
)
