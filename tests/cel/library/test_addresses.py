"""IP addresses and networks. What is expected here was answered by Kubernetes 1.36."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kubectl_dra.cel.library.addresses import AddressError, parse_address, parse_network
from tests.cel.library.support import failure, holds

TRUE = [
    'ip("::0:1") == ip("::1")',
    'string(ip("2001:DB8:0:0:1:0:0:1")) == "2001:db8::1:0:0:1"',
    'ip("192.168.0.1").family() == 4',
    'ip("::1").family() == 6',
    'ip("127.0.0.1").isLoopback()',
    'ip("::1").isLoopback()',
    'ip("0.0.0.0").isUnspecified()',
    'ip("::").isUnspecified()',
    'ip("224.0.0.1").isLinkLocalMulticast()',
    'ip("ff02::1").isLinkLocalMulticast()',
    '!ip("224.0.1.1").isLinkLocalMulticast()',
    'ip("169.254.9.9").isLinkLocalUnicast()',
    'ip("fe80::1").isLinkLocalUnicast()',
    '!ip("fec0::1").isLinkLocalUnicast()',
    'ip("10.0.0.1").isGlobalUnicast()',
    '!ip("255.255.255.255").isGlobalUnicast()',
    '!ip("224.0.0.1").isGlobalUnicast()',
    'ip("2001:db8::1").isGlobalUnicast()',
    'ip.isCanonical("::1")',
    '!ip.isCanonical("0::1")',
    '!ip.isCanonical("2001:DB8::1")',
    'isIP("1.2.3.4")',
    '!isIP("1.2.3")',
    '!isIP("01.2.3.4")',
    '!isIP("fe80::1%eth0")',
    '!isIP("::ffff:1.2.3.4")',
    'isIP("::1.2.3.4")',
    'cidr("10.0.0.0/8").containsIP("10.1.2.3")',
    '!cidr("10.0.0.0/8").containsIP(ip("11.0.0.0"))',
    '!cidr("0.0.0.0/0").containsIP("::1")',
    'cidr("10.0.0.0/8").containsCIDR("10.1.0.0/16")',
    '!cidr("10.1.0.0/16").containsCIDR(cidr("10.0.0.0/8"))',
    'cidr("::/0").containsCIDR("::1/128")',
    'cidr("10.1.2.3/8").ip() == ip("10.1.2.3")',
    'cidr("10.1.2.3/8").masked() == cidr("10.0.0.0/8")',
    'cidr("10.1.2.3/8") != cidr("10.0.0.0/8")',
    'cidr("::1/128").prefixLength() == 128',
    'string(cidr("10.0.0.0/8")) == "10.0.0.0/8"',
    'isCIDR("10.0.0.0/8")',
    '!isCIDR("10.0.0.0/33")',
    '!isCIDR("10.0.0.0")',
    '!isCIDR("10.0.0.0/08")',
    '!isCIDR("::ffff:1.2.3.4/96")',
]

ERRORS = [
    (
        'ip("1.2.3.256") == ip("::1")',
        'IP Address "1.2.3.256" parse error during conversion from string: '
        'ParseAddr("1.2.3.256"): IPv4 field has value >255',
    ),
    (
        'ip("1:2:3") == ip("::1")',
        'IP Address "1:2:3" parse error during conversion from string: ParseAddr("1:2:3"): address string too short',
    ),
    (
        'ip("1::2::3") == ip("::1")',
        'IP Address "1::2::3" parse error during conversion from string: ParseAddr("1::2::3"): '
        'multiple :: in address (at ":3")',
    ),
    ('ip("fe80::1%eth0") == ip("::1")', 'IP address "fe80::1%eth0" with zone value is not allowed'),
    ('ip("::ffff:1.2.3.4") == ip("::1")', 'IPv4-mapped IPv6 address "::ffff:1.2.3.4" is not allowed'),
    (
        'cidr("10.0.0.0/33").prefixLength() == 8',
        "network address parse error during conversion from string: network address parse error "
        'during conversion from string: netip.ParsePrefix("10.0.0.0/33"): prefix length out of range',
    ),
    (
        'cidr("10.0.0.0").prefixLength() == 8',
        "network address parse error during conversion from string: network address parse error "
        "during conversion from string: netip.ParsePrefix(\"10.0.0.0\"): no '/'",
    ),
    ('cidr("10.0.0.0/8").containsIP("x")', "no such overload"),
    (
        'cidr("10.0.0.0/8").containsCIDR("x")',
        "network address parse error during conversion from string: network address parse error "
        "during conversion from string: netip.ParsePrefix(\"x\"): no '/'",
    ),
    ('ip("::1") == dyn("::1")', "no such overload"),
    (
        'ip.isCanonical("x")',
        'IP Address "x" parse error during conversion from string: ParseAddr("x"): unable to parse IP',
    ),
]


@pytest.mark.parametrize("expression", TRUE)
def test_true(expression: str) -> None:
    assert holds(expression)


@pytest.mark.parametrize(("expression", "message"), ERRORS)
def test_errors(expression: str, message: str) -> None:
    assert message in failure(expression)


# Addresses as values, against Python's own.


@given(st.ip_addresses(v=4) | st.ip_addresses(v=6))
def test_texts_are_python_s(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
    assume(not (isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped))
    parsed = parse_address(address.exploded)
    assert (parsed.value, parsed.bits, str(parsed)) == (int(address), address.max_prefixlen, str(address))


def test_an_embedded_address_stays_visible() -> None:
    assert str(parse_address("::ffff:102:304")) == "::ffff:1.2.3.4"


@pytest.mark.parametrize(
    "text", ["", "1.2.3", "1.2.3.4.5", "1.2.3.04", "::1::", "12345::", "1:2:3:4:5:6:7:8:9", "%eth0", "::1%"]
)
def test_not_an_address(text: str) -> None:
    with pytest.raises(AddressError, match="ParseAddr"):
        parse_address(text)


@pytest.mark.parametrize("text", ["10.0.0.0", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/+8", "fe80::1%eth0/64"])
def test_not_a_network(text: str) -> None:
    with pytest.raises(AddressError, match="ParsePrefix"):
        parse_network(text)
