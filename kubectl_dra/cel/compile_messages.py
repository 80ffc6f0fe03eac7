"""Compiler errors as Kubernetes prints them: position, message, source line and a marker below it."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from kubectl_dra.cel.errors import CompileError, Issue, Phase


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
