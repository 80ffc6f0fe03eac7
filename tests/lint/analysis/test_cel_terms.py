"""Comparisons, and which of them exclude each other."""

from __future__ import annotations

import pytest

from kubectl_dra.cel import Environment, compile_expression
from kubectl_dra.lint.analysis.cel_terms import comparisons, contradiction, demands

A = 'device.attributes["d.example.com"]'
C = 'device.capacity["d.example.com"]'


def read(expression: str) -> list[tuple[str | None, str, list[str]]]:
    program = compile_expression(Environment.for_release("1.36"), expression)
    return [(one.column.id, one.operator, [value.text for value in one.constants]) for one in comparisons(program)]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (f'{A}.model == "a"', [("model", "==", ["a"])]),
        (f'"a" == {A}.model', [("model", "==", ["a"])]),
        (f"3 < {A}.slot", [("slot", ">", ["3"])]),
        (f"{A}.slot == -3", [("slot", "==", ["-3"])]),
        (f'{A}.model in ["a", "b"]', [("model", "in", ["a", "b"])]),
        (f'{C}.memory.isGreaterThan(quantity("4Gi"))', [("memory", ">", ["4Gi"])]),
        (f'{C}.memory.compareTo(quantity("4Gi")) >= 0', [("memory", ">=", ["4Gi"])]),
        (f'{C}.memory.compareTo(quantity("4Gi")) == -1', [("memory", "<", ["4Gi"])]),
        (f'{A}.fw == semver("1.2.3")', [("fw", "==", ["1.2.3"])]),
        (f'cel.bind(a, {A}, a.model == "a")', [("model", "==", ["a"])]),
        (f'{A}.?model.orValue("") == "a"', [("model", "==", ["a"])]),
        (f'{A}.model.lowerAscii() == "a"', []),
        (f"{A}.model == {A}.other", []),
    ],
)
def test_reads_comparisons(expression: str, expected: list[tuple[str | None, str, list[str]]]) -> None:
    assert read(expression) == expected


@pytest.mark.parametrize(
    ("first", "second", "excluded"),
    [
        (f'{A}.m == "a"', f'{A}.m == "b"', True),
        (f'{A}.m == "a"', f'{A}.m != "a"', True),
        (f'{A}.m == "a"', f'{A}.n == "b"', False),
        (f'{A}.m in ["a", "b"]', f'{A}.m == "b"', False),
        (f'{A}.m in ["a", "b"]', f'{A}.m in ["c"]', True),
        (f"{A}.i > 3", f"{A}.i < 3", True),
        (f"{A}.i >= 3", f"{A}.i <= 3", False),
        (f"{A}.i > 3", f"{A}.i <= 3", True),
        (f"{A}.i == 3", f"{A}.i > 2.5", False),
        (f'{C}.m.isGreaterThan(quantity("1Gi"))', f'{C}.m.isLessThan(quantity("1024Mi"))', True),
        (f'{C}.m.isGreaterThan(quantity("1G"))', f'{C}.m.isLessThan(quantity("1Gi"))', False),
        (f'{A}.m != "a"', f'{A}.m != "b"', False),
    ],
)
def test_contradictions(first: str, second: str, excluded: bool) -> None:
    program = compile_expression(Environment.for_release("1.36"), f"{first} && {second}")
    left, right = demands(program)
    assert contradiction(left, right) is excluded
    assert contradiction(right, left) is excluded


def test_alternatives_demand_nothing() -> None:
    assert not list(demands(compile_expression(Environment.for_release("1.36"), f'{A}.m == "a" || {A}.m == "b"')))
