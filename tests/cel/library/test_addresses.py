"""Addresses as values, against Python's own."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kubectl_dra.cel.library.addresses import AddressError, parse_address, parse_network


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
