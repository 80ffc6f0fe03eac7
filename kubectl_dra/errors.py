"""The errors that users may see. Only ``cli`` prints them and chooses the exit code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class DraError(Exception):
    """An error with one clear sentence: what is wrong, where, and what to do. Exit code 2.

    ``more`` are lines to show below it, such as the place in an expression, and ``commands`` (``CommandLine``) what to
    paste, each after its label; ``cli`` makes lines of them.
    """

    more: Sequence[str] = ()
    commands: Sequence[tuple[str, Any]] = ()


class UsageError(DraError):
    """The command line is wrong: an unknown flag value, a name in the wrong form."""

    def __init__(self, message: str, more: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.more = more


class InputError(DraError):
    """A file or an object in it is unusable: unreadable, not YAML, of the wrong kind, ambiguous."""


class FileError(InputError):
    """An input, or something at a position in it, is unusable.

    ``problem`` says why, without the position. Lines and columns count from 1; 0 means unknown.
    """

    def __init__(self, problem: str, file: str, line: int = 0, column: int = 0) -> None:
        super().__init__(problem, file, line, column)
        self.problem = problem
        self.file = file
        self.line = line
        self.column = column

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line, self.column) if part)
        return f"{place}: {self.problem}"


class FlagValueError(InputError):
    """The value ``typed`` of a flag cannot be used. ``instead`` are values that can be, each after its label.

    ``cli`` makes of each the whole command.
    """

    def __init__(self, message: str, typed: str = "", instead: Sequence[tuple[str, str]] = ()) -> None:
        super().__init__(message)
        self.typed = typed
        self.instead = instead


class ClusterError(DraError):
    """The cluster cannot be queried: kubeconfig, connection, credentials, permission, time-out.

    ``status`` is the HTTP status of the server's answer; 0 if there was none.
    """

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class NoKubeconfig(ClusterError):
    """Nothing says which cluster is meant; a command that reads snapshots has another way."""


class NoDRA(DraError):
    """The cluster has no Dynamic Resource Allocation, which is an answer: no. Exit code 1."""


class UndeterminedError(DraError):
    """The known facts do not answer the question. Exit code 3."""


def about(what: str, error: InputError | UndeterminedError | UsageError) -> InputError | UndeterminedError | UsageError:
    """The error of a part as one of the whole: ``what`` comes first, the lines and commands below it stay."""
    kind = next(kind for kind in (InputError, UndeterminedError, UsageError) if isinstance(error, kind))
    whole = kind(f"{what}: {error}")
    whole.more, whole.commands = error.more, error.commands
    return whole
