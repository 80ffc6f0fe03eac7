"""Consistent pseudonyms that keep the order of the original names and reveal nothing about them.

The allocator visits pools, slices and classes in the order of their names, so pseudonyms keep that order: the
third node by name becomes ``node-03``. Values such as serial numbers keep their form: each letter and digit
is replaced by another.
"""

from __future__ import annotations

import hashlib
import ipaddress
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final

_UUID: Final = re.compile(r"\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b")
_MAC: Final = re.compile(r"(?<![0-9A-Fa-f:.])(?:[0-9a-fA-F]{2}[:-]){5}[0-9a-fA-F]{2}(?![0-9A-Fa-f:.])")
_IPV4: Final = re.compile(r"(?<![\d.])\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}(?![\d.])")
_IPV6: Final = re.compile(r"(?<![0-9A-Za-z:.])[0-9a-fA-F:]*:[0-9a-fA-F:]*:[0-9a-fA-F]*(?![0-9A-Za-z:.])")
_WORD: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._/-]*[A-Za-z0-9])?")
_SEPARATOR: Final = re.compile(r"[._/-]")
_USER: Final = re.compile(r'\b([Uu]ser) "[^"]*"')
_URL: Final = re.compile(r"\b(?:https?|unix|wss?)://[^\s\"'<>]+")
_MAIL: Final = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")

_WORDS = """
    a access admin all allocate allocated allocation already an and api are as at available be because been being
    bound by can cannot capacity claim claims class cluster condition constraint container could count create
    created default deleted device devices driver error event exceeded failed failure filter for found from gang gpu
    gpus group has have in insufficient invalid is it kubelet limit list match memory message mode name namespace
    nic no node nodes none not of on or other plugin pod pods pool pools preemption prepare quota ready request
    requested requests required reserved resource resources scheduler selector server set slice spec state status
    system taint taints template the this to tolerate type untolerated usage use used user users waiting was with
"""
COMMON: Final = frozenset(_WORDS.split())
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
        self.frozen = False

    def of(self, category: str, name: str) -> str:
        """The pseudonym of a name among those of its category."""
        if not name:
            return name
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
        self.frozen = True

    def settle(self, category: str, rename: Callable[[str], str]) -> None:
        """Name a category with ``rename``, provided that this keeps the order and number of its names."""
        names = sorted(self._asked.get(category, ()))
        renamed = [rename(name) for name in names]
        if renamed == sorted(set(renamed)):
            self._given[category] = dict(zip(names, renamed, strict=True))

    def words(self, categories: Iterable[str]) -> None:
        """Set the categories whose names ``text`` replaces. The first with a matching name wins."""
        for category in categories:
            for name, pseudonym in self._given.get(category, {}).items():
                if name.lower() not in COMMON and name != pseudonym:
                    self._words.setdefault(name, pseudonym)

    def given(self) -> dict[str, dict[str, str]]:
        """The mapping from name to pseudonym per category, where they differ."""
        found = {
            category: {name: other for name, other in sorted(names.items()) if name != other}
            for category, names in sorted(self._given.items())
        }
        return {category: names for category, names in found.items() if names}

    def scrambled(self, text: str) -> str:
        """Another text of the same form. Equal texts give equal results, different texts different ones."""
        known = self._scrambled.get(text)
        if known is not None:
            return known
        attempt = 0
        while True:
            out = self._scramble(text, attempt)
            attempt += 1
            if out not in self._taken or attempt > 100:
                break
        self._scrambled[text] = out
        self._taken.add(out)
        return out

    def _scramble(self, text: str, attempt: int) -> str:
        hexadecimal = not any(char.isascii() and char.isalpha() and char.lower() > "f" for char in text)
        stream = b""
        out: list[str] = []
        for index, char in enumerate(text):
            if len(stream) <= index:
                block = f"{attempt}:{index}:".encode() + self._seed + b":" + text.encode()
                stream += hashlib.sha256(block).digest()
            number = stream[index]
            if char.isdigit():
                out.append("0123456789"[number % 10])
            elif char.isalpha():
                letter = "abcdef"[number % 6] if hexadecimal else "abcdefghijklmnopqrstuvwxyz"[number % 26]
                out.append(letter.upper() if char.isupper() else letter)
            else:
                out.append(char)
        return "".join(out)

    def embedded(self, text: str) -> str:
        """The value with identities in it replaced: UUIDs, MAC and IP addresses, and names of nodes."""
        if not self.frozen or not text:
            return text
        known = self._embedded.get(text)
        if known is None:
            known = self._replaced(self._addresses(text), self._given.get("node", {}))
            self._embedded[text] = known
        return known

    def text(self, message: str) -> str:
        """A message with every name, user and address in it replaced."""
        if not self.frozen or not message:
            return message
        message = _USER.sub(r'\1 "someone"', message)
        message = _URL.sub("https://example.invalid", message)
        message = _MAIL.sub("someone@example.invalid", message)
        return self._replaced(self._addresses(message), self._words)

    def _addresses(self, text: str) -> str:
        text = _UUID.sub(lambda found: self.scrambled(found.group()), text)
        text = _MAC.sub(lambda found: self.scrambled(found.group()), text)
        text = _IPV4.sub(self._ip, text)
        return _IPV6.sub(self._ip, text) if ":" in text else text

    def _ip(self, found: re.Match[str]) -> str:
        try:
            address = ipaddress.ip_address(found.group())
        except ValueError:
            return found.group()
        number = int.from_bytes(hashlib.sha256(self._seed + found.group().encode()).digest()[:8])
        if address.version == 4:
            return f"10.{number % 256}.{number // 256 % 256}.{number // 65536 % 256}"
        return f"fd00::{number % 65536:x}:{number // 65536 % 65536:x}"

    def _replaced(self, text: str, names: Mapping[str, str]) -> str:
        return _WORD.sub(lambda found: _longest(found.group(), names), text) if names else text


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
