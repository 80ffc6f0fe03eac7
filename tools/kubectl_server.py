"""An API server for kubectl itself, which says whether it understands a command and finds what that names."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from kubectl_dra.api.neighbour_kinds import NEIGHBOUR_KINDS
from kubectl_dra.api.releases import GROUP, PLURALS
from kubectl_dra.cluster.kinds import CORE_PLURALS, SCHEDULING_KINDS, is_namespaced
from tools.api_server import Answer, APIServer, Asked, status


class _Served(NamedTuple):
    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool

    @property
    def group_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version


_OTHERS: Final = (
    _Served("apps", "v1", "Deployment", "deployments", True),
    _Served("batch", "v1", "CronJob", "cronjobs", True),
    _Served("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", False),
    _Served(
        "admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", False
    ),
)
"""Kinds that commands name and the program does not read."""
SERVED: Final = (
    *(_Served("", "v1", kind, plural, is_namespaced(kind)) for kind, plural in CORE_PLURALS.items()),
    *(_Served(GROUP, "v1", kind, plural, is_namespaced(kind)) for kind, plural in PLURALS.items()),
    *(
        _Served(known.group, known.versions[0], kind.partition(".")[0], known.plural, known.namespaced)
        for kind, known in SCHEDULING_KINDS.items()
    ),
    *(row for row in _OTHERS if row.kind not in NEIGHBOUR_KINDS),
)


class KubectlServer(APIServer):
    """Serves ``items``; with ``everything`` also any other object of a known kind, which has nothing but its name."""

    def __init__(self, items: Iterable[dict[str, Any]] = (), *, everything: bool = False) -> None:
        super().__init__()
        self._items = list(items)
        self._everything = everything
        self.routes["/version"] = {"major": "1", "minor": "36", "gitVersion": "v1.36.2"}
        self.routes["/metrics"] = Answer(200, b'kubernetes_feature_enabled{name="DRAExtendedResource"} 1\n')
        self.routes["/api"] = {"kind": "APIVersions", "versions": ["v1"]}
        groups: dict[str, dict[str, Any]] = {}
        for row in SERVED:
            where = f"/apis/{row.group_version}" if row.group else "/api/v1"
            listed = self.routes.setdefault(
                where, {"kind": "APIResourceList", "groupVersion": row.group_version, "resources": []}
            )
            assert isinstance(listed, dict)
            listed["resources"].append(_resource(row))
            if row.group:
                version = {"groupVersion": row.group_version, "version": row.version}
                group = groups.setdefault(row.group, {"name": row.group, "versions": [], "preferredVersion": version})
                group["versions"] += [version] if version not in group["versions"] else []
        self.routes["/apis"] = {"kind": "APIGroupList", "apiVersion": "v1", "groups": [*groups.values()]}

    def answer(self, asked: Asked) -> Answer:
        """Discovery, else a list, an object, or the log of a pod."""
        return self._found(asked)._replace(headers=(("Content-Type", "application/json"),))

    def _found(self, asked: Asked) -> Answer:
        if asked.path in self.routes:
            return super().answer(asked)
        parts = asked.path.strip("/").split("/")
        group = parts[1] if parts[0] == "apis" else ""
        parts = parts[3 if group else 2 :]
        space = parts[1] if parts[0] == "namespaces" and len(parts) > 2 else ""
        plural, *names = parts[2:] if space else parts
        row = next((row for row in SERVED if (row.group, row.plural) == (group, plural)), None)
        if row is None:
            return status(404, "NotFound", f"the server has no {plural}")
        here = [item for item in self._items if self._is_of(item, row, space)]
        if not names:
            meta = {"resourceVersion": "7"}
            return Answer(
                200, {"kind": f"{row.kind}List", "apiVersion": row.group_version, "metadata": meta, "items": here}
            )
        named = [item for item in here if item["metadata"]["name"] == names[0]]
        if self._everything and not named:
            metadata = {"name": names[0], **({"namespace": space} if space else {})}
            named = [
                {"apiVersion": row.group_version, "kind": row.kind, "metadata": metadata, "spec": {}, "status": {}}
            ]
        if not named:
            return status(404, "NotFound", f'{plural} "{names[0]}" not found')
        return Answer(200, b"") if names[1:] == ["log"] else Answer(200, named[0])

    @staticmethod
    def _is_of(item: dict[str, Any], row: _Served, space: str) -> bool:
        group = item["apiVersion"].rpartition("/")[0]
        return (item["kind"], group) == (row.kind, row.group) and space in ("", item["metadata"].get("namespace"))

    def kubectl(self, words: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
        """Runs kubectl with these words, with a kubeconfig and a cache in the folder."""
        config = self.kubeconfig(folder)
        command = ["kubectl", *words, "--kubeconfig", config, "--cache-dir", str(folder / "cache")]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, cwd=folder)


def _resource(row: _Served) -> dict[str, Any]:
    verbs = ["get", "list", "watch", "create", "update", "patch", "delete"]
    singular = row.kind.lower()
    return {
        "name": row.plural,
        "singularName": singular,
        "kind": row.kind,
        "namespaced": row.namespaced,
        "verbs": verbs,
    }
