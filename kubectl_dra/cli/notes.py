"""What commands that read files say on standard error: results are on standard output, alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from kubectl_dra.report.paint import tell

_MOST: Final = 10


def tell_notes(notes: Sequence[str]) -> None:
    """One line for each file that was left out, as far as they are few."""
    for note in notes[:_MOST]:
        tell(f"note: {note}")
    if len(notes) > _MOST:
        tell(f"note: {len(notes) - _MOST} more files were left out")


def tell_defects(defects: Iterable[str]) -> None:
    """One line for each failure of our own."""
    for defect in defects:
        tell(f"error: a defect of kubectl-dra, please report it: {defect}")
