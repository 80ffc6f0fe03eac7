"""Consistent pseudonyms that keep the order of the original names and reveal nothing about them.

The allocator visits pools, slices and classes in the order of their names, so pseudonyms keep that order: the
third node by name becomes ``node-03``. Values such as serial numbers keep their form: each letter and digit
is replaced by another.
"""

from __future__ import annotations

import hashlib
import ipaddress
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from itertools import takewhile
from pathlib import Path
from typing import Final

_UUID: Final = re.compile(r"\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b")
_MAC: Final = re.compile(r"(?<![0-9A-Fa-f:.])(?:[0-9a-fA-F]{2}[:-]){5}[0-9a-fA-F]{2}(?![0-9A-Fa-f:.])")
_IPV4: Final = re.compile(r"(?<![\d.])\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}(?![\d.])")
_IPV6: Final = re.compile(r"(?<![0-9A-Za-z:.])[0-9a-fA-F:]*:[0-9a-fA-F:]*:[0-9a-fA-F]*(?![0-9A-Za-z:.])")
_PCI: Final = re.compile(
    r"(?P<head>\bpci|\b)(?P<domain>[0-9a-fA-F]{4,8})(?:"
    r":(?P<bus>[0-9a-fA-F]{2})(?P<end>:[01][0-9a-fA-F]\.[0-7])?"
    # As in names of devices, which have neither colons nor dots.
    r"|-(?P<named_bus>[0-9a-fA-F]{2})(?P<named_end>-[01][0-9a-fA-F]-[0-7]))(?![0-9A-Za-z:])"
)
_WORD: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._/-]*[A-Za-z0-9])?")
_SEPARATOR: Final = re.compile(r"[._/-]")
_USER: Final = re.compile(r'\b([Uu]ser) "[^"]*"')
_URL: Final = re.compile(r"\b(?:https?|unix|wss?)://[^\s\"'<>]+")
_MAIL: Final = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_COUNT: Final = re.compile(r"\d{1,7}")
_ODD: Final = re.compile(r"[^\n\t -~…]")
_IDENTITY: Final = re.compile(
    "|".join(re.sub(r"\?P<\w+>", "?:", form.pattern) for form in (_UUID, _MAC, _PCI, _IPV4, _IPV6))
)
_HEXADECIMAL: Final = re.compile(r"(?=.*\d)(?:[0-9a-fA-F]|[^\w\s]|x)+")
_BUSES: Final = tuple(f"{bus:02x}" for bus in range(256))
_TRIES: Final = 100
_CUT: Final = re.compile(r"…(?:[^\w\s,;:()]*…)+")

_COMMON = """
    a access admin all allocate allocated allocation already an and api are as at available be because been being
    bound by can cannot capacity claim claims class cluster condition constraint container could count create
    created default deleted device devices driver error event exceeded failed failure filter for found from gang gpu
    gpus group has have in insufficient invalid is it kubelet limit list match memory message mode name namespace
    nic no node nodes none not of on or other plugin pod pods pool pools preemption prepare quota ready request
    requested requests required reserved resource resources scheduler selector server set slice spec state status
    system taint taints template the this to tolerate type untolerated usage use used user users waiting was with
"""
COMMON: Final = frozenset(_COMMON.split())
"""Words of Kubernetes' own messages, which stay in texts even if an object has that name."""


class Pseudonyms:
    """Usage: request all names, call ``freeze``, then request them again to get their pseudonyms."""

    def __init__(self, seed: str) -> None:
        self._seed = seed.encode()
        self._asked: dict[str, set[str]] = {}
        self._given: dict[str, dict[str, str]] = {}
        self._scrambled: dict[str, str] = {}
        self._taken: set[str] = set()
        self._embedded: dict[str, str] = {}
        self._words: dict[str, str] = {}
        self._made: set[str] = set()
        self.frozen = False

    def of(self, category: str, name: str) -> str:
        """The pseudonym of a name among those of its category."""
        if not name:
            return name
        # Fields that nobody decodes may hold anything.
        name = name if isinstance(name, str) else str(name)
        if self.frozen:
            return self._given[category][name]
        self._asked.setdefault(category, set()).add(name)
        return name

    def known(self, category: str, name: str) -> str | None:
        """The pseudonym, or None if the category does not contain the name."""
        return self._given.get(category, {}).get(name)

    def freeze(self) -> None:
        """End the collecting pass."""
        for category, names in self._asked.items():
            width = len(str(len(names)))
            self._given[category] = {name: f"{category}-{rank:0{width}}" for rank, name in enumerate(sorted(names), 1)}
            self._made.update(self._given[category].values())
        self.frozen = True

    def settle(self, category: str, rename: Callable[[str], str], *, ordered: bool = True) -> None:
        """Name a category with ``rename``, provided that this keeps the number of its names, and their order."""
        names = sorted(self._asked.get(category, ()))
        renamed = [rename(name) for name in names]
        different = sorted(set(renamed))
        if renamed == different if ordered else len(renamed) == len(different):
            self._given[category] = dict(zip(names, renamed, strict=True))
            self._made.update(renamed)

    def between(self, category: str, kept: Iterable[str], end: str) -> None:
        """Name a category so that its names sort among the ``kept`` ones as before, each with ``end``."""
        known = sorted(kept)
        for name, plain in self._given.get(category, {}).items():
            place = bisect_left(known, name)
            low, high = known[place - 1] if place else "", known[place] if place < len(known) else ""
            pseudonym = f"{_between(low, high)}{plain}{end}"
            self._given[category][name] = pseudonym
            self._made.add(pseudonym)

    def compose(self, category: str, *parts: tuple[str, str]) -> None:
        """Let a name that Kubernetes puts together from others, if it is there, be put together from theirs."""
        name = "-".join(part for _, part in parts)
        if name in self._given.get(category, {}):
            pseudonym = "-".join(self.of(kind, part) for kind, part in parts)
            self._given[category][name] = pseudonym
            self._made.add(pseudonym)

    def is_made(self, text: str) -> bool:
        """Whether a text is one of the pseudonyms and changed texts that were given out."""
        return text in self._made

    def has_uuid(self, text: str) -> bool:
        """Whether a text holds a UUID, of which nothing stays anyhow."""
        return _UUID.search(text) is not None

    def gave(self, text: str) -> None:
        """Remember a text that was put together from what was made."""
        self._made.add(text)

    def words(self, categories: Iterable[str]) -> None:
        """Set the categories whose names ``text`` replaces. The first with a matching name wins."""
        for category in categories:
            for name, pseudonym in self._given.get(category, {}).items():
                if name.lower() not in COMMON and name != pseudonym:
                    self._words.setdefault(name, pseudonym)

    def given(self) -> dict[str, dict[str, str]]:
        """The mapping from name to pseudonym per category, where they differ."""
        names_given = {
            category: {name: other for name, other in sorted(names.items()) if name != other}
            for category, names in sorted(self._given.items())
        }
        return {category: names for category, names in names_given.items() if names}

    def scrambled(self, text: str, *, word: bool = False) -> str:
        """Another text of the same form. Equal texts give equal results, different texts different ones.

        For a ``word`` among others, it is none that could have been there before.
        """
        known = self._scrambled.get(text)
        if known is not None:
            return known
        attempt = 0
        while True:
            out = self._scramble(text if attempt < _TRIES else f"{text}{'x' * (attempt - _TRIES + 1)}", attempt)
            attempt += 1
            if out not in self._taken and not (word and is_harmless_word(out)):
                break
        self._scrambled[text] = out
        self._taken.add(out)
        self._made.add(out)
        return out

    def _scramble(self, text: str, attempt: int) -> str:
        hexadecimal = _HEXADECIMAL.fullmatch(text) is not None
        stream = b""
        out: list[str] = []
        for index, char in enumerate(text):
            if len(stream) <= index:
                block = f"{attempt}:{index}:".encode() + self._seed + b":" + text.encode()
                stream += hashlib.sha256(block).digest()
            number = stream[index]
            if char.isdigit():
                # A number keeps its length.
                out.append("123456789"[number % 9] if char != "0" else "0123456789"[number % 10])
            elif char.isalpha():
                letter = "abcdef"[number % 6] if hexadecimal else "abcdefghijklmnopqrstuvwxyz"[number % 26]
                out.append(letter.upper() if char.isupper() else letter)
            else:
                out.append(char if char.isascii() and char.isprintable() else "?")
        return "".join(out)

    def embedded(self, text: str) -> str:
        """The value with everything in it replaced that is not known to be harmless: UUIDs, MAC, IP and PCI addresses
        keep their form, names of nodes become their pseudonyms, and words become other words.
        """
        if not self.frozen or not text:
            return text
        known = self._embedded.get(text)
        if known is None:
            known = self._embedded[text] = self._other_words(text)
            self._made.add(known)
        return known

    def _other_words(self, text: str) -> str:
        out: list[str] = []
        end = 0
        nodes = self._given.get("node", {})

        def rest(part: str) -> str:
            return each_word(self._replaced(part, nodes), lambda word: self.scrambled(word, word=True))

        for match in _IDENTITY.finditer(text):
            out.append(rest(text[end : match.start()]))
            out.append(self._identity(match[0]) or rest(match[0]))
            end = match.end()
        out.append(rest(text[end:]))
        return "".join(out)

    def _identity(self, text: str) -> str:
        """What replaces an address or a UUID; empty if it is none."""
        if _UUID.fullmatch(text) or _MAC.fullmatch(text):
            return self.scrambled(text)
        if (pci := _PCI.fullmatch(text)) is not None:
            return self._other_bus(pci)
        try:
            address = ipaddress.ip_address(text)
        except ValueError:
            return ""
        if address.is_unspecified or address.is_loopback:
            return text
        number = int.from_bytes(hashlib.sha256(self._seed + text.encode()).digest()[:8])
        if address.version == 4:
            return f"10.{number % 256}.{number // 256 % 256}.{number // 65536 % 256}"
        return f"fd00::{number % 65536:x}:{number // 65536 % 65536:x}"

    def _other_bus(self, pci: re.Match[str]) -> str:
        """A PCI address on another bus: the same one for all of a bus, whichever way they are written."""
        domain, bus = pci["domain"], pci["bus"] or pci["named_bus"]
        key = self._seed + domain.lower().encode()
        # Each bus becomes the next one of a shuffled circle, so no two become the same and none stays.
        circle = sorted(_BUSES, key=lambda one: hashlib.sha256(key + one.encode()).digest())
        other = circle[(circle.index(bus.lower()) + 1) % len(circle)]
        if len(domain.lstrip("0")) > 1:
            # Virtual machines have such, made from the identity of the device.
            domain = self.scrambled(domain)
        sign = ":" if pci["bus"] else "-"
        other = other.upper() if bus.isupper() else other
        return f"{pci['head']}{domain}{sign}{other}{pci['end'] or pci['named_end'] or ''}"

    def text(self, message: str) -> str:
        """A message with its names replaced, and without the words that are not Kubernetes' own."""
        if not self.frozen or not message:
            return message
        message = _USER.sub(r'\1 "someone"', message)
        message = _URL.sub("…", message)
        message = _MAIL.sub("someone", message)
        message = _IDENTITY.sub(lambda word: "…" if self._identity(word[0]) else word[0], message)
        message = self._replaced(message, self._words)
        message = _WORD.sub(lambda match: self._said(match[0]), message)
        message = _CUT.sub("…", _ODD.sub("", message))
        self._made.add(message)
        return message

    def _said(self, words: str) -> str:
        return words if self.is_made(words) else each_word(words, _left_out)

    def _replaced(self, text: str, names: Mapping[str, str]) -> str:
        return _WORD.sub(lambda match: _longest(match.group(), names), text) if names else text


def _left_out(word: str) -> str:
    return word if word == "someone" or _COUNT.fullmatch(word) else "…"


def _between(low: str, high: str) -> str:
    """A beginning that makes a text sort after ``low`` and, if possible, before ``high``."""
    shared = "".join(letter for letter, _ in takewhile(lambda both: both[0] == both[1], zip(low, high, strict=False)))
    first, last = low[len(shared) : len(shared) + 1], high[len(shared) : len(shared) + 1]
    if not high:
        # After everything: begin as the last one does, and go on.
        return f"{low}." if low else ""
    fitting = [char for char in "abcdefghijklmnopqrstuvwxyz" if first < char < last]
    if fitting:
        return f"{shared}{fitting[0]}-"
    return f"{low}." if low else ""


def _longest(word: str, names: Mapping[str, str]) -> str:
    """The word with the longest known names in it replaced; names run from separator to separator."""
    if word in names:
        return names[word]
    cuts = [match.start() for match in _SEPARATOR.finditer(word)]
    if not cuts:
        return word
    starts, ends = [0, *(cut + 1 for cut in cuts)], [*cuts, len(word)]
    spans = [(start, end) for start in starts for end in ends if start < end]
    for start, end in sorted(spans, key=lambda span: span[0] - span[1]):
        pseudonym = names.get(word[start:end])
        if pseudonym is not None:
            return _longest(word[:start], names) + pseudonym + _longest(word[end:], names)
    return word


# The allow-list of ``snapshot --anonymize``: the words and forms that say nothing about whose cluster it is.
#
# A text stays if each of its words is in the list or is a small number; every other word is replaced. The page about
# anonymizing is generated from here.

_SECTIONS: Final = Path(__file__).with_name("harmless.txt").read_text(encoding="utf-8").split("# ")[1:]
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
