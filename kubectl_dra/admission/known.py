"""The objects of a cluster that affect new pods, by namespace, and whether they were read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from kubectl_dra.admission.kinds_to_read import ABOUT_ANY_POD
from kubectl_dra.admission.service_accounts import ALWAYS
from kubectl_dra.api.meta import ObjectMeta
from kubectl_dra.api.policy import LimitRange, PriorityClass, ResourceQuota, RuntimeClass
from kubectl_dra.cluster.snapshot import Snapshot


class AdmissionObjects(Struct, frozen=True):
    """The objects that admission plugins read. None for a kind means that it was not read whole.

    ``unread`` are the kinds that may affect any pod of the namespace and were not read whole.
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
        """The objects in a snapshot for pods of a namespace. The account ``default`` comes with its namespace."""

        def seen(kind: str) -> bool:
            return not snapshot.is_gap(kind, namespace)

        accounts = frozenset(_in(snapshot, "ServiceAccount", namespace))
        return cls(
            # Every cluster has namespaces: where there is none, nobody has said which.
            namespaces=(snapshot.namespaces or None) if seen("Namespace") else None,
            priority_classes=_by_name(snapshot, "PriorityClass") if seen("PriorityClass") else None,
            runtime_classes=_by_name(snapshot, "RuntimeClass") if seen("RuntimeClass") else None,
            service_accounts=accounts | {ALWAYS} if seen("ServiceAccount") else None,
            limit_ranges=tuple(_in(snapshot, "LimitRange", namespace).values()),
            quotas=tuple(quota for quota in snapshot.quotas if quota.metadata.namespace == namespace),
            unread=tuple(kind for kind in ABOUT_ANY_POD if not seen(kind)),
        )


def _by_name(snapshot: Snapshot, kind: str) -> dict[str, Any]:
    return {name: item for (_, name), item in snapshot.others.get(kind, {}).items()}


def _in(snapshot: Snapshot, kind: str, namespace: str) -> dict[str, Any]:
    found: Iterable[tuple[tuple[str, str], Any]] = snapshot.others.get(kind, {}).items()
    return {name: item for (space, name), item in found if space == namespace}
