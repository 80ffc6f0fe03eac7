"""Which JSON values a field's type accepts when the API server decodes them."""

from __future__ import annotations

import re
from typing import Any, Final

from kubectl_dra.api.quantity import Quantity, QuantityError

_TIME: Final = re.compile(
    r"(\d{4})-(\d{2})-(\d{2})T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:[.,]\d+)?(?:Z|[+-](?:[01]\d|2[0-4]):[0-5]\d)", re.ASCII
)
_INTEGERS: Final = {"int": 63, "int64": 63, "int32": 31}


def scalar_problem(value: Any, kind: str) -> tuple[str, str] | None:
    """The rule that a value violates and what its type wants instead; None if it fits. Null always fits.

    Kinds: string, bool, int and int64, int32, number, quantity, time, object, int-or-string, any.
    """
    if value is None or kind == "any":
        return None
    if kind == "string":
        return None if isinstance(value, str) else wrong_type("a string", value)
    if kind == "bool":
        return None if isinstance(value, bool) else wrong_type("true or false", value)
    if kind in _INTEGERS:
        return _integer_problem(value, _INTEGERS[kind])
    if kind == "quantity":
        return _quantity_problem(value)
    if kind == "time":
        return _time_problem(value)
    if kind == "object":
        return None if isinstance(value, dict) else wrong_type("an object", value)
    if kind == "int-or-string":
        return None if isinstance(value, str) else _integer_problem(value, 31)
    fits = isinstance(value, int | float) and not isinstance(value, bool)
    return None if fits else wrong_type("a number", value)


def wrong_type(wanted: str, value: Any) -> tuple[str, str]:
    """The problem of a value with another JSON type."""
    return "type-mismatch", f"must be {wanted}, not {type_name(value)}"


def type_name(value: Any) -> str:
    """What a JSON value is, in words."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return f"the number {value}"
    if isinstance(value, str):
        return "a string"
    return "a list" if isinstance(value, list) else "an object"


def _integer_problem(value: Any, bits: int) -> tuple[str, str] | None:
    whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    if isinstance(value, bool) or not whole:
        return wrong_type("a whole number", value)
    if not -(2**bits) <= value < 2**bits:
        return "type-mismatch", f"must fit into {bits + 1} bits, {value} does not"
    return None


def _quantity_problem(value: Any) -> tuple[str, str] | None:
    try:
        Quantity.from_json(value)
    except QuantityError as error:
        shown = repr(value) if isinstance(value, str) else type_name(value)
        return "quantity-syntax", f"{shown} is not a quantity such as 40Gi or 500m: {error}"
    return None


def _time_problem(value: Any) -> tuple[str, str] | None:
    if not isinstance(value, str):
        return wrong_type("a time", value)
    match = _TIME.fullmatch(value)
    if match is None or not _is_date(*map(int, match.groups()[:3])):
        return "time-syntax", f"{value!r} is no RFC 3339 time such as 2026-01-01T00:00:00Z"
    return None


def _is_date(year: int, month: int, day: int) -> bool:
    from calendar import monthrange

    # Python's calendar has no year 0; it is a leap year like 2000.
    return 1 <= month <= 12 and 1 <= day <= monthrange(year or 2000, month)[1]
