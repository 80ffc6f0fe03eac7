"""Replacement pieces of a text, and the shifts of the lines after them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kubectl_dra.manifests.changes import Change, Path, Unwrap, Wrap
from kubectl_dra.manifests.places import Places


class Piece(NamedTuple):
    """``text[start:end]`` becomes ``text``. The change concerns something ``depth`` levels deep."""

    start: int
    end: int
    text: str
    depth: int = 0


class Shifts:
    """How far lines move right where fields are wrapped, and left where they are unwrapped."""

    def __init__(self, places: Places, changes: Sequence[Change]) -> None:
        self._at = places
        self._shifts: list[tuple[Path, frozenset[str] | None, int]] = []
        for change in changes:
            if isinstance(change, Wrap | Unwrap):
                self._note(change)

    def _note(self, change: Wrap | Unwrap) -> None:
        """Record how far lines below a path move, for other text written there."""
        pair = self._at.document.nodes(change.path)
        if pair is None or pair.value.id != "mapping" or pair.value.flow_style or not pair.value.value:
            return
        if isinstance(change, Wrap):
            self._shifts.append((change.path, frozenset(change.fields), self._at.style.step))
        elif pair.key is not None:
            step = self._at.column(pair.value.value[0][0].start_mark.index) - self._at.column(pair.key.start_mark.index)
            self._shifts.append((change.path, None, -step))

    def of(self, path: Path) -> int:
        """How far text added inside the value at a path moves with it."""
        return sum(
            step
            for at, fields, step in self._shifts
            if path[: len(at)] == at and (fields is None or (len(path) > len(at) and path[len(at)] in fields))
        )


def runs(indices: Sequence[int]) -> list[tuple[int, int]]:
    """First and last of each run of consecutive numbers."""
    out: list[tuple[int, int]] = []
    for index in indices:
        if out and out[-1][1] + 1 == index:
            out[-1] = (out[-1][0], index)
        else:
            out.append((index, index))
    return out
