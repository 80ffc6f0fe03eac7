"""Kubernetes' own functions on lists. What is expected here was answered by Kubernetes 1.36."""

from __future__ import annotations

import pytest

from tests.cel.library.support import failure, holds

TRUE = [
    "[1, 2, 2].isSorted()",
    '!["b", "a"].isSorted()',
    "[].isSorted()",
    '[duration("1s"), duration("2s")].isSorted()',
    "[1, 2].sum() == 3",
    "[1.5, 2.5].sum() == 4.0",
    "[1u].sum() == 1u",
    '[duration("1m"), duration("1s")].sum() == duration("61s")',
    "[].sum() == 0",
    "[3, 1, 2].max() == 3",
    '["a", "c"].max() == "c"',
    "[2.5, 1.5].min() == 1.5",
    "[false, true].max()",
    "[1, 2, 2].indexOf(2) == 1",
    "[1, 2, 2].lastIndexOf(2) == 2",
    "[1].indexOf(5) == -1",
    "[[1], [2]].indexOf([2]) == 1",
    '"a".includes("a")',
    '["a", "b"].includes("b")',
    "![1].includes(2)",
    "dyn(1).includes(1.0)",
]

ERRORS = [
    ("[].max() == 1", "max called on empty list"),
    ("dyn([null]).max() == null", "no such overload: max(list)"),
    ('dyn(["a"]).sum() == "a"', "no such overload: sum(list)"),
    ("[9223372036854775807, 1].sum() > 0", "integer overflow"),
    ('dyn([dyn(1), dyn("a")]).sum() == 1', "no such overload"),
]


@pytest.mark.parametrize("expression", TRUE)
def test_true(expression: str) -> None:
    assert holds(expression)


@pytest.mark.parametrize(("expression", "message"), ERRORS)
def test_errors(expression: str, message: str) -> None:
    assert message in failure(expression)
