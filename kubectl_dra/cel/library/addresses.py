"""Functions on IP addresses and networks (CIDR)."""

from __future__ import annotations

from collections.abc import Sequence

from kubectl_dra.api.codec import quoted
from kubectl_dra.cel.errors import EvaluationError, no_such_overload
from kubectl_dra.cel.functions import Function
from kubectl_dra.cel.known_sizes import (
    ONE,
    STRING_TRAVERSAL_FACTOR,
    Actual,
    CallEstimate,
    CostNode,
    Estimate,
    Estimator,
    Size,
)
from kubectl_dra.cel.libraries import ADDRESSES
from kubectl_dra.cel.library.netip import CIDR, IP, AddressError, parse_address, parse_network
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
_TWICE = 2 * STRING_TRAVERSAL_FACTOR
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
    """Cost of comparing two addresses of unknown family, masking one for networks, and reading a text."""

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


def _contains_actual(network: bool, text: bool) -> Actual:
    def actual(values: Sequence[Value], result: Value) -> int:
        cost = scanned(2 * actual_size(values[0]))
        if network:
            cost += scanned(actual_size(values[0])) + 1
        return cost + scanned(actual_size(values[1])) if text else cost

    return actual


def functions() -> list[Function]:
    return [*_ip_functions(), *_cidr_functions()]


def _ip_functions() -> list[Function]:
    nominal = {"estimate": nominal_estimate, "actual": nominal_actual, "version": ADDRESSES}
    reading = {
        "estimate": scan_first_argument(STRING_TRAVERSAL_FACTOR),
        "actual": scan_first_value(),
        "version": ADDRESSES,
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
                    version=ADDRESSES,
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
            [overload("ip_to_string", (IP_TYPE,), STRING, str, version=ADDRESSES)],
        ),
    ]


def _cidr_functions() -> list[Function]:
    nominal = {"estimate": nominal_estimate, "actual": nominal_actual, "version": ADDRESSES}
    reading = {
        "estimate": scan_first_argument(STRING_TRAVERSAL_FACTOR),
        "actual": scan_first_value(),
        "version": ADDRESSES,
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
                    actual=_contains_actual(network=False, text=True),
                    version=ADDRESSES,
                ),
                member(
                    "cidr_contains_ip_ip",
                    (CIDR_TYPE, IP_TYPE),
                    BOOL,
                    _contains_ip,
                    estimate=_contains_estimate(network=False, text=False),
                    actual=_contains_actual(network=False, text=False),
                    version=ADDRESSES,
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
                    actual=_contains_actual(network=True, text=True),
                    version=ADDRESSES,
                ),
                member(
                    "cidr_contains_cidr",
                    (CIDR_TYPE, CIDR_TYPE),
                    BOOL,
                    _contains_cidr,
                    estimate=_contains_estimate(network=True, text=False),
                    actual=_contains_actual(network=True, text=False),
                    version=ADDRESSES,
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
            [overload("cidr_to_string", (CIDR_TYPE,), STRING, str, version=ADDRESSES)],
        ),
    ]
