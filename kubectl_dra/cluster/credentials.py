"""Turns a kubeconfig's cluster and user into an endpoint and an authorization header, by the rules of client-go.

A server that is not asked over TLS gets no credentials: no token, no password, no certificate, and no plugin runs.
"""

from __future__ import annotations

import ssl
import time
from base64 import b64encode
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

from kubectl_dra.cluster.credential_plugins import ExecCredential, authorization, run_plugin
from kubectl_dra.cluster.http_connection import Endpoint
from kubectl_dra.cluster.kubeconfig import ClusterEntry, ExecPlugin, UserEntry
from kubectl_dra.cluster.proxies import proxy_for
from kubectl_dra.errors import ClusterError, InputError
from kubectl_dra.safe_output import conceal

Authorization = Callable[[], str]
"""The header's value for the next request; empty for none. Raises ClusterError."""
_TOKEN_SECONDS: Final = 60.0
"""A token file is reread after this time: tokens of pods are replaced while they run."""
_LARGEST_TOKEN: Final = 1 << 20
_EARLY_SECONDS: Final = 30.0


def prepared(cluster: ClusterEntry, user: UserEntry, seconds: float | None) -> tuple[Endpoint, Authorization]:
    """The endpoint and the authorization for a kubeconfig's entries. An exec plugin runs for at most
    ``seconds``.

    Raises ClusterError: contradictory entries, a missing file, an invalid URL or certificate, or a failing plugin.
    """
    # Also where they are not sent: a server may know them all the same, and say them.
    for secret in (user.token.strip(), user.password):
        conceal(secret)
    _check_cluster(cluster)
    _check_user(user)
    url = _server(cluster.server)
    host, secure = url.hostname or "", url.scheme == "https"
    port = url.port or (443 if secure else 80)
    if not secure and (url.username or url.password):
        raise ClusterError("the kubeconfig's server has a login in its URL, which plain HTTP would show to anybody")
    login = _basic(unquote(url.username or ""), unquote(url.password or "")) if "@" in url.netloc else ""
    if secure and cluster.insecure_skip_tls_verify and _has_authority(cluster):
        raise ClusterError(
            "the kubeconfig's cluster has a certificate authority and insecure-skip-tls-verify: remove one of them"
        )
    if secure and user.auth_provider is not None and user.auth_provider.name != "oidc":
        raise ClusterError("the kubeconfig's auth-provider is not oidc, the only one that kubectl still has: use exec")
    proxy = proxy_for(cluster.proxy_url, url.scheme, host, port)
    tls = _context(cluster) if secure else None
    plugin = user.exec if tls is not None and not login and not _has_own(user) else None
    renewed = _Renewed(plugin, cluster, seconds) if plugin is not None else None
    if tls is not None:
        if _has_certificate(user):
            _identify(tls, user)
        elif renewed is not None:
            renewed.identify(tls)
    endpoint = Endpoint(
        host,
        port,
        url.path.rstrip("/"),
        tls,
        cluster.tls_server_name,
        proxy,
        # On the same machine packing only costs time.
        packed=not (cluster.disable_compression or host in ("localhost", "127.0.0.1", "::1")),
        identity=(lambda: 0) if renewed is None else lambda: renewed.certificates,
    )
    if renewed is not None:
        return endpoint, renewed
    if login or not secure:
        return endpoint, lambda: login
    return endpoint, _authorization(cluster, user)


def _server(server: str) -> SplitResult:
    """The URL of the server; without a scheme it is plain HTTP. Raises ClusterError."""
    bare = "://" not in server
    try:
        url = urlsplit(f"http://{server}" if bare else server)
        usable = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
    except ValueError:
        usable = False
    if not usable or not server.isprintable() or " " in server or (bare and url.path not in ("", "/")):
        raise ClusterError("the kubeconfig's server is not a URL such as https://10.0.0.1:6443")
    return url


def _check_cluster(cluster: ClusterEntry) -> None:
    if cluster.certificate_authority and cluster.certificate_authority_data:
        raise ClusterError("the kubeconfig's cluster has certificate-authority and certificate-authority-data")
    _check_file("certificate-authority", cluster.certificate_authority)


def _check_user(user: UserEntry) -> None:
    """Refuse what contradicts itself, whether it would be used or not."""
    methods = [name for name, there in (("token", user.token), ("username", user.username or user.password)) if there]
    if user.password and not user.username:
        raise ClusterError("the kubeconfig's user has a password and no username")
    if len(methods) > 1 or (user.token_file and user.username):
        raise ClusterError("the kubeconfig's user has a token and a username: only one of them can be sent")
    for name in ("client_certificate", "client_key"):
        word = name.replace("_", "-")
        if getattr(user, name) and getattr(user, f"{name}_data"):
            raise ClusterError(f"the kubeconfig's user has {word} and {word}-data: remove one of them")
    certificate, key = _has_certificate(user), bool(user.client_key or user.client_key_data)
    if certificate != key:
        missing = "certificate" if key else "key"
        raise ClusterError(f"the kubeconfig's user has no client {missing} to go with the other half")
    for word, path in (("client-certificate", user.client_certificate), ("client-key", user.client_key)):
        _check_file(word, path)
    if user.exec is not None and user.auth_provider is not None:
        raise ClusterError("the kubeconfig's user has exec and auth-provider: remove one of them")
    if user.exec is not None:
        _check_plugin(user.exec)


def _check_plugin(plugin: ExecPlugin) -> None:
    if not plugin.command:
        raise ClusterError("the kubeconfig's user has an exec without a command")
    if not plugin.api_version:
        raise ClusterError("the kubeconfig's user has an exec without an apiVersion")
    if plugin.interactive_mode not in ("Never", "IfAvailable", "Always"):
        raise ClusterError(
            "the kubeconfig's user has an exec whose interactiveMode is not Never, IfAvailable or Always; "
            "client.authentication.k8s.io/v1 needs one of them"
        )
    if not all(variable.name for variable in plugin.env):
        raise ClusterError("the kubeconfig's user has an exec with a variable that has no name")


def _check_file(word: str, path: str) -> None:
    if not path:
        return
    try:
        # OpenSSL would wait for a writer without end.
        if Path(path).is_fifo():
            raise ClusterError(f"{word} {path}: is a pipe, not a file")
        with Path(path).open("rb"):
            pass
    except FileNotFoundError:
        raise ClusterError(f"{word} {path}: there is no such file") from None
    except (OSError, ValueError) as error:
        raise ClusterError(f"{word} {path}: {getattr(error, 'strerror', None) or 'not a file name'}") from None


# --- the header ----------------------------------------------------------------------------------


def _has_own(user: UserEntry) -> bool:
    """Whether the entry has credentials that take precedence over a plugin's."""
    return bool(user.token or user.token_file or user.username or _has_certificate(user))


def _has_certificate(user: UserEntry) -> bool:
    return bool(user.client_certificate or user.client_certificate_data)


def _authorization(cluster: ClusterEntry, user: UserEntry) -> Authorization:
    if user.token_file:
        return _Filed(Path(user.token_file), _bearer(user.token))
    if user.token:
        fixed = _bearer(user.token)
        return lambda: fixed
    if user.username:
        basic = _basic(user.username, user.password)
        return lambda: basic
    if user.auth_provider is not None:
        return authorization(cluster, user)
    return lambda: ""


def _basic(username: str, password: str) -> str:
    conceal(password)
    return f"Basic {b64encode(f'{username}:{password}'.encode()).decode()}"


def _bearer(token: str) -> str:
    """The header for a token. Tokens from files and environment variables often end in a newline."""
    token = token.strip()
    conceal(token)
    if not token.isascii() or not token.isprintable() or " " in token:
        raise ClusterError("the token has characters that no token can have, such as a blank or a newline inside")
    return f"Bearer {token}" if token else ""


class _Filed:
    """A token read from a file; ``otherwise`` is the header where that fails, and after a failure the last one."""

    def __init__(self, path: Path, otherwise: str) -> None:
        self._path = path
        self._read: float | None = None
        self._header = otherwise
        self()

    def __call__(self) -> str:
        if self._read is None or time.monotonic() - self._read > _TOKEN_SECONDS:
            try:
                self._header = self._from_file()
            except ClusterError:
                if not self._header:
                    raise
            self._read = time.monotonic()
        return self._header

    def _from_file(self) -> str:
        from kubectl_dra.cluster.contents import beginning

        try:
            header = _bearer(beginning(str(self._path), _LARGEST_TOKEN).decode())
        except InputError as error:
            raise ClusterError(str(error)) from None
        except OSError as error:
            raise ClusterError(f"{self._path}: the token cannot be read: {error.strerror or error}") from None
        except UnicodeDecodeError:
            raise ClusterError(f"{self._path}: the token file is not a text file") from None
        except ValueError:
            raise ClusterError(f"{self._path}: the token cannot be read: not a file name") from None
        if not header:
            raise ClusterError(f"{self._path}: the token file is empty")
        return header


class _Renewed:
    """What a plugin gives; it runs again before that expires."""

    def __init__(self, plugin: ExecPlugin, cluster: ClusterEntry, seconds: float | None) -> None:
        self._asked = (plugin, cluster, seconds)
        self._context: ssl.SSLContext | None = None
        self._certificates = 0
        self._run()

    @property
    def certificates(self) -> int:
        """Number of certificates so far."""
        return self._certificates

    def _run(self) -> None:
        self._made: ExecCredential = run_plugin(*self._asked)
        self._header = _bearer(self._made.token)

    def identify(self, context: ssl.SSLContext) -> None:
        """Use its certificate for new connections, now and whenever there is a new one. Raises ClusterError."""
        self._context = context
        if self._made.certificate:
            certificate, key = self._made.certificate.encode(), self._made.key.encode()
            _identify(context, UserEntry(client_certificate_data=certificate, client_key_data=key))
            self._certificates += 1

    def __call__(self) -> str:
        if self._made.expires is not None and time.time() > self._made.expires - _EARLY_SECONDS:
            self._run()
            if self._context is not None:
                self.identify(self._context)
        return self._header


# --- TLS -----------------------------------------------------------------------------------------


def _has_authority(cluster: ClusterEntry) -> bool:
    return bool(cluster.certificate_authority or cluster.certificate_authority_data)


def _context(cluster: ClusterEntry) -> ssl.SSLContext:
    """The TLS settings. Raises ClusterError."""
    try:
        context = ssl.create_default_context(
            cafile=cluster.certificate_authority or None,
            # As a text it is PEM; bytes would be DER, which kubectl does not read.
            cadata=cluster.certificate_authority_data.decode() or None,
        )
    except (ssl.SSLError, ValueError):
        raise ClusterError("the certificate authority of the kubeconfig's cluster is not a certificate") from None
    except OSError as error:
        raise ClusterError(f"certificate-authority {cluster.certificate_authority}: {error.strerror}") from None
    # Authorities of clusters are often older than these rules, and kubectl does not know them.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if not _has_authority(cluster) and not context.cert_store_stats()["x509_ca"]:
        with suppress(OSError):
            import certifi

            context.load_verify_locations(certifi.where())
    if cluster.insecure_skip_tls_verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _identify(context: ssl.SSLContext, user: UserEntry) -> None:
    """Load the client certificate, which OpenSSL accepts only from files. Raises ClusterError."""
    import tempfile

    with tempfile.TemporaryDirectory(prefix="kubectl-dra-") as directory:
        paths = [user.client_certificate, user.client_key]
        for index, data in enumerate((user.client_certificate_data, user.client_key_data)):
            if data:
                paths[index] = str(Path(directory) / str(index))
                # Nobody else can look into the directory.
                Path(paths[index]).write_bytes(data)
        try:
            # Without a password OpenSSL would ask on the terminal.
            context.load_cert_chain(paths[0], paths[1], password=lambda: "")
        except (ssl.SSLError, OSError, ValueError):
            raise ClusterError("the client certificate and key of the kubeconfig's user cannot be used") from None
