"""Changes of API objects that keep most of their grammar: what a stranger, another release or a mistake may write."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**63, -(2**63), 10**30, 1.5, 1e308, "", " ", "0", "-1", "x", "a/b/c", "null",
    "100 ", "1e9999", "999999999999Ei", "0.000000001", "-5Gi", "9" * 400, "2026-13-45T99:99:99Z",
    "\x1b[2J\x07\x9b31m", "\u202eevil\u2069", "a\nb\r\n::error::x", "\ud800", "\x7f", "\x00", "\U000e0041", "é" * 300,
    [], {}, [None], [[]], {"": ""}, {"a": None}, [{}], "{{ .Values.x }}", "$(touch PWNED)", "../../etc/passwd",
)  # fmt: skip
CEL = (
    "", "true", "false", "1", "device", "foo", "device.driver", "device.attributes", "device.attributes['x'].y == 1",
    "device.driver == 'gpu.nvidia.com' && " * 20 + "true", "(" * 300, "!" * 500 + "true", "[1,2,3].all(x, x > 0)",
    "device.capacity['x'].y.compareTo(quantity('1Gi')) >= 0", "'a'.matches('(a+)+$')", "cel.bind(x, 1, x == 1)",
    "semver('1.2.3').isGreaterThan(semver('x'))", "1/0 == 1", "has(device.attributes.x)",
    "device.driver in [" + "'a'," * 500 + "'b']", "device.attributes['d'].?x.orValue(1) == 1", "['a'].map(x, x + x)",
)  # fmt: skip


def mutated(items: list[Any], chance: random.Random) -> list[Any]:
    """A copy of the objects with one to five changes."""
    out = copy.deepcopy(items)
    for _ in range(chance.choice((1, 1, 1, 2, 3, 5))):
        places = list(_places(out))
        if not places:
            return out
        holder, key = chance.choice(places)
        _change(holder, key, chance)
    return out


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in list(entries):
        yield value, key
        yield from _places(below)


def _change(holder: Any, key: Any, chance: random.Random) -> None:
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
        holder[key] = value + str(chance.choice([each for each in VALUES if isinstance(each, str)]))
    elif kind == 3 and isinstance(value, int):
        holder[key] = value + chance.choice((-1, 1, 2**31, 2**63))
    elif kind == 4 and isinstance(value, list):
        holder[key] = value * chance.choice((0, 2, 40))
    else:
        holder[key] = copy.deepcopy(chance.choice(VALUES))
