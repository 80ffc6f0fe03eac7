"""What 1.37 answers otherwise than the releases before it."""

from __future__ import annotations

import pytest

from kubectl_dra.cel import EvaluationError
from tests.cel.library.support import holds

BEFORE = [
    'cel.bind(q, quantity("1.5Gi"), q.add(1).compareTo(q) == 0)',
    '"hello".indexOf("", 99) == 99',
    "lists.range(-1) == []",
]


@pytest.mark.parametrize("expression", BEFORE)
def test_it_is_true_up_to_1_36_only(expression: str) -> None:
    assert holds(expression, "1.36")
    try:
        assert not holds(expression, "1.37")
    except EvaluationError as error:
        assert "lists.range" in error.message


def test_the_new_answers() -> None:
    assert holds('cel.bind(q, quantity("1.5Gi"), q.add(1).compareTo(q) > 0)')
    assert holds('"hello".indexOf("", 99) == 5')
