from __future__ import annotations

import gzip
import json
import re
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_dra.api.limits import MAX_EXPRESSION_COST
from kubectl_dra.cel.checker import Checked, check
from kubectl_dra.cel.closures import compile_closures
from kubectl_dra.cel.cost import estimate_cost
from kubectl_dra.cel.device import device_value
from kubectl_dra.cel.environment import Environment
from kubectl_dra.cel.errors import CostLimitExceeded, EvaluationError
from kubectl_dra.cel.known_sizes import UINT64_MAX, CostRange, scale
from kubectl_dra.cel.lexer import with_room
from kubectl_dra.cel.parser import parse
from kubectl_dra.cel.runtime_cost import CostMeter

DATA = Path(__file__).parents[1] / "conformance" / "data"
ENVIRONMENT = Environment.for_release("1.36")
A = 'device.attributes["d"]'
C = 'device.capacity["d"]'


def checked(text: str, environment: Environment = ENVIRONMENT) -> Checked:
    result = with_room(lambda: check(parse(text, environment.macros()).expression, environment))
    assert not result.issues, (text, result.issues)
    return result


def worst(text: str, environment: Environment = ENVIRONMENT) -> int:
    one = checked(text, environment)
    return estimate_cost(one.expression, one.node_types, one.overloads).max


@cache
def recorded() -> list[dict[str, Any]]:
    """What Kubernetes answered for the expressions that compile."""
    with gzip.open(DATA / "cel.jsonl.gz", "rt") as lines:
        return [line for line in map(json.loads, lines) if "compileError" not in line["expect"]]


@cache
def device_values() -> list[Any]:
    devices = json.loads((DATA / "cel-devices.json").read_text())
    return [
        device_value(
            SimpleNamespace(
                driver=device["driver"],
                attributes=device.get("attributes", {}),
                capacity=device.get("capacity", {}),
                allow_multiple_allocations=device.get("allowMultipleAllocations", False),
            )
        )
        for device in devices
    ]


# The arithmetic.


UINT64 = st.integers(0, UINT64_MAX)


@given(UINT64, UINT64, UINT64, UINT64)
def test_ranges_saturate(a: int, b: int, c: int, d: int) -> None:
    left, right = CostRange(a, b), CostRange(c, d)
    assert left.plus(right) == (min(a + c, UINT64_MAX), min(b + d, UINT64_MAX))
    assert left.times(right) == (min(a * c, UINT64_MAX), min(b * d, UINT64_MAX))
    assert left.union(right) == (min(a, c), max(b, d))


@pytest.mark.parametrize(
    ("size", "factor", "expected"),
    [
        (0, 0.1, 0),
        (1, 0.1, 1),
        (10, 0.1, 1),
        (11, 0.1, 2),
        (30, 0.1, 3),
        (64, 0.25, 16),
        (UINT64_MAX, 0.1, 1844674407370955264),
        (UINT64_MAX, 0.2, 3689348814741910528),
        (UINT64_MAX, 1, UINT64_MAX),
        (2**63, 2, UINT64_MAX),
    ],
)
def test_scaling_rounds_up_in_double_precision(size: int, factor: float, expected: int) -> None:
    assert scale(size, factor) == expected


# The estimate.


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("true", 0),
        ('device.driver == "dra.example.com"', 4),
        (f'{A}.model == "a100"', 5),
        (f'{A}.model.lowerAscii() == "a100"', 12),
        (f'{A}.model.matches("^a[0-9]+$")', 25),
        (f'{C}.memory.compareTo(quantity("40Gi")) >= 0', 7),
        (f'{C}.memory == quantity("1Gi")', 6),
        (f"has({A}.model)", 3),
        (f"{A}.exists(k, k.startsWith('mod'))", 196),
        (f'cel.bind(a, {A}, a.model == "a" && a.index == 3)', 19),
        (f"{A}.healthy ? 1 == 1 : 2 == 3", 5),
        ("device.attributes.all(d, device.attributes.all(e, d != e))", 12483),
        ("[1, 2, 3].exists(i, i == 2)", 29),
        ('["a", "bc"].map(s, s + "!").exists(s, s.size() > 2)', 64),
        ("[1].map(i, [i, i])[0] == [1, 1]", 57),
    ],
)
def test_estimates(text: str, expected: int) -> None:
    assert worst(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f'{A}.all(k, k.contains("x"))', 260),
        # With two variables cel-go gives the key the path, and so the size, of the value.
        (f'{A}.all(k, v, k.contains("x"))', 356),
        (f'{C}.all(k, v, k.contains("x"))', 132),
        ('device.attributes.all(k, v, k.contains("x"))', 355),
    ],
)
def test_paths_that_share_memory(text: str, expected: int) -> None:
    assert worst(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('dyn(["abc", "abcdefghijklm"]).exists(x, "abcdefghijklmnopqrstuvwxyz".contains(x))', 34),
        ('cel.bind(y, 1, ["abc", "abcdefghijklm"]).exists(x, "abcdefghijklmnopqrstuvwxyz".contains(x))', 43),
        ('dyn({"abcdefghijklm": 1}).exists(x, "abcdefghijklmnopqrstuvwxyz".contains(x))', 43),
    ],
)
def test_elements_keep_their_size_behind_dyn_and_bind(text: str, expected: int) -> None:
    assert worst(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        f'{C}.memory != quantity("1Gi")',
        '["a","b"].join("-") == "a-b"',
        f"type({A}.model) == string",
        'optional.of("a") == optional.of("a")',
        'ip("1.1.1.1") != ip("1.1.1.2")',
    ],
)
def test_unbounded_sizes_exceed_every_limit(text: str) -> None:
    assert worst(text) > 10**17 > MAX_EXPRESSION_COST


def test_list_attributes_have_sizes_too() -> None:
    lists = Environment.for_release("1.36", {"DRAConsumableCapacity", "DRAListTypeAttributes"})
    assert worst(f'{A}.models.includes("a")', lists) == 52
    assert worst(f'{A}.models.exists(m, m == "a")', lists) < MAX_EXPRESSION_COST


def test_deep_expressions_are_estimated() -> None:
    text = "!" + "(" * 200 + "device.allowMultipleAllocations" + ")" * 200
    assert worst(text) == 3
    assert worst("+".join(["1"] * 200) + " == 200") == 200


def test_every_recorded_estimate() -> None:
    wrong = []
    for line in recorded():
        got = worst(line["expression"])
        if got != line["expect"]["maxCost"]:
            wrong.append((line["expression"], got, line["expect"]["maxCost"]))
    assert not wrong


# The actual cost.

# The order of a Go map is random, so what a loop over a device's map costs is, too.
_LOOPS_OVER_DEVICE = re.compile(r"(attributes|capacity|\])(\.\w+)?\.(exists|all|exists_one|map|filter|transform)")


def actual(text: str, device: Any, limit: int = MAX_EXPRESSION_COST) -> int:
    meter = CostMeter(limit)
    closure, slots = compile_closures(checked(text), ENVIRONMENT, meter=meter)
    try:
        with_room(lambda: closure([device] + [None] * slots))
    except CostLimitExceeded:
        raise
    except EvaluationError:
        pass
    return meter.cost


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("true", 0),
        ('device.driver == "d"', 3),
        (f'{A}.model == "a100"', 5),
        (f'{A}.nosuch == "a100"', 5),
        (f'{A}.model in ["a100", "h100"]', 4),
        (f'{A}.model in [device.driver, "x"]', 18),
        (f"has({A}.model)", 3),
        ("has((device.driver == 'a' ? {'a': 1} : {'b': 1}).b)", 3),
        (f"{A}.?nosuch.orValue(1) == 1", 4),
        (f"{A}.?model.orValue('') == 'a100'", 5),
        (f'{A}[device.driver + "x"] == 1', 8),
        ("[[1, 2], [3]].size() == 2", 2),
        (f"[{A}.nosuch].size() == 1", 16),
        ("true ? 1 == 1 : 1 / 0 == 1", 1),
        (f'{A}.model.matches("a+") && false', 5),
    ],
)
def test_actual_costs(text: str, expected: int) -> None:
    device = device_value(
        SimpleNamespace(
            driver="d",
            attributes={"model": {"string": "a100"}},
            capacity={},
            allow_multiple_allocations=False,
        )
    )
    assert actual(text, device) == expected


def test_every_recorded_actual_cost() -> None:
    wrong = []
    for line in recorded():
        text, expect = line["expression"], line["expect"]
        if _LOOPS_OVER_DEVICE.search(text) or expect["maxCost"] > MAX_EXPRESSION_COST:
            continue
        got = [actual(text, device) for device in device_values()]
        if got != expect["costs"]:
            wrong.append((text, got, expect["costs"]))
    assert not wrong


def test_the_limit_stops_the_evaluation() -> None:
    text = "[1,2,3,4,5].all(a, [1,2,3,4,5].all(b, a + b > 0 || device.driver == 'x'))"
    cost = actual(text, device_values()[0])
    assert actual(text, device_values()[0], limit=cost) == cost
    with pytest.raises(CostLimitExceeded):
        actual(text, device_values()[0], limit=cost - 1)


def test_logic_does_not_absorb_the_limit() -> None:
    text = "[1,2,3,4,5].all(a, [1,2,3,4,5].all(b, a + b > 0)) || true"
    with pytest.raises(CostLimitExceeded):
        actual(text, device_values()[0], limit=50)
