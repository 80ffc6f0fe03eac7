"""IP addresses and networks (CIDR), parsed as Go's net/netip does."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from kubectl_dra.api.text import quoted
from kubectl_dra.cel.cost_model import (
    ONE,
    STRING_TRAVERSAL_FACTOR,
    CallEstimate,
    CostNode,
    Estimate,
    Estimator,
    Size,
)
from kubectl_dra.cel.declarations import Function
from kubectl_dra.cel.errors import EvaluationError, no_such_overload
from kubectl_dra.cel.library.support import (
    actual_size,
    function,
    member,
    nominal_actual,
    nominal_estimate,
    overload,
    scan_first_argument,
    scan_first_value,
    scanned,
)
from kubectl_dra.cel.types import BOOL, INT, STRING
from kubectl_dra.cel.types import CIDR as CIDR_TYPE
from kubectl_dra.cel.types import IP as IP_TYPE
from kubectl_dra.cel.values import Value

_IP = "IP addresses"
_CIDR = "networks"
# Both came with Kubernetes 1.30; new expressions may use them one release later.
_SINCE = "1.31"
_TWICE = 2 * STRING_TRAVERSAL_FACTOR
_ADDRESS_BYTES = Size(4, 16)


class AddressError(ValueError):
    """The text is not an IP address or network."""


class IP:
    """An IPv4 (`bits` 32) or IPv6 (128) address as a number, with a zone only while it is parsed."""

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
        return _ipv6_text(self.value)


class CIDR:
    """A network: an address, whose host part need not be zero, and the length of the prefix."""

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


def _ipv6_text(value: int) -> str:
    groups = [value >> shift & 0xFFFF for shift in range(112, -1, -16)]
    start = length = 0
    at = 0
    while at < 8:
        end = at
        while end < 8 and groups[end] == 0:
            end += 1
        if end - at > max(length, 1):
            start, length = at, end - at
        at = max(end, at + 1)
    if value >> 32 == 0xFFFF:
        return "::ffff:" + str(IP(value & 0xFFFFFFFF, 32))
    if not length:
        return ":".join(f"{group:x}" for group in groups)
    before = ":".join(f"{group:x}" for group in groups[:start])
    return f"{before}::" + ":".join(f"{group:x}" for group in groups[start + length :])


@lru_cache(maxsize=4096)
def parse_address(text: str) -> IP:
    """An address, possibly with a zone. Raises AddressError with Go's words."""
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
        network = _parse_network(text)
    except AddressError as error:
        raise AddressError(f"network address parse error during conversion from string: {error}") from None
    if _is_mapped(network.address):
        raise AddressError(f"IPv4-mapped IPv6 address {quoted(text)} is not allowed")
    return network


def _parse_network(text: str) -> CIDR:
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


def _ip(text: str) -> IP:
    try:
        return _checked_address(text)
    except AddressError as error:
        raise EvaluationError(str(error)) from None


def _cidr(text: str) -> CIDR:
    try:
        return _checked_network(text)
    except AddressError as error:
        raise EvaluationError(f"network address parse error during conversion from string: {error}") from None


def _is_ip(text: str) -> bool:
    try:
        _checked_address(text)
    except AddressError:
        return False
    return True


def _is_cidr(text: str) -> bool:
    try:
        _checked_network(text)
    except AddressError:
        return False
    return True


def _is_canonical(text: str) -> bool:
    return str(_ip(text)) == text


def _family(address: IP) -> int:
    return 4 if address.bits == 32 else 6


def _is_unspecified(address: IP) -> bool:
    return address.value == 0


def _is_loopback(address: IP) -> bool:
    return address.value >> 24 == 127 if address.bits == 32 else address.value == 1


def _is_link_local_multicast(address: IP) -> bool:
    if address.bits == 32:
        return address.value >> 8 == 0xE00000
    return address.value >> 112 & 0xFF0F == 0xFF02


def _is_link_local_unicast(address: IP) -> bool:
    if address.bits == 32:
        return address.value >> 16 == 0xA9FE
    return address.value >> 118 == 0xFE80 >> 6


def _is_multicast(address: IP) -> bool:
    return address.value >> 28 == 0xE if address.bits == 32 else address.value >> 120 == 0xFF


def _is_global_unicast(address: IP) -> bool:
    if address.value == 0 or (address.bits == 32 and address.value == 0xFFFFFFFF):
        return False
    return not (_is_loopback(address) or _is_multicast(address) or _is_link_local_unicast(address))


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


def _contains_cidr_text(network: CIDR, text: str) -> bool:
    return _contains_cidr(network, _cidr(text))


def _address_of(network: CIDR) -> IP:
    return network.address


def _prefix_length(network: CIDR) -> int:
    return network.length


def _masked(network: CIDR) -> CIDR:
    host_bits = network.address.bits - network.length
    return CIDR(IP(network.address.value >> host_bits << host_bits, network.address.bits), network.length)


# Costs.


def _contains_estimate(network: bool, text: bool) -> Estimate:
    """Comparing two addresses of unknown family, masking one for networks, reading a text."""

    def estimate(estimator: Estimator, target: CostNode | None, arguments: Sequence[CostNode]) -> CallEstimate | None:
        if not arguments:
            return None
        cost = _ADDRESS_BYTES.plus(_ADDRESS_BYTES).scaled(STRING_TRAVERSAL_FACTOR)
        if network:
            cost = cost.plus(_ADDRESS_BYTES.scaled(STRING_TRAVERSAL_FACTOR)).plus(ONE)
        if text:
            cost = cost.plus(estimator.size(arguments[0]).scaled(STRING_TRAVERSAL_FACTOR))
        return CallEstimate(cost)

    return estimate


def _contains_ip_actual(values: Sequence[Value], result: Value) -> int:
    cost = scanned(2 * actual_size(values[0]))
    return cost + scanned(len(values[1])) if values[1].__class__ is str else cost


def _contains_cidr_actual(values: Sequence[Value], result: Value) -> int:
    return _contains_ip_actual(values, result) + scanned(actual_size(values[0])) + 1


def functions() -> list[Function]:
    return [*_ip_functions(), *_cidr_functions()]


def _ip_functions() -> list[Function]:
    nominal = {"estimate": nominal_estimate, "actual": nominal_actual, "since": _SINCE}
    reading = {
        "estimate": scan_first_argument(STRING_TRAVERSAL_FACTOR),
        "actual": scan_first_value(),
        "since": _SINCE,
    }
    checks = (
        ("isUnspecified", "ip_is_unspecified", _is_unspecified, "Whether it is 0.0.0.0 or ::.", "0.0.0.0"),
        ("isLoopback", "ip_is_loopback", _is_loopback, "Whether it is in 127.0.0.0/8 or ::1.", "127.0.0.1"),
        (
            "isLinkLocalMulticast",
            "ip_is_link_local_multicast",
            _is_link_local_multicast,
            "Whether it is in 224.0.0.0/24 or ff02::/16.",
            "ff02::1",
        ),
        (
            "isLinkLocalUnicast",
            "ip_is_link_local_unicast",
            _is_link_local_unicast,
            "Whether it is in 169.254.0.0/16 or fe80::/10.",
            "fe80::1",
        ),
        (
            "isGlobalUnicast",
            "ip_is_global_unicast",
            _is_global_unicast,
            "Whether it is none of the special ones; private addresses are global, too.",
            "192.168.0.1",
        ),
    )
    return [
        function(
            "ip",
            _IP,
            "The address a text is; no zone, no IPv4 inside IPv6.",
            ('ip("192.168.0.1") == ip("192.168.0.1")',),
            [overload("string_to_ip", (STRING,), IP_TYPE, _ip, **reading)],
        ),
        function(
            "family",
            _IP,
            "4 or 6.",
            ('ip("::1").family() == 6',),
            [member("ip_family", (IP_TYPE,), INT, _family, **nominal)],
        ),
        function(
            "ip.isCanonical",
            _IP,
            "Whether an address is written in its normal form.",
            ('ip.isCanonical("::1") && !ip.isCanonical("0::1")',),
            [
                overload(
                    "ip_is_canonical",
                    (STRING,),
                    BOOL,
                    _is_canonical,
                    estimate=scan_first_argument(_TWICE),
                    actual=scan_first_value(_TWICE),
                    since=_SINCE,
                )
            ],
        ),
        *(
            function(
                name,
                _IP,
                documentation,
                (f'ip("{example}").{name}()',),
                [member(id, (IP_TYPE,), BOOL, check, **nominal)],
            )
            for name, id, check, documentation, example in checks
        ),
        function(
            "isIP",
            _IP,
            "Whether ip() takes the text.",
            ('isIP("::1") && !isIP("1.2.3")',),
            [overload("is_ip", (STRING,), BOOL, _is_ip, **reading)],
        ),
        function(
            "string",
            _IP,
            "The address in its normal form.",
            ('string(ip("0::1")) == "::1"',),
            [overload("ip_to_string", (IP_TYPE,), STRING, str, since=_SINCE)],
        ),
    ]


def _cidr_functions() -> list[Function]:
    nominal = {"estimate": nominal_estimate, "actual": nominal_actual, "since": _SINCE}
    reading = {
        "estimate": scan_first_argument(STRING_TRAVERSAL_FACTOR),
        "actual": scan_first_value(),
        "since": _SINCE,
    }
    return [
        function(
            "cidr",
            _CIDR,
            "The network a text is.",
            ('cidr("192.168.0.0/16").prefixLength() == 16',),
            [overload("string_to_cidr", (STRING,), CIDR_TYPE, _cidr, **reading)],
        ),
        function(
            "containsIP",
            _CIDR,
            "Whether an address, or the one a text is, belongs to a network.",
            ('cidr("10.0.0.0/8").containsIP("10.1.2.3")',),
            [
                member(
                    "cidr_contains_ip_string",
                    (CIDR_TYPE, STRING),
                    BOOL,
                    _contains_ip_text,
                    estimate=_contains_estimate(network=False, text=True),
                    actual=_contains_ip_actual,
                    since=_SINCE,
                ),
                member(
                    "cidr_contains_ip_ip",
                    (CIDR_TYPE, IP_TYPE),
                    BOOL,
                    _contains_ip,
                    estimate=_contains_estimate(network=False, text=False),
                    actual=_contains_ip_actual,
                    since=_SINCE,
                ),
            ],
        ),
        function(
            "containsCIDR",
            _CIDR,
            "Whether a network, or the one a text is, lies within a network.",
            ('cidr("10.0.0.0/8").containsCIDR("10.1.0.0/16")',),
            [
                member(
                    "cidr_contains_cidr_string",
                    (CIDR_TYPE, STRING),
                    BOOL,
                    _contains_cidr_text,
                    estimate=_contains_estimate(network=True, text=True),
                    actual=_contains_cidr_actual,
                    since=_SINCE,
                ),
                member(
                    "cidr_contains_cidr",
                    (CIDR_TYPE, CIDR_TYPE),
                    BOOL,
                    _contains_cidr,
                    estimate=_contains_estimate(network=True, text=False),
                    actual=_contains_cidr_actual,
                    since=_SINCE,
                ),
            ],
        ),
        function(
            "ip",
            _CIDR,
            "The address in a network as written.",
            ('cidr("10.1.2.3/8").ip() == ip("10.1.2.3")',),
            [member("cidr_ip", (CIDR_TYPE,), IP_TYPE, _address_of, **nominal)],
        ),
        function(
            "prefixLength",
            _CIDR,
            "The length of the prefix in bits.",
            ('cidr("::1/128").prefixLength() == 128',),
            [member("cidr_prefix_length", (CIDR_TYPE,), INT, _prefix_length, **nominal)],
        ),
        function(
            "masked",
            _CIDR,
            "The network with its host part zero.",
            ('cidr("10.1.2.3/8").masked() == cidr("10.0.0.0/8")',),
            [member("cidr_masked", (CIDR_TYPE,), CIDR_TYPE, _masked, **nominal)],
        ),
        function(
            "isCIDR",
            _CIDR,
            "Whether cidr() takes the text.",
            ('isCIDR("10.0.0.0/8") && !isCIDR("10.0.0.0/33")',),
            [overload("is_cidr", (STRING,), BOOL, _is_cidr, **reading)],
        ),
        function(
            "string",
            _CIDR,
            "The network as text.",
            ('string(cidr("10.0.0.0/8")) == "10.0.0.0/8"',),
            [overload("cidr_to_string", (CIDR_TYPE,), STRING, str, since=_SINCE)],
        ),
    ]
