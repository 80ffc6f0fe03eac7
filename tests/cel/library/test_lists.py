"""Functions on lists, and sets. What is expected here was answered by Kubernetes 1.36."""

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
    "[1, 2, 3, 4].slice(1, 3) == [2, 3]",
    "[1].slice(1, 1) == []",
    "[[[1]], [[2], [3]]].flatten() == [[1], [2], [3]]",
    "[[[1]], [[2], [3]]].flatten(2) == [1, 2, 3]",
    "[dyn(1), dyn([2, 3])].flatten(1) == [1, 2, 3]",
    "dyn([1, 2]).flatten() == [1, 2]",
    "[[1], [2]].flatten(0) == [[1], [2]]",
    "[3, 1, 2].sort() == [1, 2, 3]",
    '["b", "a"].sort() == ["a", "b"]',
    "[].sort() == []",
    '["bb", "a", "cc", "d"].sortBy(s, s.size()) == ["a", "d", "bb", "cc"]',
    "[1, 2, 1, 3, 2].distinct() == [1, 2, 3]",
    "[dyn(1), dyn(1.0), dyn(1u)].distinct().size() == 1",
    "[1, 2].reverse() == [2, 1]",
    "lists.range(3) == [0, 1, 2]",
    "lists.range(0) == []",
    "lists.range(-1) == []",
    "sets.contains([1, 2, 3], [3, 1])",
    "sets.contains([1], [])",
    "!sets.contains([1], [2])",
    "sets.equivalent([1, 2, 2], [2, 1])",
    "sets.equivalent([], [])",
    "!sets.equivalent([1], [1, 2])",
    "sets.intersects([1, 2], [2, 3])",
    "!sets.intersects([1], [])",
    "sets.contains(dyn([1]), dyn([1.0]))",
    '"a".includes("a")',
    '["a", "b"].includes("b")',
    "![1].includes(2)",
    "dyn(1).includes(1.0)",
]

ERRORS = [
    ("[].max() == 1", "max called on empty list"),
    ("[1].slice(0, 2) == []", "cannot slice(0, 2), list is length 1"),
    ("[1].slice(1, 0) == []", "cannot slice(1, 0), start index must be less than or equal to end index"),
    ("[1].slice(-1, 0) == []", "cannot slice(-1, 0), negative indexes not supported"),
    ("dyn([1]).flatten(-1) == []", "level must be non-negative"),
    ('dyn([dyn(1), dyn("a")]).sort() == []', "list elements must have the same type"),
    ("dyn([[1], [2]]).sort() == []", "list elements must be comparable"),
    ("dyn([null]).max() == null", "no such overload: max(list)"),
    ('dyn(["a"]).sum() == "a"', "no such overload: sum(list)"),
    ("[9223372036854775807, 1].sum() > 0", "integer overflow"),
    ("dyn(1).sort() == []", "no such overload: sort"),
    ('dyn([dyn(1), dyn("a")]).sum() == 1', "no such overload"),
]


@pytest.mark.parametrize("expression", TRUE)
def test_true(expression: str) -> None:
    assert holds(expression)


@pytest.mark.parametrize(("expression", "message"), ERRORS)
def test_errors(expression: str, message: str) -> None:
    assert message in failure(expression)
