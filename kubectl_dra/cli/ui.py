"""What ``ui`` does: find out whether there is a terminal, then show the screen until somebody ends it."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import PurePath
from typing import Any, TextIO

from msgspec.structs import replace

from kubectl_dra.api.pods import Pod
from kubectl_dra.api.releases import UNTOLD
from kubectl_dra.cli.command_line import cluster_flags
from kubectl_dra.cli.explain.reading import completed, scheduler_config, settings_of
from kubectl_dra.cli.flags import UiFlags
from kubectl_dra.cli.live import api_server, read_saved
from kubectl_dra.cli.options import Color, ConnectionFlags
from kubectl_dra.cli.release import assumed
from kubectl_dra.cli.taint import DryRun, TaintFlags, UntaintFlags
from kubectl_dra.cli.usage_errors import missing_package
from kubectl_dra.cluster.client import passes
from kubectl_dra.cluster.files import saved_object
from kubectl_dra.cluster.snapshot import Progress, Snapshot
from kubectl_dra.cluster.watch import Watch
from kubectl_dra.errors import ClusterError, DraError, UsageError
from kubectl_dra.explain.settings import Settings
from kubectl_dra.ui.worker import Ask, ScreenSource, Tainting


def run(flags: UiFlags, connection: ConnectionFlags) -> int:
    """Shows the screen; returns the exit code."""
    try:
        import textual  # noqa: F401
    except ImportError:
        raise missing_package("ui", "textual") from None
    if not all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):
        raise UsageError("ui needs a terminal; kubectl dra top, explain, claims and devices print the same")
    if os.environ.get("TERM") == "dumb":
        raise UsageError("ui needs a terminal that can move its cursor, and TERM is dumb")
    from kubectl_dra.ui.app import Screens

    # What is wrong with it is said before anything is read.
    assumed(Snapshot(), flags.release, flags.gates)
    scheduler_config(flags, UNTOLD)
    if flags.color is Color.never:
        os.environ["NO_COLOR"] = "1"
    # This may take hours, and each view leaves garbage.
    gc.enable()
    screens = Screens(source_of(flags, connection))
    screens.run(mouse=False)
    if screens.failure is not None:
        raise screens.failure
    if screens.interrupted:
        raise KeyboardInterrupt
    return screens.return_code or 0


# The live or saved cluster behind the screen: read, watched and tainted by what the other commands do.


WATCHED = ("ResourceSlice", "DeviceClass", "ResourceClaim", "DeviceTaintRule", "Pod")
"""Nodes tell that they are alive all the time: they are only read again with the rest."""


def source_of(flags: UiFlags, connection: ConnectionFlags) -> ScreenSource:
    """The cluster that the flags mean. Raises DraError for a kubeconfig that names none."""
    return SavedCluster(flags) if flags.snapshots else LiveCluster(flags, connection)


class SavedCluster:
    """Saved objects."""

    live = False

    def __init__(self, flags: UiFlags) -> None:
        self._asked = flags
        self.place = ", ".join(PurePath(path).name for path in flags.snapshots)
        self.where = cluster_flags(flags, ConnectionFlags())

    def read(self, progress: Progress) -> tuple[Snapshot, Settings, str]:
        """Read the files, which may be others than before."""

        snapshot = read_saved(self._asked, self._asked.namespace, compact=True, progress=progress)
        snapshot.require_dra()
        snapshot.require_namespace(self._asked.namespace)
        return snapshot, self.settings(snapshot), self._asked.namespace

    def settings(self, snapshot: Snapshot) -> Settings:
        """What is assumed of a snapshot."""
        return settings_of(self._asked, snapshot)

    def switch(self, namespace: str) -> None:
        """Show another namespace of the same files."""
        self._asked = replace(self._asked, namespace=namespace)

    def described(self, kind: str, name: str, namespace: str) -> Any:
        """The object as it stands in the files."""
        return saved_object(self._asked.snapshots, kind, name, namespace)

    def completed(self, snapshot: Snapshot, pods: Iterable[Pod], *, everything: bool) -> Snapshot:
        """The files have what they have."""
        return snapshot

    def passes(self, error: DraError) -> bool:
        """A file may be written again."""
        return True

    def follow(self, changed: Callable[[], None]) -> None:
        """Files are read again when somebody asks for it."""

    def followed(self) -> bool:
        """Nothing is to be asked now and then."""
        return True

    def close(self) -> None:
        """There is nothing to stop."""

    def taint(self, wanted: Tainting, out: TextIO, ask: Ask, *, only_say: bool) -> int:
        """Raises UsageError."""
        raise UsageError("saved objects cannot be tainted")


class LiveCluster:
    """A live cluster."""

    live = True

    def __init__(self, flags: UiFlags, connection: ConnectionFlags) -> None:
        self._asked = flags
        self._connection = connection
        self._cluster = api_server(connection, flags.namespace)
        self._watches: list[Watch] = []
        self._changed: Callable[[], None] = lambda: None
        self.place = self._cluster.context or self._cluster.server
        self.where = cluster_flags(flags, connection)

    def read(self, progress: Progress) -> tuple[Snapshot, Settings, str]:
        """Read what ``explain -A`` reads."""
        snapshot = self._cluster.read_snapshot(progress=progress, compact=True)
        snapshot.require_dra()
        snapshot.require_namespace(self._asked.namespace)
        return snapshot, settings_of(self._asked, snapshot), self._asked.namespace

    def switch(self, namespace: str) -> None:
        """Watch and show another namespace, and read it alone where nothing else may be read."""
        self._cluster = api_server(self._connection, namespace)
        self._asked = replace(self._asked, namespace=namespace)
        self.close()
        self._watches = []
        self.follow(self._changed)

    def described(self, kind: str, name: str, namespace: str) -> Any:
        """The object as the server has it now."""
        return self._cluster.get(kind, name, namespace)

    def completed(self, snapshot: Snapshot, pods: Iterable[Pod], *, everything: bool) -> Snapshot:
        """Read the further kinds that affect these pods."""
        return completed(snapshot, pods, self._asked, self._connection, everything=everything)

    def passes(self, error: DraError) -> bool:
        """Whether the server may answer again."""
        return not isinstance(error, ClusterError) or passes(error)

    def follow(self, changed: Callable[[], None]) -> None:
        """Watch all that the tables are made from."""
        self._changed = changed
        for kind in WATCHED:
            path = self._cluster.path(kind, self._asked.namespace)
            if path is not None:
                watch = Watch(self._cluster.client, path, lambda _: changed())
                self._watches.append(watch)
                watch.start()

    def followed(self) -> bool:
        """Whether all watches are connected."""
        return all(watch.live for watch in self._watches)

    def close(self) -> None:
        """Stop the watches."""
        for watch in self._watches:
            watch.stop()

    def taint(self, wanted: Tainting, out: TextIO, ask: Ask, *, only_say: bool) -> int:
        """Run ``taint`` or ``untaint``."""
        from kubectl_dra.cli.taint.run import run as taint
        from kubectl_dra.cli.untaint import run as untaint

        dry_run = DryRun.client if only_say else DryRun.none
        device = str(wanted.device)
        with redirect_stdout(out), redirect_stderr(out):
            if not wanted.taint:
                removing = UntaintFlags(words=(device,), dry_run=dry_run, color=Color.always)
                return untaint(removing, self._connection)
            words = (device, wanted.taint)
            adding = TaintFlags(words=words, reason=wanted.reason, dry_run=dry_run, color=Color.always)
            return taint(adding, self._connection, lambda question, yes: ask(question))
