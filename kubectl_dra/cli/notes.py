"""Messages on standard error of commands that read files; standard output has only results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from kubectl_dra.cluster.time_read import Moment
from kubectl_dra.report.color import tell

_MOST: Final = 10


def tell_notes(notes: Sequence[str]) -> None:
    """Print one line for each file left out, if there are few."""
    for note in notes[:_MOST]:
        tell(f"note: {note}")
    if len(notes) > _MOST:
        tell(f"note: {len(notes) - _MOST} more files were left out")


def tell_age(at: Moment) -> None:
    """Say what ages are counted from where that is not now."""
    if at.saved:
        tell(f"note: the objects are as of {at}, and so are ages")


def tell_defects(defects: Iterable[str]) -> None:
    """Print one line for each failure of our own."""
    for defect in defects:
        tell(f"error: a defect of kubectl-dra, please report it: {defect}")
