"""Which proxy leads to a server (the kubeconfig's, or the environment's by Go's rules), and the way through SOCKS."""

from __future__ import annotations

import os
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from kubectl_dra.errors import ClusterError
from kubectl_dra.safe_output import conceal

SOCKS: Final = ("socks5", "socks5h")
"""Schemes of a SOCKS proxy; both give it the server's name to look up."""


def proxy_for(written: str, scheme: str, host: str, port: int) -> str:
    """The proxy's URL; empty for none. ``written`` is the kubeconfig's.

    Raises ClusterError: it is not a proxy that can be used.
    """
    proxy = written or _of_environment(scheme, host.lower(), port)
    if not proxy:
        return ""
    if not written and "://" not in proxy:
        proxy = f"http://{proxy}"
    # A kubeconfig may not say socks5h, as kubectl has it; the environment may. Both mean the same.
    schemes = ("http", SOCKS[0]) if written else ("http", *SOCKS)
    try:
        url = urlsplit(proxy)
        conceal(unquote(url.password or ""))
        known = url.scheme in schemes and bool(url.hostname) and (url.port or 1) > 0
    except ValueError:
        known = False
    if not known:
        raise ClusterError(
            f"the proxy of {'the kubeconfig' if written else 'the environment'} is not of the form http://HOST:PORT or "
            "socks5://HOST:PORT, which is all that kubectl-dra can use"
        )
    return proxy


def _of_environment(scheme: str, host: str, port: int) -> str:
    proxy = _variable(f"{scheme}_proxy")
    return proxy if proxy and host != "localhost" and not _spared(host, port) else ""


def _variable(name: str) -> str:
    return os.environ.get(name.upper()) or os.environ.get(name) or ""


def _spared(host: str, port: int) -> bool:
    """Whether ``NO_PROXY`` names the host, or it is this machine."""
    number = _number(host)
    if number is not None and number.is_loopback:
        return True
    return any(_names(word.strip().lower(), host, number, port) for word in _variable("no_proxy").split(","))


def _number(text: str) -> IPv4Address | IPv6Address | None:
    with suppress(ValueError):
        return ip_address(text)
    return None


def _names(word: str, host: str, number: IPv4Address | IPv6Address | None, port: int) -> bool:
    """Whether a word of ``NO_PROXY`` names the host: ``*``, a network, or an address or domain, with or without port.

    ``foo.com`` names its subdomains too, ``.foo.com`` and ``*.foo.com`` only these.
    """
    if word == "*":
        return True
    with suppress(ValueError):
        if "/" in word:
            network = ip_network(word, strict=False)
            return number is not None and number in network
    name, wanted = _split(word)
    if wanted not in ("", str(port)):
        return False
    address = _number(name)
    if address is not None:
        return address == number
    name = name.removeprefix("*") if name.startswith("*.") else name
    if not name.strip("."):
        return False
    return number is None and (host == name or host.endswith(name if name.startswith(".") else f".{name}"))


def _split(word: str) -> tuple[str, str]:
    """Host and port of a word; the port is empty where it has none."""
    if word.startswith("["):
        name, _, rest = word[1:].partition("]")
        return name, rest.removeprefix(":")
    if word.count(":") == 1:
        name, _, port = word.partition(":")
        return name, port
    return word, ""


# A tunnel through a SOCKS 5 proxy (RFC 1928, user name and password as in RFC 1929).
#
# Go's HTTP client, and so kubectl, gives the proxy the name of the server, with ``socks5`` as with ``socks5h``: the
# proxy looks it up. PySocks is not used: its reads have a time-out each, and no deadline for all of them.

SOCKS_PORT: Final = 1080
"""Where a SOCKS proxy listens if its URL does not say."""
_VERSION: Final = 5
_NO_LOGIN, _PASSWORD = 0, 2
_LOGIN_VERSION: Final = 1
_CONNECT: Final = 1
_IPV4, _NAME, _IPV6 = 1, 3, 4
_LONGEST: Final = 255
_REFUSALS: Final = (
    "it failed",
    "its rules do not allow it",
    "the network cannot be reached",
    "the host cannot be reached",
    "the connection was refused",
    "it took too long",
    "it does not connect to others",
    "it does not know this kind of address",
)
"""By reply code, from 1."""


class SocksError(OSError):
    """The proxy does not connect; the text says why."""


def through_socks(sock: Any, host: str, port: int, username: str, password: str) -> None:
    """Have the proxy at the other end of ``sock`` connect to ``host``; what follows goes there.

    Raises:
        SocksError: the proxy refuses, or does not speak SOCKS 5.
        OSError: the connection to the proxy fails.
    """
    methods = bytes((_NO_LOGIN, _PASSWORD)) if username else bytes((_NO_LOGIN,))
    sock.sendall(bytes((_VERSION, len(methods))) + methods)
    version, chosen = _read(sock, 2)
    if version != _VERSION:
        raise SocksError("its answer is not SOCKS 5")
    if chosen == _PASSWORD and username:
        _log_in(sock, username, password)
    elif chosen != _NO_LOGIN:
        raise SocksError("it wants a login" if not username else "it wants another kind of login")
    sock.sendall(bytes((_VERSION, _CONNECT, 0)) + _address(host) + port.to_bytes(2, "big"))
    version, code, _, kind = _read(sock, 4)
    if version != _VERSION:
        raise SocksError("its answer is not SOCKS 5")
    if code:
        known = code <= len(_REFUSALS)
        raise SocksError(_REFUSALS[code - 1] if known else f"it refuses with code {code}")
    # The address from which it connects does not matter.
    size = {_IPV4: 4, _IPV6: 16}.get(kind)
    _read(sock, (_read(sock, 1)[0] if size is None else size) + 2)


def _log_in(sock: Any, username: str, password: str) -> None:
    words = [_short(word, "login") for word in (username, password)]
    sock.sendall(bytes((_LOGIN_VERSION,)) + b"".join(bytes((len(word),)) + word for word in words))
    if _read(sock, 2)[1]:
        raise SocksError("it does not accept the login")


def _address(host: str) -> bytes:
    try:
        number = ip_address(host)
    except ValueError:
        name = _short(host, "server's name")
        return bytes((_NAME, len(name))) + name
    return bytes((_IPV4 if number.version == 4 else _IPV6,)) + number.packed


def _short(word: str, what: str) -> bytes:
    data = word.encode()
    if len(data) > _LONGEST:
        raise SocksError(f"the {what} is longer than {_LONGEST} bytes")
    return data


def _read(sock: Any, size: int) -> bytes:
    """Exactly that many bytes."""
    buffer, at = bytearray(size), 0
    while at < size:
        count = sock.recv_into(memoryview(buffer)[at:])
        if not count:
            raise SocksError("it closes the connection")
        at += count
    return bytes(buffer)
