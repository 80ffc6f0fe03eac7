"""The errors that a user may see. Only ``cli`` prints them and chooses the exit code."""

from __future__ import annotations


class DraError(Exception):
    """An error with one clear sentence: what is wrong, where, and what to do. Exit code 2."""


class UsageError(DraError):
    """The command line is wrong: an unknown flag value, a name in the wrong form."""


class InputError(DraError):
    """A file or an object in it cannot be used: unreadable, not YAML, of the wrong kind, ambiguous."""


class FileError(InputError):
    """An input, or what is at a place in it, cannot be used.

    ``problem`` says why without the place. Lines and columns count from 1; 0 where none is known.
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


class ClusterError(DraError):
    """The cluster cannot be asked: kubeconfig, connection, credentials, permission, time-out.

    ``status`` is the HTTP status of the server's answer; 0 where there was none.
    """

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class UndeterminedError(DraError):
    """The question cannot be answered from what is known. Exit code 3."""
