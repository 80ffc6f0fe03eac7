"""Optionals, and maps made by macros. What is expected here was answered by Kubernetes 1.36."""

from __future__ import annotations

import pytest

from tests.cel.library.support import failure, holds

TRUE = [
    "optional.of(1).value() == 1",
    "!optional.none().hasValue()",
    "optional.of(null).hasValue()",
    '!optional.ofNonZeroValue("").hasValue()',
    "!optional.ofNonZeroValue(0).hasValue()",
    "!optional.ofNonZeroValue([]).hasValue()",
    "!optional.ofNonZeroValue(null).hasValue()",
    "optional.ofNonZeroValue(timestamp(0)).hasValue()",
    '!optional.ofNonZeroValue(timestamp("0001-01-01T00:00:00Z")).hasValue()',
    '!optional.ofNonZeroValue(duration("0")).hasValue()',
    'optional.ofNonZeroValue(quantity("0")).hasValue()',
    "!optional.ofNonZeroValue(-0.0).hasValue()",
    "optional.none().or(optional.of(2)).value() == 2",
    "optional.none().orValue(3) == 3",
    "optional.of(1).orValue(3) == 1",
    "[1, 2].first().value() == 1",
    "[1, 2].last().value() == 2",
    "![].first().hasValue()",
    "![].last().hasValue()",
    "optional.unwrap([optional.of(1), optional.none(), optional.of(2)]) == [1, 2]",
    "[optional.of(1)].unwrapOpt() == [1]",
    "optional.of(1) == optional.of(1)",
    "optional.of(1) != optional.of(2)",
    "optional.none() == optional.none()",
    '{"a": 1}.transformMap(k, v, v + 1) == {"a": 2}',
    "[5].transformMapEntry(i, v, {v: i}) == {5: 0}",
]

ERRORS = [
    ("optional.none().value() == 1", "optional.none() dereference"),
    ("[1, 1].transformMapEntry(i, v, {v: i}) == {}", "insert failed: key 1 already exists"),
    ("dyn([1]).unwrapOpt() == []", "no such overload: unwrapOpt(list)"),
]


@pytest.mark.parametrize("expression", TRUE)
def test_true(expression: str) -> None:
    assert holds(expression)


@pytest.mark.parametrize(("expression", "message"), ERRORS)
def test_errors(expression: str, message: str) -> None:
    assert message in failure(expression)
