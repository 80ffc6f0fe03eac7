"""What the user of a cluster may do, as its API server says: reviews, which it answers and stores nowhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final

from kubectl_dra.api.neighbour_kinds import NEIGHBOUR_KINDS
from kubectl_dra.cluster.client import Answered, Client
from kubectl_dra.cluster.snapshot import Permission
from kubectl_dra.cluster.transport import side_by_side

_JSON: Final = "application/json"
_REVIEWS: Final = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_WHO: Final = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


def allowed(client: Client, permissions: Sequence[Permission], namespace: str = "") -> list[bool]:
    """Whether the user has each permission, in all namespaces or only in one. Raises ClusterError."""
    jobs: list[Callable[[], Iterator[bool]]] = [
        partial(_asked, client, permission, namespace) for permission in permissions
    ]
    answers = [False] * len(permissions)
    for index, answer in side_by_side(jobs):
        answers[index] = answer
    return answers


def _asked(client: Client, permission: Permission, namespace: str) -> Iterator[bool]:
    wanted = {"verb": permission.verb, "resource": permission.resource, "group": permission.group}
    # Few ConfigMaps are listed, each by its name: a role names them.
    names = NEIGHBOUR_KINDS["ConfigMap"].only if permission.resource == "configmaps" else ("",)
    for name in names:
        about = {**wanted, **({"name": name} if name else {}), **({"namespace": namespace} if namespace else {})}
        spec = {"resourceAttributes": about}
        status = _review(client, _REVIEWS, "authorization.k8s.io/v1", "SelfSubjectAccessReview", spec)
        if status.get("allowed") is not True:
            yield False
            return
    yield True


def user(client: Client) -> str:
    """The user's name as the server knows it; empty where it does not say."""
    try:
        status = _review(client, _WHO, "authentication.k8s.io/v1", "SelfSubjectReview", {})
    except Answered:
        return ""
    info = status.get("userInfo")
    return str(info.get("username") or "") if isinstance(info, dict) else ""


def _review(client: Client, path: str, version: str, kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    body = {"apiVersion": version, "kind": kind, "metadata": {}, "spec": spec}
    status = client.received(client.send("POST", path, {}, body, _JSON), path).get("status")
    return status if isinstance(status, dict) else {}
