"""Parts of timestamps and durations. What is expected here was answered by Kubernetes 1.36."""

from __future__ import annotations

import pytest

from tests.cel.library.support import failure, holds

TRUE = [
    'timestamp("2024-02-29T23:59:58.999Z").getFullYear() == 2024',
    'timestamp("2024-02-29T23:59:58.999Z").getMonth() == 1',
    'timestamp("2024-02-29T23:59:58.999Z").getDate() == 29',
    'timestamp("2024-02-29T23:59:58.999Z").getDayOfMonth() == 28',
    'timestamp("2024-02-29T23:59:58.999Z").getDayOfYear() == 59',
    'timestamp("2024-02-29T23:59:58.999Z").getDayOfWeek() == 4',
    'timestamp("2024-02-29T23:59:58.999Z").getHours() == 23',
    'timestamp("2024-02-29T23:59:58.999Z").getMinutes() == 59',
    'timestamp("2024-02-29T23:59:58.999Z").getSeconds() == 58',
    'timestamp("2024-02-29T23:59:58.999Z").getMilliseconds() == 999',
    'timestamp("2024-02-29T23:59:58.999Z").getDate("+00:30") == 1',
    'timestamp("2024-02-29T23:59:58.999Z").getMonth("00:30") == 2',
    'timestamp("2024-02-29T23:59:58.999Z").getHours("-02:15") == 21',
    'timestamp("2024-02-29T23:59:58.999Z").getMinutes("-02:15") == 44',
    'timestamp("2026-07-01T12:00:00Z").getHours("Europe/Berlin") == 14',
    'timestamp("2026-01-01T12:00:00Z").getHours("Europe/Berlin") == 13',
    'timestamp("2024-02-29T23:59:58.999Z").getHours("UTC") == 23',
    'timestamp("2024-02-29T23:59:58.999Z").getHours("") == 23',
    'timestamp("2026-01-01T00:00:00+05:30").getHours() == 18',
    'timestamp("0001-01-01T00:00:00Z").getDayOfWeek() == 1',
    'timestamp("9999-12-31T00:00:00Z").getDayOfYear() == 364',
    'timestamp("0001-01-01T00:00:00Z").getFullYear("America/New_York") == 0',
    'timestamp("0001-01-01T00:00:00Z").getMinutes("America/New_York") == 3',
    'timestamp("9999-12-31T23:59:59Z").getHours("Asia/Kolkata") == 5',
    'duration("-90m").getHours() == -1',
    'duration("90s").getMinutes() == 1',
    'duration("1.9s").getSeconds() == 1',
    'duration("1.9s").getMilliseconds() == 1900',
]

ERRORS = [
    ('timestamp("2024-02-29T23:59:58.999Z").getHours("Nowhere/City") == 1', "unknown time zone Nowhere/City"),
    ('timestamp("2024-02-29T23:59:58.999Z").getHours("x:00") == 1', 'strconv.Atoi: parsing "x": invalid syntax'),
    ('timestamp("2024-02-29T23:59:58.999Z").getHours("../UTC") == 1', "time: invalid location name"),
]


@pytest.mark.parametrize("expression", TRUE)
def test_true(expression: str) -> None:
    assert holds(expression)


@pytest.mark.parametrize(("expression", "message"), ERRORS)
def test_errors(expression: str, message: str) -> None:
    assert message in failure(expression)
