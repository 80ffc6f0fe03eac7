"""What the commands that list have in common: ``claims``, ``devices``, ``drivers`` and ``top``."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeVar

from kubectl_dra.api.labels import LabelSelector, Requirement
from kubectl_dra.cli.command_line import ReadingFlags
from kubectl_dra.cli.live import Progress, read_kinds, read_saved, require_namespace, watched
from kubectl_dra.cli.options import ConnectionFlags
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.cluster.time_read import Moment
from kubectl_dra.command import CURRENT, ClusterFlags
from kubectl_dra.errors import UsageError
from kubectl_dra.explain.phrase import Words
from kubectl_dra.report.color import Painter, tell
from kubectl_dra.report.phrases import commands_of, sentences

Listed = TypeVar("Listed")


def read(
    flags: ReadingFlags,
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


def tell_notes(notes: Iterable[Words], where: ClusterFlags = CURRENT) -> None:
    """Print what the table does not show; ``where`` the question was asked."""
    notes = tuple(notes)
    commands = commands_of(notes)
    for note in sentences(notes):
        tell(f"note: {note}")
        if note in commands:
            from kubectl_dra.report.blocks import shell
            from kubectl_dra.report.blocks_text import write_blocks

            write_blocks(Painter(sys.stderr, "never"), [shell(commands[note], where)])


def tell_age(at: Moment) -> None:
    """Say what ages are counted from where that is not now."""
    if at.saved:
        tell(f"note: the objects are as of {at}, and so are ages")


# ``-l``: a label selector as kubectl takes it, with commas between requirements.


_KEY: Final = r"(?P<key>[A-Za-z0-9][-A-Za-z0-9_./]*)"
_VALUE: Final = r"[-A-Za-z0-9_.]*"
_FORMS: Final = (
    ("In", re.compile(rf"{_KEY}\s*==?\s*(?P<values>{_VALUE})")),
    ("NotIn", re.compile(rf"{_KEY}\s*!=\s*(?P<values>{_VALUE})")),
    ("In", re.compile(rf"{_KEY}\s+in\s*\((?P<values>[^()]+)\)")),
    ("NotIn", re.compile(rf"{_KEY}\s+notin\s*\((?P<values>[^()]+)\)")),
    ("DoesNotExist", re.compile(rf"!\s*{_KEY}")),
    ("Exists", re.compile(_KEY)),
)
"""The forms of a requirement (k8s.io/apimachinery/pkg/labels, Parse), without ``>`` and ``<``."""
_COMMAS: Final = re.compile(r",(?![^()]*\))")


def label_selector(text: str) -> LabelSelector:
    """What ``-l`` says. Raises UsageError: a part of it is no requirement."""
    return LabelSelector(match_expressions=tuple(_requirement(part.strip(), text) for part in _COMMAS.split(text)))


def _requirement(part: str, text: str) -> Requirement:
    for operator, form in _FORMS:
        if match := form.fullmatch(part):
            values = match.groupdict().get("values")
            listed = () if values is None else tuple(value.strip() for value in values.split(","))
            return Requirement(match["key"], operator, listed)
    raise UsageError(f'-l {text}: "{part}" is no requirement such as app=web, tier!=test, app in (a,b), gpu or !gpu')
