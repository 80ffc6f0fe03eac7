"""All causes and their finders, from the modules of this folder.

A module has catalogue entries as constants, and ``FINDERS`` unless other modules find them. ``When`` says at
which point of the analysis a finder runs, ``rank`` in which order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum, auto
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, NamedTuple

from msgspec import Struct

from kubectl_dra.allocation.errors import AllocationCheck, AllocationError
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.explain import causes as folder
from kubectl_dra.explain.analysis import Analysis
from kubectl_dra.explain.cause_kinds import CauseKind, Family
from kubectl_dra.explain.diagnosis import Finding
from kubectl_dra.explain.funnel.blocked import Blocked
from kubectl_dra.explain.funnel.shown import StageName
from kubectl_dra.explain.question.resolve import Question


class When(Enum):
    """The point at which a finder runs, and what it examines.

    At QUESTION that is a ``QuestionContext``, at ERROR a ``FailedAttempt``, at STAGE a ``Blocked`` request, at all
    others the ``Analysis``. At points marked with one star, the first finder that finds something decides.
    """

    QUESTION = auto()
    SCENE = auto()
    """Before devices count."""
    CRASH = auto()
    """* What crashes the scheduler, if nothing else was found."""
    FAILS = auto()
    """* No node has the devices."""
    ERROR = auto()
    """An error ended the attempt; ``of`` is its check, or empty for any."""
    REQUESTS = auto()
    """Before each request is examined by itself."""
    STAGE = auto()
    """A request falls short at the stage ``of`` of its funnel; it yields exactly one finding."""
    BESIDE_REQUESTS = auto()
    """In addition to what is wrong with the requests."""
    TOGETHER = auto()
    """* Every request fits alone, but not all together."""
    FAILS_TOO = auto()
    """In addition to why no node has the devices."""
    OPEN = auto()
    """The search did not end."""
    FITS = auto()
    """* Some node has the devices, but the pod still waits."""
    PLACED = auto()
    """The devices are allocated."""


class QuestionContext(NamedTuple):
    """A pod or claim in the cluster, before anything is tried, and what was ``found`` about it so far."""

    question: Question
    snapshot: Snapshot
    found: tuple[Finding, ...] = ()


class FailedAttempt(NamedTuple):
    """The error that ended the attempt on a node."""

    analysis: Analysis
    error: AllocationError
    node: str


class Finder(Struct, frozen=True):
    """Finds causes: ``find`` runs at the point ``when``, in the order of ``rank``, on what is examined there."""

    when: When
    find: Callable[[Any], Iterable[Finding]]
    rank: int = 0
    of: StageName | AllocationCheck | str = ""


_FIRST = frozenset((When.CRASH, When.FAILS, When.TOGETHER, When.FITS))


@cache
def _modules() -> tuple[tuple[CauseKind, ...], tuple[Finder, ...]]:
    # By identity: a module may use an entry of another one.
    kinds: dict[int, CauseKind] = {}
    finders: list[Finder] = []
    for module in iter_modules(folder.__path__, f"{folder.__name__}."):
        if module.name != __name__:
            loaded = import_module(module.name)
            kinds |= {id(value): value for value in vars(loaded).values() if isinstance(value, CauseKind)}
            finders.extend(getattr(loaded, "FINDERS", ()))
    return tuple(sorted(kinds.values(), key=lambda kind: kind.code)), tuple(
        sorted(finders, key=lambda finder: finder.rank)
    )


def all_kinds() -> tuple[CauseKind, ...]:
    """The catalogue, by code."""
    return _modules()[0]


def families() -> list[tuple[Family, tuple[CauseKind, ...]]]:
    """The catalogue by family."""
    return [(family, tuple(kind for kind in all_kinds() if kind.family is family)) for family in Family]


def of_question(question: Question, snapshot: Snapshot) -> list[Finding]:
    """What blocks the pod or its claims whatever the devices."""
    findings: list[Finding] = []
    for finder in _finders(When.QUESTION):
        findings.extend(finder.find(QuestionContext(question, snapshot, tuple(findings))))
    return findings


def ask(when: When, analysis: Analysis) -> list[Finding]:
    """The findings of all finders of a point."""
    findings: list[Finding] = []
    for finder in _finders(when):
        findings.extend(finder.find(analysis))
        if findings and when in _FIRST:
            break
    return findings


def of_stage(blocked: Blocked, stage: StageName) -> Finding:
    """The cause of a request that falls short at a stage."""
    (finding,) = next(finder for finder in _finders(When.STAGE) if finder.of == stage).find(blocked)
    return finding


def of_error(failed: FailedAttempt) -> Finding:
    """The cause of an error that ended the attempt on a node."""
    finder = next(finder for finder in _finders(When.ERROR) if finder.of in (failed.error.check, ""))
    (finding,) = finder.find(failed)
    return finding


def _finders(when: When) -> list[Finder]:
    return [finder for finder in _modules()[1] if finder.when is when]
