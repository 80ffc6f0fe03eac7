"""Generated folders of texts: what a reference writes under ``docs``."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path


def write(folder: Path, pages: Iterable[tuple[str, str]]) -> None:
    """Writes the pages, each a file name and its text, and removes those that are gone."""
    folder.mkdir(parents=True, exist_ok=True)
    written = dict(pages)
    for old in folder.glob("*.*"):
        if old.name not in written:
            old.unlink()
    for name, text in written.items():
        (folder / name).write_text(text, encoding="utf-8")
