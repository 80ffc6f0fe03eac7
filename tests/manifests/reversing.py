"""Edits turned around: what proves that edits lose nothing of the text before them."""

from __future__ import annotations

from collections.abc import Sequence

from kubectl_dra.manifests.edits import Edit


def reversed_edits(edits: Sequence[Edit], text: str) -> list[Edit]:
    """The edits that lead back to ``text`` from what ``edits`` make of it."""
    out: list[Edit] = []
    moved = 0
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end)):
        start = edit.start + moved
        out.append(Edit(start, start + len(edit.text), text[edit.start : edit.end]))
        moved += len(edit.text) - (edit.end - edit.start)
    return out
