"""Changes of API objects: what a stranger, another release or a mistake may write.

Most keep the grammar, so that a reader accepts them and what is behind it runs: a value is replaced by one that the
same field has elsewhere, or by another of its type. The others are wild.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**63, -(2**63), 10**30, 1.5, 1e308, "", " ", "0", "-1", "x", "a/b/c", "null",
    "100 ", "1e9999", "999999999999Ei", "0.000000001", "-5Gi", "9" * 400, "2026-13-45T99:99:99Z",
    "\x1b[2J\x07\x9b31m", "\u202eevil\u2069", "a\nb\r\n::error::x", "\ud800", "\x7f", "\x00", "\U000e0041", "é" * 300,
    [], {}, [None], [[]], {"": ""}, {"a": None}, [{}], "{{ .Values.x }}", "$(touch PWNED)", "../../etc/passwd",
    "²", "9" * 5000,
)  # fmt: skip
CEL = (
    "", "true", "false", "1", "device", "foo", "device.driver", "device.attributes", "device.attributes['x'].y == 1",
    "device.driver == 'gpu.nvidia.com' && " * 20 + "true", "(" * 300, "!" * 500 + "true", "[1,2,3].all(x, x > 0)",
    "device.capacity['x'].y.compareTo(quantity('1Gi')) >= 0", "'a'.matches('(a+)+$')", "cel.bind(x, 1, x == 1)",
    "semver('1.2.3').isGreaterThan(semver('x'))", "1/0 == 1", "has(device.attributes.x)",
    "device.driver in [" + "'a'," * 500 + "'b']", "device.attributes['d'].?x.orValue(1) == 1", "['a'].map(x, x + x)",
    'device.driver == "\\x41"', "device.attributes['d'].x == '\\101\\uD800'",
    "device.attributes['d'].x == " + "9" * 5000,
)  # fmt: skip
TEXTS: Final = tuple(value for value in VALUES if isinstance(value, str))
NUMBERS: Final = (-1, 1, 2, 100, 2**31, 2**62)
WILD: Final = 0.3
"""The part of objects of which changes need not keep the type of a value."""
Pool: TypeAlias = Mapping[str, Sequence[Any]]
"""By the name of a field, values that it has somewhere."""


def pool_of(items: Sequence[Any], most: int = 60) -> dict[str, list[Any]]:
    """The values of each field in these objects, each once, up to ``most`` of a field."""
    found: dict[str, dict[str, Any]] = {}
    for holder, key in _places(items):
        if isinstance(key, str):
            values = found.setdefault(key, {})
            if len(values) < most:
                values.setdefault(repr(holder[key]), holder[key])
    return {key: [*values.values()] for key, values in found.items()}


def mutated(items: Sequence[Any], chance: random.Random, pool: Pool) -> list[Any]:
    """The objects, of which one to five changes made others. The given ones stay as they are."""
    out = [*items]
    wild = chance.random() < WILD
    for _ in range(chance.choice((1, 1, 1, 2, 3, 5))):
        if not out:
            return out
        at = chance.randrange(len(out))
        out[at] = copy.deepcopy(out[at])
        places = [(out, at), *_places(out[at])]
        holder, key = chance.choice(places)
        (_change if wild else _kept_type)(holder, key, chance, pool)
    return out


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in list(entries):
        yield value, key
        yield from _places(below)


def _kept_type(holder: Any, key: Any, chance: random.Random, pool: Pool) -> None:
    value = holder[key]
    if key in ("apiVersion", "kind"):
        return
    if key == "expression":
        holder[key] = chance.choice((*CEL, *pool.get("expression", ())))
        return
    kind = chance.randrange(8)
    known = [each for each in pool.get(str(key), ()) if type(each) is type(value)]
    if kind == 0 and isinstance(holder, dict) and key not in ("metadata", "name"):
        del holder[key]
    elif kind == 0 and isinstance(holder, list):
        holder.insert(chance.randrange(len(holder) + 1), copy.deepcopy(value))
    elif isinstance(value, bool):
        holder[key] = not value
    elif isinstance(value, int):
        holder[key] = chance.choice((0, value + chance.choice(NUMBERS), *known))
    elif isinstance(value, str):
        holder[key] = chance.choice(known) if known and kind < 6 else chance.choice((value + "x", value[:-1]))
    elif isinstance(value, list) and kind == 1:
        chance.shuffle(value)
    elif isinstance(value, list) and kind == 2:
        holder[key] = value * chance.choice((0, 2, 40))
    elif known:
        holder[key] = copy.deepcopy(chance.choice(known))


def _change(holder: Any, key: Any, chance: random.Random, pool: Pool) -> None:
    value = holder[key]
    if key == "expression" or (isinstance(value, str) and "device." in value):
        holder[key] = chance.choice(CEL)
        return
    kind = chance.randrange(6)
    if kind == 0:
        del holder[key]
    elif kind == 1 and isinstance(holder, list):
        holder.insert(chance.randrange(len(holder) + 1), copy.deepcopy(value))
    elif kind == 1:
        holder[chance.choice(("x", "\x1b]0;t\x07", str(key).upper(), "unknownField"))] = holder.pop(key)
    elif kind == 2 and isinstance(value, str):
        holder[key] = value + str(chance.choice(TEXTS))
    elif kind == 3 and isinstance(value, int):
        holder[key] = value + chance.choice((-1, 1, 2**31, 2**63))
    elif kind == 4 and isinstance(value, list):
        holder[key] = value * chance.choice((0, 2, 40))
    else:
        holder[key] = copy.deepcopy(chance.choice((*VALUES, *pool.get(str(key), ()))))
