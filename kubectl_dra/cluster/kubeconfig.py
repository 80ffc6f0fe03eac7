"""Merges kubeconfig files and kubectl's connection flags into one client configuration.

As in kubectl, the first file that has a name or the current context wins. ``credentials`` derives the
endpoint and the authorization from it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from kubectl_dra.cluster.credentials import Authorization, prepared
from kubectl_dra.cluster.http_connection import Endpoint
from kubectl_dra.errors import ClusterError, InputError
from kubectl_dra.special_files import special
from kubectl_dra.text import nearest

_SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_LARGEST: Final = 16 << 20
_DEFAULT_SECONDS: Final = 60.0
_SECTIONS: Final = (("clusters", "cluster"), ("contexts", "context"), ("users", "user"))


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
        """How long a request or a credential plugin may take; None means no limit."""
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

    Raises:
        ClusterError: no kubeconfig or a broken one, an unknown context, or credentials that cannot be obtained.
    """
    paths = _paths(options)
    if not paths and not options.server:
        if os.environ.get("KUBERNETES_SERVICE_HOST"):
            return _in_cluster(options)
        raise ClusterError(
            f"there is no kubeconfig at {_looked_at(options)}: name one with --kubeconfig, "
            "or read a snapshot with --snapshot"
        )
    merged = _merged(paths)
    name, context = _context(merged, options)
    cluster = _entry(merged, "clusters", options.cluster or str(context.get("cluster") or ""), options.server)
    user = _entry(merged, "users", options.user or str(context.get("user") or ""), "optional")
    cluster, user = _with_flags(cluster, user, options)
    if not cluster.get("server"):
        raise ClusterError(
            f'the cluster of context "{name}" has no server in the kubeconfig'
            if name
            else "the kubeconfig names no cluster: give --context or --server"
        )
    try:
        endpoint, authorization = prepared(cluster, user, options.seconds)
    except ClusterError as error:
        if user.get("exec"):
            raise
        raise ClusterError(f'the kubeconfig\'s context "{name or "kubectl-dra"}" cannot be used: {error}') from None
    return Connection(
        _shown(cluster["server"]),
        endpoint,
        authorization,
        name,
        options.namespace or str(context.get("namespace") or "default"),
        _impersonation(user, options),
    )


def _paths(options: ConnectionOptions) -> list[str]:
    if options.kubeconfig:
        path = os.path.expanduser(options.kubeconfig)  # noqa: PTH111 - kubectl's meaning of ~, no normalising
        if not Path(path).exists():
            raise ClusterError(f"{options.kubeconfig}: there is no such kubeconfig")
        return [path]
    listed = os.environ.get("KUBECONFIG", "")
    # A user without an entry in passwd has no home, as in a container that is run with any uid.
    usual = os.path.expanduser("~/.kube/config")  # noqa: PTH111 - Path.expanduser raises an error then
    candidates = [path for path in listed.split(os.pathsep) if path] or [usual]
    return [path for path in candidates if Path(path).exists()]


def _looked_at(options: ConnectionOptions) -> str:
    return options.kubeconfig or os.environ.get("KUBECONFIG") or "~/.kube/config"


def _merged(paths: list[str]) -> dict[str, Any]:
    """``{"current-context": name, "clusters": {name: {...}}, ...}`` from all files; the first one wins."""
    out: dict[str, Any] = {"current-context": "", "clusters": {}, "contexts": {}, "users": {}}
    for path in paths:
        config = _read(path)
        current = config.get("current-context")
        if not out["current-context"] and isinstance(current, str):
            out["current-context"] = current
        for section, inner in _SECTIONS:
            entries = config.get(section) or []
            if not isinstance(entries, list):
                raise ClusterError(f"{path}: the kubeconfig's {section} must be a list")
            for entry in entries:
                content = entry.get(inner) if isinstance(entry, dict) else None
                if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
                    raise ClusterError(f"{path}: an entry of the kubeconfig's {section} has no name")
                if content is not None and not isinstance(content, dict):
                    raise ClusterError(f"{path}: {section} entry {entry['name']} of the kubeconfig is broken")
                out[section].setdefault(entry["name"], _absolute(content or {}, Path(path).parent))
    return out


def _read(path: str) -> dict[str, Any]:
    import yaml

    from kubectl_dra.cluster.contents import beginning

    try:
        if special(path) == "a socket":
            raise ClusterError(f"{path}: is a socket, not a kubeconfig")
        data = beginning(path, _LARGEST + 1)
        if len(data) > _LARGEST:
            raise ClusterError(f"{path}: has more than {_LARGEST >> 20} MB, which no kubeconfig has")
        config = yaml.safe_load(data.decode("utf-8-sig"))
    except InputError as error:
        raise ClusterError(str(error)) from None
    except OSError as error:
        raise ClusterError(f"{path}: the kubeconfig cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise ClusterError(f"{path}: the kubeconfig is not a text file") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark is not None else ""
        problem = getattr(error, "problem", None) or "not valid YAML"
        raise ClusterError(f"{path}{line}: the kubeconfig is not valid YAML: {problem}") from None
    if config is None:
        return {}
    if not isinstance(config, dict):
        raise ClusterError(f"{path}: not a kubeconfig")
    if _has_surrogate(config):
        # No header, file name or address can hold one; kubectl refuses the file as well.
        raise ClusterError(f"{path}: the kubeconfig is not valid YAML: an escape of half a character")
    return config


def _has_surrogate(value: object) -> bool:
    """Whether a text of the value has a character that UTF-8 has not."""
    if isinstance(value, str):
        return not value.isascii() and any("\ud800" <= mark <= "\udfff" for mark in value)
    if isinstance(value, dict):
        return any(_has_surrogate(key) or _has_surrogate(inner) for key, inner in value.items())
    return isinstance(value, list) and any(map(_has_surrogate, value))


def _absolute(content: Mapping[str, Any], base: Path) -> dict[str, Any]:
    """Resolve relative paths against the directory of the file that contains them."""
    out = dict(content)
    for key in ("certificate-authority", "client-certificate", "client-key", "tokenFile"):
        value = out.get(key)
        if isinstance(value, str) and value:
            out[key] = str((base / value).absolute())
    plugin = out.get("exec")
    if isinstance(plugin, dict) and "/" in str(plugin.get("command") or ""):
        out["exec"] = {**plugin, "command": str((base / str(plugin["command"])).absolute())}
    return out


def _context(merged: Mapping[str, Any], options: ConnectionOptions) -> tuple[str, Mapping[str, Any]]:
    name = options.context or merged["current-context"]
    contexts: Mapping[str, Any] = merged["contexts"]
    if name in contexts:
        return name, contexts[name]
    if options.context or (name and not options.server):
        near = nearest(name, contexts) or sorted(contexts)[:3]
        hint = f"; there is {', '.join(near)}" if near else "; the kubeconfig has no contexts"
        raise ClusterError(f'the kubeconfig has no context "{name}"{hint}')
    if not options.server and not options.cluster:
        raise ClusterError("the kubeconfig has no current context: choose one with --context")
    return "", {}


def _entry(merged: Mapping[str, Any], section: str, name: str, optional: str) -> dict[str, Any]:
    entries: Mapping[str, Any] = merged[section]
    if name in entries:
        return dict(entries[name])
    if name and not (optional and not entries):
        near = nearest(name, entries) or sorted(entries)[:3]
        hint = f"; there is {', '.join(near)}" if near else ""
        raise ClusterError(f'the kubeconfig has no {section.removesuffix("s")} "{name}"{hint}')
    return {}


def _with_flags(
    cluster: dict[str, Any], user: dict[str, Any], options: ConnectionOptions
) -> tuple[dict[str, Any], dict[str, Any]]:
    if options.server:
        server = options.server if "://" in options.server else f"http://{options.server}"
        cluster["server"] = server
        # The name belongs to the kubeconfig's server, and not to another one.
        cluster.pop("tls-server-name", None)
    if options.insecure_skip_tls_verify:
        cluster["insecure-skip-tls-verify"] = True
        cluster.pop("certificate-authority", None)
        cluster.pop("certificate-authority-data", None)
    if options.tls_server_name:
        cluster["tls-server-name"] = options.tls_server_name
    if options.token:
        kept = ("client-certificate", "client-certificate-data", "client-key", "client-key-data")
        user = {key: user[key] for key in kept if key in user} | {"token": options.token}
    return cluster, user


def _in_cluster(options: ConnectionOptions) -> Connection:
    """A pod's own cluster, from the files and variables that the kubelet provides."""
    host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ.get("KUBERNETES_SERVICE_PORT") or "443"
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    cluster = {"server": server, "certificate-authority": str(_SERVICE_ACCOUNT / "ca.crt")}
    try:
        cluster, user = _with_flags(cluster, {"tokenFile": str(_SERVICE_ACCOUNT / "token")}, options)
        endpoint, authorization = prepared(cluster, user, options.seconds)
    except ClusterError as error:
        raise ClusterError(f"the pod's service account cannot be used: {error}") from None
    try:
        namespace = (_SERVICE_ACCOUNT / "namespace").read_text().strip()
    except OSError:
        namespace = ""
    return Connection(
        _shown(server),
        endpoint,
        authorization,
        "in-cluster",
        options.namespace or namespace or "default",
        _impersonation({}, options),
    )


def _shown(server: str) -> str:
    """The address without password and query, for messages and reports."""
    head, separator, rest = server.partition("://")
    rest = re.split(r"[?#]", rest, maxsplit=1)[0]
    authority, slash, path = rest.partition("/")
    return f"{head}{separator}{authority.rpartition('@')[2]}{slash}{path}".rstrip("/")


def _impersonation(user: Mapping[str, Any], options: ConnectionOptions) -> tuple[tuple[str, str], ...]:
    name = options.as_user or str(user.get("as") or "")
    if not name:
        if options.as_groups or options.as_uid:
            raise ClusterError("--as-group and --as-uid need --as")
        return ()
    listed = user.get("as-groups") or []
    if not isinstance(listed, list):
        raise ClusterError("the kubeconfig's user has as-groups that are not a list")
    groups = options.as_groups or tuple(listed)
    uid = options.as_uid or str(user.get("as-uid") or "")
    headers = [("Impersonate-User", name), *(("Impersonate-Group", str(group)) for group in groups)]
    if uid:
        headers.append(("Impersonate-Uid", uid))
    return tuple(headers)
