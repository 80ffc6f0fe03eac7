"""Kubernetes resource quantities: `40Gi`, `1500m`, `1e3`.

Every quantity is a whole number of nano units; finer input is rounded away from zero when parsed. Texts,
rounding, the printed format and the limits of 64-bit integers follow k8s.io/apimachinery/pkg/api/resource,
because the API server stores them and CEL observes them.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import Final, Literal

from kubectl_dra.api.decimals import (
    EXPONENT_COMPARED,
    decimal_int,
    decimal_text,
    power_of_ten,
    rounded_up,
    scaled,
    ten_to,
    without_factors,
    wrapped,
)
from kubectl_dra.text import whole_number

Format = Literal["DecimalSI", "BinarySI", "DecimalExponent"]

_DIGITS = "0123456789"
_SUFFIX_LETTERS = "eEinumkKMGTP"
# The API trims a quantity's JSON text, in which control characters such as a line's end are escapes and stay.
BLANKS = " \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
_DECIMAL_SUFFIXES = {
    "n": -9,
    "u": -6,
    "m": -3,
    "": 0,
    "k": 3,
    "M": 6,
    "G": 9,
    "T": 12,
    "P": 15,
    "E": 18,
}
_BINARY_SUFFIXES = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIX_OF = {exponent: suffix for suffix, exponent in _DECIMAL_SUFFIXES.items()}
_BINARY_SUFFIX_OF = {exponent: suffix for suffix, exponent in _BINARY_SUFFIXES.items()}

_BINARY: Format = "BinarySI"
_MIN_INT64, _MAX_INT64 = -(2**63), 2**63 - 1


class QuantityError(ValueError):
    """The text is not a quantity, or a calculation exceeds the representable range."""


WRONG_FORM = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_WRONG_NUMBER = "unable to parse numeric part of quantity"
_WRONG_SUFFIX = "unable to parse quantity's suffix"


class Quantity:
    """An immutable amount: `unscaled * 10**exponent`, with the format in which it is printed.

    `nanos` is the exact value in nano units. Equality, order and hash are by value, so 1Gi == 1024Mi. `wide`
    means that Kubernetes would hold the value as a big decimal instead of a 64-bit integer and a scale; CEL's
    `asInteger()` and `isInteger()` depend on it. `computed` means that it resulted from `add` or `sub`: CEL
    in Kubernetes rejects such a quantity on the right of `==`.
    """

    __slots__ = ("_text", "computed", "exponent", "format", "nanos", "unscaled", "wide")

    def __init__(
        self,
        unscaled: int,
        exponent: int = 0,
        format: Format = "DecimalSI",
        *,
        wide: bool = False,
        text: str | None = None,
        computed: bool = False,
    ) -> None:
        self.unscaled: Final = unscaled
        self.exponent: Final = exponent
        self.format: Final[Format] = format
        # Nothing narrow holds more than 64 bits.
        self.wide: Final = wide or not _MIN_INT64 <= unscaled <= _MAX_INT64
        self.computed: Final = computed
        self.nanos: Final = scaled(unscaled, exponent + 9)
        self._text = text

    @staticmethod
    def parse(value: str | int | float) -> Quantity:
        """The quantity of a text, or of a JSON or YAML number. Raises QuantityError.

        Texts are taken literally: surrounding blanks, which the API's JSON decoding removes, are an error.
        """
        if isinstance(value, str):
            return _parse(value)
        if isinstance(value, bool):
            raise QuantityError(WRONG_FORM)
        return _parse(str(value) if isinstance(value, int) else _float_text(value))

    @staticmethod
    def from_json(value: object) -> Quantity:
        """The quantity in a manifest's field: a text (surrounding blanks ignored, but not line ends), number
        or null.

        As in the API server, null is zero. Raises QuantityError for anything else.
        """
        if value is None:
            return Quantity(0)
        if isinstance(value, str):
            return _parse(value.strip(BLANKS))
        if isinstance(value, int | float):
            return Quantity.parse(value)
        raise QuantityError(WRONG_FORM)

    @staticmethod
    def of(value: int, format: Format = "BinarySI") -> Quantity:
        """The quantity of a whole number, by default printed with binary suffixes (Ki, Mi, ...)."""
        return Quantity(value, 0, format)

    def compare(self, other: Quantity) -> int:
        """-1, 0 or 1 by value."""
        return (self.nanos > other.nanos) - (self.nanos < other.nanos)

    def sign(self) -> int:
        """-1, 0 or 1."""
        return (self.unscaled > 0) - (self.unscaled < 0)

    def is_integer(self) -> bool:
        """Whether `as_int64` has a value."""
        return self.as_int64() is not None

    def as_int64(self) -> int | None:
        """The value as a 64-bit integer, or None where Kubernetes gives none.

        Kubernetes gives none for fractions, for values beyond 64 bits, and for every value held as a big
        decimal (1.5Gi, for instance, although it is whole).
        """
        if self.wide or self.exponent < 0:
            return None
        if self.unscaled == 0:
            return 0
        if self.exponent > 18:
            return None
        value: int = self.unscaled * ten_to(self.exponent)
        return value if _MIN_INT64 <= value <= _MAX_INT64 else None

    def value(self) -> int:
        """The value as a 64-bit integer, rounded away from zero: Kubernetes' `Value()`, including its overflow."""
        if not self.wide:
            if self.exponent >= 0:
                return self.as_int64() or 0
            whole, rest = divmod(abs(self.unscaled), ten_to(-self.exponent))
            magnitude = whole + (rest != 0)
            return magnitude if self.unscaled > 0 else -magnitude
        if self.exponent >= 0:
            return wrapped(self.unscaled * ten_to(min(self.exponent, 64)))
        divisor = ten_to(-self.exponent)
        if self.unscaled < _MAX_INT64 and -self.exponent < 19:
            narrow = wrapped(self.unscaled)
            whole = abs(narrow) // divisor * (1 if narrow >= 0 else -1)
            return whole + (narrow % divisor != 0)
        whole, rest = divmod(self.unscaled, divisor)
        return wrapped(whole + (rest != 0))

    def approximate_float(self) -> float:
        """An approximate double: as upstream, mantissa and power of ten are rounded separately."""
        try:
            base = float(self.unscaled)
        except OverflowError:
            base = math.inf if self.unscaled > 0 else -math.inf
        if self.exponent == 0:
            return base
        power = power_of_ten(self.exponent)
        return base * power

    def add(self, other: Quantity) -> Quantity:
        """The sum; its format is the left one's, or the right one's when the left is zero."""
        return self._sum(other, other.unscaled)

    def sub(self, other: Quantity) -> Quantity:
        """The difference; its format is the left one's, or the right one's when the left is zero."""
        return self._sum(other, -other.unscaled)

    def __mul__(self, factor: int) -> Quantity:
        """The product with a whole number; the format stays."""
        product = self.unscaled * factor
        if not self.wide:
            if product == 0:
                return Quantity(0, 0 if self.unscaled else self.exponent, self.format)
            fits = _MIN_INT64 <= product <= _MAX_INT64
            if fits and self.exponent > 0:
                fits = self.exponent < 19 and _MIN_INT64 <= product * ten_to(self.exponent) <= _MAX_INT64
            elif fits and self.exponent < 0:
                fits = product % ten_to(-self.exponent) == 0
            if fits:
                return Quantity(product, self.exponent, self.format)
        return Quantity(product, self.exponent, self.format, wide=True)

    def _sum(self, other: Quantity, addend: int) -> Quantity:
        format = self.format if self.unscaled else other.format
        narrow = not (self.wide or other.wide)
        if narrow:
            if addend == 0:
                return Quantity(self.unscaled, self.exponent, format, computed=True)
            if self.unscaled == 0:
                return Quantity(wrapped(addend), other.exponent, format, computed=True)
        if abs(self.exponent - other.exponent) > EXPONENT_COMPARED:
            raise QuantityError("the quantities differ too much in size to be added")
        exponent = min(self.exponent, other.exponent)
        mine = self.unscaled * ten_to(self.exponent - exponent)
        theirs = addend * ten_to(other.exponent - exponent)
        if narrow:
            # The least 64-bit integer is its own negative.
            addition = wrapped(addend) * ten_to(other.exponent - exponent)
            if all(_MIN_INT64 <= value <= _MAX_INT64 for value in (mine, addition, mine + addition)):
                return Quantity(mine + addition, exponent, format, computed=True)
        return Quantity(mine + theirs, exponent, format, wide=True, computed=True)

    def __add__(self, other: Quantity | int) -> Quantity:
        return self.add(other if isinstance(other, Quantity) else Quantity.of(other, "DecimalSI"))

    def __sub__(self, other: Quantity | int) -> Quantity:
        return self.sub(other if isinstance(other, Quantity) else Quantity.of(other, "DecimalSI"))

    def __neg__(self) -> Quantity:
        return Quantity(-self.unscaled, self.exponent, self.format, wide=self.wide)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Quantity):
            return NotImplemented
        return self.nanos == other.nanos

    def __lt__(self, other: Quantity) -> bool:
        return self.nanos < other.nanos

    def __le__(self, other: Quantity) -> bool:
        return self.nanos <= other.nanos

    def __gt__(self, other: Quantity) -> bool:
        return self.nanos > other.nanos

    def __ge__(self, other: Quantity) -> bool:
        return self.nanos >= other.nanos

    def __hash__(self) -> int:
        return hash(self.nanos)

    def __bool__(self) -> bool:
        return self.unscaled != 0

    def __str__(self) -> str:
        """The canonical text, as the API server writes it into JSON.

        A parsed text that upstream considers canonical is returned unchanged (`+1`, `1.500`, `1E3`).
        """
        if self._text is None:
            self._text = self._canonical()
        return self._text

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"

    def _canonical(self) -> str:
        if self.unscaled == 0:
            return "0"
        if self.format == "BinarySI" and abs(self.nanos) >= 1024 * 10**9 and self.nanos % 10**9 == 0:
            mantissa, times = without_factors(self.nanos // 10**9, 1024)
            return decimal_text(mantissa) + _BINARY_SUFFIX_OF.get(times * 10, "")
        mantissa, times = without_factors(self.unscaled, 10)
        exponent = self.exponent + times
        surplus = exponent % 3
        mantissa *= 10**surplus
        exponent -= surplus
        if self.format == "DecimalExponent":
            return decimal_text(mantissa) + (f"e{exponent}" if exponent else "")
        # Beyond exa there is no suffix, and upstream then prints none.
        return decimal_text(mantissa) + _DECIMAL_SUFFIX_OF.get(exponent, "")


_PLAIN: Final = re.compile(r"(0|[1-9][0-9]{0,14})([KMGTPE]i|[numkMGTPE]?)")


def is_plain(text: str) -> bool:
    """Whether a text is a quantity of the usual form. Other forms may be quantities as well."""
    return _PLAIN.fullmatch(text) is not None


def nanos_of(text: str) -> int:
    """`Quantity.parse(text).nanos`, several times as fast for whole numbers of binary units, as of memory."""
    power = _BINARY_SUFFIXES.get(text[-2:])
    digits = text[:-2]
    if power and digits.isdecimal() and digits.isascii() and len(digits) + power * 3 // 10 <= 14:
        return (int(digits) << power) * 10**9
    return _parse(text).nanos


@lru_cache(maxsize=16384)
def _parse(text: str) -> Quantity:
    if plain := _PLAIN.fullmatch(text):
        digits, suffix = plain.groups()
        if suffix not in _BINARY_SUFFIXES:
            exponent = _DECIMAL_SUFFIXES[suffix]
            kept = digits == "0" == text or _is_canonical(digits, exponent)
            return Quantity(int(digits), exponent, "DecimalSI", text=text if kept else None)
        power = _BINARY_SUFFIXES[suffix]
        if len(digits) + power * 3 // 10 <= 14:
            number = int(digits)
            return Quantity(number << power, 0, _BINARY, text=text if number & 7 else None)
    sign = text[:1] if text[:1] in ("+", "-") else ""
    rest = text[len(sign) :]
    significant = rest.lstrip("0")
    after = significant.lstrip(_DIGITS)
    zeros = len(rest) - len(significant)
    whole = significant[: len(significant) - len(after)] or "0"
    fraction = ""
    suffix = after
    if after[:1] == ".":
        suffix = after[1:].lstrip(_DIGITS)
        fraction = after[1 : len(after) - len(suffix)]
    if not text or not _is_suffix(suffix):
        raise QuantityError(WRONG_FORM)
    if suffix in _BINARY_SUFFIXES:
        power, base, format = _BINARY_SUFFIXES[suffix], 2, _BINARY
    else:
        base = 10
        power, format = _decimal_suffix(suffix)
    digits = whole + fraction
    if base == 2:
        # Upstream's shortcut for whole numbers, which keeps the value a 64-bit integer.
        narrow = not fraction and 14 - len(whole) - power * 3 // 10 >= 0
        exponent = 0
    else:
        exponent = power - len(fraction)
        narrow = len(digits) <= 18 and exponent >= -9
    if narrow:
        number = int(digits)
        kept = (number & 7) != 0 if base == 2 else _is_canonical(digits, exponent)
        unscaled = -number if sign == "-" else number
        if base == 2:
            unscaled <<= power
        return Quantity(unscaled, exponent, format, text=text if kept or text == "0" else None)
    if whole == "0" and not zeros and not fraction:
        raise QuantityError(_WRONG_NUMBER)
    return _parse_wide(sign, digits, len(fraction), power, base, format)


def _is_suffix(text: str) -> bool:
    """Whether the text has the shape of a suffix: letters, a sign, digits, each optional."""
    exponent = text.lstrip(_SUFFIX_LETTERS)
    if exponent[:1] in ("+", "-"):
        exponent = exponent[1:]
    return not exponent.strip(_DIGITS)


def _parse_wide(sign: str, digits: str, fraction: int, power: int, base: int, format: Format) -> Quantity:
    unscaled = decimal_int(digits)
    exponent = -fraction
    if base == 2:
        unscaled <<= power
    else:
        exponent += power
    if unscaled:
        unscaled = rounded_up(unscaled, exponent + 9)
        exponent = -9
    if format == _BINARY:
        if unscaled > _MAX_INT64 * ten_to(-exponent):
            unscaled, exponent = _MAX_INT64, 0
        elif 0 < unscaled < ten_to(-exponent):
            format = "DecimalSI"
    return Quantity(-unscaled if sign == "-" else unscaled, exponent, format, wide=True)


def _decimal_suffix(suffix: str) -> tuple[int, Format]:
    power = _DECIMAL_SUFFIXES.get(suffix)
    if power is not None:
        return power, "DecimalSI"
    if suffix[0] in "eE":
        digits = suffix[1:].lstrip("+-")
        number = whole_number(digits, 19) if len(suffix) - len(digits) <= 2 else None
        if number is not None:
            exponent = -number if suffix[1] == "-" else number
            if _MIN_INT64 <= exponent <= _MAX_INT64:
                # Upstream keeps 32 bits of the exponent.
                return (exponent + 2**31) % 2**32 - 2**31, "DecimalExponent"
    raise QuantityError(_WRONG_SUFFIX)


def _is_canonical(digits: str, exponent: int) -> bool:
    return exponent % 3 == 0 and digits[0] != "0" and not digits.endswith("000")


def _float_text(value: float) -> str:
    """A double as Go writes it into JSON, which is how a YAML number arrives."""
    if not math.isfinite(value):
        raise QuantityError(WRONG_FORM)
    if value == int(value) and abs(value) < 1e21:
        return str(int(value))
    text = repr(value)
    if "e" not in text:
        return text
    if 1e-6 <= abs(value) < 1e21:
        return f"{value:.17f}".rstrip("0")
    mantissa, _, exponent = text.partition("e")
    return f"{mantissa}e{int(exponent):+d}"
