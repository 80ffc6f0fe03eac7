"""What differs between the schedulers of two releases, one by one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum, auto
from typing import Final

from msgspec import Struct

from kubectl_dra.allocation.features import BEHAVIOUR, DEFECTS, ReleaseBehaviour
from kubectl_dra.api.defects import Defect
from kubectl_dra.api.releases import gate_default, kep_of
from kubectl_dra.scheduling.scheduler import DEFECTS_BESIDE, FILTERS, SELECTORS, Scheduler


class ChangeKind(Enum):
    """What sort of change it is."""

    GATE_ON = auto()
    GATE_OFF = auto()
    DEFECT_GONE = auto()
    DEFECT_NEW = auto()
    OTHERWISE = auto()
    """Something is done in another way, as ``what`` says."""


class SchedulerChange(Struct, frozen=True):
    """One difference of the scheduler after an upgrade. ``name`` is that of the gate, the defect, the behaviour, or one
    of the parts of ``PartialUpgrade``.

    ``what`` says it in words, but for gates; ``link`` leads to its pull request or enhancement, where that is known.
    """

    name: str
    kind: ChangeKind
    what: str = ""
    link: str = ""


class Deciding(Struct, frozen=True):
    """The changes that decide: each alone, or all of them ``together``. Without any it is not known which do."""

    changes: tuple[SchedulerChange, ...] = ()
    together: bool = False


_OTHERS: Final[Mapping[str, str]] = {
    SELECTORS: "selectors are evaluated otherwise",
    FILTERS: "other filters of the scheduler than that of devices judge the nodes otherwise",
}


def changes(before: Scheduler, after: Scheduler) -> Iterator[SchedulerChange]:
    """What differs, gates first."""
    for gate in sorted(before.gates ^ after.gates):
        kep = kep_of(gate)
        link = f"https://kep.k8s.io/{kep}" if kep else ""
        on = gate in after.gates
        if on or gate_default(gate, after.release) is not None:
            yield SchedulerChange(gate, ChangeKind.GATE_ON if on else ChangeKind.GATE_OFF, link=link)
    was, will = before.defects, after.defects
    for name in _different(was, will):
        yield _of_defect(name, DEFECTS[name], gone=getattr(was, name))
    for name, defect in DEFECTS_BESIDE.items():
        had, has = bool(before.has(defect)), bool(after.has(defect))
        if had != has:
            yield _of_defect(name, defect, gone=had)
    for name in _different(ReleaseBehaviour.of_release(before.release), ReleaseBehaviour.of_release(after.release)):
        if name != "knows_alpha":
            # That changes an answer by its gates alone.
            yield SchedulerChange(name, ChangeKind.OTHERWISE, BEHAVIOUR[name].what, BEHAVIOUR[name].link)
    if before.release != after.release:
        for name, what in _OTHERS.items():
            yield SchedulerChange(name, ChangeKind.OTHERWISE, what)


def _of_defect(name: str, defect: Defect, *, gone: bool) -> SchedulerChange:
    link = f"https://github.com/kubernetes/kubernetes/pull/{defect.number}" if defect.number else ""
    return SchedulerChange(name, ChangeKind.DEFECT_GONE if gone else ChangeKind.DEFECT_NEW, defect.what, link)


def _different(first: Struct, other: Struct) -> Iterator[str]:
    return (name for name in first.__struct_fields__ if getattr(first, name) != getattr(other, name))
