"""Which proxy leads to a server: the kubeconfig's, or the environment's by the rules of Go (``httpproxy``)."""

from __future__ import annotations

import os
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import unquote, urlsplit

from kubectl_dra.cluster.http_connection import SOCKS
from kubectl_dra.errors import ClusterError
from kubectl_dra.safe_output import conceal


def proxy_for(written: str, scheme: str, host: str, port: int) -> str:
    """The proxy's URL; empty for none. ``written`` is the kubeconfig's.

    Raises:
        ClusterError: it is not a proxy that can be used.
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
