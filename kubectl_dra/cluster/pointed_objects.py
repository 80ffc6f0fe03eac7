"""Objects of other layers, read from a live cluster where something points to them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from kubectl_dra.api.neighbour_kinds import NEIGHBOUR_KINDS
from kubectl_dra.cluster.duplicates import Place
from kubectl_dra.cluster.kinds import neighbour_root
from kubectl_dra.cluster.snapshot import FORBIDDEN, UNREADABLE, Gap, Progress

if TYPE_CHECKING:
    # What answers from files needs no client.
    from kubectl_dra.cluster.builder import SnapshotBuilder
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
            reason = FORBIDDEN if error.status == 403 else UNREADABLE
            yield Gap(pointer.kind, reason, pointer.namespace if row.namespaced else "", str(error))
