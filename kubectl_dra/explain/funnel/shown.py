"""What is left of the devices for one request, stage by stage, as an answer shows it."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from kubectl_dra.api.slices import DeviceID
from kubectl_dra.explain.phrase import Words


class StageName(StrEnum):
    """The stages of a funnel. JSON has these words, and they never change their meaning."""

    PUBLISHED = "published"
    NODE = "node"
    POOL = "pool"
    OPERATIONS = "operations"
    CLASS_SELECTOR = "class-selector"
    REQUEST_SELECTOR = "request-selector"
    BINDING = "binding"
    CAPACITY = "capacity"
    TAINT = "taint"
    HELD = "held"
    GROUPS = "groups"
    COUNTERS = "counters"
    USABLE = "usable"
    """No stage: the devices that pass all of them."""
    TOO_FEW = "too-few"
    """No stage: a node never had enough devices."""

    @property
    def selects(self) -> bool:
        """Whether it evaluates a selector."""
        return self in (StageName.CLASS_SELECTOR, StageName.REQUEST_SELECTOR)


class Observation(Struct, frozen=True):
    """What devices have: a name such as ``memory`` or ``productName``, and its values with device counts.

    A value of None means "absent".
    """

    name: str
    values: tuple[tuple[str | None, int], ...]


class Position(Struct, frozen=True):
    """A place inside a CEL expression: 0-based offset, 1-based line and column."""

    offset: int
    line: int
    column: int


class StageError(Struct, frozen=True):
    """A CEL run-time error: its text, where in the expression, and a device that raised it."""

    message: str
    device: DeviceID
    count: int
    position: Position | None = None


class Stage(Struct, frozen=True):
    """One line of the funnel: ``passed`` devices are left after it.

    ``label`` is the text for people, ``expression`` the CEL text of a selector term.
    ``details`` are short reasons with device counts, most frequent first. ``selector`` is the label without
    the number of the term.
    """

    name: StageName
    label: Words
    passed: int
    failed: int
    expression: str = ""
    observations: tuple[Observation, ...] = ()
    error: StageError | None = None
    details: tuple[tuple[Words, int], ...] = ()
    selector: Words = ""


class DeviceLine(Struct, frozen=True):
    """One device and the first stage that rejects it; ``reason`` is empty for a usable one.

    Where a selector is false, ``label`` says which of its terms, and ``observations`` what the device has there.
    """

    device: DeviceID
    where: str
    stage: StageName
    reason: Words
    label: Words = ""
    observations: tuple[Observation, ...] = ()


class Funnel(Struct, frozen=True):
    """Which devices are left for one request (or subrequest) by itself, stage by stage."""

    request: str
    device_class: str
    mode: str
    needed: int
    stages: tuple[Stage, ...]
    best_node: str = ""
    best_count: int = 0
    devices: tuple[DeviceLine, ...] = ()
