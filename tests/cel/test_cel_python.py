from __future__ import annotations

import logging
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from kubectl_dra.cel.cel_python import Comparison, compare
from kubectl_dra.cel.environment import Environment
from kubectl_dra.cel.program import compile_expression

ENVIRONMENT = Environment.for_release("1.36")
A = 'device.attributes["d"]'
C = 'device.capacity["d"]'


def device(**attributes: Any) -> Any:
    return SimpleNamespace(
        driver="d",
        attributes=attributes,
        capacity={"memory": {"value": "40Gi"}},
        allow_multiple_allocations=False,
    )


DEVICES = [
    device(model={"string": "A100"}, index={"int": 3}, healthy={"bool": True}, fw={"version": "1.10.0"}),
    device(model={"string": "H100"}, index={"int": 4}, healthy={"bool": False}, fw={"version": "1.9.0"}),
    device(model={"string": "A100"}, index={"int": 3}, healthy={"bool": True}, fw={"version": "1.10.0"}),
    device(),
]


def opinion(text: str, devices: Any = DEVICES) -> Comparison:
    return compare(compile_expression(ENVIRONMENT, text), devices)


@pytest.mark.parametrize(
    "text",
    [
        'device.driver == "d"',
        f'{A}.model == "A100"',
        f'has({A}.model) && {A}.model.startsWith("A")',
        f"{A}.healthy",
        f"{A}.model",
        f"has({A}.index) ? {A}.index % 2 == 1 : false",
        f'{A}.fw.isGreaterThan(semver("1.9.5")) || true',
        f'{C}.memory.compareTo(quantity("40960Mi")) >= 0',
        f'{C}.memory == quantity("40Gi")',
        f'{A}.model.lowerAscii().matches("^a[0-9]+$")',
        f'{A}.exists(k, k == "model")',
        '"d" in device.attributes && !("e" in device.attributes)',
        'device.attributes["nosuch"].size() == 0',
        '["A100", "B200"].exists(m, m == device.driver)',
        f"[1, 2, 3].filter(i, i == {A}.index).size() == 1",
    ],
)
def test_it_agrees(text: str) -> None:
    assert opinion(text) == Comparison(len(DEVICES), (), 0, {})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f'{A}.?model.orValue("") == "A100"', "optional values"),
        (f'cel.bind(a, {A}, a.model == "A100")', "the macro bind"),
        ("device.attributes.all(d, m, m.size() > 0)", "all with two variables"),
        ("[1, 2].map(i, i > 1, i).size() == 1", "map with a filter"),
        ('sets.contains(["a"], ["a"])', "the function sets.contains"),
        ('"a".charAt(0) == "a"', "the function charAt"),
    ],
)
def test_it_says_what_it_cannot_run(text: str, reason: str) -> None:
    assert opinion(text) == Comparison(0, (), len(DEVICES), {reason: len(DEVICES)})


@pytest.mark.parametrize(
    ("text", "agree", "reasons"),
    [
        # cel-python has no equality between different types; with the attribute missing both report an error.
        (f'{A}.index == "3"', 1, {"cel-python refuses operands of different types": 3}),
        (f"{A}.index < 3.5", 1, {"cel-python refuses operands of different types": 3}),
        (f"{A}.index in ['3']", 1, {"cel-python refuses operands of different types": 3}),
        ("string(true) == 'true'", 0, {"cel-python converts with string() differently": 4}),
    ],
)
def test_known_weaknesses_are_no_differences(text: str, agree: int, reasons: dict[str, int]) -> None:
    assert opinion(text) == Comparison(agree, (), sum(reasons.values()), reasons)


def test_a_difference_is_found_and_names_all_its_devices() -> None:
    program = compile_expression(ENVIRONMENT, f'has({A}.model) && {A}.model == "A100"')

    class Mistaken:
        expression = program.expression
        ast = program.ast

        def evaluate(self, device: Any) -> bool:
            return not program.evaluate(device)

    found = compare(Mistaken(), DEVICES)  # type: ignore[arg-type]
    assert [(one.devices, one.ours, one.theirs) for one in found.differ] == [
        ((0, 2), False, True),
        ((1,), True, False),
        ((3,), True, False),
    ]
    assert found.agree == found.not_comparable == 0


def test_devices_that_fail_every_expression_agree() -> None:
    broken = [device(v={"version": "x"}), device(l={"strings": ["a"]})]
    assert opinion("true", broken).agree == 2


def test_nothing_is_left_changed() -> None:
    limit, disabled = sys.getrecursionlimit(), logging.root.manager.disable
    opinion(f"{A}.nosuch == 1")
    assert (sys.getrecursionlimit(), logging.root.manager.disable) == (limit, disabled)


def test_it_is_loaded_only_when_asked() -> None:
    code = "import sys, kubectl_dra.cel, kubectl_dra.cel.cel_python; sys.exit('celpy' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
