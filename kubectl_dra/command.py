"""Commands to paste: their words, and what they do to the cluster. Nothing else makes a line of words."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from enum import Enum
from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

Argv: TypeAlias = tuple[str, ...]
"""A command as its words, the program first."""
SUBDOMAIN: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*")
"""What Kubernetes lets objects be called: a DNS subdomain (RFC 1123)."""
_OF_SNAPSHOTS: Final = frozenset(("claims", "devices", "drivers", "explain", "fit", "share", "taint", "top"))
"""Our commands that read a snapshot as well as a cluster."""


LIVE: Final = "in the cluster, not the snapshot"
"""Where commands act, and read, whose question was about a snapshot."""


class CommandEffect(Enum):
    """What a command does to the cluster, the harmless first."""

    READS = "reads"
    DRY_RUN = "dry-run"
    WRITES = "writes"
    DESTROYS = "destroys"
    """It deletes objects, or ends pods."""

    @property
    def changes(self) -> bool:
        """Whether the cluster is another one afterwards."""
        return self in (CommandEffect.WRITES, CommandEffect.DESTROYS)

    @property
    def warning(self) -> str:
        """The word before a command that changes the cluster; empty for others."""
        return {CommandEffect.WRITES: "Writes", CommandEffect.DESTROYS: "Destructive"}.get(self, "")


class CommandLine(Struct, frozen=True):
    """A command. ``misnamed``: a name among its words that no object can have; nobody is to run such a command.

    ``placed``: its words choose the cluster or the snapshot already.
    """

    argv: Argv
    effect: CommandEffect = CommandEffect.READS
    misnamed: str = ""
    placed: bool = False

    def __str__(self) -> str:
        return shlex.join(self.argv)


class ClusterFlags(Struct, frozen=True):
    """Where a question was asked: the ``flags`` that choose the cluster or, where ``saved``, the snapshot."""

    flags: Argv = ()
    saved: bool = False

    def asks(self, command: CommandLine) -> CommandLine:
        """The command for the same cluster; kubectl does not read snapshots."""
        of_snapshots = command.argv[1] == "dra" and command.argv[2] in _OF_SNAPSHOTS
        if command.placed or (self.saved and not of_snapshots):
            return command
        return replace(command, argv=(*command.argv, *self.flags), placed=True)


CURRENT: Final = ClusterFlags()
"""Whatever kubectl's current context is."""


def deleting(kind: str, name: str, namespace: str = "", *more: str) -> CommandLine:
    """The command that deletes an object."""
    return kubectl("delete", kind=kind, name=name, namespace=namespace, more=more, effect=CommandEffect.DESTROYS)


def deleting_all(kind: str, names: Argv, namespace: str) -> CommandLine:
    """The command that deletes several objects of a namespace."""
    *first, last = names
    before = (f"{kind}/{name}" for name in first)
    effect = CommandEffect.DESTROYS
    return kubectl("delete", *before, kind=kind, name=last, namespace=namespace, others=tuple(first), effect=effect)


def uncordon(node: str) -> CommandLine:
    """The command that lets new pods come to a node again."""
    return kubectl("uncordon", node, others=(node,), effect=CommandEffect.WRITES)


def log_of(pod: str, namespace: str, container: str = "", *, before: bool = False) -> CommandLine:
    """The command that shows the log of a pod's container, or of its run ``before`` this one."""
    run = ("--previous",) if before else ()
    more, others = (("-c", container, *run), (container,)) if container else (run, ())
    return kubectl("logs", kind="pod", name=pod, namespace=namespace, more=more, others=others)


def as_written(kind: str, name: str, namespace: str = "") -> CommandLine:
    """The command that shows an object as the server has it."""
    return kubectl("get", kind=kind, name=name, namespace=namespace, more=("-o", "yaml"))


def pods_on_node(name: str) -> CommandLine:
    """The command that lists the pods of a node, of all namespaces."""
    return kubectl("get", "pods", "-A", "--field-selector", f"spec.nodeName={name}", others=(name,))


def creating_namespace(name: str) -> CommandLine:
    """The command that creates a namespace."""
    return kubectl("create", "namespace", name, others=(name,), effect=CommandEffect.WRITES)


def is_name(text: str) -> bool:
    """Whether an object can be called so."""
    return len(text) <= 253 and SUBDOMAIN.fullmatch(text) is not None


def misnamed(names: Iterable[str]) -> str:
    """The first that is no name, in quotes; empty where all are."""
    return next((f'"{name}"' for name in names if not is_name(name)), "")


def kubectl(
    *words: str,
    kind: str = "",
    name: str = "",
    namespace: str = "",
    more: Argv = (),
    others: Argv = (),
    effect: CommandEffect = CommandEffect.READS,
) -> CommandLine:
    """``words`` are followed by the object as KIND/NAME, its namespace, and ``more``, in which names are ``others``."""
    names = (*((name,) if kind else ()), *((namespace,) if namespace else ()), *others)
    about = (f"{kind}/{name}",) if kind else ()
    where = ("-n", namespace) if namespace else ()
    return CommandLine(("kubectl", *words, *about, *where, *more), effect, misnamed(names))
