"""Makes one client configuration of kubeconfig files and kubectl's connection flags, by kubectl's rules."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from msgspec import Struct
from msgspec.structs import replace

from kubectl_dra.cluster.credentials import Authorization, prepared
from kubectl_dra.cluster.http_connection import Endpoint
from kubectl_dra.cluster.kubeconfig import ClusterEntry, ContextEntry, Kubeconfig, UserEntry, merged
from kubectl_dra.errors import ClusterError, NoKubeconfig

_SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_DEFAULT_SECONDS: Final = 60.0
_OF_HEADERS: Final = "!#$&'*+^`|"
"""What a header's name can have besides letters, digits and what addresses have; the sign of escapes is none of it."""


class ConnectionOptions(Struct, frozen=True):
    """kubectl's connection flags; empty means not given. ``request_timeout`` is in seconds, 0 means no limit.

    The default limit of a request is one minute.
    """

    kubeconfig: str = ""
    context: str = ""
    cluster: str = ""
    user: str = ""
    namespace: str = ""
    as_user: str = ""
    as_groups: tuple[str, ...] = ()
    as_uid: str = ""
    request_timeout: float | None = None
    server: str = ""
    token: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""

    @property
    def seconds(self) -> float | None:
        """Time limit of a request or a credential plugin; None means no limit."""
        return _DEFAULT_SECONDS if self.request_timeout is None else self.request_timeout or None


class Connection(Struct, frozen=True):
    """What requests need. ``server`` is its address for messages; ``authorization`` returns the header of a request."""

    server: str
    endpoint: Endpoint
    authorization: Authorization
    context: str
    namespace: str
    impersonation: tuple[tuple[str, str], ...]


def connect(options: ConnectionOptions) -> Connection:
    """Load the configuration from the flags, ``KUBECONFIG``, ``~/.kube/config`` or a pod's own account.

    Raises ClusterError: no kubeconfig or a broken one, an unknown context, or credentials that cannot be obtained.
    """
    paths = _paths(options)
    config = merged(paths)
    if not options.server and not options.kubeconfig and config == Kubeconfig() and _in_a_pod():
        return _in_cluster(options)
    if not paths and not options.server:
        raise NoKubeconfig(f"there is no kubeconfig at {_looked_at(options)}: name one with --kubeconfig")
    name, context = _context(config, options)
    cluster_name, user_name = options.cluster or context.cluster, options.user or context.user
    cluster = config.entry(ClusterEntry, cluster_name) if cluster_name else ClusterEntry()
    user = config.entry(UserEntry, user_name) if user_name else UserEntry()
    cluster, user = _with_flags(cluster, user, options)
    if not cluster.server:
        raise ClusterError(
            f'the cluster of context "{name}" has no server in the kubeconfig'
            if name
            else "the kubeconfig names no cluster: give --context or --server"
        )
    try:
        impersonation = _impersonation(user)
        endpoint, authorization = prepared(cluster, user, options.seconds)
    except ClusterError as error:
        if user.exec is not None:
            raise
        raise ClusterError(f'the kubeconfig\'s context "{name or "kubectl-dra"}" cannot be used: {error}') from None
    namespace = options.namespace or context.namespace or "default"
    return Connection(_shown(cluster.server), endpoint, authorization, name, namespace, impersonation)


def _paths(options: ConnectionOptions) -> list[str]:
    if options.kubeconfig:
        path = os.path.expanduser(options.kubeconfig)  # noqa: PTH111 - kubectl's meaning of ~, no normalising
        if not Path(path).exists():
            raise ClusterError(f"{options.kubeconfig}: there is no such kubeconfig")
        return [path]
    listed = os.environ.get("KUBECONFIG", "")
    # A user without an entry in passwd has no home, as in a container that is run with any uid.
    usual = os.path.expanduser("~/.kube/config")  # noqa: PTH111 - Path.expanduser raises an error then
    candidates = [path for path in listed.split(os.pathsep) if path] if listed else [usual]
    return [path for path in candidates if Path(path).exists()]


def _looked_at(options: ConnectionOptions) -> str:
    return options.kubeconfig or os.environ.get("KUBECONFIG") or "~/.kube/config"


def _context(config: Kubeconfig, options: ConnectionOptions) -> tuple[str, ContextEntry]:
    name = options.context or config.current_context
    if name:
        return name, config.entry(ContextEntry, name)
    if not options.server and not options.cluster:
        raise ClusterError("the kubeconfig has no current context: choose one with --context")
    return "", ContextEntry()


def _with_flags(cluster: ClusterEntry, user: UserEntry, options: ConnectionOptions) -> tuple[ClusterEntry, UserEntry]:
    if options.server:
        # The name belongs to the kubeconfig's server, and not to another one.
        cluster = replace(cluster, server=options.server, tls_server_name="")
    if options.insecure_skip_tls_verify:
        cluster = replace(
            cluster, insecure_skip_tls_verify=True, certificate_authority="", certificate_authority_data=b""
        )
    if options.tls_server_name:
        cluster = replace(cluster, tls_server_name=options.tls_server_name)
    flags: Mapping[str, Any] = {
        "token": options.token,
        "as_user": options.as_user,
        "as_groups": options.as_groups,
        "as_uid": options.as_uid,
    }
    return cluster, replace(user, **{name: value for name, value in flags.items() if value})


def _in_a_pod() -> bool:
    address = os.environ.get("KUBERNETES_SERVICE_HOST") and os.environ.get("KUBERNETES_SERVICE_PORT")
    return bool(address) and (_SERVICE_ACCOUNT / "token").is_file()


def _in_cluster(options: ConnectionOptions) -> Connection:
    """A pod's own cluster, from the files and variables that the kubelet provides."""
    host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    cluster, user = _with_flags(
        ClusterEntry(server, certificate_authority=str(_SERVICE_ACCOUNT / "ca.crt")),
        UserEntry(token_file="" if options.token else str(_SERVICE_ACCOUNT / "token")),
        options,
    )
    try:
        impersonation = _impersonation(user)
        endpoint, authorization = prepared(cluster, user, options.seconds)
    except ClusterError as error:
        raise ClusterError(f"the pod's service account cannot be used: {error}") from None
    try:
        namespace = os.environ.get("POD_NAMESPACE") or (_SERVICE_ACCOUNT / "namespace").read_text().strip()
    except OSError:
        namespace = ""
    namespace = options.namespace or namespace or "default"
    return Connection(_shown(server), endpoint, authorization, "in-cluster", namespace, impersonation)


def _shown(server: str) -> str:
    """The address without password and query, for messages and reports."""
    server = server if "://" in server else f"http://{server}"
    head, separator, rest = server.partition("://")
    rest = re.split(r"[?#]", rest, maxsplit=1)[0]
    authority, slash, path = rest.partition("/")
    return f"{head}{separator}{authority.rpartition('@')[2]}{slash}{path}".rstrip("/")


def _impersonation(user: UserEntry) -> tuple[tuple[str, str], ...]:
    """The headers. Raises ClusterError: groups, a uid or more, and nobody whose they are."""
    if not user.as_user:
        if user.as_groups or user.as_uid or user.as_user_extra:
            raise ClusterError(
                "groups, a uid or extra values are impersonated, but no user: --as-group and --as-uid need --as, "
                "and as-groups, as-uid and as-user-extra of the kubeconfig's user need as"
            )
        return ()
    headers = [("Impersonate-User", user.as_user), *(("Impersonate-Group", group) for group in user.as_groups)]
    if user.as_uid:
        headers.append(("Impersonate-Uid", user.as_uid))
    for key, values in user.as_user_extra.items():
        headers += [(f"Impersonate-Extra-{quote(key, safe=_OF_HEADERS)}", value) for value in values]
    return tuple(headers)
