"""What kinds of causes there are: whose they are, where to look next, and what a kind says of the pod."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, auto
from typing import NamedTuple

from msgspec import Struct

from kubectl_dra.api.slices import ResourceSlice
from kubectl_dra.command import CommandLine, log_of
from kubectl_dra.data import code_pages
from kubectl_dra.data.code_pages import CodePage


class Family(Enum):
    """The groups in which causes are listed, in this order."""

    POD = "The pod is never evaluated"
    CLAIM = "The claim's state"
    REQUEST = "Classes, requests and selectors"
    POOLS = "ResourceSlices and pools"
    DEVICES = "Devices that match but cannot be allocated"
    NODE_FILTERS = "Nodes that the scheduler's filters refuse"
    EXTENDED = "Extended resources"
    RELEASE = "Known defects of releases"
    NODE = "Allocated, but the pod does not run"


class Look(Enum):
    """What to look at next. ``report/explain_commands.py`` has the command of each."""

    POD = auto()
    EXPLAIN_POD = auto()
    EXPLAIN_NODE = auto()
    EXPLAIN_DRIVER = auto()
    EXPLAIN_CLASS = auto()
    PODS_ON_NODE = auto()
    ALL_PODS = auto()
    LABELS_OF_PODS = auto()
    VOLUME_CLAIMS = auto()
    VOLUMES_ATTACHED = auto()
    CLAIM = auto()
    CLAIM_HOLDER = auto()
    END_POD = auto()
    LINT = auto()
    SHARE = auto()
    COMPLETE = auto()
    AS_WRITTEN = auto()
    QUOTAS = auto()
    CLASSES = auto()
    RESOURCES_OF_CLASSES = auto()
    SLICES = auto()
    NODES = auto()
    ONE_NODE = auto()
    LABELS_OF_NODES = auto()
    ONE_LABEL_OF_NODES = auto()
    FEATURES_OF_NODES = auto()
    VERSION = auto()
    TAINTS = auto()
    TAINTED_DEVICES = auto()
    DEVICES = auto()
    SELECTORS = auto()
    ONE_DEVICE = auto()
    DEVICES_OF_CLASS = auto()
    WEBHOOKS = auto()
    PERMISSION = auto()
    SNAPSHOT = auto()
    LOG = auto()
    LOG_BEFORE = auto()
    DAEMON_SET = auto()
    DAEMON_SETS = auto()
    DRIVERS = auto()


class NextStep(NamedTuple):
    """What to look at next, and the object: ``kind`` is its resource, ``name`` its name, or the device to trace.

    Of a driver ``kind`` is the node, if it is about one; of a log the container; of what makes a driver's pods it is a
    DaemonSet or a ReplicaSet. Of slices it is the field that has the name. ``others`` are further pods to end.
    """

    look: Look
    name: str = ""
    namespace: str = ""
    kind: str = ""
    others: tuple[str, ...] = ()

    @property
    def log(self) -> CommandLine | None:
        """The command that shows the log; None of a step that is about none."""
        if self.look not in (Look.LOG, Look.LOG_BEFORE):
            return None
        return log_of(self.name, self.namespace, self.kind, before=self.look is Look.LOG_BEFORE)


def slices_step(slices: Iterable[ResourceSlice]) -> NextStep:
    """Where to see these slices: of one node or one driver no others are asked for."""
    known = [(slice_.scope.node_name, slice_.pool.driver) for slice_ in slices]
    nodes, drivers = ({*names} for names in zip(*known, strict=True)) if known else (set(), set())
    if len(nodes) == 1 and (node := nodes.pop()):
        return NextStep(Look.SLICES, node, kind="spec.nodeName")
    return NextStep(Look.SLICES, drivers.pop(), kind="spec.driver") if len(drivers) == 1 else NextStep(Look.SLICES)


class Check(NamedTuple):
    """A kubectl command that shows a cause, and what to look for in its output.

    Words in capitals stand for names: POD, CLAIM, NAMESPACE, NODE, CLASS, DRIVER and so on.
    """

    shows: str
    command: str


class CauseKind(Struct, frozen=True):
    """An entry of the closed catalogue of causes; its texts are on its page, ``docs/causes/CODE.md``.

    ``code`` never changes its meaning. ``look`` is what to look at next, ``fixed_at`` what to look at for the fix where
    that is on a page of ours.

    ``passes``: the devices still matter, so what would happen next is worth saying. ``never_binds``: the
    devices exist, but the pod will not be bound to them. ``ends_pod``: the pod will never get devices.
    ``queued`` is when somebody else lets the pod go to the scheduler, so that what it would say then is told as well.
    ``held``: somebody else has the devices. ``missing`` is the kind of an object that does not exist.
    ``instead``: its fix helps whatever else is the matter, so it is offered beside theirs.
    ``state`` describes the pod if "cannot be scheduled" would be wrong.
    """

    code: str
    family: Family
    look: Look = Look.DEVICES
    fixed_at: Look | None = None
    passes: bool = False
    never_binds: bool = False
    ends_pod: bool = False
    held: bool = False
    instead: bool = False
    queued: str = ""
    missing: str = ""
    state: str = ""

    @property
    def page(self) -> CodePage:
        """Its page."""
        return code_pages.page("causes", self.code)

    @property
    def title(self) -> str:
        """The cause in a few words."""
        return self.page.title

    @property
    def why(self) -> str:
        """What happens, for somebody who has never met it."""
        return self.page.sections["Why"]

    @property
    def fix(self) -> str:
        """What helps in general."""
        return self.page.sections["What helps"]

    @property
    def normal(self) -> str:
        """When it is no fault."""
        return self.page.sections["When it is normal"]

    @property
    def seen_as(self) -> str:
        """What Kubernetes itself shows."""
        return self.page.sections["What it looks like"].rpartition("Kubernetes shows: ")[2]

    @property
    def confirm(self) -> tuple[Check, ...]:
        """Commands of the cause's page that show it with kubectl."""
        commands = code_pages.blocks(self.page.sections["See it with kubectl"])
        return tuple(Check(shows, command.rstrip("\n")) for shows, command in commands)
