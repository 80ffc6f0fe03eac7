"""What is typed after ``taint``: devices, taints in the grammar of ``kubectl taint``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from kubectl_dra.api.taints import DeviceTaint
from kubectl_dra.command import is_name
from kubectl_dra.errors import UsageError
from kubectl_dra.text import nearest

EFFECTS: Final = ("None", "NoSchedule", "NoExecute")
"""The effects of a device taint; ``None`` only informs."""
_PART = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?", re.ASCII)


class TaintSpec(NamedTuple):
    """A taint to add: ``key[=value]:Effect``."""

    key: str
    value: str
    effect: str

    def __str__(self) -> str:
        return str(DeviceTaint(*self))


class Removal(NamedTuple):
    """Taints to remove: ``key-`` or ``key[=value]:Effect-``, whatever the value, as kubectl has it.

    An empty effect means every effect, an empty key all taints.
    """

    key: str = ""
    effect: str = ""

    def covers(self, key: str, effect: str) -> bool:
        """Whether it removes a taint with this key and effect."""
        return self.key in ("", key) and self.effect in ("", effect)

    def __str__(self) -> str:
        effect = f":{self.effect}" if self.effect else ""
        return f"{self.key}{effect}-" if self.key else "every key"


class Words(NamedTuple):
    """The arguments of ``taint`` and ``untaint``, sorted."""

    devices: tuple[str, ...]
    taints: tuple[TaintSpec, ...]
    removals: tuple[Removal, ...]


def read_words(words: Sequence[str], *, removing: bool = False) -> Words:
    """Separate devices from taints: a device has no ``:`` and no ``=``, and does not end in ``-``.

    ``removing``: every taint is one to remove, with or without the ``-``.

    Raises UsageError: a taint in the wrong form, or given twice.
    """
    devices: list[str] = []
    taints: list[TaintSpec] = []
    removals: list[Removal] = []
    for word in words:
        taint = ":" in word or "=" in word
        if word.endswith("-") or (taint and removing):
            removals.append(_removal(word))
        elif taint:
            taints.append(_taint(word))
        elif word:
            devices.append(word)
    keys = [taint.key for taint in taints]
    for key in keys:
        if keys.count(key) > 1:
            raise UsageError(f"{key} is given twice; a device has one taint of a key by kubectl-dra")
    for removal in removals:
        if removal.key in keys:
            raise UsageError(f"{removal.key} cannot be both added and removed")
    return Words(tuple(dict.fromkeys(devices)), tuple(taints), tuple(dict.fromkeys(removals)))


def _taint(word: str) -> TaintSpec:
    name, colon, effect = word.rpartition(":")
    if not colon:
        raise UsageError(f'"{word}" has no effect; write {word}:NoSchedule, or {", ".join(EFFECTS)} in its place')
    key, equal, value = name.partition("=")
    _check_key(key, word)
    if equal and value and _PART.fullmatch(value) is None:
        raise UsageError(
            f'"{word}": the value "{value}" is not a label value (63 letters, digits, - _ . that begin and end with a '
            "letter or digit)"
        )
    return TaintSpec(key, value, _effect(effect, word))


def _removal(word: str) -> Removal:
    name, colon, effect = word.removesuffix("-").partition(":")
    key, equal, _ = name.partition("=")
    if equal and not colon:
        raise UsageError(f'"{word}": to remove a taint, leave out the value: write {key}-')
    _check_key(key, word)
    return Removal(key, _effect(effect, word) if colon else "")


def _check_key(key: str, word: str) -> None:
    prefix, slash, name = key.rpartition("/")
    if _PART.fullmatch(name) is None or (slash and not is_name(prefix)):
        raise UsageError(f'"{word}": "{key}" is not a taint key such as maintenance or example.com/maintenance')


def _effect(text: str, word: str) -> str:
    if text in EFFECTS:
        return text
    near = nearest(text, EFFECTS)
    hint = f"; did you mean {near[0]}?" if near else f"; there are {', '.join(EFFECTS)}"
    raise UsageError(f'"{word}": "{text}" is not an effect{hint}')
