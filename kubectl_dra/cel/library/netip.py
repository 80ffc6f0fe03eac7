"""IP addresses and networks as values, parsed and printed like Go's net/netip."""

from __future__ import annotations

import math
from functools import lru_cache

from kubectl_dra.api.codec import quoted
from kubectl_dra.cel.errors import no_such_overload
from kubectl_dra.cel.types import CIDR as CIDR_TYPE
from kubectl_dra.cel.types import IP as IP_TYPE
from kubectl_dra.cel.values import Value


class AddressError(ValueError):
    """The text is not an IP address or network."""


class IP:
    """An IPv4 (`bits` 32) or IPv6 (128) address as a number. A zone is kept only during parsing."""

    __slots__ = ("bits", "value", "zone")

    cel_type = IP_TYPE

    def __init__(self, value: int, bits: int, zone: str = "") -> None:
        self.value = value
        self.bits = bits
        self.zone = zone

    @property
    def cel_size(self) -> int:
        return self.bits // 8

    def cel_equals(self, other: Value) -> bool:
        if other.__class__ is not IP:
            raise no_such_overload()
        return bool(self.value == other.value and self.bits == other.bits)

    def __str__(self) -> str:
        if self.bits == 32:
            return ".".join(str(self.value >> shift & 255) for shift in (24, 16, 8, 0))
        if self.value >> 32 == 0xFFFF:
            return f"::ffff:{IP(self.value & 0xFFFFFFFF, 32)}"
        from ipaddress import IPv6Address

        return str(IPv6Address(self.value))


class CIDR:
    """A network: an address, whose host part may be nonzero, and a prefix length."""

    __slots__ = ("address", "length")

    cel_type = CIDR_TYPE

    def __init__(self, address: IP, length: int) -> None:
        self.address = address
        self.length = length

    @property
    def cel_size(self) -> int:
        return math.ceil(self.length / 8)

    def prefix(self, length: int) -> int:
        return self.address.value >> self.address.bits - length

    def cel_equals(self, other: Value) -> bool:
        if other.__class__ is not CIDR:
            raise no_such_overload()
        return bool(self.length == other.length and self.address.cel_equals(other.address))

    def __str__(self) -> str:
        return f"{self.address}/{self.length}"


@lru_cache(maxsize=4096)
def parse_address(text: str) -> IP:
    """An address, possibly with a zone. Raises AddressError with Go's text."""
    for character in text:
        if character == ".":
            return IP(_parse_ipv4(text, text), 32)
        if character == ":":
            return _parse_ipv6(text)
        if character == "%":
            raise _failure(text, "missing IPv6 address")
    raise _failure(text, "unable to parse IP")


def _failure(text: str, reason: str, at: str = "") -> AddressError:
    where = f" (at {quoted(at)})" if at else ""
    return AddressError(f"ParseAddr({quoted(text)}): {reason}{where}")


def _parse_ipv4(part: str, text: str) -> int:
    fields: list[int] = []
    value = digits = 0
    for at, character in enumerate(part):
        if "0" <= character <= "9":
            if digits == 1 and value == 0:
                raise _failure(text, "IPv4 field has octet with leading zero")
            value = value * 10 + int(character)
            digits += 1
            if value > 255:
                raise _failure(text, "IPv4 field has value >255")
        elif character == ".":
            if not digits or at == len(part) - 1:
                raise _failure(text, "IPv4 field must have at least one digit", part[at:])
            if len(fields) == 3:
                raise _failure(text, "IPv4 address too long")
            fields.append(value)
            value = digits = 0
        else:
            raise _failure(text, "unexpected character", part[at:])
    if len(fields) < 3:
        raise _failure(text, "IPv4 address too short")
    return fields[0] << 24 | fields[1] << 16 | fields[2] << 8 | value


def _parse_ipv6(text: str) -> IP:
    rest, percent, zone = text.partition("%")
    if percent and not zone:
        raise _failure(text, "zone must be a non-empty string")
    groups: list[int] = []
    ellipsis = -1
    if rest.startswith("::"):
        ellipsis = 0
        rest = rest[2:]
        if not rest:
            return IP(0, 128, zone)
    while len(groups) < 8:
        length = 0
        while length < len(rest) and rest[length] in "0123456789abcdefABCDEF":
            length += 1
            if length > 4:
                raise _failure(text, "each group must have 4 or less digits", rest)
        if not length:
            raise _failure(text, "each colon-separated field must have at least one digit", rest)
        if rest[length : length + 1] == ".":
            if ellipsis < 0 and len(groups) != 6:
                raise _failure(text, "embedded IPv4 address must replace the final 2 fields of the address", rest)
            if len(groups) > 6:
                raise _failure(text, "too many hex fields to fit an embedded IPv4 at the end of the address", rest)
            embedded = _parse_ipv4(rest, text)
            groups += [embedded >> 16, embedded & 0xFFFF]
            rest = ""
            break
        groups.append(int(rest[:length], 16))
        rest = rest[length:]
        if not rest:
            break
        if rest[0] != ":":
            raise _failure(text, "unexpected character, want colon", rest)
        if len(rest) == 1:
            raise _failure(text, "colon must be followed by more characters", rest)
        rest = rest[1:]
        if rest[0] == ":":
            if ellipsis >= 0:
                raise _failure(text, "multiple :: in address", rest)
            ellipsis = len(groups)
            rest = rest[1:]
            if not rest:
                break
    if rest:
        raise _failure(text, "trailing garbage after address", rest)
    if len(groups) < 8:
        if ellipsis < 0:
            raise _failure(text, "address string too short")
        groups[ellipsis:ellipsis] = [0] * (8 - len(groups))
    elif ellipsis >= 0:
        raise _failure(text, "the :: must expand to at least one field of zeros")
    value = 0
    for group in groups:
        value = value << 16 | group
    return IP(value, 128, zone)


def parse_network(text: str) -> CIDR:
    start = f"netip.ParsePrefix({quoted(text)}): "
    address_text, slash, length = text.rpartition("/")
    if not slash:
        raise AddressError(start + "no '/'")
    try:
        address = parse_address(address_text)
    except AddressError as error:
        raise AddressError(f"{start}{error}") from None
    if address.bits == 128 and address.zone:
        raise AddressError(start + "IPv6 zones cannot be present in a prefix")
    if not length.isascii() or not length.isdigit() or (len(length) > 1 and length[0] == "0"):
        raise AddressError(f"{start}bad bits after slash: {quoted(length)}")
    if len(length) > 3 or int(length) > address.bits:
        raise AddressError(start + "prefix length out of range")
    return CIDR(address, int(length))
