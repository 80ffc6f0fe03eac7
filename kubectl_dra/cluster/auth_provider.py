"""The token of a kubeconfig's auth-provider, such as OIDC: the only use of the package ``kubernetes``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kubectl_dra.errors import ClusterError


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
