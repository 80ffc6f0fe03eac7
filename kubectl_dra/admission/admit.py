"""Runs a new pod through the API server's admission plugins, in the server's order."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct, structs

from kubectl_dra.admission import limit_ranges, namespaces, priority, quotas, runtime_classes, service_accounts
from kubectl_dra.admission.known import AdmissionObjects
from kubectl_dra.admission.label_keys import with_label_keys
from kubectl_dra.admission.refusal import Refusal
from kubectl_dra.api.nodes import Toleration
from kubectl_dra.api.pods import Pod

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
    nowhere = namespaces.refusal(pod.metadata.namespace, known.namespaces)
    if nowhere is not None:
        return Admission(pod, (nowhere,), unread)
    pod = limit_ranges.with_defaults(pod, known.limit_ranges)
    missing = service_accounts.refusal(pod, known.service_accounts)
    if missing is not None:
        return Admission(pod, (missing,), unread)
    found = priority.resolve(pod, known.priority_classes)
    if isinstance(found, Refusal):
        return Admission(pod, (found,), unread)
    pod = _patient(found)
    found = runtime_classes.resolve(pod, known.runtime_classes)
    if isinstance(found, Refusal):
        return Admission(pod, (found,), unread)
    refusals = (*limit_ranges.refusals(found, known.limit_ranges), *quotas.refusals(found, known.quotas))
    return Admission(with_label_keys(found), refusals, unread)


def _unread(pod: Pod, known: AdmissionObjects) -> Iterator[str]:
    """The kinds that decide about the pod and were not read."""
    yield from known.unread
    named = pod.spec.priority_class_name
    # A default class may contradict what the pod says, or put it into the scope of a quota.
    asks = pod.spec.priority is not None or bool(pod.spec.preemption_policy)
    asks = bool(named) or asks or any(map(quotas.by_priority, known.quotas))
    if known.priority_classes is None and asks and named not in priority.SYSTEM_CLASSES:
        yield "PriorityClass"
    if known.runtime_classes is None and pod.spec.runtime_class_name:
        yield "RuntimeClass"
    if known.service_accounts is None and pod.spec.service_account_name not in ("", service_accounts.ALWAYS):
        yield "ServiceAccount"


def _patient(pod: Pod) -> Pod:
    """DefaultTolerationSeconds: a pod stays for five minutes on a node that is not ready or unreachable."""
    tolerations = list(pod.spec.tolerations)
    for key in _WAITED_OUT:
        if not any(each.key in ("", key) and each.effect in ("", "NoExecute") for each in pod.spec.tolerations):
            tolerations.append(Toleration(key, "Exists", "", "NoExecute", _SECONDS))
    return structs.replace(pod, spec=structs.replace(pod.spec, tolerations=tuple(tolerations)))
