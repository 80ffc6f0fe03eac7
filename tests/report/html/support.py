"""Pages made by the command line, and what they consist of."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple

from tests.cli.conftest import Ran

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = sorted(path.parent for path in (ROOT / "examples" / "explain").glob("*/command"))
Dra = Callable[..., Ran]
VOID = frozenset(("br", "input", "link", "meta"))


def words_of(folder: Path) -> list[str]:
    """The example's command without ``kubectl dra``."""
    return shlex.split((folder / "command").read_text())[2:]


class Element(NamedTuple):
    """An element, its attributes, and the text directly in it."""

    name: str
    attributes: dict[str, str | None]
    text: list[str]


class Document(HTMLParser):
    """A page as a parser sees it; raises AssertionError where elements do not nest."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[Element] = []
        self._open: list[Element] = []
        self.feed(source)
        self.close()
        assert not self._open, f"left open: {[element.name for element in self._open]}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(dict(attrs)) == len(attrs), f"an attribute twice: {attrs}"
        element = Element(tag, dict(attrs), [])
        self.elements.append(element)
        if tag not in VOID:
            self._open.append(element)

    def handle_endtag(self, tag: str) -> None:
        assert self._open and self._open[-1].name == tag, f"</{tag}> closes {self._open[-1:]}"
        self._open.pop()

    def handle_data(self, data: str) -> None:
        if self._open:
            self._open[-1].text.append(data)

    def named(self, name: str) -> list[Element]:
        """All elements of a name."""
        return [element for element in self.elements if element.name == name]

    def text(self) -> str:
        """All text but style and script."""
        return "".join("".join(element.text) for element in self.elements if element.name not in ("style", "script"))
