"""Exact whole numbers times powers of ten, within the limits of Kubernetes' quantities."""

from __future__ import annotations

import math
from typing import Final

EXPONENT_COMPARED: Final = 100_000
"""Above this power of ten, quantities are compared only by mantissa: no one needs them, and exact ones take long."""
_BITS_OF_4000_DIGITS: Final = 13_287


def ten_to(exponent: int) -> int:
    """10 to the power of a non-negative exponent."""
    power: int = 10**exponent
    return power


def scaled(unscaled: int, exponent: int) -> int:
    """`unscaled * 10**exponent`, a whole number by construction. Enormous exponents are capped."""
    if unscaled == 0:
        return 0
    if exponent >= 0:
        return unscaled * ten_to(min(exponent, EXPONENT_COMPARED))
    return rounded_up(unscaled, exponent) if unscaled > 0 else -rounded_up(-unscaled, exponent)


def rounded_up(unscaled: int, exponent: int) -> int:
    """`unscaled * 10**exponent` for a positive number, rounded up to a whole number."""
    if exponent >= 0:
        return unscaled * ten_to(min(exponent, EXPONENT_COMPARED))
    if -exponent > unscaled.bit_length():
        return 1
    return -(-unscaled // ten_to(-exponent))


def without_factors(value: int, factor: int) -> tuple[int, int]:
    """A nonzero number divided by the factor as often as possible, and how often that is."""
    times = 0
    while value % factor == 0:
        value //= factor
        times += 1
    return value, times


def wrapped(value: int) -> int:
    """The number wrapped around to a signed 64-bit integer."""
    return (value + 2**63) % 2**64 - 2**63


def power_of_ten(exponent: int) -> float:
    """10**exponent as Go's tables give it: a product or quotient of two doubles."""
    if exponent > 308:
        return math.inf
    if exponent < -323:
        return 0.0
    blocks, rest = divmod(abs(exponent), 32)
    if exponent >= 0:
        return float(f"1e{blocks * 32}") * float(f"1e{rest}")
    return float(f"1e-{blocks * 32}") / float(f"1e{rest}")


def decimal_int(digits: str) -> int:
    """`int(digits)` without Python's limit on the length of a decimal text."""
    if len(digits) <= 4000:
        return int(digits)
    middle = len(digits) // 2
    low = digits[middle:]
    return decimal_int(digits[:middle]) * ten_to(len(low)) + decimal_int(low)


def decimal_text(value: int) -> str:
    """`str(value)` without Python's limit on the length of a decimal text."""
    if value.bit_length() < _BITS_OF_4000_DIGITS or abs(value) < 10**4000:
        return str(value)
    high, low = divmod(abs(value), 10**4000)
    return ("-" if value < 0 else "") + decimal_text(high) + str(low).zfill(4000)
