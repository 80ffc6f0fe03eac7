"""Turns a kubeconfig's cluster and user into an endpoint and an authorization header."""

from __future__ import annotations

import os
import ssl
import time
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from kubectl_dra.cluster.exec_plugin import ExecCredential, run_plugin
from kubectl_dra.cluster.http_connection import SOCKS, Endpoint
from kubectl_dra.console import conceal
from kubectl_dra.errors import ClusterError, InputError

Authorization = Callable[[], str]
"""The header's value for the next request; empty for none. Raises ClusterError."""
_TOKEN_SECONDS: Final = 60.0
"""A token file is reread after this time: tokens of pods are replaced while they run."""
_LARGEST_TOKEN: Final = 1 << 20
_EARLY_SECONDS: Final = 30.0


def prepared(
    cluster: Mapping[str, Any], user: Mapping[str, Any], seconds: float | None
) -> tuple[Endpoint, Authorization]:
    """The endpoint and the authorization for a kubeconfig's entries. An exec plugin runs for at most
    ``seconds``.

    Raises:
        ClusterError: a missing file, an invalid URL or certificate, or a failing plugin.
    """
    server = cluster.get("server")
    if not isinstance(server, str):
        raise ClusterError("the kubeconfig's server must be a URL")
    if "://" not in server:
        checked = cluster.get("certificate-authority") or cluster.get("insecure-skip-tls-verify")
        server = f"{'https' if checked else 'http'}://{server}"
    try:
        url = urlsplit(server)
        host, port = url.hostname or "", url.port
    except ValueError:
        host, port = "", None
    if not host or url.scheme not in ("http", "https") or not server.isprintable() or " " in server:
        raise ClusterError("the kubeconfig's server is not a URL such as https://10.0.0.1:6443")
    secure = url.scheme == "https"
    plugin = user.get("exec")
    if not isinstance(plugin, dict | None):
        raise ClusterError("the kubeconfig's user has an exec that is not an object")
    made = run_plugin(plugin, cluster, seconds) if plugin and not _own(user) else None
    tls = _context(cluster, user, made) if secure else None
    endpoint = Endpoint(
        host,
        port or (443 if secure else 80),
        url.path.rstrip("/"),
        tls,
        str(cluster.get("tls-server-name") or ""),
        _proxy(cluster, url.scheme, host, port or (443 if secure else 80)),
        # On the same machine packing only costs time.
        packed=not (cluster.get("disable-compression") or host in ("localhost", "127.0.0.1", "::1")),
    )
    if plugin and made is not None:
        return endpoint, _Renewed(plugin, cluster, seconds, made)
    if url.username and not _own(user):
        user = {**user, "username": unquote(url.username), "password": unquote(url.password or "")}
    return endpoint, _authorization(cluster, user)


def _own(user: Mapping[str, Any]) -> bool:
    """Whether the entry has credentials that take precedence over a plugin's."""
    return any(user.get(name) for name in ("token", "tokenFile", "username"))


def _authorization(cluster: Mapping[str, Any], user: Mapping[str, Any]) -> Authorization:
    if user.get("tokenFile"):
        return _Filed(Path(str(user["tokenFile"])))
    if user.get("token"):
        fixed = _bearer(str(user["token"]))
        return lambda: fixed
    if user.get("username"):
        word = f"{user['username']}:{user.get('password') or ''}"
        conceal(str(user.get("password") or ""))
        basic = f"Basic {b64encode(word.encode()).decode()}"
        return lambda: basic
    if user.get("auth-provider"):
        return authorization(cluster, user)
    return lambda: ""


def _bearer(token: str) -> str:
    """The header for a token. Tokens from files and environment variables often end in a newline."""
    token = token.strip()
    conceal(token)
    if not token.isascii() or not token.isprintable() or " " in token:
        raise ClusterError("the token has characters that no token can have, such as a blank or a newline inside")
    return f"Bearer {token}" if token else ""


class _Filed:
    """A token read from a file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = 0.0
        self._header = ""
        self()

    def __call__(self) -> str:
        from kubectl_dra.cluster.contents import beginning

        if not self._header or time.monotonic() - self._read > _TOKEN_SECONDS:
            try:
                self._header = _bearer(beginning(str(self._path), _LARGEST_TOKEN).decode())
            except InputError as error:
                raise ClusterError(str(error)) from None
            except OSError as error:
                raise ClusterError(f"{self._path}: the token cannot be read: {error.strerror or error}") from None
            except UnicodeDecodeError:
                raise ClusterError(f"{self._path}: the token file is not a text file") from None
            except ValueError:
                raise ClusterError(f"{self._path}: the token cannot be read: not a file name") from None
            self._read = time.monotonic()
        return self._header


class _Renewed:
    """A token from a plugin, which runs again before the token expires."""

    def __init__(
        self, plugin: Mapping[str, Any], cluster: Mapping[str, Any], seconds: float | None, made: ExecCredential
    ) -> None:
        self._asked = (plugin, cluster, seconds)
        self._made = made
        self._header = _bearer(made.token)

    def __call__(self) -> str:
        if self._made.expires is not None and self._made.token and time.time() > self._made.expires - _EARLY_SECONDS:
            self._made = run_plugin(*self._asked)
            self._header = _bearer(self._made.token)
        return self._header


def _context(cluster: Mapping[str, Any], user: Mapping[str, Any], made: ExecCredential | None) -> ssl.SSLContext:
    """The TLS settings. Raises ClusterError."""
    for holder, name in ((cluster, "certificate-authority"), (user, "client-certificate"), (user, "client-key")):
        # OpenSSL would wait for a writer without end.
        if isinstance(path := holder.get(name), str) and Path(path).is_fifo():
            raise ClusterError(f"{name} {path}: is a pipe, not a file")
    try:
        context = ssl.create_default_context(
            cafile=None if cluster.get("certificate-authority-data") else cluster.get("certificate-authority") or None,
            cadata=_decoded(cluster, "certificate-authority-data") or None,
        )
    except (ssl.SSLError, ValueError):
        raise ClusterError("the certificate authority of the kubeconfig's cluster is not a certificate") from None
    except (OSError, TypeError) as error:
        reason = getattr(error, "strerror", None) or "not a file name"
        raise ClusterError(f"certificate-authority {cluster.get('certificate-authority')}: {reason}") from None
    # Authorities of clusters are often older than these rules, and kubectl does not know them.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if not context.cert_store_stats()["x509_ca"] and not cluster.get("certificate-authority"):
        with suppress(OSError):
            import certifi

            context.load_verify_locations(certifi.where())
    if cluster.get("insecure-skip-tls-verify"):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    certificate = made.certificate if made else _decoded(user, "client-certificate-data")
    key = made.key if made else _decoded(user, "client-key-data")
    if certificate or key or user.get("client-certificate") or user.get("client-key"):
        _identify(context, user, certificate, key)
    return context


def _identify(context: ssl.SSLContext, user: Mapping[str, Any], certificate: str, key: str) -> None:
    """Load the client certificate, which OpenSSL accepts only from files. Raises ClusterError."""
    import tempfile

    with tempfile.TemporaryDirectory(prefix="kubectl-dra-") as directory:
        paths: list[str] = []
        for name, text in (("client-certificate", certificate), ("client-key", key)):
            path = str(user.get(name) or "")
            if text:
                path = str(Path(directory) / name)
                # Nobody else can look into the directory.
                Path(path).write_text(text, encoding="utf-8")
            elif path and not Path(path).exists():
                raise ClusterError(f"{name} {path}: there is no such file")
            paths.append(path)
        if not all(paths):
            missing = "certificate" if paths[1] else "key"
            raise ClusterError(f"the kubeconfig's user has no client {missing} to go with the other half")
        try:
            context.load_cert_chain(paths[0], paths[1], password=_no_password)
        except (ssl.SSLError, OSError, ValueError):
            raise ClusterError("the client certificate and key of the kubeconfig's user cannot be used") from None


def _no_password() -> str:
    # Otherwise OpenSSL would ask on the terminal.
    return ""


def _decoded(holder: Mapping[str, Any], name: str) -> str:
    value = holder.get(name)
    if not value:
        return ""
    try:
        return b64decode(str(value), validate=False).decode()
    except ValueError:
        raise ClusterError(f"the kubeconfig's {name} is not base64 of a certificate or key") from None


def _proxy(cluster: Mapping[str, Any], scheme: str, host: str, port: int) -> str:
    """The proxy named by the kubeconfig or the environment; empty for none. Raises ClusterError."""
    written = cluster.get("proxy-url")
    proxy = str(written) if written else _proxy_of_environment(scheme, host, port)
    if not proxy:
        return ""
    proxy = proxy if "://" in proxy else f"http://{proxy}"
    try:
        url = urlsplit(proxy)
        conceal(unquote(url.password or ""))
        known = url.scheme in ("http", *SOCKS) and bool(url.hostname) and (url.port or 1) > 0
    except ValueError:
        known = False
    if not known:
        raise ClusterError(
            f"the proxy of {'the kubeconfig' if written else 'the environment'} is not of the form http://HOST:PORT or "
            "socks5://HOST:PORT, which is all that kubectl-dra can use"
        )
    return proxy


def _proxy_of_environment(scheme: str, host: str, port: int) -> str:
    name = f"{scheme}_proxy"
    proxy = os.environ.get(name) or os.environ.get(name.upper()) or ""
    if not proxy or host == "localhost":
        return ""
    import ipaddress

    number = None
    with suppress(ValueError):
        number = ipaddress.ip_address(host)
    if number is not None and number.is_loopback:
        return ""
    for entry in (os.environ.get("no_proxy") or os.environ.get("NO_PROXY") or "").lower().split(","):
        entry = entry.strip()
        if entry in ("*", f"{host}:{port}"):
            return ""
        with suppress(ValueError):
            if number is not None and entry and number in ipaddress.ip_network(entry, strict=False):
                return ""
        domain = entry.lstrip(".")
        if domain and (host == domain or host.endswith(f".{domain}")):
            return ""
    return proxy


# The token of a kubeconfig's auth-provider, such as OIDC: the only use of the package ``kubernetes``.


def authorization(cluster: Mapping[str, Any], user: Mapping[str, Any]) -> Callable[[], str]:
    """What gives the header of a user with an auth-provider.

    Raises:
        ClusterError: it gets no credentials.
    """
    from kubernetes import client
    from kubernetes import config as loaders

    # Untyped in the package.
    load: Any = loaders
    untyped: Any = client
    configuration = untyped.Configuration()
    whole = {
        "current-context": "x",
        "clusters": [{"name": "x", "cluster": dict(cluster)}],
        "users": [{"name": "x", "user": dict(user)}],
        "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
    }
    try:
        load.load_kube_config_from_dict(whole, client_configuration=configuration, persist_config=False)
    except Exception as error:
        # Whatever it raises may hold secrets.
        raise ClusterError(f"the kubeconfig's auth-provider gave no credentials ({type(error).__name__})") from None

    def header() -> str:
        for setting in configuration.auth_settings().values():
            if setting["in"] == "header" and setting["key"] == "authorization" and setting["value"]:
                return str(setting["value"]).strip()
        return ""

    return header
