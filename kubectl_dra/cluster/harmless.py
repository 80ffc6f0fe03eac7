"""The allow-list of ``snapshot --anonymize``: the words and forms that say nothing about whose cluster it is.

A text stays if each of its words is in the list or is a small number; every other word is replaced. The page about
anonymizing is generated from here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final

_SECTIONS: Final = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").split("# ")[1:]
WORDS: Final[Mapping[str, str]] = {
    subject: words for subject, _, words in (section.partition("\n") for section in _SECTIONS)
}
"""Words by subject, in lower case."""

_WORDS: Final = frozenset(word for words in WORDS.values() for word in words.split())
_RUN: Final = re.compile(r"[^\W_]+")
_PART: Final = re.compile(r"[A-Z]{2,}s(?![a-z])|[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+|.")
_QUANTITY: Final = re.compile(r"[+-]?\d*\.?\d*(?:[eE][+-]?\d+|[KMGTPE]i?|[mnuk])?")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?")
_VERSION: Final = re.compile(r"v?\d+(?:\.\d+)+")
_ADDRESS: Final = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}")
_SIGNED: Final = re.compile(r"[\n\t -~]*")
_UNSIGNED: Final = re.compile(r"[^\n\t -~]")
_KERNEL: Final = re.compile(
    r"(?:en|ib)(?:P\d{1,4})?(?:o\d{1,3}|p\d{1,3}s\d{1,3}|s\d{1,3})(?:f\d{1,3})?(?:np?\d{1,3})?(?:d\d{1,3})?(?:v\d{1,3})?"
    r"|nvme\d{1,3}(?:n\d{1,3})?(?:p\d{1,3})?"
)
FORMS: Final[Mapping[str, str]] = {
    "numbers of up to four digits, and up to two letters beside them": "H100, 10gb, x16",
    "amounts": "80Gi, 250m, 1e3",
    "times": "2026-01-31T12:00:00Z",
    "versions": "570.86.15",
    "the kernel's names of network interfaces and disks, by their place": "enp5s0f1np1, nvme0n1",
}
"""What stays besides the words, with examples."""
_MOST_DIGITS: Final = 4
_MOST_LETTERS: Final = 2
_LONGEST_MIXED: Final = 6


def is_amount(text: str) -> bool:
    """Whether a text is an amount or a time."""
    return bool(_QUANTITY.fullmatch(text) or _TIME.fullmatch(text))


def is_harmless(text: str) -> bool:
    """Whether a text can stay as it is: a version, or nothing but known words and small numbers."""
    if _VERSION.fullmatch(text):
        return not _ADDRESS.fullmatch(text)
    return _SIGNED.fullmatch(text) is not None and all(map(is_harmless_word, _RUN.findall(text)))


@lru_cache(maxsize=1 << 16)
def is_harmless_word(word: str) -> bool:
    """Whether a word without separators stays: it is known, or its parts are, as in ``driverVersion`` and ``H100``."""
    if word.lower() in _WORDS or _KERNEL.fullmatch(word):
        return True
    parts = [part for part in _PART.findall(word) if part.lower() not in _WORDS]
    digits = sum(len(part) for part in parts if part.isascii() and part.isdigit())
    letters = [part for part in parts if not part.isdigit()]
    if digits > _MOST_DIGITS or any(len(part) > 1 or not part.isascii() for part in letters):
        return False
    return not letters or (len(letters) <= _MOST_LETTERS and len(word) <= _LONGEST_MIXED)


def each_word(text: str, change: Callable[[str], str]) -> str:
    """The text with each word that is not harmless changed, and signs other than ASCII's replaced."""
    if is_harmless(text):
        return text
    out: list[str] = []
    end = 0
    for match in _RUN.finditer(text):
        out.append(_signs(text[end : match.start()]))
        out.append(match[0] if is_harmless_word(match[0]) else change(match[0]))
        end = match.end()
    out.append(_signs(text[end:]))
    return "".join(out)


def _signs(text: str) -> str:
    return _UNSIGNED.sub("?", text)
