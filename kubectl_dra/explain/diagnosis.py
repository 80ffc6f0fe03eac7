"""What a diagnosis is: an answer, its causes, the evidence, and what was not seen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

SCHEMA_VERSION = "1"


class Verdict(Enum):
    """The answer, as a word; ``exit_code`` is what the command returns."""

    ALLOCATED = "allocated"
    ALLOCATABLE = "allocatable"
    NOT_ALLOCATABLE = "not-allocatable"
    UNDETERMINED = "undetermined"

    @property
    def exit_code(self) -> int:
        """0 allocated or allocatable, 1 not, 3 undetermined."""
        return {"not-allocatable": 1, "undetermined": 3}.get(self.value, 0)


@dataclass(frozen=True, slots=True)
class Evidence:
    """One fact: the object it was read from, the field, and the value found there."""

    object: str
    field: str
    value: str


@dataclass(frozen=True, slots=True)
class CauseKind:
    """An entry of the closed catalogue of causes.

    ``code`` never changes meaning. ``why`` explains it to somebody who has never met it, ``fix`` says what
    helps in general, ``seen_as`` is what Kubernetes itself shows.
    """

    code: str
    title: str
    why: str
    fix: str
    seen_as: str


@dataclass(frozen=True, slots=True)
class Cause:
    """A cause found: its kind, one sentence, facts, and the change that ends it here.

    ``proved`` says what the allocation gave when it was run again with the change; empty where it was not.
    ``weight`` orders causes: how large the change is, in devices that somebody else has to give up. ``remedy``
    makes the proved change in a WhatIf, so that several can be proved together.
    """

    kind: CauseKind
    summary: str
    evidence: tuple[Evidence, ...] = ()
    fix: str = ""
    proved: str = ""
    claim: str = ""
    request: str = ""
    weight: int = 0
    remedy: object = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Observation:
    """What devices have: a name such as ``memory`` or ``productName``, the values with device counts.

    A value of None stands for "absent".
    """

    name: str
    values: tuple[tuple[str | None, int], ...]


@dataclass(frozen=True, slots=True)
class Position:
    """A place inside a CEL expression: 0-based offset, 1-based line and column."""

    offset: int
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class StageError:
    """A CEL run-time error: its text, where in the expression, and a device that raised it."""

    message: str
    device: str
    count: int
    position: Position | None = None


@dataclass(frozen=True, slots=True)
class Stage:
    """One line of the funnel: ``passed`` devices are left after it.

    ``name`` is a stable word (published, node, pool, class-selector, request-selector, capacity, counters,
    taint, held, ...), ``label`` what people read, ``expression`` the CEL text of a selector term.
    ``details`` are short reasons with the number of devices, most frequent first.
    """

    name: str
    label: str
    passed: int
    failed: int
    expression: str = ""
    observations: tuple[Observation, ...] = ()
    error: StageError | None = None
    details: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class DeviceLine:
    """One device and the first stage that refuses it; ``reason`` is empty for a usable one."""

    device: str
    nodes: str
    stage: str
    reason: str


@dataclass(frozen=True, slots=True)
class Funnel:
    """Which devices are left for one request (or subrequest) by itself, stage after stage."""

    request: str
    device_class: str
    mode: str
    needed: int
    stages: tuple[Stage, ...]
    best_node: str = ""
    best_count: int = 0
    devices: tuple[DeviceLine, ...] = ()


@dataclass(frozen=True, slots=True)
class ClaimReport:
    """One claim of the pod: where it comes from, its state, and the funnels of its requests."""

    entry: str
    claim: str
    template: str
    state: str
    devices: tuple[str, ...] = ()
    nodes: str = ""
    funnels: tuple[Funnel, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """Nodes with one and the same outcome. ``outcome`` is allocated, rejected, error or not-eligible."""

    outcome: str
    reason: str
    nodes: tuple[str, ...]


class PlacedDevice(NamedTuple):
    """One device that a request of a claim gets; of a shared device, how much of each capacity."""

    claim: str
    request: str
    device: str
    consumed_capacity: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class Placement:
    """What the claims get on a node that works, in the order of the results."""

    node: str
    devices: tuple[PlacedDevice, ...]


@dataclass(frozen=True, slots=True)
class Way:
    """Changes with which the claims fit, as few as possible, and what the allocation gave with them.

    ``changes`` are sentences without a full stop, ``what_if`` the same as values of ``--what-if``; it is empty
    where they cannot be written as such.
    """

    changes: tuple[str, ...]
    proved: str
    what_if: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SchedulerWord:
    """What Kubernetes itself wrote about the pod: a condition or an event."""

    source: str
    reason: str
    message: str
    time: str = ""


@dataclass(frozen=True, slots=True)
class TraceStep:
    """The value of one sub-expression on one device."""

    offset: int
    text: str
    value: str
    error: bool
    depth: int


@dataclass(frozen=True, slots=True)
class Trace:
    """All sub-expressions of one selector on one device."""

    device: str
    owner: str
    expression: str
    result: str
    steps: tuple[TraceStep, ...]


@dataclass(frozen=True, slots=True)
class SecondOpinion:
    """How many evaluations cel-python agrees with, contradicts, or cannot make."""

    agree: int
    differ: tuple[str, ...]
    not_comparable: int
    reasons: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The answer to one question, everything that supports it, and what was assumed or not seen.

    ``supposed`` are changes that were not made: the answer is what would be with them.
    """

    kind: str
    namespace: str
    name: str
    verdict: Verdict
    answer: str
    causes: tuple[Cause, ...] = ()
    claims: tuple[ClaimReport, ...] = ()
    nodes: tuple[NodeGroup, ...] = ()
    placements: tuple[Placement, ...] = ()
    scheduler: tuple[SchedulerWord, ...] = ()
    notes: tuple[str, ...] = ()
    release: str = ""
    release_source: str = ""
    next_command: str = ""
    traces: tuple[Trace, ...] = ()
    second_opinion: SecondOpinion | None = None
    gates: tuple[str, ...] = field(default=())
    ways: tuple[Way, ...] = ()
    supposed: tuple[str, ...] = ()
