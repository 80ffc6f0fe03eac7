"""Aligned columns, as kubectl prints them."""

from __future__ import annotations

from collections.abc import Sequence

GAP = "   "


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines in which each column is as wide as its longest cell; the last column is not padded."""
    if not rows:
        return []
    widths = [max(len(row[index]) for row in rows) for index in range(len(rows[0]) - 1)]
    return [
        GAP.join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]]).rstrip()
        for row in rows
    ]
