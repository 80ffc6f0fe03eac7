"""What Kubernetes releases do differently, beside gates, fields, kinds and known defects: one row for each difference.

A row is the set of releases that do as it says: ``release in SORTED_POOLS``. The recorded answers of all releases
(tests/conformance) are the source of rows without a link.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

from kubectl_dra.api.releases import Release, Releases


class Aspect(Enum):
    """The component that behaves so, and what it can change."""

    SERVER = auto()
    """What the API server accepts and stores."""
    SCHEDULER = auto()
    """Where pods go, and which devices they get."""
    MESSAGE = auto()
    """Wording of a message; never whether it appears."""


class Behaviour(Releases, frozen=True, kw_only=True):
    """Releases that do something. ``what`` says the difference from releases before them, or after them for rows that
    have an end; ``link`` leads to the change.
    """

    about: Aspect
    what: str
    link: str = ""


def _server(what: str, since: int = 0, until: int | None = None) -> Behaviour:
    return Behaviour(since, until, about=Aspect.SERVER, what=what)


def _scheduler(what: str, since: int = 0, until: int | None = None, link: str = "") -> Behaviour:
    return Behaviour(since, until, about=Aspect.SCHEDULER, what=what, link=link)


def _message(what: str, since: int = 0, until: int | None = None) -> Behaviour:
    return Behaviour(since, until, about=Aspect.MESSAGE, what=what)


_PULL: Final = "https://github.com/kubernetes/kubernetes/pull/"

# What the API server checks.

ADMIN_NEEDS_LABEL: Final = _server("admin access needs a label of the namespace", 33)
ADMIN_LABEL_OF_KUBERNETES: Final = _server("its label is of resource.kubernetes.io, no longer of resource.k8s.io", 34)
LONG_LISTS_UNREAD: Final = _server("the items of a list over its limit are not checked", 35)
STORED_UNREAD: Final = _server(
    "an update does not check again what it leaves as it was: a claim's spec, a device's taints", 35
)
STORED_CAPACITY_UNREAD: Final = _server("nor a device's capacity", 37)
COUNTERS_LIMITED_EACH: Final = _server("counters are limited for each set and device, no longer for each slice", 35)
COUNTERS_APART: Final = _server("counter sets are in slices of their own, not beside the devices that use them", 35)
FEWER_COSTLY_DEVICES: Final = _server("a slice holds fewer devices where any has taints, counters or lists", 35)
VALUES_LIMITED: Final = _server("the values of all attributes of a device are limited together", 36)
EFFECT_NONE: Final = _server("taints and tolerations may have the effect None", 35)
CERTIFICATES_PROJECTED: Final = _server("projected volumes have trust bundles and certificates, no longer dropped", 37)
RESTART_POLICIES_READ: Final = _server("restart policies of containers are checked, no longer dropped", 35)
BOTH_KINDS_READ: Final = _server("a request with both exactly and firstAvailable is not checked any further", until=34)
CLAIM_PREFIX_READ: Final = _server("an update checks generateName of claims, no longer of classes", 35)
DISABLED_DROPPED_FIRST: Final = _server("status updates drop disabled fields before those of devices given back", 35)
DECLARED_RULES: Final = _server("checks that the API's types declare are made, in the object's own version", 37)
DISTINCT_READ_BESIDE_MATCH: Final = _server("distinctAttribute is checked beside matchAttribute, too", 37)
LOWER_CASE_DOMAINS: Final = _server("the domain of a qualified name must be in lower case", 37)
STEP_ABOVE_ZERO: Final = _server("a step must be more than 0; before, 0 crashes the handler of the request", 37)
RULE_UPDATES_NAME_VERSION: Final = _server("updates of DeviceTaintRules must name the version that they replace", 37)
GANG_POLICY_CHANGES: Final = _server("the gang policy of a PodGroup may be changed", 37)

# What versions of the pod security standards allow.

LATEST_STANDARDS: Final = Release(1, 999)
CAPABILITIES_RESTRICTED: Final = _server("restricted pods drop all capabilities", 22)
USERS_RESTRICTED: Final = _server("restricted pods do not run as user 0", 23)
WINDOWS_EXEMPT: Final = _server("pods for Windows are free of what only Linux has", 25)
SYSCTL_RESERVED_PORTS: Final = _server("net.ipv4.ip_local_reserved_ports is safe", 27)
SYSCTLS_KEEPALIVE: Final = _server("sysctls of TCP timeouts are safe", 29)
ENGINE_TYPE: Final = _server("the SELinux type container_engine_t is allowed", 31)
SYSCTLS_BUFFERS: Final = _server("sysctls of TCP buffers are safe", 32)
PROBE_HOSTS_REFUSED: Final = _server("probes and lifecycle handlers name no host", 34)
OWN_USERS_EXEMPT: Final = _server("pods with a user namespace of their own may run as any user", 35)

# How the scheduler chooses devices and nodes.

EITHER_GATE_CHOOSES: Final = _scheduler(
    "a simpler variant of the allocator runs where the gates of binding conditions are not both on", until=34
)
RULES_WITHOUT_GATE: Final = _scheduler(
    "DeviceTaintRules have a gate of their own", until=34, link="https://kep.k8s.io/5055"
)
KNOWS_ALPHA: Final = _scheduler("the allocator has list attributes and what came after them", 37)
IGNORES_GROUPS: Final = _scheduler(
    "slices with compatibility groups are left out while DRADeviceCompatibilityGroups is off",
    37,
    link="https://kep.k8s.io/5963",
)
SORTED_POOLS: Final = _scheduler(
    "pools and slices are tried by name, no longer in random order", 36, link=f"{_PULL}136641"
)
LOOSE_POOLS: Final = _scheduler("incomplete pools no longer serve requests", until=34, link=f"{_PULL}134189")
LOCAL_POOLS: Final = _scheduler(
    "a pool is complete with its slices of all nodes, not with those that one node sees",
    until=34,
    link=f"{_PULL}134466",
)
IMPLICIT_PASSED_OVER: Final = _scheduler(
    "a pod with an implicit extended resource alone is placed as if it asked for none", until=34
)
TOLERATIONS_IN_RESULT: Final = _scheduler("an allocation keeps the request's tolerations, which eviction reads", 35)
NODE_RESOURCES_OF_DEVICES: Final = _scheduler("what devices take of their node counts by what each slice says", 37)
DEVICE_SCORES: Final = _scheduler("nodes are scored by the preferred alternatives of requests", 35)
BALANCE_COMPARED: Final = _scheduler("balanced allocation compares the node with and without the pod", 36)
IMAGE_VOLUMES_COUNT: Final = _scheduler("image volumes count as images of the pod", 37)
NODE_NAME_FIRST: Final = _scheduler("the filter NodeName runs before NodeUnschedulable", 37)
NAMESPACES_READ_ONCE: Final = _scheduler(
    "a namespace selector that was resolved is not asked again about no labels", 37
)
PORTWORX_MIGRATED: Final = _scheduler("Portworx volumes count for their CSI driver on every node", 36)
CSI_DRIVERS_MAY_BE_MISSING: Final = _scheduler("a node may lack a CSI driver whose CSIDriver does not forbid it", 36)
RESTARTS_DECLARED: Final = _scheduler("nodes must declare that they can restart all containers", 35)
OWN_USERS_DECLARED: Final = _scheduler("nodes must declare user namespaces in the host's network", 36)
GANGS_WITHOUT_GATE: Final = _scheduler("GenericWorkload is the one gate of gangs", 37)
GROUP_OF_ONE_PRIORITY: Final = _scheduler("all pods of a PodGroup must have the group's priority", 37)

# How they say it.

EMPTY_IS_INVALID: Final = _message("an empty name or value is invalid, no longer missing, and reported once", 35)
REPEATED_AT_ITEM: Final = _message("a repeated item is reported at the item, no longer at its key", 35)
KEY_AT_MAP: Final = _message("a wrong key is reported at its map, no longer at its entry", 36)
DEFAULT_OUT_OF_RANGE: Final = _message("a default out of its range is reported itself, no longer the range's end", 37)
OWNER_NUMBERED: Final = _message("a wrong owner is reported with its number, and what it lacks as missing", 37)
ERRORS_NAME_DEVICE: Final = _message("errors of selectors name the device", 37)
PREEMPTION_TERSE: Final = _message("a pod that evicts others is told of the node and their number only", 37)
GROUP_IN_ONE_CYCLE: Final = _message(
    "a pod of a group that does not fit gets the message of the group's one cycle", 36, 36
)
