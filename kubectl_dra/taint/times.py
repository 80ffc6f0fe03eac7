"""Durations as people write them, and times of the API."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from kubectl_dra.cluster.time_read import parse as parse
from kubectl_dra.cluster.time_read import stamp as stamp
from kubectl_dra.errors import UsageError
from kubectl_dra.text import whole_number

_PART = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,6})?)(ms|[smhd])", re.ASCII)
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
LONGEST = 10 * 365 * 86400.0
FOREVER = "forever"
"""A wait without a limit."""


def seconds(text: str, flag: str) -> float:
    """A duration such as ``90s``, ``1h30m``, ``2d`` or plain seconds.

    Raises:
        UsageError: anything else, or more than ten years.
    """
    stripped = text.strip()
    plain = whole_number(stripped, 11)
    if plain is not None:
        total = float(plain)
    else:
        parts = _PART.findall(stripped)
        if not parts or "".join(number + unit for number, unit in parts) != stripped:
            raise UsageError(f'{flag}: "{text}" is not a duration such as 90s, 30m, 4h or 2d')
        total = sum(float(number) * _SECONDS[unit] for number, unit in parts)
    if total > LONGEST:
        raise UsageError(f"{flag}: {text} is more than ten years")
    return total


def now() -> datetime:
    """The current time, in UTC."""
    return datetime.now(UTC)


def later(time: datetime, by_seconds: float) -> datetime:
    """The time that many seconds later."""
    return time + timedelta(seconds=by_seconds)


def span(total: float) -> str:
    """A duration in kubectl's short form: the two largest units."""
    seconds = max(0, round(total))
    if seconds < 120:
        return f"{seconds}s"
    if seconds < 3600:
        minutes, rest = divmod(seconds, 60)
        return f"{minutes}m{rest}s" if rest and minutes < 10 else f"{minutes}m"
    if seconds < 48 * 3600:
        hours, rest = divmod(seconds // 60, 60)
        return f"{hours}h{rest}m" if rest else f"{hours}h"
    return f"{seconds // 86400}d"


def age(since: str, at: datetime) -> str:
    """How long ago a time of the API is; ``unknown`` if it is invalid."""
    time = parse(since)
    return "unknown" if time is None else span((at - time).total_seconds())
