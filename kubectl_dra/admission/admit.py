"""Runs a new pod through the API server's admission plugins, in the server's order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, field, structs

from kubectl_dra.admission.plugins import (
    DEFAULT_ACCOUNT,
    SYSTEM_CLASSES,
    Refusal,
    account_refusal,
    namespace_refusal,
    with_label_keys,
    with_priority,
    with_runtime,
)
from kubectl_dra.admission.quantities import by_priority, limit_refusals, quota_refusals, with_defaults
from kubectl_dra.api.meta import ObjectMeta
from kubectl_dra.api.nodes import Toleration
from kubectl_dra.api.pods import Pod
from kubectl_dra.api.policy import LimitRange, PriorityClass, ResourceQuota, RuntimeClass
from kubectl_dra.cluster.snapshot import Snapshot

# Which kinds determine whether the API server accepts a new pod, and what it adds to it.

ABOUT_ANY_POD: Final = ("Namespace", "LimitRange", "ResourceQuota")
"""These may affect any pod of their namespace; the others only pods that name them, and those without a priority."""


def kinds_needed(pod: Pod) -> tuple[str, ...]:
    """The kinds to read besides what is always read. A PriorityClass can be the cluster's default."""
    runtime = ("RuntimeClass",) if pod.spec.runtime_class_name else ()
    return ("LimitRange", "ResourceQuota", "PriorityClass", "ServiceAccount", *runtime)


# The objects of a cluster that affect new pods, by namespace, and whether they were read.


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
            # Every cluster has namespaces: if the snapshot has none, they were not recorded.
            namespaces=(snapshot.namespaces or None) if seen("Namespace") else None,
            priority_classes=_by_name(snapshot, "PriorityClass") if seen("PriorityClass") else None,
            runtime_classes=_by_name(snapshot, "RuntimeClass") if seen("RuntimeClass") else None,
            service_accounts=accounts | {DEFAULT_ACCOUNT} if seen("ServiceAccount") else None,
            limit_ranges=tuple(_in(snapshot, "LimitRange", namespace).values()),
            quotas=tuple(quota for quota in snapshot.quotas if quota.metadata.namespace == namespace),
            unread=tuple(kind for kind in ABOUT_ANY_POD if not seen(kind)),
        )


def _by_name(snapshot: Snapshot, kind: str) -> dict[str, Any]:
    return {name: item for (_, name), item in snapshot.others.get(kind, {}).items()}


def _in(snapshot: Snapshot, kind: str, namespace: str) -> dict[str, Any]:
    objects: Iterable[tuple[tuple[str, str], Any]] = snapshot.others.get(kind, {}).items()
    return {name: item for (space, name), item in objects if space == namespace}


_WAITED_OUT = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_SECONDS = 300


class Admission(Struct, frozen=True):
    """The pod as it would be stored, all reasons to refuse it, and kinds that decide about it but were not read."""

    pod: Pod
    refusals: tuple[Refusal, ...] = ()
    unread: tuple[str, ...] = ()


def admit(pod: Pod, known: AdmissionObjects) -> Admission:
    """What the API server makes of a new pod.

    As in the server, a refusal in the mutating pass ends it; the validating pass collects all reasons.
    """
    unread = tuple(_unread(pod, known))
    nowhere = namespace_refusal(pod.metadata.namespace, known.namespaces)
    if nowhere is not None:
        return Admission(pod, (nowhere,), unread)
    pod = with_defaults(pod, known.limit_ranges)
    missing = account_refusal(pod, known.service_accounts)
    if missing is not None:
        return Admission(pod, (missing,), unread)
    admitted = with_priority(pod, known.priority_classes)
    if isinstance(admitted, Refusal):
        return Admission(pod, (admitted,), unread)
    pod = _patient(admitted)
    admitted = with_runtime(pod, known.runtime_classes)
    if isinstance(admitted, Refusal):
        return Admission(pod, (admitted,), unread)
    refusals = (*limit_refusals(admitted, known.limit_ranges), *quota_refusals(admitted, known.quotas))
    return Admission(with_label_keys(admitted), refusals, unread)


def _unread(pod: Pod, known: AdmissionObjects) -> Iterator[str]:
    """The kinds that decide about the pod and were not read."""
    yield from known.unread
    named = pod.spec.priority_class_name
    # A default class may contradict what the pod says, or put it into the scope of a quota.
    asks = pod.spec.priority is not None or bool(pod.spec.preemption_policy)
    asks = bool(named) or asks or any(map(by_priority, known.quotas))
    if known.priority_classes is None and asks and named not in SYSTEM_CLASSES:
        yield "PriorityClass"
    if known.runtime_classes is None and pod.spec.runtime_class_name:
        yield "RuntimeClass"
    if known.service_accounts is None and pod.spec.service_account_name not in ("", DEFAULT_ACCOUNT):
        yield "ServiceAccount"


def _patient(pod: Pod) -> Pod:
    """DefaultTolerationSeconds: a pod stays for five minutes on a node that is not ready or unreachable."""
    tolerations = list(pod.spec.tolerations)
    for key in _WAITED_OUT:
        if not any(
            toleration.key in ("", key) and toleration.effect in ("", "NoExecute")
            for toleration in pod.spec.tolerations
        ):
            tolerations.append(Toleration(key, "Exists", "", "NoExecute", _SECONDS))
    return structs.replace(pod, spec=structs.replace(pod.spec, tolerations=tuple(tolerations)))
