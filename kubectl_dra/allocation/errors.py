"""Errors of an allocation attempt, by the scheduler's classes."""

from __future__ import annotations

from enum import Enum, auto

from msgspec import Struct

from kubectl_dra.api.slices import Device, DeviceID
from kubectl_dra.cel import CompileError, EvaluationError


class AllocationCheck(Enum):
    """What failed."""

    ALL_POOL = auto()
    """A request for all devices meets an unusable pool."""
    CAPACITY_FAULT = auto()
    CEL_COMPILE = auto()
    CEL_RUNTIME = auto()
    CLASS_MISSING = auto()
    CLASS_UNNAMED = auto()
    CONSTRAINT_ALL = auto()
    """A request for all devices breaks a constraint."""
    CONSTRAINT_KIND = auto()
    DERIVED_COMPILE = auto()
    DERIVED_RUNTIME = auto()
    DEVICE_NODE_SELECTOR = auto()
    FEATURE_DISABLED = auto()
    MODE_UNKNOWN = auto()
    NODE_SELECTOR_TERMS = auto()
    POOL_INVALID = auto()
    REQUEST_KIND = auto()
    SELECTOR_EMPTY = auto()
    SLICE_NODE_SELECTOR = auto()
    TOO_MANY_DEVICES = auto()


class ErrorDetail(Struct, frozen=True):
    """Facts for an explanation: what the error is about, as far as it is about that.

    ``selector`` is the index of a selector and ``expression`` its text, or that of the derived ``attribute``;
    ``problem`` is what evaluating it gave on ``device``, which is at ``place``. ``gate`` is the feature that is off.
    """

    claim: str = ""
    request: str = ""
    device_class: str = ""
    gate: str = ""
    attribute: str = ""
    expression: str = ""
    selector: int | None = None
    problem: CompileError | EvaluationError | None = None
    device: Device | None = None
    place: DeviceID | None = None
    pool: object = None
    """A ``Pool``."""


class AllocationError(Exception):
    """A fatal error: the scheduler gives up on the pod in this cycle, whatever other nodes offer.

    ``check`` is what failed, ``subject`` the object concerned.
    """

    def __init__(
        self, message: str, check: AllocationCheck, subject: str = "", detail: ErrorDetail | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.check = check
        self.subject = subject
        self.detail = detail or ErrorDetail()


class SearchBudgetExceeded(Exception):
    """The search took more steps than allowed, so the answer is undetermined.

    ``would_time_out``: it got far enough to say that the scheduler's search would probably time out as well.
    """

    def __init__(self, would_time_out: bool = False) -> None:
        super().__init__("search budget exceeded")
        self.would_time_out = would_time_out


class NodeRejected(Exception):
    """The node cannot serve the claims, for a reason found before the search. Other nodes may."""
