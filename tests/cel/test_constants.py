"""Parts that read nothing are found exactly where evaluating them fails, for every function that takes texts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kubectl_dra.cel import CompileError, EvaluationError
from kubectl_dra.cel.constants import failing_constants
from kubectl_dra.cel.environment import Environment
from kubectl_dra.cel.library import table
from kubectl_dra.cel.program import Program, compile_expression
from kubectl_dra.cel.types import STRING

ENVIRONMENT = Environment.for_release()
TEXTS = (
    *("", "1", "1.2.3", "1.2", "v1.2.3", "40Gi", "40GB", "40 Gi", "1e3", "-5", "0x10", "x", "true", "True", "NaN"),
    *("10.0.0.1", "10.0.0", "::1", "10.0.0.0/8", "10.0.0.0/99", "https://a.example/x", "::", "1h", "1 hour", "a["),
    *("2024-01-01T00:00:00Z", "2024-13-01", "Zm9v", "dns1123Label", "é", "%s"),
)


def calls() -> Iterator[str]:
    """Every call of a function with nothing but texts."""
    for name in table():
        for overload in ENVIRONMENT.overloads(name) or ():
            if not name[0].isalpha() or not overload.parameters or {*overload.parameters} != {STRING}:
                continue
            for text in TEXTS:
                first, *others = (f'"{text}"' for _ in overload.parameters)
                more = ", ".join(others)
                yield f"{first}.{name}({more})" if overload.member else f"{name}({', '.join((first, *others))})"


def compiled(expression: str) -> Program | None:
    try:
        return compile_expression(ENVIRONMENT, expression)
    except CompileError:
        return None


def fails(program: Program) -> bool:
    try:
        program.evaluate_raw({})
    except EvaluationError:
        return True
    return False


def test_all_that_fails_is_found_and_nothing_else() -> None:
    tried = failing = 0
    for call in calls():
        program = compiled(f"[{call}].size() == 1")
        if program is None:
            continue
        tried += 1
        found = failing_constants(program)
        assert bool(found) == fails(program), call
        assert [one.written for one in found] in ([], [call])
        failing += len(found)
    assert tried > 400
    assert failing > 150


def test_it_is_found_wherever_it_stands() -> None:
    for around in (
        "{} == quantity('1')",
        "device.driver == 'x' && {}.isLessThan(quantity('1'))",
        "device.driver == 'x' ? {}.isLessThan(quantity('1')) : false",
        "[1, 2].exists(n, {}.asInteger() > n)",
        "{{'a': {}}}.size() == 1",
        "device.capacity['x'].exists(name, device.capacity['x'][name].compareTo({}) > 0)",
    ):
        program = compiled(around.format('quantity("40GB")'))
        assert program is not None, around
        assert [one.written for one in failing_constants(program)] == ['quantity("40GB")'], around


@pytest.mark.parametrize(
    ("written", "instead"),
    [
        ('quantity("40GB")', ['quantity("40G")', 'quantity("40Gi")']),
        ('quantity("40gb")', ['quantity("40G")', 'quantity("40Gi")']),
        ("quantity('40 GiB')", ["quantity('40Gi')"]),
        ('quantity("512MiB")', ['quantity("512Mi")']),
        ('quantity("64 KB")', ['quantity("64k")', 'quantity("64Ki")']),
        ('quantity("1,5Gi")', ['quantity("1.5Gi")']),
        ('quantity("1024B")', ['quantity("1024")']),
        ('quantity("40 gibibytes")', []),
        ('quantity("")', []),
        ('semver("12")', ['semver("12.0.0")']),
        ('semver("v535.129.3")', ['semver("535.129.3")']),
        ('semver("535.129.03")', ['semver("535.129.3")']),
        ('semver("1.x")', []),
        ('ip("10.0.0")', []),
    ],
)
def test_what_may_be_meant(written: str, instead: list[str]) -> None:
    program = compiled(f"{written} == {written}")
    assert program is not None
    first, second = failing_constants(program)
    assert list(first.instead) == list(second.instead) == instead
    for text in instead:
        replaced = compiled(f"{text} == {text}")
        assert replaced is not None
        assert failing_constants(replaced) == ()
