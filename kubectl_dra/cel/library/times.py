"""Accessors of timestamps and durations."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC

from kubectl_dra.cel.errors import EvaluationError
from kubectl_dra.cel.functions import Function, Overload
from kubectl_dra.cel.library.numbers import Calendar, duration_in
from kubectl_dra.cel.library.support import function, member
from kubectl_dra.cel.types import DURATION, INT, STRING, TIMESTAMP
from kubectl_dra.cel.values import Duration, Timestamp

_LIBRARY = "timestamps and durations"
_MILLISECOND = 10**6
_SECOND = 10**9
_AT = 'timestamp("2026-03-01T10:20:30.040Z")'


def _offset(timestamp: Timestamp, zone: str) -> int:
    """Seconds east of UTC at that moment, for an IANA time zone or an offset such as +05:30."""
    hours, colon, minutes = zone.partition(":")
    if not colon:
        return 0 if zone in ("", "UTC") else _named_offset(timestamp, zone)
    hour, minute = _integer(hours), _integer(minutes)
    return (hour * 60 - minute if zone[0] == "-" else hour * 60 + minute) * 60


def _integer(text: str) -> int:
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not digits.isascii() or not digits.isdigit():
        raise EvaluationError(f'strconv.Atoi: parsing "{text}": invalid syntax')
    return int(text)


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


def _accessor(name: str, suffix: str, part: Callable[[Calendar], int], zoned_id: str | None = None) -> list[Overload]:
    def in_utc(timestamp: Timestamp) -> int:
        return part(Calendar(timestamp, 0))

    def in_zone(timestamp: Timestamp, zone: str) -> int:
        return part(Calendar(timestamp, _offset(timestamp, zone)))

    id = f"timestamp_to_{suffix}"
    return [
        member(id, (TIMESTAMP,), INT, in_utc),
        member(zoned_id or f"{id}_with_tz", (TIMESTAMP, STRING), INT, in_zone),
    ]


def _of_duration(suffix: str, unit: int) -> Overload:
    def whole(duration: Duration) -> int:
        return int(duration_in(duration, unit))

    return member(f"duration_to_{suffix}", (DURATION,), INT, whole)


def _duration_milliseconds(duration: Duration) -> int:
    whole = abs(duration.nanoseconds) // _MILLISECOND
    return whole if duration.nanoseconds >= 0 else -whole


def functions() -> list[Function]:
    def accessor(name: str, documentation: str, example: str, overloads: list[Overload]) -> Function:
        return function(name, _LIBRARY, documentation, (_AT + example,), overloads)

    return [
        accessor(
            "getFullYear",
            "The year, in UTC or a named time zone.",
            ".getFullYear() == 2026",
            _accessor("getFullYear", "year", lambda at: at.year),
        ),
        accessor(
            "getMonth",
            "The month, 0 to 11.",
            ".getMonth() == 2",
            _accessor("getMonth", "month", lambda at: at.month - 1),
        ),
        accessor(
            "getDayOfYear",
            "The day of the year, from 0.",
            ".getDayOfYear() == 59",
            _accessor("getDayOfYear", "day_of_year", lambda at: at.year_day),
        ),
        accessor(
            "getDayOfMonth",
            "The day of the month, from 0.",
            ".getDayOfMonth() == 0",
            _accessor("getDayOfMonth", "day_of_month", lambda at: at.day - 1),
        ),
        accessor(
            "getDate",
            "The day of the month, from 1.",
            ".getDate() == 1",
            _accessor("getDate", "day_of_month_1_based", lambda at: at.day),
        ),
        accessor(
            "getDayOfWeek",
            "The day of the week, Sunday is 0.",
            ".getDayOfWeek() == 0",
            _accessor("getDayOfWeek", "day_of_week", lambda at: at.weekday),
        ),
        accessor(
            "getHours",
            "The hour of a timestamp, or the whole hours of a duration.",
            '.getHours("+02:00") == 12',
            [*_accessor("getHours", "hours", lambda at: at.hour), _of_duration("hours", 3600 * _SECOND)],
        ),
        accessor(
            "getMinutes",
            "The minute of a timestamp, or the whole minutes of a duration.",
            ".getMinutes() == 20",
            [
                *_accessor("getMinutes", "minutes", lambda at: at.minute),
                _of_duration("minutes", 60 * _SECOND),
            ],
        ),
        accessor(
            "getSeconds",
            "The second of a timestamp, or the whole seconds of a duration.",
            ".getSeconds() == 30",
            [
                *_accessor("getSeconds", "seconds", lambda at: at.second, "timestamp_to_seconds_tz"),
                _of_duration("seconds", _SECOND),
            ],
        ),
        accessor(
            "getMilliseconds",
            "The milliseconds within the second of a timestamp, or all milliseconds of a duration.",
            ".getMilliseconds() == 40",
            [
                *_accessor("getMilliseconds", "milliseconds", lambda at: at.nanosecond // _MILLISECOND),
                member("duration_to_milliseconds", (DURATION,), INT, _duration_milliseconds),
            ],
        ),
    ]
