"""Functions on IP addresses and networks (CIDR)."""

from __future__ import annotations

from collections.abc import Sequence

from kubectl_dra.api.codec import quoted
from kubectl_dra.cel.errors import EvaluationError, no_such_overload
from kubectl_dra.cel.functions import Function
from kubectl_dra.cel.known_sizes import ONE, STRING_TRAVERSAL_FACTOR, CallEstimate, Cost, Operands, Size
from kubectl_dra.cel.libraries import ADDRESSES
from kubectl_dra.cel.library.netip import CIDR, IP, AddressError, parse_address, parse_network
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

    return Cost(estimate, actual)


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
