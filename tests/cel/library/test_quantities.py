"""Quantities in expressions. What is expected here was answered by Kubernetes 1.36."""

from __future__ import annotations

import pytest

from tests.cel.library.support import failure, holds

TRUE = [
    'quantity("1Gi") == quantity("1024Mi")',
    'quantity("1Gi") != quantity("1G")',
    'isQuantity("1.5G")',
    '!isQuantity("200K")',
    '!isQuantity("")',
    'isQuantity("1e3")',
    '!isQuantity("1,5")',
    'quantity("50k").add(20).sub(quantity("100k")).sub(-50000) == quantity("20")',
    'quantity("200M").compareTo(quantity("0.2G")) == 0',
    'quantity("50M").compareTo(quantity("50Mi")) == -1',
    'quantity("1Gi").isGreaterThan(quantity("1G"))',
    'quantity("1").isLessThan(quantity("1001m"))',
    'sign(quantity("-1")) == -1',
    'sign(quantity("0")) == 0',
    'sign(quantity("1n")) == 1',
    'quantity("50k").isInteger()',
    'quantity("50k").asInteger() == 50000',
    '!quantity("1.5Gi").isInteger()',
    '!quantity("1000m").isInteger()',
    'quantity("1500m").asApproximateFloat() == 1.5',
    'cel.bind(q, quantity("1Gi"), q.compareTo(quantity("1.5Gi")) < 0 && !q.isInteger())',
    'cel.bind(q, quantity("1Gi"), q != quantity("1.5Gi") && q.isInteger())',
]

ERRORS = [
    ('quantity("200K") == quantity("1")', "unable to parse quantity's suffix"),
    ('quantity("1500m").asInteger() == 1', "cannot convert value to integer"),
    ('quantity("2") == quantity("1").add(1)', "no such overload"),
    ('quantity("9999999999999999999999G").asInteger() > 0', "cannot convert value to integer"),
    ('quantity("1") == dyn("1")', "no such overload"),
]


@pytest.mark.parametrize("expression", TRUE)
def test_true(expression: str) -> None:
    assert holds(expression)


@pytest.mark.parametrize(("expression", "message"), ERRORS)
def test_errors(expression: str, message: str) -> None:
    assert message in failure(expression)
