"""Accessors of timestamps and durations."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC

from kubectl_dra.cel.errors import EvaluationError
from kubectl_dra.cel.functions import Function, Overload
from kubectl_dra.cel.library.numbers import Calendar, duration_in, quotient
from kubectl_dra.cel.library.support import declared, member
from kubectl_dra.cel.types import DURATION, INT, STRING, TIMESTAMP
from kubectl_dra.cel.values import Duration, Timestamp
from kubectl_dra.text import whole_number

_MILLISECOND = 10**6
_SECOND = 10**9


def _offset(timestamp: Timestamp, zone: str) -> int:
    """Seconds east of UTC at that moment, for an IANA time zone or an offset such as +05:30."""
    hours, colon, minutes = zone.partition(":")
    if not colon:
        return 0 if zone in ("", "UTC") else _named_offset(timestamp, zone)
    hour, minute = _integer(hours), _integer(minutes)
    return (hour * 60 - minute if zone[0] == "-" else hour * 60 + minute) * 60


def _integer(text: str) -> int:
    digits = text[1:] if text[:1] in ("+", "-") else text
    number = whole_number(digits)
    if number is None:
        why = "value out of range" if digits.isascii() and digits.isdigit() else "invalid syntax"
        raise EvaluationError(f'strconv.Atoi: parsing "{text}": {why}')
    return -number if text[0] == "-" else number


def _named_offset(timestamp: Timestamp, zone: str) -> int:
    from datetime import datetime, timedelta
    from zoneinfo import ZoneInfo

    if ".." in zone or zone[0] in "/\\":
        raise EvaluationError("time: invalid location name")
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    moment = epoch + timedelta(seconds=timestamp.nanoseconds // _SECOND)
    try:
        known = None if zone == "Local" else ZoneInfo(zone)
    except (KeyError, OSError, ValueError):
        raise EvaluationError(f"unknown time zone {zone}") from None
    try:
        at = moment.astimezone(known)
    except OverflowError:
        # The first or last hours there are, which no date here tells elsewhere; a day nearer the offset is the same.
        at = (moment + timedelta(days=1 if moment.year == 1 else -1)).astimezone(known)
    offset = at.utcoffset()
    return 0 if offset is None else round(offset.total_seconds())


def _accessor(suffix: str, part: Callable[[Calendar], int], zoned: str = "with_tz") -> list[Overload]:
    def in_utc(timestamp: Timestamp) -> int:
        return part(Calendar(timestamp, 0))

    def in_zone(timestamp: Timestamp, zone: str) -> int:
        return part(Calendar(timestamp, _offset(timestamp, zone)))

    id = f"timestamp_to_{suffix}"
    return [member(id, (TIMESTAMP,), INT, in_utc), member(f"{id}_{zoned}", (TIMESTAMP, STRING), INT, in_zone)]


def _of_duration(suffix: str, whole: Callable[[Duration], int]) -> Overload:
    return member(f"duration_to_{suffix}", (DURATION,), INT, whole)


def functions() -> list[Function]:
    return declared(
        "timestamps and durations",
        {
            "getFullYear": _accessor("year", lambda at: at.year),
            "getMonth": _accessor("month", lambda at: at.month - 1),
            "getDayOfYear": _accessor("day_of_year", lambda at: at.year_day),
            "getDayOfMonth": _accessor("day_of_month", lambda at: at.day - 1),
            "getDate": _accessor("day_of_month_1_based", lambda at: at.day),
            "getDayOfWeek": _accessor("day_of_week", lambda at: at.weekday),
            "getHours": [
                *_accessor("hours", lambda at: at.hour),
                _of_duration("hours", lambda duration: int(duration_in(duration, 3600 * _SECOND))),
            ],
            "getMinutes": [
                *_accessor("minutes", lambda at: at.minute),
                _of_duration("minutes", lambda duration: int(duration_in(duration, 60 * _SECOND))),
            ],
            "getSeconds": [
                *_accessor("seconds", lambda at: at.second, "tz"),
                _of_duration("seconds", lambda duration: int(duration_in(duration, _SECOND))),
            ],
            "getMilliseconds": [
                *_accessor("milliseconds", lambda at: at.nanosecond // _MILLISECOND),
                _of_duration("milliseconds", lambda duration: quotient(duration.nanoseconds, _MILLISECOND)[0]),
            ],
        },
    )
