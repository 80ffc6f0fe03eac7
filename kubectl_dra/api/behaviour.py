"""What Kubernetes releases do differently, beside gates, fields and kinds: a row for each difference and known defect.

A row is the set of releases that do as it says: ``release in SORTED_POOLS``. The recorded answers of all releases
(tests/conformance) are the source of rows without a link.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from typing import Final

from msgspec import Struct, field

from kubectl_dra.api.releases import NEWEST_MODELLED, Release, Releases


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


# Known defects of releases, each with its upstream number and the releases that have it.


class Defect(Struct, frozen=True):
    """A defect and the releases that have it.

    ``number`` is its pull request or issue in kubernetes/kubernetes; None if it ended with a larger change.
    ``what`` it means for those who wait for devices, for defects that decide whether they get them.
    ``since`` and ``gone`` are the first minor releases with and without it; ``gone`` is None while it is
    open. ``fixed`` maps each minor release in between to its first patch release without the defect.
    """

    number: int | None = None
    since: int = 0
    gone: int | None = None
    fixed: Mapping[int, int] = field(default_factory=dict)
    what: str = ""

    def affects(self, release: Release, patch: int | None) -> bool | None:
        """Whether a release has it; None if that depends on an unknown patch release."""
        if release.minor < self.since or (self.gone is not None and release.minor >= self.gone):
            return False
        first = self.fixed.get(release.minor)
        if first is None:
            return True
        return None if patch is None else patch < first

    def fixed_in(self, minor: int) -> str:
        """The first patch release of a minor release without it. Raises KeyError if there is none."""
        return f"1.{minor}.{self.fixed[minor]}"

    def patches(self, minor: int) -> str:
        """The patch releases of a minor release that have it. Raises KeyError if all have it."""
        last = self.fixed[minor] - 1
        return f"1.{minor}.0 to 1.{minor}.{last}" if last > 1 else f"1.{minor}.0 and 1.{minor}.{last}"

    @property
    def fixes(self) -> tuple[str, ...]:
        """The first releases without it, oldest first; empty while it is open."""
        last = () if self.gone is None or self.gone > NEWEST_MODELLED.minor else (f"1.{self.gone}.0",)
        return (*(self.fixed_in(minor) for minor in sorted(self.fixed)), *last)

    @property
    def reference(self) -> str:
        """Its upstream name; empty without a number."""
        return f"kubernetes/kubernetes#{self.number}" if self.number else ""


# The allocator: which devices a pod gets.

RULES_UNSEEN: Final = Defect(139651, since=36, gone=37, fixed={36: 3}, what="DeviceTaintRules are not seen")
"""The scheduler watches DeviceTaintRules in a version that it cannot read: it ignores them, and may crash."""
CRASH_ON_ALL: Final = Defect(
    138885,
    since=35,
    gone=37,
    fixed={35: 6, 36: 2},
    what="the scheduler crashes at a request for all devices where one of them uses shared counters",
)
SCORING_FAILS: Final = Defect(139016, since=35, gone=37, fixed={35: 6, 36: 2})
"""Scoring nodes fails for a pod with both allocated and unallocated claims."""
TAINTS_NAMED: Final = Defect(134740, gone=35, fixed={34: 2})
"""The scheduler's message names each node's taint, so that nodes with different taints are not counted together."""
COUNTERS_LEAK: Final = Defect(
    140431,
    gone=37,
    fixed={36: 3},
    what="it keeps the shared counters of each device that it tries first and refuses for a taint or a constraint",
)
"""A refused or undone device stays charged, and one refused for its capacity stays in its claim's constraints."""
COUNTERS_KEYED_BY_POOL_NAME: Final = Defect(
    140435, gone=37, fixed={36: 4}, what="drivers that use one pool name share their counters"
)
DISTINCT_COMPARES_NOTHING: Final = Defect(gone=35, what="distinctAttribute accepts devices with equal values")
LATER_ALL_CONTINUES_WITH_FIRST: Final = Defect(
    137347, gone=36, what="a later alternative for all devices goes on with what the first asks for"
)
"""A later alternative for all devices takes one of them, and goes on with what the first alternative asks for."""
DEVICES_OF_CLAIM_SUMMED: Final = Defect(
    141307,
    gone=37,
    fixed={34: 12, 35: 9, 36: 5},
    what="very large numbers of devices wrap around when they are summed up",
)
REQUEST_TAKES_SHARE_TWICE: Final = Defect(gone=36, what="a request for several devices takes several shares of one")
SHARES_CHARGE_NOTHING: Final = Defect(
    139040, gone=37, fixed={36: 2}, what="shared devices that are allocated do not count against the shared counters"
)
DISTINCT_REMEMBERS_ONE: Final = Defect(
    140600, gone=37, what="distinctAttribute compares with one device of each request only"
)
ALL_FAILS_ON_ANY_POOL: Final = Defect(141898, what="a request for all devices fails on any unusable pool of the node")
"""Mode All fails fatally if any pool on the node is incomplete or invalid."""
ALL_DROPS_EXHAUSTED: Final = Defect(
    140769, gone=37, what="a request for all devices leaves out shared devices that are full"
)
CLAIM_CONFIG_REPEATED: Final = Defect(
    gone=37, what="a configuration of the claim is repeated for every request that it names"
)
COUNTER_SLICES_EVERYWHERE: Final = Defect(
    since=35, gone=37, what="slices with shared counters of other nodes are looked at as well"
)
"""Slices with shared counters are seen on every node."""
CAPACITY_WRAPS: Final = Defect(
    140442, gone=37, what="the arithmetic of a request policy's range wraps past the largest 64-bit integer"
)
"""Rounding a capacity request wraps around beyond the largest 64-bit integer, negative amounts are accepted,
and rounded amounts are binary quantities whatever the step.
"""
SHARE_WITHOUT_CAPACITY_CHARGES: Final = Defect(
    140437, gone=37, what="a share that takes no capacity counts against the shared counters once more"
)

OF_ALLOCATOR: Final = tuple(defect for defect in globals().values() if isinstance(defect, Defect))

# The kubelet.

OUT_OF_EXTENDED: Final = Defect(135667, since=34, gone=36)
"""The kubelet counts extended resources that devices of claims serve as its own, has none, and refuses the pod."""
LATER_CLAIMS_UNPREPARED: Final = Defect(135919, gone=36, fixed={34: 4, 35: 1})
"""Of a pod's claims those after one that another pod of the node uses already are not prepared."""
UNPREPARED_IN_USE: Final = Defect(140212, gone=37)
"""The end of one pod makes the kubelet give back devices of a claim that another pod still uses."""
JOINS_UNPREPARED: Final = Defect(140527, gone=37)
"""A pod that joins a claim while its devices are given back runs with devices that are gone."""

# The scheduler, around its allocator.

HALF_A_CLAIM: Final = Defect(131662, since=33, gone=34, fixed={33: 1})
"""A request for more than 16 devices is never served, though a claim may have 32."""
ALLOCATED_TWICE: Final = Defect(136269, gone=36, fixed={34: 4, 35: 1})
"""Under a burst of pods the scheduler gives one exclusive device to two claims."""
CLAIM_EVENT_MISSED: Final = Defect(140831, gone=37)
"""A change of a claim may be missed, so that the pod waits until all waiting pods are tried again, every 5 minutes."""
EXTENDED_TAKES_OF_NODE: Final = Defect(141467, since=37)
"""A pod is not bound if a device that takes resources of its node serves an extended resource of it."""

# Taints.

TOLERATIONS_NOT_COPIED: Final = Defect(134479, gone=35)
"""The scheduler does not copy tolerations into the allocation, so that eviction does not see them."""
RULE_FOR_ALL: Final = Defect(141998, gone=38, fixed={37: 1})
"""The scheduler takes a DeviceTaintRule without deviceSelector for one of every device; it selects none."""


def last_fix(release: Release) -> str:
    """The first patch of a minor release in which all defects of its allocator are mended that any patch of it mends;
    empty if none.
    """
    patches = [defect.fixed.get(release.minor, 0) for defect in OF_ALLOCATOR]
    return f"{release}.{max(patches)}" if any(patches) else ""
