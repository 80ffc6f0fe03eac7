"""The pictures of ``docs/ui.md`` show what the screen shows, and load nothing."""

from __future__ import annotations

import re

from tools.docs.links import DOCS
from tools.docs.screens import pictures

MADE_BY = "python -m tools.docs.screens docs/images"


def words(drawn: str) -> list[str]:
    """The text of a picture, however it is drawn."""
    return re.findall(r"<text[^>]*>([^<]*)</text>", drawn)


def test_pictures_are_those_of_the_screen() -> None:
    for name, drawn in pictures().items():
        kept = (DOCS / "images" / name).read_text(encoding="utf-8")
        assert words(drawn) == words(kept) != [], f"run: {MADE_BY}"
        assert not re.search(r"url\(\s*[\"']?http|href=[\"']http", kept) and len(kept) < 40_000
