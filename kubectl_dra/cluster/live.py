"""A Snapshot from a live cluster. Nothing is ever written."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from kubectl_dra.api.conversion import VERSIONS
from kubectl_dra.api.versions import GROUP, PLURALS, Release, parse_release
from kubectl_dra.cluster.builder import Place, SnapshotBuilder
from kubectl_dra.cluster.client import EXPIRED, Answered, Client, Progress, segment
from kubectl_dra.cluster.kubeconfig import ConnectionOptions, connect
from kubectl_dra.cluster.snapshot import (
    DRA_KINDS,
    FORBIDDEN,
    KINDS,
    NOT_FOUND,
    NOT_SERVED,
    UNREADABLE,
    Gap,
    Snapshot,
)
from kubectl_dra.errors import InputError

_CORE_PLURALS: Final[Mapping[str, str]] = {
    "Pod": "pods",
    "Node": "nodes",
    "Namespace": "namespaces",
    "ResourceQuota": "resourcequotas",
    "Event": "events",
}
_NAMESPACED: Final = frozenset(("ResourceClaim", "ResourceClaimTemplate", "Pod", "ResourceQuota", "Event"))
_REASONS: Final = {403: FORBIDDEN, 404: NOT_FOUND}
# Events of everything in a cluster are many; only these explain an allocation.
_EVENT_QUERIES: Final[tuple[Mapping[str, str], ...]] = (
    {"fieldSelector": "involvedObject.kind=Pod"},
    {"fieldSelector": "involvedObject.kind=ResourceClaim"},
)


class Cluster:
    """A live cluster, for reading.

    ``namespace`` is the one of the flags, the context, or "default"; ``context`` the context's name.
    """

    def __init__(
        self, options: ConnectionOptions | None = None, *, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        """Loads the kubeconfig; the server is not asked yet. Raises ClusterError (see ``connect``)."""
        options = options or ConnectionOptions()
        connection = connect(options)
        self.context: Final = connection.context
        self.namespace: Final = connection.namespace
        self.client: Final = Client(connection, options.request_timeout, sleep)
        self._versions: dict[str, str] | None = None

    @property
    def server(self) -> str:
        """The address of the API server."""
        return self.client.server

    def release(self) -> Release | None:
        """The server's release; None where it does not say one. Raises ClusterError."""
        try:
            answer = self.client.get("/version")
            return parse_release(str(answer.get("gitVersion") or ""))
        except (Answered, ValueError):
            return None

    def dra_versions(self) -> Mapping[str, str]:
        """Kind to the version of resource.k8s.io to ask for it; only kinds that are served.

        Raises:
            ClusterError: the server cannot be asked, or does not let itself be discovered.
        """
        if self._versions is None:
            self._versions = dict(self._discover())
        return self._versions

    def path(self, kind: str, namespace: str = "", name: str = "") -> str | None:
        """The path of a kind's objects (all, of a namespace, or one); None where the kind is not served."""
        if kind in _CORE_PLURALS:
            root, plural = "/api/v1", _CORE_PLURALS[kind]
        else:
            version = self.dra_versions().get(kind)
            if version is None:
                return None
            root, plural = f"/apis/{GROUP}/{version}", PLURALS[kind]
        scope = f"/namespaces/{segment(namespace)}" if namespace and kind in _NAMESPACED else ""
        return f"{root}{scope}/{plural}" + (f"/{segment(name)}" if name else "")

    def get(self, kind: str, name: str, namespace: str = "") -> dict[str, Any] | None:
        """One object as served, None where it does not exist or its kind is not served.

        Raises:
            ClusterError: any other answer.
        """
        path = self.path(kind, namespace, name)
        if path is None:
            return None
        try:
            return self.client.get(path)
        except Answered as error:
            if error.status == 404:
                return None
            raise

    def objects(self, kind: str, namespace: str = "", progress: Progress | None = None) -> list[dict[str, Any]]:
        """All objects of a kind as served, of one namespace or (empty) of all; [] where it is not served.

        Raises:
            Answered: such as 403.
            ClusterError: the server cannot be asked.
        """
        path = self.path(kind, namespace)
        if path is None:
            return []
        return [item for query in _queries(kind) for item in self.client.list_items(path, query, progress)]

    def read_snapshot(
        self,
        kinds: Iterable[str] = KINDS,
        *,
        namespace: str = "",
        progress: Progress | None = None,
        compact: bool = False,
    ) -> Snapshot:
        """Reads the kinds from all namespaces, or from one only.

        A kind that is forbidden, not served or failing becomes a gap. A kind that may not be listed in all
        namespaces is read from the namespace of the connection, and is a gap all the same. ``compact`` shares
        devices that are alike (see ``Snapshot.individual``).

        Raises:
            ClusterError: no connection, or credentials that are not accepted.
        """
        builder = SnapshotBuilder(namespace or self.namespace, compact=compact)
        self.read_into(builder, kinds, namespace=namespace, progress=progress)
        return builder.build(expected=())

    def read_into(
        self,
        builder: SnapshotBuilder,
        kinds: Iterable[str] = KINDS,
        *,
        namespace: str = "",
        progress: Progress | None = None,
    ) -> None:
        """Adds what ``read_snapshot`` reads to a builder, page by page. Raises ClusterError."""
        builder.source(self.server)
        release = self.release()
        if release is not None:
            builder.server_release(release)
        for kind in kinds:
            self._read(builder, kind, namespace, progress)

    def _read(self, builder: SnapshotBuilder, kind: str, namespace: str, progress: Progress | None) -> None:
        builder.present(kind)
        if kind in DRA_KINDS and kind not in self.dra_versions():
            builder.gap(Gap(kind, NOT_SERVED, detail=f"{self.server} does not serve {PLURALS[kind]}.{GROUP}"))
            return
        try:
            self._take(builder, kind, namespace, progress)
        except Answered as error:
            builder.gap(self._gap(kind, namespace, error))
            if error.status != 403 or namespace or kind not in _NAMESPACED:
                return
            try:
                self._take(builder, kind, self.namespace, progress)
                builder.note(f"{kind}: only namespace {self.namespace} could be read")
            except Answered as second:
                builder.gap(self._gap(kind, self.namespace, second))

    def _take(self, builder: SnapshotBuilder, kind: str, namespace: str, progress: Progress | None) -> None:
        """Adds all objects of a kind, page by page; begins once more when the list expires on the way."""
        path = self.path(kind, namespace)
        if path is None:
            return
        place = Place(self.server)
        for last in (False, True):
            try:
                for query in _queries(kind):
                    for page in self.client.pages(path, query, progress, ahead=True):
                        for item in page:
                            self._add(builder, kind, item, place)
                return
            except Answered as error:
                if error.status != EXPIRED or last:
                    raise
                builder.forget(kind)

    def _add(self, builder: SnapshotBuilder, kind: str, item: dict[str, Any], place: Place) -> None:
        try:
            builder.add(item, place)
        except InputError as error:
            # The server is newer or odder than what is known here: the rest can still be read.
            builder.gap(Gap(kind, UNREADABLE, detail=str(error)))

    def _gap(self, kind: str, namespace: str, error: Answered) -> Gap:
        return Gap(kind, _REASONS.get(error.status, UNREADABLE), namespace, str(error))

    def _discover(self) -> Iterator[tuple[str, str]]:
        try:
            group = self.client.get(f"/apis/{GROUP}")
        except Answered as error:
            if error.status == 404:
                return
            raise
        served = {str(entry.get("version")) for entry in group.get("versions") or () if isinstance(entry, dict)}
        found: set[str] = set()
        for version in VERSIONS:
            if version not in served:
                continue
            try:
                resources = self.client.get(f"/apis/{GROUP}/{version}").get("resources") or ()
            except Answered as error:
                if error.status == 404:
                    continue
                raise
            names = {str(entry.get("name")) for entry in resources if isinstance(entry, dict)}
            for kind in DRA_KINDS:
                if kind not in found and PLURALS[kind] in names:
                    found.add(kind)
                    yield kind, version


def _queries(kind: str) -> tuple[Mapping[str, str], ...]:
    return _EVENT_QUERIES if kind == "Event" else ({},)


def read_snapshot(
    options: ConnectionOptions | None = None,
    kinds: Iterable[str] = KINDS,
    *,
    namespace: str = "",
    progress: Progress | None = None,
) -> Snapshot:
    """Connects and reads a Snapshot: see ``Cluster.read_snapshot``. Raises ClusterError."""
    return Cluster(options).read_snapshot(kinds, namespace=namespace, progress=progress)
