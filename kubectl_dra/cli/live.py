"""The cluster for commands, live or saved: flags in, a snapshot out, progress on a terminal."""

from __future__ import annotations

import gc
import re
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NoReturn, Self

from msgspec.structs import asdict

from kubectl_dra.api.meta import FAILED_PREPARE
from kubectl_dra.cli.command_line import ReadingFlags
from kubectl_dra.cli.options import ConnectionFlags
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.errors import ClusterError, UsageError
from kubectl_dra.report.color import limit_of, tell
from kubectl_dra.safe_output import CLEAR_LINE, clear_screen, exact, one_line, put
from kubectl_dra.text import whole_number

if TYPE_CHECKING:
    from kubectl_dra.cluster.connection import ConnectionOptions
    from kubectl_dra.cluster.live import ApiServer
    from kubectl_dra.cluster.pointed_objects import Pointer

_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h)")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_LONGEST = 365 * 24 * 3600.0


def read_saved(
    reading: ReadingFlags,
    namespace: str = "",
    *,
    compact: bool = False,
    stdin: bytes | None = None,
    progress: Callable[[str], None] | None = None,
    stored: bool = False,
) -> Snapshot:
    """Reads the files of ``--snapshot``, which ``--complete`` declares to be all that there is.

    Raises InputError: see ``cluster.files.read_snapshot``.
    """
    from kubectl_dra.cluster.files import read_snapshot

    return read_snapshot(
        list(reading.snapshots),
        namespace=namespace or "default",
        stdin=stdin,
        compact=compact,
        complete=reading.complete,
        progress=progress,
        stored=stored,
    )


def read_live(
    connection: ConnectionFlags, namespace: str, *, compact: bool = False, everything: bool = True, pod: str = ""
) -> tuple[Snapshot, str]:
    """Reads what ``explain`` needs, and the namespace that the flags and the context mean.

    ``compact`` shares devices that are alike (see ``Snapshot.individual``). Without ``everything``, events and quotas
    are read of that namespace alone, and events of one ``pod`` where it is named; besides them those of all namespaces
    that tell where the kubelet does not reach a driver.

    Raises UsageError: a malformed ``--request-timeout``; ClusterError: the cluster cannot be asked.
    """
    from kubectl_dra.cluster.live import About

    cluster = api_server(connection, namespace)
    about = None if everything else About(cluster.namespace, pod, everywhere=(FAILED_PREPARE,))
    with Progress() as progress:
        return cluster.read_snapshot(progress=progress, compact=compact, about=about), cluster.namespace


def read_kinds(
    connection: ConnectionFlags, namespace: str, kinds: Sequence[str], *, of: str = "", reasons: tuple[str, ...] = ()
) -> Snapshot:
    """Reads kinds of the live cluster, from all namespaces or those ``of`` one; of events, those for these reasons.

    Raises as ``read_live``.
    """
    from kubectl_dra.cluster.live import About

    about = About("", reasons=reasons) if reasons else None
    with Progress() as progress:
        cluster = api_server(connection, namespace)
        return cluster.read_snapshot(kinds, namespace=of, progress=progress, about=about)


def require_namespace(name: str, snapshot: Snapshot, connection: ConnectionFlags, *, live: bool) -> None:
    """Raises InputError if there is no namespace that was typed.

    A live cluster is asked for its namespaces where a command reads none, and nothing that it reads is in this one.
    """
    if name and live and snapshot.is_gap("Namespace") and not snapshot.has_namespace(name):
        snapshot = read_kinds(connection, name, ("Namespace",))
    snapshot.require_namespace(name)


def with_neighbours(
    snapshot: Snapshot, wanted_of: Callable[[Snapshot], Sequence[Pointer]], connection: ConnectionFlags, namespace: str
) -> Snapshot:
    """The live cluster with what is wanted of other layers: at most one request for each kind, besides one for all.

    ``wanted_of`` is asked again for what was read. Raises as ``read_live``.
    """
    requested: set[tuple[str | Pointer, bool]] = set()
    # What was read names more: a Workload its queue, that its ClusterQueue; a group held back all groups.
    while wanted := [pointer for pointer in wanted_of(snapshot) if _scope(pointer) not in requested]:
        from kubectl_dra.cluster.apply import with_kinds
        from kubectl_dra.cluster.builder import SnapshotBuilder
        from kubectl_dra.cluster.pointed_objects import read_pointed

        kinds = {pointer.kind for pointer in wanted}
        requested |= {_scope(pointer) for pointer in wanted}
        with Progress() as progress:
            cluster = api_server(connection, namespace)
            builder = SnapshotBuilder(cluster.namespace)
            read_pointed(cluster, builder, wanted, snapshot.served, progress)
            more = builder.build()
        # Who may not list all still has what was named.
        kinds -= {gap.kind for gap in more.gaps if gap.kind in snapshot.others}
        snapshot = with_kinds(snapshot, more, kinds)
    return snapshot


def _scope(pointer: Pointer) -> tuple[str | Pointer, bool]:
    """What is requested once: objects of a kind that are named or selected, or all of them."""
    return pointer.request, not (pointer.namespace or pointer.name or pointer.labels)


def api_server(
    connection: ConnectionFlags, namespace: str = "", sleep: Callable[[float], None] = time.sleep
) -> ApiServer:
    """The live cluster. Raises UsageError, ClusterError: see ``connection_options`` and ``ApiServer``."""
    from kubectl_dra.cluster.live import ApiServer

    return ApiServer(connection_options(connection, namespace), sleep=sleep)


def connection_options(connection: ConnectionFlags, namespace: str) -> ConnectionOptions:
    """The connection flags as the cluster layer takes them."""
    from kubectl_dra.cluster.connection import ConnectionOptions
    from kubectl_dra.cluster.credential_plugins import listeners

    listeners[:] = [lambda text: put(f"{text}\n", sys.stderr)]
    given = asdict(connection)
    given |= {"namespace": namespace, "request_timeout": seconds(connection.request_timeout)}
    return ConnectionOptions(**given)


def seconds(text: str, flag: str = "--request-timeout") -> float:
    """A kubectl duration such as ``5s``, ``1m30s`` or ``10`` in seconds; 0 means no limit.

    Raises UsageError: not a duration.
    """
    stripped = text.strip()
    plain = whole_number(stripped)
    if plain is not None:
        return min(float(plain), _LONGEST)
    parts = _PART.findall(stripped)
    if not parts or "".join(number + unit for number, unit in parts) != stripped:
        raise UsageError(f'{flag}: "{text}" is not a duration such as 5s, 2m or 1m30s')
    return min(sum(float(number) * _UNITS[unit] for number, unit in parts), _LONGEST)


class Progress:
    """One line on stderr that says what is being read, cleared at the end; silent where stderr is not a terminal."""

    def __init__(self) -> None:
        # What is longer than a line cannot be cleared any more.
        self._columns = (limit_of(sys.stderr) or 0) if sys.stderr.isatty() else 0
        self._shown = False

    def __call__(self, sentence: str) -> None:
        if self._columns:
            exact(f"{CLEAR_LINE}{one_line(sentence)[: self._columns - 1]}", sys.stderr)
            sys.stderr.flush()
            self._shown = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._shown:
            exact(CLEAR_LINE, sys.stderr)
            sys.stderr.flush()


SECONDS: Final = 5.0

Look = Callable[[], tuple[Any, Callable[[], None]]]
"""Reads the cluster: what there is, to be compared with what was before, and what prints it. Raises ClusterError."""


def watched(look: Look) -> NoReturn:
    """Prints in place on a terminal, else again when something has changed. Raises ClusterError at the first look."""

    from kubectl_dra.cluster.client import passes

    # This may take hours, and each look leaves garbage.
    gc.enable()
    shown: Any = None
    while True:
        try:
            answer, show = look()
        except ClusterError as error:
            if shown is None or not passes(error):
                raise
            tell(f"note: {error}; asking again")
            time.sleep(SECONDS)
            continue
        if sys.stdout.isatty():
            clear_screen()
            show()
        elif answer != shown:
            put("\n" if shown is not None else "")
            show()
        sys.stdout.flush()
        shown = answer
        time.sleep(SECONDS)
