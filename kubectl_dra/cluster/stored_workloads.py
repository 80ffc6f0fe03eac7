"""The objects that make pods as the cluster has them, whole: what an apply would change of their templates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from kubectl_dra.cluster.builder import SnapshotBuilder
from kubectl_dra.cluster.duplicates import Place
from kubectl_dra.cluster.kinds import MAKER_PLURALS
from kubectl_dra.cluster.snapshot import FORBIDDEN, UNREADABLE, Gap, Snapshot
from kubectl_dra.manifests.changes import fields_at
from kubectl_dra.manifests.workloads import TEMPLATES, key_of, pod_templates

if TYPE_CHECKING:
    # What answers from files needs no client.
    from kubectl_dra.cluster.live import ApiServer

StoredKey = tuple[str, str, str, str]
"""Group, kind, namespace and name."""

REPLICA_SETS: Final = {
    ("apps", "Deployment"): ("apps", "ReplicaSet"),
    ("argoproj.io", "Rollout"): ("apps", "ReplicaSet"),
}
"""What makes pods through ReplicaSets, each of which has one of its templates."""


class StoredBuilder(SnapshotBuilder):
    """A builder of a cluster that also keeps what makes pods, as it is stored."""

    _stored: dict[StoredKey, Mapping[str, Any]]

    def add(self, raw: dict[str, Any], place: Place) -> None:
        """Keep it if it has pod templates, beside what is kept anyway."""
        super().add(raw, place)
        if key_of(raw) in TEMPLATES and any(pod_templates(raw)):
            self.__dict__.setdefault("_stored", {})[_key(raw, self._namespace)] = raw

    def build(self, *, complete: bool = False) -> Snapshot:
        """The Snapshot with these objects."""
        return replace(super().build(complete=complete), stored=self.__dict__.get("_stored", {}))


def _key(raw: Mapping[str, Any], namespace: str) -> StoredKey:
    metadata = fields_at(raw, "metadata")
    return (*key_of(raw), str(metadata.get("namespace") or namespace), str(metadata.get("name") or ""))


def made_by(snapshot: Snapshot, namespace: str, kind: str, name: str) -> Iterator[Mapping[str, Any]]:
    """The stored ReplicaSets of a namespace that belong to a workload."""
    for (_, own, space, _), raw in snapshot.stored.items():
        if own == "ReplicaSet" and space == namespace:
            owners = fields_at(raw, "metadata").get("ownerReferences") or ()
            if any(owner.get("kind") == kind and owner.get("name") == name for owner in owners):
                yield raw


def with_stored(snapshot: Snapshot, server: ApiServer, wanted: Iterable[tuple[Mapping[str, Any], str]]) -> Snapshot:
    """The snapshot with stored workloads of a live cluster: those that are written here, each with its namespace.

    What may not be read is a gap. Raises ClusterError.
    """
    stored, gaps = dict(snapshot.stored), list(snapshot.gaps)
    for written, namespace in wanted:
        group, kind = key_of(written)
        name = str(fields_at(written, "metadata").get("name") or "")
        if not name or (group, kind) not in MAKER_PLURALS:
            continue
        queries = [(str(written["apiVersion"]), kind, MAKER_PLURALS[group, kind], name)]
        if below := REPLICA_SETS.get((group, kind)):
            queries.append(("apps/v1", below[1], MAKER_PLURALS[below], ""))
        for version, of, plural, called in queries:
            found = _listed(server, version, of, plural, namespace, called)
            if isinstance(found, Gap):
                gaps.append(found)
                continue
            stored.update({_key(raw, namespace): raw for raw in found if not called or _key(raw, "")[3] == called})
    return replace(snapshot, stored=stored, gaps=tuple(dict.fromkeys(gaps)))


def _listed(
    server: ApiServer, version: str, kind: str, plural: str, namespace: str, name: str
) -> list[dict[str, Any]] | Gap:
    from kubectl_dra.cluster.client import Answered, segment

    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    query = {"fieldSelector": f"metadata.name={name}"} if name else {}
    try:
        return server.client.list_items(f"{root}/namespaces/{segment(namespace)}/{plural}", query)
    except Answered as error:
        reason = FORBIDDEN if error.status == 403 else UNREADABLE
        return [] if error.status == 404 else Gap(kind, reason, namespace, str(error))
