"""Asks a SOCKS 5 proxy for a tunnel (RFC 1928, user name and password as in RFC 1929).

Go's HTTP client, and so kubectl, gives the proxy the name of the server, with ``socks5`` as with ``socks5h``: the proxy
looks it up. PySocks is not used: its reads have a time-out each, and no deadline for all of them.
"""

from __future__ import annotations

import ipaddress
from typing import Any, Final

PORT: Final = 1080
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
        number = ipaddress.ip_address(host)
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
