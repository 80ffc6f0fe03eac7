"""cel-go's list extension. What is expected here was answered by Kubernetes 1.36."""

from __future__ import annotations

import pytest

from tests.cel.library.support import failure, holds

TRUE = [
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
]

ERRORS = [
    ("[1].slice(0, 2) == []", "cannot slice(0, 2), list is length 1"),
    ("[1].slice(1, 0) == []", "cannot slice(1, 0), start index must be less than or equal to end index"),
    ("[1].slice(-1, 0) == []", "cannot slice(-1, 0), negative indexes not supported"),
    ("dyn([1]).flatten(-1) == []", "level must be non-negative"),
    ('dyn([dyn(1), dyn("a")]).sort() == []', "list elements must have the same type"),
    ("dyn([[1], [2]]).sort() == []", "list elements must be comparable"),
    ("dyn(1).sort() == []", "no such overload: sort"),
]


@pytest.mark.parametrize("expression", TRUE)
def test_true(expression: str) -> None:
    assert holds(expression)


@pytest.mark.parametrize(("expression", "message"), ERRORS)
def test_errors(expression: str, message: str) -> None:
    assert message in failure(expression)
