"""The objects of a cluster that affect new pods, by namespace, and whether they were read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from kubectl_dra.admission.kinds_to_read import ABOUT_ANY_POD
from kubectl_dra.api.meta import ObjectMeta
from kubectl_dra.api.policy import LimitRange, PriorityClass, ResourceQuota, RuntimeClass
from kubectl_dra.cluster.kinds import SCHEDULING_KINDS
from kubectl_dra.cluster.snapshot import Snapshot

_COMES_ALONG = "default"


class AdmissionObjects(Struct, frozen=True):
    """The objects that admission plugins read. None for a kind means that it was not read.

    ``unread`` are kinds that may affect any pod and were not read at all.
    """

    namespaces: Mapping[str, ObjectMeta] | None = None
    priority_classes: Mapping[str, PriorityClass] | None = None
    runtime_classes: Mapping[str, RuntimeClass] | None = None
    service_accounts: frozenset[str] | None = None
    limit_ranges: Sequence[LimitRange] = field(default=())
    quotas: Sequence[ResourceQuota] = field(default=())
    unread: tuple[str, ...] = ()

    @classmethod
    def of(cls, snapshot: Snapshot, namespace: str) -> AdmissionObjects:
        """The objects in a snapshot for pods of a namespace.

        In files, a kind without objects counts as not saved; a server that was asked has none. The account
        ``default`` comes with its namespace.
        """
        classes: Mapping[str, PriorityClass] = _by_name(snapshot, "PriorityClass")
        runtimes: Mapping[str, RuntimeClass] = _by_name(snapshot, "RuntimeClass")
        accounts = frozenset(_in(snapshot, "ServiceAccount", namespace))
        unread = tuple(kind for kind in ABOUT_ANY_POD if _is_unread(kind, snapshot, namespace))
        return cls(
            namespaces=None if snapshot.is_gap("Namespace") else snapshot.namespaces or None,
            priority_classes=classes if classes or _asked("PriorityClass", snapshot, namespace) else None,
            runtime_classes=runtimes if runtimes or _asked("RuntimeClass", snapshot, namespace) else None,
            service_accounts=accounts | {_COMES_ALONG}
            if accounts or _asked("ServiceAccount", snapshot, namespace)
            else None,
            limit_ranges=tuple(_in(snapshot, "LimitRange", namespace).values()),
            quotas=tuple(quota for quota in snapshot.quotas if quota.metadata.namespace == namespace),
            unread=unread,
        )


def _asked(kind: str, snapshot: Snapshot, namespace: str) -> bool:
    """Whether a server was asked for all objects of a kind and returned them."""
    return snapshot.release_source == "server" and not _is_unread(kind, snapshot, namespace)


def _is_unread(kind: str, snapshot: Snapshot, namespace: str) -> bool:
    """Whether a kind is unread. One that is read only on demand counts as unread if no object shows otherwise."""
    if kind in SCHEDULING_KINDS and kind not in snapshot.others:
        return True
    return snapshot.is_gap(kind, namespace)


def _by_name(snapshot: Snapshot, kind: str) -> dict[str, Any]:
    return {name: item for (_, name), item in snapshot.others.get(kind, {}).items()}


def _in(snapshot: Snapshot, kind: str, namespace: str) -> dict[str, Any]:
    found: Iterable[tuple[tuple[str, str], Any]] = snapshot.others.get(kind, {}).items()
    return {name: item for (space, name), item in found if space == namespace}
