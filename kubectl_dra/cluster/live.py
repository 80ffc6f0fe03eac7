"""A Snapshot from a live cluster. This module never writes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from threading import Lock
from typing import Any, Final, NamedTuple, TypeVar

from msgspec import json

from kubectl_dra.api.neighbour_kinds import NEIGHBOUR_KINDS
from kubectl_dra.api.releases import GROUP, Release, parse_release
from kubectl_dra.cluster.builder import SnapshotBuilder
from kubectl_dra.cluster.client import EXPIRED, Answered, Client, segment
from kubectl_dra.cluster.connection import ConnectionOptions, connect
from kubectl_dra.cluster.discovery import ServedKinds, discover
from kubectl_dra.cluster.duplicates import Place
from kubectl_dra.cluster.kinds import (
    CORE_PLURALS,
    SCHEDULING_KINDS,
    SchedulingKind,
    is_namespaced,
    neighbour_root,
    resource_of,
)
from kubectl_dra.cluster.reader import Page, page
from kubectl_dra.cluster.snapshot import (
    DRA_KINDS,
    FORBIDDEN,
    KINDS,
    NOT_FOUND,
    NOT_SERVED,
    UNREADABLE,
    UNSUPPORTED,
    Gap,
    Progress,
    Snapshot,
)
from kubectl_dra.cluster.time_read import stamp
from kubectl_dra.cluster.transport import side_by_side

T = TypeVar("T")

_REASONS: Final = {403: FORBIDDEN, 404: NOT_FOUND}
# Events of everything in a cluster are many; only these explain an allocation.
_EVENT_QUERIES: Final[tuple[Mapping[str, str], ...]] = (
    {"fieldSelector": "involvedObject.kind=Pod"},
    {"fieldSelector": "involvedObject.kind=ResourceClaim"},
)


_EXPLAINING: Final = frozenset(("Event", "ResourceQuota"))


class About(NamedTuple):
    """The scope of the question: only events and quotas of this namespace and, with ``pod``, only that pod's events.

    With ``reasons`` events of these, of all namespaces if ``namespace`` is empty; only these unless ``more``. Events
    ``everywhere`` are those of these reasons in all namespaces, which only help: whoever may not list them is not told.
    """

    namespace: str
    pod: str = ""
    reasons: tuple[str, ...] = ()
    more: bool = False
    everywhere: tuple[str, ...] = ()


Part = Page | Gap | Release | str | None
"""A result of reading a kind: a page, a gap, a note; None if all pages come again. Or the server's release."""


class ApiServer:
    """A live cluster, for reading.

    ``namespace`` comes from the flags, the context, or is "default"; ``context`` is the context's name.
    """

    def __init__(
        self, options: ConnectionOptions | None = None, *, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        """Load the kubeconfig without contacting the server. Raises ClusterError (see ``connect``)."""
        options = options or ConnectionOptions()
        connection = connect(options)
        self.context: Final = connection.context
        self.namespace: Final = connection.namespace
        self.client: Final = Client(connection, options.seconds, sleep)
        self._served: ServedKinds | None = None
        self._discovering = Lock()

    @property
    def server(self) -> str:
        """The address of the API server."""
        return self.client.server

    def release(self) -> Release | None:
        """The server's release, or None if it reports none. Raises ClusterError."""
        try:
            answer = self.client.get("/version")
            return parse_release(str(answer.get("gitVersion") or ""))
        except (Answered, ValueError):
            return None

    def dra_versions(self) -> Mapping[str, str]:
        """Maps each served kind to the version of resource.k8s.io to request.

        Raises ClusterError: the server cannot be reached or does not allow discovery.
        """
        return self._discovered().versions

    def neighbours(self) -> Mapping[str, str] | None:
        """Maps each served kind of other layers to its newest version; None if the server lists no resources.

        Raises ClusterError.
        """
        return self._discovered().neighbours

    def _discovered(self) -> ServedKinds:
        with self._discovering:
            if self._served is None:
                self._served = discover(self.client)
            return self._served

    def path(self, kind: str, namespace: str = "", name: str = "") -> str | None:
        """The path of a kind's objects (all, one namespace's, or one object); None if the kind is not served."""
        if kind in CORE_PLURALS:
            root = "/api/v1"
        elif (known := SCHEDULING_KINDS.get(kind)) is not None:
            root = self._root(kind, known)
        elif (version := self.dra_versions().get(kind)) is not None:
            root = f"/apis/{GROUP}/{version}"
        else:
            return None
        scope = f"/namespaces/{segment(namespace)}" if namespace and is_namespaced(kind) else ""
        return f"{root}{scope}/{resource_of(kind).plural}" + (f"/{segment(name)}" if name else "")

    def _root(self, kind: str, known: SchedulingKind) -> str:
        """Where a kind is served, in the newest version that the server has. Raises ClusterError."""
        if kind in NEIGHBOUR_KINDS:
            return neighbour_root(kind, self.neighbours())
        if not known.group:
            return f"/api/{known.versions[0]}"
        version = known.versions[0]
        if len(known.versions) > 1:
            listed = self.client.get(f"/apis/{known.group}").get("versions") or ()
            served = {listing.get("version") for listing in listed}
            version = next((candidate for candidate in known.versions if candidate in served), version)
        return f"/apis/{known.group}/{version}"

    def get(self, kind: str, name: str, namespace: str = "") -> dict[str, Any] | None:
        """One object as served; None if it does not exist or its kind is not served.

        Raises ClusterError: any other answer.
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

    def objects(self, kind: str, namespace: str = "") -> list[dict[str, Any]]:
        """All objects of a kind as served, of one namespace or (empty) of all; [] if the kind is not served.

        Raises Answered: such as 403; ClusterError: the server cannot be reached.
        """
        path = self.path(kind, namespace)
        if path is None:
            return []
        return [item for query in queries_of(kind) for item in self.client.list_items(path, query)]

    def read_snapshot(
        self,
        kinds: Iterable[str] = KINDS,
        *,
        namespace: str = "",
        progress: Progress | None = None,
        compact: bool = False,
        about: About | None = None,
    ) -> Snapshot:
        """Read the kinds from all namespaces, or from only one.

        A kind that is forbidden, not served or failing becomes a gap, as does each that is not asked for. A kind that
        may not be listed in all namespaces is read from the connection's namespace; the gap says so. ``compact``
        shares devices that look alike (see ``Snapshot.individual``). ``about`` limits objects that only help to
        explain one pod.

        Raises:
            ClusterError: no connection, or rejected credentials.
        """
        builder = SnapshotBuilder(namespace or self.namespace, compact=compact)
        self.read_into(builder, kinds, namespace=namespace, progress=progress, about=about)
        return builder.build()

    def read_into(
        self,
        builder: SnapshotBuilder,
        kinds: Iterable[str] = KINDS,
        *,
        namespace: str = "",
        progress: Progress | None = None,
        about: About | None = None,
    ) -> None:
        """Add the objects of ``read_snapshot`` to a builder: lists in parallel, page by page. Raises ClusterError."""
        kinds = tuple(kinds)
        # Discovery is under way while core kinds are read.
        order = sorted(kinds, key=lambda kind: kind in DRA_KINDS)
        # What is read later, for one pod, comes to a snapshot that knows the release.
        jobs: list[Callable[[], Iterator[Part]]] = [] if set(kinds) <= SCHEDULING_KINDS.keys() else [self._release_part]
        if len(order) > 1 and order[-1] in DRA_KINDS:
            jobs.append(self._discovery_part)
        first = len(jobs)
        jobs += [partial(self._parts, kind, namespace, progress, about) for kind in order]
        if about is not None and about.everywhere:
            order.append("Event")
            jobs.append(partial(self._events_everywhere, about.everywhere))
        place = Place(self.server)
        # Told in the order of the kinds, however they came.
        said: dict[str, list[Gap | str]] = {kind: [] for kind in kinds}
        for kind in kinds:
            builder.present(kind)
        for number, (index, part) in enumerate(side_by_side(jobs)):
            if not number:
                builder.read_at(stamp(self.client.time))
            kind = order[index - first] if index >= first else ""
            if isinstance(part, Page):
                said[kind] += builder.add_page(part, kind, place)
            elif isinstance(part, Gap | str):
                said[kind].append(part)
            elif isinstance(part, Release):
                builder.server_release(part)
            else:
                builder.forget(kind)
        for part in (part for parts in said.values() for part in parts):
            if isinstance(part, Gap):
                builder.gap(part)
            else:
                builder.note(part)
        builder.cluster(self.server, self.context, self._served.neighbours if self._served else None)

    def _release_part(self) -> Iterator[Part]:
        release = self.release()
        if release is not None:
            yield release

    def _discovery_part(self) -> Iterator[Part]:
        self.dra_versions()
        yield from ()

    def unserved(self, kind: str) -> Gap | None:
        """Gap of a kind of resource.k8s.io or of another layer that is not served, or in no version that is read.

        Raises ClusterError.
        """
        if kind in NEIGHBOUR_KINDS:
            served = self.neighbours()
            return None if served is None or kind in served else self.not_served(kind)
        if kind not in DRA_KINDS or kind in self.dra_versions():
            return None
        if self._discovered().others and not self.dra_versions():
            versions = ", ".join(f"{GROUP}/{version}" for version in self._discovered().others)
            return Gap(kind, UNSUPPORTED, detail=f"{self.server} serves only {versions}")
        return self.not_served(kind)

    def not_served(self, kind: str, namespace: str = "") -> Gap:
        """Gap of a kind that the server does not have."""
        plural, group = resource_of(kind)
        return Gap(kind, NOT_SERVED, namespace, f"{self.server} does not serve {plural}.{group}")

    def _parts(self, kind: str, namespace: str, progress: Progress | None, about: About | None) -> Iterator[Part]:
        """All pages and gaps from reading a kind. Raises ClusterError."""
        if (unserved := self.unserved(kind)) is not None:
            yield unserved
            return
        queries = queries_of(kind)
        if about is not None and about.namespace and kind in _EXPLAINING:
            namespace = namespace or about.namespace
            queries = queries_of(kind, about.pod)
        if about is not None and about.reasons and kind == "Event":
            queries = (*(queries if about.more else ()), *_of_reasons(about.reasons))
        try:
            yield from self._listed(kind, namespace, queries, progress)
        except Answered as error:
            gap = self.gap(kind, namespace, error)
            if error.status != 403 or namespace or not (is_namespaced(kind) or kind == "Namespace"):
                yield gap
                return
            try:
                if kind == "Namespace":
                    yield self._own_namespace()
                else:
                    yield from self._listed(kind, self.namespace, queries, progress)
                yield gap._replace(read_in=self.namespace)
            except Answered as second:
                yield gap
                if is_namespaced(kind):
                    yield self.gap(kind, self.namespace, second)

    def _events_everywhere(self, reasons: Iterable[str]) -> Iterator[Part]:
        """The events of these reasons in all namespaces; none where they may not be listed. Raises ClusterError."""
        parts: list[Part] = []
        with suppress(Answered):
            parts += self._listed("Event", "", _of_reasons(reasons), None)
        # If the list expired, other events that were read meanwhile stay.
        yield from (part for part in parts if part is not None)

    def _own_namespace(self) -> Page:
        """The connection's namespace, which a user of it may often read though not list. Raises ClusterError."""
        namespace = self.client.get(f"/api/v1/namespaces/{segment(self.namespace)}")
        namespaces = page(json.encode({"kind": "NamespaceList", "apiVersion": "v1", "items": [namespace]}))
        assert namespaces is not None
        return namespaces

    def _listed(
        self, kind: str, namespace: str, queries: Iterable[Mapping[str, str]], progress: Progress | None
    ) -> Iterator[Part]:
        """The pages of a kind. If the list expires: None, then all pages again. Raises ClusterError."""
        path = self.path(kind, namespace)
        if path is None:
            return
        for last in (False, True):
            try:
                for query in queries:
                    yield from self.client.pages(path, query, progress, pods=kind == "Pod")
                return
            except Answered as error:
                if error.status != EXPIRED or last:
                    raise
                yield None

    def gap(self, kind: str, namespace: str, error: Answered) -> Gap:
        """What is not known of a kind where the server answered so."""
        known = SCHEDULING_KINDS.get(kind)
        if error.status == 404 and known is not None and len(known.versions) > 1:
            # A group of alpha versions, which few servers have.
            return self.not_served(kind, namespace)
        reason = _REASONS.get(error.status, UNREADABLE)
        return Gap(kind, reason, namespace if is_namespaced(kind) else "", str(error))


def queries_of(kind: str, pod: str = "") -> tuple[Mapping[str, str], ...]:
    """Queries for a kind; of events those about pods and claims, or about one pod, in several lists."""
    if kind != "Event":
        return ({},)
    # Anything else is no pod's name, and would have to be escaped.
    if pod.replace("-", "").replace(".", "").isalnum():
        return ({"fieldSelector": f"involvedObject.kind=Pod,involvedObject.name={pod}"},)
    return _EVENT_QUERIES


def _of_reasons(reasons: Iterable[str]) -> tuple[Mapping[str, str], ...]:
    return tuple({"fieldSelector": f"reason={reason}"} for reason in reasons)
