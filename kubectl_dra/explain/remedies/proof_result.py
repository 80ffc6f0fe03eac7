"""What a run of the scheduler's attempt with a change has shown."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from enum import Enum, IntEnum, auto
from typing import Final, NamedTuple, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from kubectl_dra.api.claims import DeviceConstraint, ResourceClaim, devices_of
from kubectl_dra.api.slices import DeviceID, PoolID
from kubectl_dra.api.taints import DeviceTaint
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.drivers.health import DriverState
from kubectl_dra.explain.not_starting import NotStarting, not_starting
from kubectl_dra.explain.phrase import Words


class Tried(Enum):
    """What was changed for a proof."""

    CHANGE = "the-change"
    """The change that the proof belongs to."""
    WITHOUT_TERM = "without-the-term"
    WITHOUT_REQUEST = "without-the-request"
    CLAIM_PER_REQUEST = "a-claim-for-each-request"


NEW_NODE: Final = "the new node"
"""Stands for the node of a proof that does not exist yet."""


class OtherRequest(NamedTuple):
    """A request, its claim's key, and both in words that are clear here."""

    request: str
    claim: str
    place: Words


class Beside(Struct, frozen=True):
    """What a proof rests on beside its change.

    Of other requests that fail by themselves, those ``changed`` had their own fixes made, those ``aside`` were left
    out. ``causes`` are codes of causes that have nothing to do with devices. What was left out, and
    these causes, keep the pod waiting all the same. ``rivals`` are pods that wait as well, by their keys, and that the
    scheduler may give the devices first; ``successor`` is what makes another pod of a higher priority, if anything.
    """

    changed: tuple[OtherRequest, ...] = ()
    aside: tuple[OtherRequest, ...] = ()
    causes: tuple[str, ...] = ()
    rivals: tuple[str, ...] = ()
    successor: str = ""


class ReplicasThen(NamedTuple):
    """How many replicas of a workload, of all, fit with a change; ``unit`` is what one is called."""

    fitting: int
    of: int
    unit: str


class Proof(Struct, frozen=True):
    """A scheduler's attempt with a change: the first node that then accepts the pod, and its claims there.

    ``claims`` are those that get devices, with these. ``filters``: a pod was tried, with all filters of the scheduler;
    otherwise only the allocation of the claims. ``like`` is the node of which a copy was tried; then ``node`` is
    ``NEW_NODE``. ``request`` is the one that was left out. ``beside`` is what else the pod needs, if anything.
    ``nodes`` are all that accept it, if they were counted; there may be ``more`` of them. ``not_starting`` are those of
    them on which pods do not start. ``then`` is how many replicas fit with it, where all were placed again.
    """

    node: str
    claims: tuple[ResourceClaim, ...] = ()
    filters: bool = False
    tried: Tried = Tried.CHANGE
    request: str = ""
    like: str = ""
    beside: Beside | None = None
    nodes: tuple[str, ...] = ()
    more: bool = False
    not_starting: tuple[NotStarting, ...] = ()
    then: ReplicasThen | None = None

    @property
    def enough(self) -> bool:
        """Whether nothing is left that keeps the pod waiting all the same."""
        return self.beside is None or not (self.beside.aside or self.beside.causes)


# A change as data: what is changed, from what to what, what it gives back, and what it asks of people.

StepValue: TypeAlias = str | int | tuple[DeviceTaint, ...] | DeviceConstraint | None


class Price(IntEnum):
    """What a change asks of people, the least first: the order in which changes are offered."""

    NOTHING = auto()
    """Only what no one uses goes."""
    EDIT = auto()
    """A line of what was asked for."""
    TOLERATE = auto()
    """Accepts what the owner keeps others away from."""
    WAIT = auto()
    """It comes, or ends, without a change by the user."""
    OTHER_DEVICES = auto()
    """A line of what was asked for, and with it devices of another kind."""
    END_IDLE = auto()
    """A pod that does no work ends."""
    END_RUNNING = auto()
    """A pod that works ends."""
    BUY = auto()
    """More hardware."""


class StepKind(Enum):
    """What is done. The words are part of the JSON report and never change their meaning."""

    LOWER_COUNT = "lower-count"
    USE_CLASS = "use-class"
    TOLERATE_DEVICE_TAINTS = "tolerate-device-taints"
    LOWER_CAPACITY = "lower-capacity"
    REPLACE_VALUE = "replace-value"
    DROP_TERM = "drop-term"
    DROP_CONSTRAINT = "drop-constraint"
    COMPLETE_POOL = "complete-pool"
    RELEASE_CLAIMS = "release-claims"
    END_PODS = "end-pods"
    TOLERATE_NODE_TAINT = "tolerate-node-taint"
    MEND_NODES = "mend-nodes"
    UNCORDON_NODES = "uncordon-nodes"
    DROP_NODE_SELECTOR = "drop-node-selector"
    DROP_NODE_AFFINITY = "drop-node-affinity"
    LOWER_REQUEST = "lower-request"
    ADD_NODE = "add-node"


class StepTarget(Struct, frozen=True):
    """What a step changes: objects by their keys, and where in them.

    ``field`` is the place in the request, else in the object's spec, as the API names it. ``term`` is the term of a
    selector.
    """

    claims: tuple[str, ...] = ()
    pods: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    pool: PoolID | None = None
    request: str = ""
    field: str = ""
    term: str = ""


class StepHolder(Struct, frozen=True):
    """A claim that gives its devices back: its pods by name, what they do, and what would make them again."""

    claim: str
    state: str
    pods: tuple[str, ...] = ()
    owner_kind: str = ""
    owner: str = ""
    priority: int | None = None


class ChangeStep(Struct, frozen=True):
    """One change: its target, the value before and after it, and what it gives back.

    ``before`` is None where nothing was there, ``after`` where nothing is left. ``frees`` are the devices that
    ``holders`` or the pods of the target give back.
    """

    kind: StepKind
    target: StepTarget
    before: StepValue = None
    after: StepValue = None
    frees: tuple[DeviceID, ...] = ()
    holders: tuple[StepHolder, ...] = ()


def shown_on(
    found: Sequence[Proof], proof: Proof, here: Snapshot, real: Snapshot, held: Collection[str], *, more: bool
) -> Proof:
    """A proof with all nodes on which it was found, of them first one where the pod starts.

    ``here`` is the cluster with the change, ``real`` as it is: a pod that ends mends no driver. ``held`` are the
    drivers of devices that the pod has already; ``more``: not all nodes were tried.
    """
    placed = [(proved.node, {*held, *(device.driver for device in devices_of(proved.claims))}) for proved in found]
    mended = {name for name, node in here.nodes.items() if node.ready is not False}
    idle = not_starting(real, placed)
    idle = tuple(node for node in idle if not (node.driver.state is DriverState.NODE_DOWN and node.node in mended))
    names, troubled = {proved.node for proved in found}, {node.node for node in idle}
    first = next((proved for proved in found if proved.node not in troubled), found[0])
    return replace(
        proof,
        node=first.node,
        claims=first.claims if first is not found[0] else proof.claims,
        nodes=tuple(name for name in here.nodes if name in names),
        more=more,
        not_starting=idle,
    )
