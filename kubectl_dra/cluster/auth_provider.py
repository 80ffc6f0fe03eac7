"""The token of a kubeconfig's auth-provider ``oidc``: the only use of the package ``kubernetes``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import to_builtins

from kubectl_dra.cluster.kubeconfig_file import ClusterEntry, UserEntry
from kubectl_dra.errors import ClusterError


def authorization(cluster: ClusterEntry, user: UserEntry) -> Callable[[], str]:
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
        "clusters": [{"name": "x", "cluster": to_builtins(cluster)}],
        "users": [{"name": "x", "user": {"auth-provider": to_builtins(user.auth_provider)}}],
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
