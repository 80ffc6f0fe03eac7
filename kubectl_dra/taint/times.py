"""Durations as people write them, and times of the API."""

from __future__ import annotations

import math
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

    Raises UsageError: anything else, or more than ten years.
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


def is_duration(word: str) -> bool:
    """Whether it is a number with a unit, such as ``90s`` or ``1h30m``, and nothing else."""
    return bool(word) and not _PART.sub("", word)


def now() -> datetime:
    """The current time, in UTC."""
    return datetime.now(UTC)


def later(time: datetime, by_seconds: float) -> datetime:
    """The time that many seconds later."""
    return time + timedelta(seconds=by_seconds)


def span(total: float) -> str:
    """A duration as kubectl writes ages (k8s.io/apimachinery/pkg/util/duration, HumanDuration)."""
    seconds = max(0, math.trunc(total))
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if seconds < 120:
        return f"{seconds}s"
    if minutes < 10:
        return _two(minutes, "m", seconds % 60, "s")
    if hours < 3:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return _two(days, "d", hours % 24, "h")
    if days < 2 * 365:
        return f"{days}d"
    years = days // 365
    return _two(years, "y", days % 365, "d") if years < 8 else f"{years}y"


def _two(first: int, unit: str, rest: int, smaller: str) -> str:
    return f"{first}{unit}{rest}{smaller}" if rest else f"{first}{unit}"


def age(since: str, at: datetime) -> str:
    """Time since a time of the API; ``unknown`` if it is invalid."""
    time = parse(since)
    return "unknown" if time is None else span((at - time).total_seconds())
