"""Arithmetic with its limits. What is expected here was answered by Kubernetes 1.36."""

from __future__ import annotations

import pytest

from tests.cel.library.support import failure, holds

TRUE = [
    "1 + 2 * 3 == 7",
    "-7 / 2 == -3",
    "-7 % 2 == -1",
    "7u / 2u == 3u",
    '1.0 / 0.0 == double("Infinity")',
    '-1.0 / 0.0 == double("-Infinity")',
    "0.0 / 0.0 != 0.0 / 0.0",
    '"a" + "b" == "ab"',
    "[1] + [2] == [1, 2]",
    'b"a" + b"b" == b"ab"',
    "-(-9223372036854775807) == 9223372036854775807",
    'timestamp("2026-01-01T00:00:00Z") - timestamp("2025-12-31T00:00:00Z") == duration("24h")',
    'timestamp("2026-01-01T00:00:00Z") + duration("1h") > timestamp("2026-01-01T00:30:00Z")',
    'duration("1h") + timestamp("2026-01-01T00:00:00Z") - duration("1h") == timestamp("2026-01-01T00:00:00Z")',
    'duration("90m") - duration("1h") == duration("30m")',
]

ERRORS = [
    ("9223372036854775807 + 1 > 0", "integer overflow"),
    ("-9223372036854775808 - 1 < 0", "integer overflow"),
    ("-(-9223372036854775808) > 0", "integer overflow"),
    ("9223372036854775807 * 2 > 0", "integer overflow"),
    ("-9223372036854775808 / -1 > 0", "integer overflow"),
    ("0u - 1u == 0u", "unsigned integer overflow"),
    ("18446744073709551615u + 1u > 0u", "unsigned integer overflow"),
    ("1 / 0 == 1", "division by zero"),
    ("1 % 0 == 1", "modulus by zero"),
    ("1u / 0u == 1u", "division by zero"),
    ('timestamp("9999-12-31T23:59:59Z") + duration("1s") > timestamp(0)', "timestamp overflow"),
    ('timestamp("9999-12-31T23:59:59Z") - timestamp("0001-01-01T00:00:00Z") > duration("0")', "integer overflow"),
    ('dyn(1) + "a" == "2"', "no such overload"),
    ("dyn(null) + 1 == 2", "no such overload: _+_"),
    ('dyn("a") * 2 == 2', "no such overload"),
    ('-dyn("a") == 1', "no such overload"),
]


@pytest.mark.parametrize("expression", TRUE)
def test_true(expression: str) -> None:
    assert holds(expression)


@pytest.mark.parametrize(("expression", "message"), ERRORS)
def test_errors(expression: str, message: str) -> None:
    assert message in failure(expression)
