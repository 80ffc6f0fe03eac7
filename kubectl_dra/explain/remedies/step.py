"""A change as data: what is changed, from what to what, what it gives back, and what it asks of people."""

from __future__ import annotations

from enum import Enum, IntEnum, auto
from typing import TypeAlias

from msgspec import Struct

from kubectl_dra.api.claims import DeviceConstraint
from kubectl_dra.api.slices import DeviceID, PoolID
from kubectl_dra.api.taints import DeviceTaint

StepValue: TypeAlias = str | int | tuple[DeviceTaint, ...] | DeviceConstraint | None


class Price(IntEnum):
    """What a change asks of people, the least first: the order in which changes are offered."""

    NOTHING = auto()
    """Nobody misses what goes."""
    EDIT = auto()
    """A line of what was asked for."""
    TOLERATE = auto()
    """To accept what somebody keeps others away from."""
    WAIT = auto()
    """It comes, or ends, by itself or by somebody else's repair."""
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
