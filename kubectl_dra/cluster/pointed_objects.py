"""What is read of a live cluster later: objects that something points to, and workloads as they are stored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec.structs import replace

from kubectl_dra.api.neighbour_kinds import NEIGHBOUR_KINDS
from kubectl_dra.cluster.builder import SnapshotBuilder
from kubectl_dra.cluster.duplicates import Place
from kubectl_dra.cluster.kinds import MAKER_PLURALS, neighbour_root
from kubectl_dra.cluster.snapshot import FORBIDDEN, UNREADABLE, Gap, Progress, Snapshot
from kubectl_dra.manifests.changes import fields_at
from kubectl_dra.manifests.workloads import TEMPLATES, key_of, pod_templates

if TYPE_CHECKING:
    # What answers from files needs no client.
    from kubectl_dra.cluster.client import Answered
    from kubectl_dra.cluster.live import ApiServer
    from kubectl_dra.cluster.reader import Page


class Pointer(NamedTuple):
    """What to read of a kind (its name in ``api.neighbour_kinds``): one object by its name, those of a namespace, all.

    ``labels`` is a label selector.
    """

    kind: str
    namespace: str = ""
    name: str = ""
    labels: str = ""

    @property
    def request(self) -> str | Pointer:
        """What is asked for once: the kind; of ConfigMaps, of which few are read, each."""
        return self if NEIGHBOUR_KINDS[self.kind].only else self.kind


def merged(pointers: Iterable[Pointer]) -> list[Pointer]:
    """One request for each kind: what several ask for differently is read of the whole namespace, or of all."""
    requests: dict[str | Pointer, dict[Pointer, None]] = {}
    for pointer in pointers:
        requests.setdefault(pointer.request, {})[pointer] = None
    out: list[Pointer] = []
    for wanted in requests.values():
        spaces, (first, *others) = {pointer.namespace for pointer in wanted}, wanted
        out.append(Pointer(first.kind, spaces.pop() if len(spaces) == 1 else "") if others else first)
    return out


def read_pointed(
    server: ApiServer,
    builder: SnapshotBuilder,
    pointers: Iterable[Pointer],
    served: Mapping[str, str] | None,
    progress: Progress | None = None,
) -> None:
    """Add what the pointers mean: one request for each, none for a kind that is not among those ``served``.

    A kind that is not served, or may not be listed, is a gap. Raises ClusterError.
    """
    from kubectl_dra.cluster.transport import side_by_side

    place = Place(server.server)
    wanted = list(pointers)
    jobs = [partial(_parts, server, pointer, served, progress) for pointer in wanted]
    for pointer in wanted:
        builder.present(pointer.kind)
    for index, part in side_by_side(jobs):
        if isinstance(part, Gap):
            builder.gap(part)
        else:
            for gap in builder.add_page(part, wanted[index].kind, place):
                builder.gap(gap)


def _parts(
    server: ApiServer, pointer: Pointer, served: Mapping[str, str] | None, progress: Progress | None
) -> Iterator[Page | Gap]:
    from kubectl_dra.cluster.client import Answered, segment

    row = NEIGHBOUR_KINDS[pointer.kind]
    if served is not None and pointer.kind not in served:
        yield server.not_served(pointer.kind)
        return
    root = neighbour_root(pointer.kind, served)
    scope = f"/namespaces/{segment(pointer.namespace)}" if row.namespaced and pointer.namespace else ""
    query = {"labelSelector": pointer.labels} if pointer.labels else {}
    if pointer.name:
        query["fieldSelector"] = f"metadata.name={pointer.name}"
    try:
        yield from server.client.pages(f"{root}{scope}/{row.plural}", query, progress)
    except Answered as error:
        if error.status == 404:
            yield server.not_served(pointer.kind)
        else:
            yield _refused(pointer.kind, pointer.namespace if row.namespaced else "", error)


# Workloads as the cluster has them, whole: what an apply would change of their templates.

StoredKey = tuple[str, str, str, str]
"""Group, kind, namespace and name."""

REPLICA_SETS: Final = {
    ("apps", "Deployment"): ("apps", "ReplicaSet"),
    ("argoproj.io", "Rollout"): ("apps", "ReplicaSet"),
}
"""What makes pods through ReplicaSets, each of which has one of its templates."""


class StoredBuilder(SnapshotBuilder):
    """A builder of a cluster that also keeps what makes pods, as it is stored."""

    def __init__(self, namespace: str = "default", **settings: Any) -> None:
        super().__init__(namespace, **settings)
        self._stored: dict[StoredKey, Mapping[str, Any]] = {}

    def add(self, raw: dict[str, Any], place: Place) -> None:
        """Keep it if it has pod templates, beside what is kept anyway."""
        super().add(raw, place)
        if key_of(raw) in TEMPLATES and any(pod_templates(raw)):
            self._stored[_key(raw, self._namespace)] = raw

    def build(self, *, complete: bool = False) -> Snapshot:
        """The Snapshot with these objects."""
        return replace(super().build(complete=complete), stored=self._stored)


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
        return [] if error.status == 404 else _refused(kind, namespace, error)


def _refused(kind: str, namespace: str, error: Answered) -> Gap:
    return Gap(kind, FORBIDDEN if error.status == 403 else UNREADABLE, namespace, str(error))
