from __future__ import annotations

from datetime import UTC, datetime

import pytest

from kubectl_dra.errors import UsageError
from kubectl_dra.taint import typed as times


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("90s", 90), ("1h30m", 5400), ("2d", 172800), ("1.5h", 5400), ("0", 0), ("250ms", 0.25)],
)
def test_seconds(text: str, seconds: float) -> None:
    assert times.seconds(text, "--wait") == seconds


@pytest.mark.parametrize("text", ["", "h", "4 h", "-1s", "1w", "4hours", "٤h", "99999d", "1e9"])
def test_not_a_duration(text: str) -> None:
    with pytest.raises(UsageError, match="--wait"):
        times.seconds(text, "--wait")


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (330, "5m30s"),
        (3599, "59m"),
        (3600, "1h"),
        (5400, "1h30m"),
        (200000, "2d"),
    ],
)
def test_span(seconds: float, shown: str) -> None:
    assert times.span(seconds) == shown


def test_times_of_the_api() -> None:
    time = datetime(2026, 11, 21, 10, 0, 5, tzinfo=UTC)
    assert times.parse(times.stamp(time)) == time
    assert times.stamp(times.later(time, 3600)) == "2026-11-21T11:00:05Z"
    assert times.age("2026-11-21T09:00:05Z", time) == "1h"
    for text in ("", "yesterday", "2026-11-21T09:00:05"):
        assert times.parse(text) is None and times.age(text, time) == "unknown"
