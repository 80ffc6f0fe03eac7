"""The errors that a user may see. Only ``cli`` prints them and chooses the exit code."""

from __future__ import annotations


class DraError(Exception):
    """An error with one clear sentence: what is wrong, where, and what to do. Exit code 2."""


class UsageError(DraError):
    """The command line is wrong: an unknown flag value, a name in the wrong form."""


class InputError(DraError):
    """A file or an object in it cannot be used: unreadable, not YAML, of the wrong kind, ambiguous."""


class ClusterError(DraError):
    """The cluster cannot be asked: kubeconfig, connection, credentials, permission, time-out."""


class UndeterminedError(DraError):
    """The question cannot be answered from what is known. Exit code 3."""
