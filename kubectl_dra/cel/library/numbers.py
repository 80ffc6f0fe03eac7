"""Numbers, times and durations, parsed and printed like Go; and the functions that read parts of times."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import UTC, date
from decimal import Decimal

from kubectl_dra.cel.errors import EvaluationError
from kubectl_dra.cel.functions import Function, Overload
from kubectl_dra.cel.library.support import declared, member
from kubectl_dra.cel.types import DURATION, INT, STRING, TIMESTAMP
from kubectl_dra.cel.values import INT_MAX, INT_MIN, UINT_MAX, Duration, Timestamp
from kubectl_dra.text import whole_number

_SECOND = 10**9
YEAR_ONE = -62135596800 * _SECOND
"""0001-01-01T00:00:00Z in nanoseconds since 1970: the earliest timestamp."""
# Compiled when first used: most commands read no such text.
_DECIMAL = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_HEXADECIMAL = r"[+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+"
_SPECIAL = {"inf": math.inf, "infinity": math.inf, "nan": math.nan}
_TIMESTAMP = (
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{1,2}):([0-9]{2}):([0-9]{2})"
    r"(?:[.,]([0-9]+))?(?:Z|([+-])([0-9]{2}):([0-9]{2}))"
)
_DURATION_PART = r"([0-9]*)(?:(\.)([0-9]*))?([^.0-9]*)"
_UNITS = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": _SECOND,
    "m": 60 * _SECOND,
    "h": 3600 * _SECOND,
}
_DAYS_TO_EPOCH = date(1970, 1, 1).toordinal()
# Dates repeat after so many years and days, weekdays included.
_CYCLE_YEARS, _CYCLE_DAYS = 400, 146_097
_TRUE = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE = frozenset({"0", "f", "F", "false", "FALSE", "False"})


def parse_int(text: str) -> int | None:
    """A decimal 64-bit integer, or None."""
    value = whole_number(text[1:] if text[:1] in ("+", "-") else text, 20)
    if value is None:
        return None
    if text[0] == "-":
        value = -value
    return value if INT_MIN <= value <= INT_MAX else None


def parse_uint(text: str) -> int | None:
    """An unsigned decimal 64-bit integer without a sign, or None."""
    value = whole_number(text, 20)
    return value if value is not None and value <= UINT_MAX else None


def parse_bool(text: str) -> bool | None:
    return True if text in _TRUE else False if text in _FALSE else None


def parse_double(text: str) -> float | None:
    """A decimal or hexadecimal double, infinity or NaN; None for other texts and numbers too large."""
    special = _SPECIAL.get(text.lstrip("+-").lower())
    if special is not None and len(text) - len(text.lstrip("+-")) <= (special == special):
        return -special if text[0] == "-" else special
    if "_" in text:
        text = _without_underscores(text)
    if re.fullmatch(_DECIMAL, text):
        value = float(text)
        return None if math.isinf(value) else value
    if re.fullmatch(_HEXADECIMAL, text):
        try:
            return float.fromhex(text)
        except OverflowError:
            return None
    return None


def _without_underscores(text: str) -> str:
    """The text without underscores between digits; unchanged if any underscore is elsewhere."""
    body = text.lstrip("+-")
    prefixed = body[:2].lower() == "0x"
    digits = "0123456789abcdefABCDEF" if prefixed else "0123456789"
    previous = "0" if prefixed else ""
    rest = body[2:] if prefixed else body
    for index, character in enumerate(rest):
        if character == "_":
            following = rest[index + 1 : index + 2]
            if not previous or previous not in digits or not following or following not in digits:
                return text
        previous = character
    return text.replace("_", "")


def double_text(value: float) -> str:
    """Go's %g: the shortest digits, with an exponent from a million upward and below 0.0001."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(exponent, int)
    power = len(digits) - 1 + exponent
    if -5 < power < 6 or not value:
        return plain_double_text(value)
    first, *rest = map(str, digits)
    return f"{'-' * sign}{first}{'.' if rest else ''}{''.join(rest)}e{power:+03d}"


def plain_double_text(value: float) -> str:
    """The shortest digits, never with an exponent."""
    return f"{Decimal(repr(value)).normalize():f}"


# Durations.


def parse_duration(text: str) -> Duration | None:
    """A Go duration such as `1h30m`, `-1.5s` or `0`; None if malformed or beyond 64 bits."""
    negative = text[:1] == "-"
    rest = text[1:] if text[:1] in ("+", "-") else text
    if rest == "0":
        return Duration(0)
    if not rest:
        return None
    total = 0
    while rest:
        match = re.match(_DURATION_PART, rest)
        if match is None or (not match[1] and not match[3]) or match[4] not in _UNITS:
            return None
        part = _duration_part(match[1], match[3] or "", _UNITS[match[4]])
        if part is None:
            return None
        total += part
        if total > 2**63:
            return None
        rest = rest[match.end() :]
    if total > INT_MAX and not negative:
        return None
    return Duration(-total if negative else total)


def _duration_part(whole: str, fraction: str, unit: int) -> int | None:
    value = whole_number(whole or "0", 19)
    if value is None or value > 2**63 // unit:
        return None
    value *= unit
    if fraction:
        numerator, scale = 0, 1.0
        for digit in fraction:
            if numerator > INT_MAX // 10 or numerator * 10 + int(digit) > 2**63:
                break
            numerator = numerator * 10 + int(digit)
            scale *= 10
        if numerator:
            value += int(float(numerator) * (float(unit) / scale))
    return value if value <= 2**63 else None


def quotient(nanoseconds: int, unit: int) -> tuple[int, int]:
    """Quotient and remainder, truncated toward zero."""
    whole, rest = divmod(abs(nanoseconds), unit)
    return (whole, rest) if nanoseconds >= 0 else (-whole, -rest)


def duration_in(duration: Duration, unit: int) -> float:
    """The duration as a double, in units of the given number of nanoseconds."""
    whole, rest = quotient(duration.nanoseconds, unit)
    return float(whole) + float(rest) / unit


def duration_text(duration: Duration) -> str:
    """Seconds without an exponent, followed by `s`: `5400s`, `0.000000002s`."""
    return plain_double_text(duration_in(duration, _SECOND)) + "s"


# Timestamps.


def parse_timestamp(text: str) -> Timestamp | None:
    """An RFC 3339 time, or None. The caller checks that the year is within 0001 to 9999."""
    match = re.fullmatch(_TIMESTAMP, text)
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(match[group]) for group in range(1, 7))
    if not 1 <= month <= 12 or day < 1:
        return None
    try:
        days = _days(year, month, day)
    except ValueError:
        return None
    if hour > 23 or minute > 59 or second > 59:
        return None
    offset = 0
    if match[8]:
        hours, minutes = int(match[9]), int(match[10])
        if hours > 24 or minutes > 60:
            return None
        offset = (hours * 60 + minutes) * 60 * (-1 if match[8] == "-" else 1)
    seconds = days * 86400 + hour * 3600 + minute * 60 + second - offset
    fraction = int((match[7] or "")[:9].ljust(9, "0"))
    return Timestamp(seconds * _SECOND + fraction, offset)


def _days(year: int, month: int, day: int) -> int:
    """Days from 1970 to a date of the years from 0 on. Raises ValueError if there is no such date."""
    cycles, within = divmod(year, _CYCLE_YEARS)
    return date(within + _CYCLE_YEARS, month, day).toordinal() + (cycles - 1) * _CYCLE_DAYS - _DAYS_TO_EPOCH


class Calendar:
    """A point in time as date and clock of one time zone; `month` and `day` count from 1."""

    __slots__ = ("day", "hour", "minute", "month", "nanosecond", "second", "weekday", "year", "year_day")

    def __init__(self, timestamp: Timestamp, offset: int) -> None:
        seconds, self.nanosecond = divmod(timestamp.nanoseconds, _SECOND)
        days, clock = divmod(seconds + offset, 86400)
        self.hour, self.minute, self.second = clock // 3600, clock // 60 % 60, clock % 60
        # The hours of a time zone may lead out of the years that dates have.
        cycles, within = divmod(days + _DAYS_TO_EPOCH - 1, _CYCLE_DAYS)
        at = date.fromordinal(within + 1)
        self.year, self.month, self.day = at.year + cycles * _CYCLE_YEARS, at.month, at.day
        self.year_day = at.timetuple().tm_yday - 1
        self.weekday = at.isoweekday() % 7


def timestamp_text(timestamp: Timestamp) -> str:
    """RFC 3339 in the timestamp's original offset, with as many decimals as needed."""
    at = Calendar(timestamp, timestamp.offset)
    text = f"{at.year:04d}-{at.month:02d}-{at.day:02d}T{at.hour:02d}:{at.minute:02d}:{at.second:02d}"
    if at.nanosecond:
        text += f".{at.nanosecond:09d}".rstrip("0")
    if not timestamp.offset:
        return text + "Z"
    minutes = abs(timestamp.offset) // 60
    return f"{text}{'-' if timestamp.offset < 0 else '+'}{minutes // 60:02d}:{minutes % 60:02d}"


# Accessors of timestamps and durations.

_MILLISECOND = 10**6


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
