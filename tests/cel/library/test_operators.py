"""Operators: equality and order across types. What is expected here was answered by Kubernetes 1.36."""

from __future__ import annotations

import pytest

from tests.cel.library.support import failure, holds

TRUE = [
    "1 < 1.5",
    "2u > 1",
    "1.5 < 2u",
    "-1 < 0u",
    "9007199254740993 <= 9007199254740992.0",
    "18446744073709551615u > 9223372036854775807",
    '"a" < "b"',
    '"B" < "a"',
    '"é" > "z"',
    'b"a" < b"b"',
    "false < true",
    "dyn(1) == 1u",
    "dyn(1.0) == 1",
    "!(dyn(true) == 1)",
]

ERRORS = [
    ('double("NaN") < 1.0', "NaN values cannot be ordered"),
    ('1 < double("NaN")', "NaN values cannot be ordered"),
    ("dyn([1]) < 2", "no such overload: _<_"),
    ("!dyn(1)", "no such overload"),
]


@pytest.mark.parametrize("expression", TRUE)
def test_true(expression: str) -> None:
    assert holds(expression)


@pytest.mark.parametrize(("expression", "message"), ERRORS)
def test_errors(expression: str, message: str) -> None:
    assert message in failure(expression)
