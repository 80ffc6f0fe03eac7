"""Notes as sentences. Kinds of which files have no object are named together, and not each in a sentence of its own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kubectl_dra.cluster.kinds import kind_plural
from kubectl_dra.cluster.snapshot import ABSENT
from kubectl_dra.explain.phrase import Words
from kubectl_dra.explain.unread import NotSeen, Unread
from kubectl_dra.report.phrases import written


def sentences(notes: Iterable[Words], alone: Sequence[Words] = ()) -> list[str]:
    """The notes, each once; one stands for all kinds that files lack, in the place of the first of them.

    What is ``alone`` is among the notes and stays by itself.
    """
    notes_once = tuple(dict.fromkeys(notes))
    lacking = (note for note in notes_once if isinstance(note, (Unread, NotSeen)) and note not in alone)
    absent = [note for note in lacking if note.gap.reason == ABSENT]
    if len(absent) < 2:
        return [written(note) for note in notes_once]
    kinds = dict.fromkeys(note.gap.kind for note in absent)
    unknown = dict.fromkeys(written(note.unknown) for note in absent if isinstance(note, Unread))
    together = "; ".join((f"not read: {', '.join(kinds)}", *unknown)) + absent[0].gap.help
    return [together if note is absent[0] else written(note) for note in notes_once if note not in absent[1:]]


def reason(why: Words) -> str:
    """A reason as the cell of a table: of a kind that was not read, what a note says in full."""
    if not isinstance(why, Unread):
        return written(why)
    part = why.gap.namespace or why.gap.read_in
    kinds = kind_plural(why.gap.kind)
    return f"not all {kinds} were read" if part else f"{kinds} were not read"
