"""Errors of the CEL engine."""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from kubectl_dra.cel.ast import SyntaxNode


class CelError(Exception):
    """Base of everything the engine raises on purpose."""


class Issue(Struct, frozen=True):
    """One complaint of the compiler.

    ``offset`` counts code points from 0 and may be None for a complaint about the whole
    expression; ``line`` and ``column`` count from 1. ``hint`` is our addition, not Kubernetes'. ``undeclared`` is the
    name that is not known, where that is the complaint.
    """

    message: str
    offset: int | None = None
    line: int = 0
    column: int = 0
    hint: str | None = None
    undeclared: str = ""


class Phase(Enum):
    """Where Kubernetes gives up on an expression: while it compiles it, or while it makes a program of the result."""

    COMPILATION = "compilation"
    INSTANTIATION = "instantiation"


class CompileError(CelError):
    """The expression does not compile; ``str()`` reads as Kubernetes' message does."""

    def __init__(self, issues: tuple[Issue, ...], text: str, phase: Phase = Phase.COMPILATION) -> None:
        super().__init__(text)
        self.issues = issues
        self.phase = phase


class ErrorKind(Enum):
    """What a run-time error is about, as far as a remedy depends on it; its text is Kubernetes'."""

    OTHER = auto()
    NO_KEY = auto()
    NO_OVERLOAD = auto()
    NOT_BOOL = auto()
    COST = auto()
    ATTRIBUTE = auto()


class EvaluationError(CelError):
    """A run-time error.

    ``kind`` says what it is about: for NO_KEY ``name`` is the key that is missing, for ATTRIBUTE the attribute that
    cannot be converted, and ``reason`` why.

    ``offset`` is where Kubernetes would report it, ``start`` and ``end`` are the span of the
    sub-expression that failed; all are None until the evaluator knows them. A ``fatal`` error ends the
    evaluation at once: no ``||`` or ``exists`` absorbs it.
    """

    fatal = False

    def __init__(
        self,
        message: str,
        offset: int | None = None,
        *,
        kind: ErrorKind = ErrorKind.OTHER,
        name: str = "",
        reason: str = "",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.kind = kind
        self.name = name
        self.reason = reason
        self.offset = offset
        self.start: int | None = None
        self.end: int | None = None


class CostLimitExceeded(EvaluationError):
    """The evaluation was stopped because it became too expensive."""

    fatal = True

    def __init__(self) -> None:
        super().__init__("operation cancelled: actual cost limit exceeded", kind=ErrorKind.COST)


class InternalError(EvaluationError):
    """Kubernetes itself would panic here and report an internal error."""

    fatal = True


def no_such_overload() -> EvaluationError:
    """The error of calling a function with values it has no overload for."""
    return EvaluationError("no such overload", kind=ErrorKind.NO_OVERLOAD)


def located(error: EvaluationError, node: SyntaxNode) -> EvaluationError:
    """The error with the place of ``node``, unless it has a place already."""
    if error.offset is None:
        error.offset, error.start, error.end = node.position, node.start, node.end
    return error
