"""Functions on IP addresses and networks (CIDR)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from kubectl_dra.api.codec import quoted
from kubectl_dra.cel.errors import EvaluationError, no_such_overload
from kubectl_dra.cel.functions import Function
from kubectl_dra.cel.known_sizes import ONE, STRING_TRAVERSAL_FACTOR, CallEstimate, Cost, Operands, Size
from kubectl_dra.cel.libraries import ADDRESSES
from kubectl_dra.cel.library.support import (
    NOMINAL,
    accepted,
    actual_size,
    declared,
    member,
    overload,
    parsing,
    reading,
    scanned,
)
from kubectl_dra.cel.types import BOOL, INT, STRING
from kubectl_dra.cel.types import CIDR as CIDR_TYPE
from kubectl_dra.cel.types import IP as IP_TYPE
from kubectl_dra.cel.values import Value

# IP addresses and networks as values, parsed and printed like Go's net/netip.


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


# The functions.

_ADDRESS_BYTES = Size(4, 16)


def _is_mapped(address: IP) -> bool:
    return address.bits == 128 and address.value >> 32 == 0xFFFF


def _checked_address(text: str) -> IP:
    try:
        address = parse_address(text)
    except AddressError as error:
        raise AddressError(f"IP Address {quoted(text)} parse error during conversion from string: {error}") from None
    if address.zone:
        raise AddressError(f"IP address {quoted(text)} with zone value is not allowed")
    if _is_mapped(address):
        raise AddressError(f"IPv4-mapped IPv6 address {quoted(text)} is not allowed")
    return address


def _checked_network(text: str) -> CIDR:
    try:
        network = parse_network(text)
    except AddressError as error:
        raise AddressError(f"network address parse error during conversion from string: {error}") from None
    if _is_mapped(network.address):
        raise AddressError(f"IPv4-mapped IPv6 address {quoted(text)} is not allowed")
    return network


_ip = parsing(_checked_address, AddressError)


def _cidr(text: str) -> CIDR:
    try:
        return _checked_network(text)
    except AddressError as error:
        raise EvaluationError(f"network address parse error during conversion from string: {error}") from None


def _is_loopback(address: IP) -> bool:
    return address.value >> 24 == 127 if address.bits == 32 else address.value == 1


def _is_local_multicast(address: IP) -> bool:
    if address.bits == 32:
        return address.value >> 8 == 0xE00000
    return address.value >> 112 & 0xFF0F == 0xFF02


def _is_local_unicast(address: IP) -> bool:
    if address.bits == 32:
        return address.value >> 16 == 0xA9FE
    return address.value >> 118 == 0xFE80 >> 6


def _is_multicast(address: IP) -> bool:
    return address.value >> 28 == 0xE if address.bits == 32 else address.value >> 120 == 0xFF


def _is_global_unicast(address: IP) -> bool:
    if address.value == 0 or (address.bits == 32 and address.value == 0xFFFFFFFF):
        return False
    return not (_is_loopback(address) or _is_multicast(address) or _is_local_unicast(address))


def _contains_ip(network: CIDR, address: IP) -> bool:
    own = network.address
    return own.bits == address.bits and network.prefix(network.length) == address.value >> own.bits - network.length


def _contains_ip_text(network: CIDR, text: str) -> bool:
    try:
        address = _checked_address(text)
    except AddressError:
        # Upstream looks at the failed conversion as if it were a value of the wrong type.
        raise no_such_overload() from None
    return _contains_ip(network, address)


def _contains_cidr(network: CIDR, other: CIDR) -> bool:
    if network.address.bits != other.address.bits or network.length > other.length:
        return False
    return network.prefix(network.length) == other.prefix(network.length)


def _masked(network: CIDR) -> CIDR:
    host_bits = network.address.bits - network.length
    return CIDR(IP(network.address.value >> host_bits << host_bits, network.address.bits), network.length)


# Costs.


def _containing(*, network: bool, text: bool) -> Cost:
    """Comparing two addresses of unknown family, masking one for a ``network``, and reading a ``text``."""

    def estimate(operands: Operands) -> CallEstimate:
        cost = _ADDRESS_BYTES.plus(_ADDRESS_BYTES).scaled(STRING_TRAVERSAL_FACTOR)
        if network:
            cost = cost.plus(_ADDRESS_BYTES.scaled(STRING_TRAVERSAL_FACTOR)).plus(ONE)
        if text:
            cost = cost.plus(operands.size(1).scaled(STRING_TRAVERSAL_FACTOR))
        return CallEstimate(cost)

    def actual(values: Sequence[Value], result: Value) -> int:
        cost = scanned(2 * actual_size(values[0]))
        if network:
            cost += scanned(actual_size(values[0])) + 1
        return cost + scanned(actual_size(values[1])) if text else cost

    # Of a text Kubernetes sees that it is read only where no other overload was possible.
    return Cost(estimate, actual, certain=text)


def functions() -> list[Function]:
    text, address, network = (STRING,), (IP_TYPE,), (CIDR_TYPE,)
    canonical = reading(2 * STRING_TRAVERSAL_FACTOR)
    ip_text, ip = _containing(network=False, text=True), _containing(network=False, text=False)
    cidr_text, cidr = _containing(network=True, text=True), _containing(network=True, text=False)
    of_addresses = {
        "ip": [overload("string_to_ip", text, IP_TYPE, _ip, reading())],
        "family": [member("ip_family", address, INT, lambda ip: 4 if ip.bits == 32 else 6, NOMINAL)],
        "ip.isCanonical": [overload("ip_is_canonical", text, BOOL, lambda text: str(_ip(text)) == text, canonical)],
        "isUnspecified": [member("ip_is_unspecified", address, BOOL, lambda ip: ip.value == 0, NOMINAL)],
        "isLoopback": [member("ip_is_loopback", address, BOOL, _is_loopback, NOMINAL)],
        "isLinkLocalMulticast": [member("ip_is_link_local_multicast", address, BOOL, _is_local_multicast, NOMINAL)],
        "isLinkLocalUnicast": [member("ip_is_link_local_unicast", address, BOOL, _is_local_unicast, NOMINAL)],
        "isGlobalUnicast": [member("ip_is_global_unicast", address, BOOL, _is_global_unicast, NOMINAL)],
        "isIP": [overload("is_ip", text, BOOL, accepted(_checked_address, AddressError), reading())],
        "string": [overload("ip_to_string", address, STRING, str)],
    }
    of_networks = {
        "cidr": [overload("string_to_cidr", text, CIDR_TYPE, _cidr, reading())],
        "containsIP": [
            member("cidr_contains_ip_string", (CIDR_TYPE, STRING), BOOL, _contains_ip_text, ip_text),
            member("cidr_contains_ip_ip", (CIDR_TYPE, IP_TYPE), BOOL, _contains_ip, ip),
        ],
        "containsCIDR": [
            member(
                "cidr_contains_cidr_string",
                (CIDR_TYPE, STRING),
                BOOL,
                lambda network, text: _contains_cidr(network, _cidr(text)),
                cidr_text,
            ),
            member("cidr_contains_cidr", (CIDR_TYPE, CIDR_TYPE), BOOL, _contains_cidr, cidr),
        ],
        "ip": [member("cidr_ip", network, IP_TYPE, lambda network: network.address, NOMINAL)],
        "prefixLength": [member("cidr_prefix_length", network, INT, lambda network: network.length, NOMINAL)],
        "masked": [member("cidr_masked", network, CIDR_TYPE, _masked, NOMINAL)],
        "isCIDR": [overload("is_cidr", text, BOOL, accepted(_checked_network, AddressError), reading())],
        "string": [overload("cidr_to_string", network, STRING, str)],
    }
    return [
        *declared("IP addresses", of_addresses, version=ADDRESSES),
        *declared("networks", of_networks, version=ADDRESSES),
    ]
