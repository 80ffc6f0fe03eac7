"""Writes objects as YAML the way people do: in all styles, with comments, odd blanks and markers."""

from __future__ import annotations

import json
from random import Random
from typing import Any, NamedTuple

from kubectl_dra.manifests.values import scalar

WORDS = ("one", "# two", "it's", '"quoted"', "a: b", "{x}", "- dash", "nvidia.com/gpu: 1", "größe 😀")


class Habits(NamedTuple):
    """How one author writes. Odds are between 0 and 1."""

    step: int
    dash: int
    flow: float
    comments: float
    blanks: float
    quotes: str
    newline: str
    marker: str
    end: str
    final: bool
    bom: bool
    tabs: bool
    anchors: bool


def habits(random: Random, *, anchors: bool) -> Habits:
    """Some author."""
    step = random.choice((2, 2, 2, 4, 3))
    return Habits(
        step,
        random.choice((0, 0, 2, step)),
        random.choice((0.0, 0.0, 0.15, 0.6)),
        random.choice((0.0, 0.1, 0.4)),
        random.choice((0.0, 0.1)),
        random.choice(("plain", "plain", "'", '"', "mixed")),
        random.choice(("\n", "\n", "\r\n")),
        random.choice(("", "---", "--- # start")),
        random.choice(("", "", "...", "# the end")),
        random.random() < 0.8,
        random.random() < 0.15,
        random.random() < 0.2,
        anchors,
    )


def written(objects: list[Any], random: Random, how: Habits) -> bytes:
    """The objects as the bytes of one file."""
    lines: list[str] = []
    for number, raw in enumerate(objects):
        if number or how.marker:
            lines.append(how.marker or "---")
        lines += _Author(random, how).document(raw)
        if how.end == "..." and random.random() < 0.5:
            lines.append("...")
            if number + 1 < len(objects) and not how.marker:
                continue
    if how.end.startswith("#"):
        lines.append(how.end)
    text = how.newline.join(lines) + (how.newline if how.final else "")
    return (b"\xef\xbb\xbf" if how.bom else b"") + text.encode()


class _Author:
    def __init__(self, random: Random, how: Habits) -> None:
        self._random = random
        self._how = how
        self._anchors = 0

    def document(self, raw: Any) -> list[str]:
        if self._odds(self._how.flow / 4):
            return [self._flow(raw)]
        return self._mapping(raw, 0)

    def _odds(self, chance: float) -> bool:
        return self._random.random() < chance

    def _comment(self) -> str:
        if not self._odds(self._how.comments):
            return ""
        blank = "\t" if self._how.tabs else self._random.choice((" ", "  ", "    "))
        return f"{blank}# {self._random.choice(WORDS)}"

    def _above(self, indent: int) -> list[str]:
        out = []
        if self._odds(self._how.blanks):
            out.append(self._random.choice(("", "  ")))
        if self._odds(self._how.comments / 2):
            out.append(f"{' ' * indent}# {self._random.choice(WORDS)}")
        return out

    def _mapping(self, raw: dict[str, Any], indent: int) -> list[str]:
        out: list[str] = []
        for key, value in raw.items():
            out += self._above(indent)
            out += self._pair(key, value, indent)
        return out

    def _pair(self, key: str, value: Any, indent: int) -> list[str]:
        lead, name = " " * indent, self._key(key)
        if isinstance(value, dict | list) and value and not self._odds(self._how.flow):
            anchor = ""
            if self._how.anchors and self._odds(0.1):
                self._anchors += 1
                anchor = f" &a{self._anchors}-{self._random.randrange(10**6)}"
            head = f"{lead}{name}:{anchor}{self._comment()}"
            if isinstance(value, dict):
                return [head, *self._mapping(value, indent + self._how.step)]
            return [head, *self._list(value, indent + self._how.dash)]
        if isinstance(value, dict) and len(value) > 1 and self._odds(0.4):
            below = [
                f"{lead}{' ' * self._how.step}{self._key(one)}: {self._flow(other)}" for one, other in value.items()
            ]
            last = [below[-1] + self._random.choice(("", ",")), f"{lead}}}{self._comment()}"]
            return [f"{lead}{name}: {{", *(f"{line}," for line in below[:-1]), *last]
        blank = self._random.choice((" ", " ", "   "))
        return [f"{lead}{name}:{blank}{self._flow(value)}{self._comment()}"]

    def _list(self, items: list[Any], indent: int) -> list[str]:
        out: list[str] = []
        for item in items:
            out += self._above(indent)
            if isinstance(item, dict) and item and not self._odds(self._how.flow):
                lines = self._mapping(item, indent + 2)
                # What stands above the first key goes above the dash.
                first = next(
                    number for number, line in enumerate(lines) if line.strip() and not line.lstrip().startswith("#")
                )
                out += [line[2:] if line.strip() else line for line in lines[:first]]
                out.append(f"{' ' * indent}- {lines[first].lstrip()}")
                out += lines[first + 1 :]
            else:
                out.append(f"{' ' * indent}- {self._flow(item)}{self._comment()}")
        return out

    def _flow(self, value: Any) -> str:
        if isinstance(value, dict):
            return "{" + ", ".join(f"{self._key(key)}: {self._flow(below)}" for key, below in value.items()) + "}"
        if isinstance(value, list):
            return "[" + ", ".join(self._flow(below) for below in value) + "]"
        return self._text(value) if isinstance(value, str) else json.dumps(value)

    def _key(self, key: str) -> str:
        plain = scalar(key) == key and all(character.isalnum() or character in "._/-" for character in key)
        if plain and not (self._how.quotes == '"' and self._odds(0.3)):
            return key
        return json.dumps(key, ensure_ascii=False)

    def _text(self, value: str) -> str:
        quotes = self._how.quotes
        if quotes == "mixed":
            quotes = self._random.choice(("plain", "'", '"'))
        simple = value and all(character.isalnum() or character in "._/-" for character in value)
        if quotes == "plain" and simple and value[0].isalpha() and scalar(value) == value:
            return value
        if quotes == '"' or not value.isprintable():
            return json.dumps(value, ensure_ascii=False)
        return "'" + value.replace("'", "''") + "'"
