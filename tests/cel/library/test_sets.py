"""Lists taken as sets. What is expected here was answered by Kubernetes 1.36."""

from __future__ import annotations

import pytest

from tests.cel.library.support import holds

TRUE = [
    "sets.contains([1, 2, 3], [3, 1])",
    "sets.contains([1], [])",
    "!sets.contains([1], [2])",
    "sets.equivalent([1, 2, 2], [2, 1])",
    "sets.equivalent([], [])",
    "!sets.equivalent([1], [1, 2])",
    "sets.intersects([1, 2], [2, 3])",
    "!sets.intersects([1], [])",
    "sets.contains(dyn([1]), dyn([1.0]))",
]


@pytest.mark.parametrize("expression", TRUE)
def test_true(expression: str) -> None:
    assert holds(expression)
