"""The upgrade of a cluster for which objects are judged: what it leaves, and where its schedulers differ."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import TYPE_CHECKING

from msgspec import Struct

from kubectl_dra.api.releases import Release, gate_default, known_gates
from kubectl_dra.api.schema import FieldPath
from kubectl_dra.manifests.objects import ObjectKey

if TYPE_CHECKING:
    from kubectl_dra.scheduling.scheduler import Deciding


class DevicesGiven(Enum):
    """Whether a pod or claim gets its devices."""

    FITS = "fits"
    FAILS = "fails"
    UNKNOWN = "unknown"


class SchedulerAnswer(Struct, frozen=True):
    """The answer of one release's scheduler: the suitable nodes, or why there are none or it is unknown."""

    outcome: DevicesGiven
    nodes: tuple[str, ...] = ()
    reason: str = ""


class DifferentAnswers(Struct, frozen=True):
    """A pod or claim for which the schedulers of both releases differ.

    ``runs``: it has its devices, and was judged as if it were made again. ``alike`` counts the others of its shape.
    ``deciding``: the changes that make the difference; None if there was no time to find them.
    """

    before: SchedulerAnswer
    after: SchedulerAnswer
    runs: bool = False
    alike: int = 0
    deciding: Deciding | None = None


WrittenAt = tuple[str, int, FieldPath]
"""The file, the document in it, and the path inside the document."""


class Upgrade(Struct, frozen=True):
    """The release that a cluster leaves, with the gates that are on there.

    ``is_stored``: the objects are those of the cluster, not manifests. ``rescheduled`` are those of them for which
    the schedulers of both releases differ; ``written`` are such objects of manifests.
    """

    release: Release
    features: frozenset[str]
    is_stored: bool = False
    rescheduled: Mapping[ObjectKey, DifferentAnswers] = {}
    written: Mapping[WrittenAt, DifferentAnswers] = {}


class GateChanges(Struct, frozen=True):
    """Gates whose default differs between two releases, in the order of the table of gates."""

    on: tuple[str, ...]
    off: tuple[str, ...]


def gate_changes(before: Release, after: Release) -> GateChanges:
    """The gates whose default an upgrade changes. A removed gate is not counted as switched off."""
    defaults = [(gate, gate_default(gate, before), gate_default(gate, after)) for gate in known_gates()]
    return GateChanges(
        tuple(gate for gate, was, now in defaults if now and not was),
        tuple(gate for gate, was, now in defaults if was and now is False),
    )
