"""Errors of the CEL engine."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, auto
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

if TYPE_CHECKING:
    from kubectl_dra.cel.ast import SyntaxNode


class CelError(Exception):
    """Base class of every error that the engine raises on purpose."""


class PlacedError(Exception):
    """What is wrong with the text of an expression at ``offset``."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset


class Issue(Struct, frozen=True):
    """One error of the compiler.

    ``offset`` counts code points from 0; None means the whole expression. ``line`` and ``column`` count from
    1. ``undeclared`` is the unknown name, if that is the error. ``near`` (a known name like the unknown one) and
    ``reason`` are our additions to Kubernetes' text. ``plain`` says in words what Kubernetes says in its parser's.
    """

    message: str
    offset: int | None = None
    line: int = 0
    column: int = 0
    undeclared: str = ""
    near: str = ""
    reason: str = ""
    plain: str = ""

    @property
    def said(self) -> str:
        """What is wrong, for people: in plain words where there are some, else as Kubernetes says it."""
        return self.plain or (f"{self.message} ({self.hint})" if self.hint else self.message)

    @property
    def hint(self) -> str:
        """What we add to Kubernetes' text; empty if nothing."""
        return f"did you mean '{self.near}'?" if self.near else self.reason


class Phase(Enum):
    """Where Kubernetes rejects an expression: when compiling it, or when building a program from the result."""

    COMPILATION = "compilation"
    INSTANTIATION = "instantiation"


class CompileError(CelError):
    """The expression does not compile. ``str()`` gives Kubernetes' message."""

    def __init__(self, issues: tuple[Issue, ...], text: str, phase: Phase = Phase.COMPILATION) -> None:
        super().__init__(text)
        self.issues = issues
        self.phase = phase


class ErrorKind(Enum):
    """The kinds of run-time errors that need different remedies."""

    OTHER = auto()
    NO_KEY = auto()
    NO_OVERLOAD = auto()
    NOT_BOOL = auto()
    COST = auto()
    ATTRIBUTE = auto()


class EvaluationError(CelError):
    """A run-time error.

    ``kind`` classifies it. For NO_KEY, ``name`` is the missing key; for ATTRIBUTE, ``name`` is the attribute
    that cannot be converted and ``reason`` says why.

    ``offset`` is where Kubernetes would report it. ``start`` and ``end`` are the span of the sub-expression
    that failed. All three are None until the evaluator knows them. A ``fatal`` error ends the evaluation at
    once: neither ``||`` nor ``exists`` absorbs it.
    """

    fatal = False

    def __init__(self, message: str, *, kind: ErrorKind = ErrorKind.OTHER, name: str = "", reason: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.kind = kind
        self.name = name
        self.reason = reason
        self.offset: int | None = None
        self.start: int | None = None
        self.end: int | None = None


class CostLimitExceeded(EvaluationError):
    """The evaluation was stopped because it became too expensive."""

    fatal = True

    def __init__(self) -> None:
        super().__init__("operation cancelled: actual cost limit exceeded", kind=ErrorKind.COST)


class InternalError(EvaluationError):
    """Kubernetes would panic here and report an internal error."""

    fatal = True


def no_such_overload() -> EvaluationError:
    """The error for calling a function with values that no overload accepts."""
    return EvaluationError("no such overload", kind=ErrorKind.NO_OVERLOAD)


def located(error: EvaluationError, node: SyntaxNode) -> EvaluationError:
    """The error with the position of ``node``, unless it already has one."""
    if error.offset is None:
        error.offset, error.start, error.end = node.position, node.start, node.end
    return error


# Compiler errors as Kubernetes prints them: position, message, source line and a marker below it.


def locate(issue: Issue, source: str) -> Issue:
    """The issue with line and column computed from its offset."""
    if issue.offset is None:
        return issue
    before = source[: issue.offset]
    line = before.count("\n") + 1
    column = issue.offset - (before.rfind("\n") + 1) + 1
    return replace(issue, line=line, column=column)


def render(issue: Issue, source: str) -> str:
    """One located issue with its source line."""
    if issue.offset is None:
        return f"ERROR: <input>:-1:0: {issue.message}"
    lines = source.split("\n")
    shown = lines[issue.line - 1].replace("\t", " ")
    marks = ["．" if ord(character) > 127 else "." for character in shown[: issue.column - 1]]
    at = shown[issue.column - 1 : issue.column]
    marks.append("＾" if at and ord(at) > 127 else "^")
    return f"ERROR: <input>:{issue.line}:{issue.column}: {issue.message}\n | {shown}\n | {''.join(marks)}"


def compilation_failed(issues: Iterable[Issue], source: str) -> CompileError:
    """The error for issues of the parser or the checker, ordered by position."""
    located = sorted((locate(issue, source) for issue in issues), key=lambda issue: issue.offset or 0)
    text = "\n".join(render(issue, source) for issue in located)
    return CompileError(tuple(located), f"compilation failed: {text}")


def refused(message: str, source: str, offset: int | None = None, phase: Phase = Phase.COMPILATION) -> CompileError:
    """The error for an expression that compiles but cannot be used."""
    return CompileError((locate(Issue(message, offset), source),), message, phase)
