"""Hostile arguments: where a word can be typed, and words that nobody means."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache
from typing import Final, NamedTuple

from kubectl_dra.cli.main import COMMANDS, _parser
from tools.fuzz.examples import object_pool
from tools.fuzz.mutations import TEXTS

HOSTILE: Final = ("\udcff", "a\udcff/b", "pod/\udcff", "", "²", "x" * 5000, "a/" * 3000, "x" * 300 + ".yaml", "=\udcff")
"""A byte that is no UTF-8, nothing, and names that are too long for any file."""
_IMPOSSIBLE: Final = ("\x00", "\ud800")
"""What no argument can have."""
_REFUSE_MORE: Final = ("--snapshot", "--scheduler-config", "--kubernetes-version", "--feature-gates", "--filename")
"""Flags that refuse nearly every text: before anything else is tried."""
_NAMES: Final = ("name", "driver", "pool", "namespace", "key", "device")
_BEFORE: Final = ("count=", "untaint=", "selector=", "class=", "tolerate=", "gpu-0..", "pod/", "claim/", "device/")


class Place(NamedTuple):
    """A command, and the flags that take a value, by their longest names; of these the ones that take any text."""

    command: str
    flags: tuple[str, ...]
    texts: tuple[str, ...]


@cache
def places() -> tuple[Place, ...]:
    """Where a word can be typed, other than as an argument."""
    return tuple(_places())


def _places() -> Iterator[Place]:
    for name in COMMANDS:
        options = [param for param in _parser(name).commands[name].params if param.param_type_name == "option"]
        flags = {max(option.opts, key=len): option.type.name for option in options if not option.is_flag}
        yield Place(name, tuple(sorted(flags)), tuple(sorted(flag for flag, kind in flags.items() if kind == "str")))


@cache
def _own_flags(command: str) -> tuple[str, ...]:
    """The flags that take any text, without those that name a cluster."""
    by_command = {place.command: place for place in places()}
    return tuple(sorted({*by_command[command].texts} - {*by_command["version"].flags, *_REFUSE_MORE}))


def typed(command: str, chance: random.Random) -> list[str]:
    """A flag of the command that takes any text, or an argument, and a value that nobody means."""
    flag, word = chance.choice(("", *_own_flags(command))), value_of(chance)
    word = chance.choice(_BEFORE) + word if chance.random() < 0.3 else word
    return [flag, word] if flag else [word]


def value_of(chance: random.Random) -> str:
    """A hostile text, or a name that an example has."""
    if chance.random() < 0.4:
        return chance.choice(
            (*HOSTILE, *(text for text in TEXTS if not any(impossible in text for impossible in _IMPOSSIBLE)))
        )
    return chance.choice([name for name in object_pool()[chance.choice(_NAMES)] if isinstance(name, str)])
