"""What the commands that list have in common: ``claims``, ``devices``, ``drivers`` and ``top``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from kubectl_dra.cli.command_line import Reading
from kubectl_dra.cli.live import Progress, read_kinds, read_saved, require_namespace, watched
from kubectl_dra.cli.options import ConnectionFlags
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.explain.phrase import Words
from kubectl_dra.report.paint import tell
from kubectl_dra.report.phrases import sentences

Listed = TypeVar("Listed")


def read(
    flags: Reading,
    connection: ConnectionFlags,
    kinds: Sequence[str],
    namespace: str = "",
    *,
    of: str = "",
    reasons: tuple[str, ...] = (),
) -> Snapshot:
    """The cluster, of which a live one is asked for these kinds, from all namespaces or those ``of`` one.

    Raises:
        InputError: there is no such ``namespace``, or a file that cannot be read.
        ClusterError: the cluster does not answer, or does not serve resource.k8s.io.
    """
    if flags.snapshots:
        with Progress() as progress:
            snapshot = read_saved(flags, progress=progress)
    else:
        snapshot = read_kinds(connection, of, kinds, of=of, reasons=reasons)
    snapshot.require_dra()
    require_namespace(namespace, snapshot, connection, live=not flags.snapshots)
    return snapshot


def run(look: Callable[[], tuple[Listed, Callable[[], None]]], code: Callable[[Listed], int], *, watch: bool) -> int:
    """Prints what ``look`` finds, once or again and again; returns its exit code."""
    if watch:
        watched(look)
    listed, show = look()
    show()
    return code(listed)


def tell_notes(notes: Iterable[Words]) -> None:
    """Print what the table does not show."""
    for note in sentences(notes):
        tell(f"note: {note}")
