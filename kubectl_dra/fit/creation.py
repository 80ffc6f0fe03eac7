"""Whether the API server would create one more pod and its claims, with what quotas leave after the pods before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum, auto
from typing import Final

from msgspec import Struct, structs

from kubectl_dra.admission.quotas import in_scope, refusals, used_by
from kubectl_dra.api.pod_resources import amounts
from kubectl_dra.api.policy import ResourceQuota
from kubectl_dra.api.quantity import Quantity
from kubectl_dra.api.wire import Amount
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.explain.causes.claim_creation import needs, without_admin_label
from kubectl_dra.fit.mold import NewPod

_ZERO: Final = Quantity.of(0)


class Denied(Enum):
    """What is not created."""

    POD = auto()
    CLAIM = auto()


class Creation(Struct, frozen=True):
    """What is denied, if anything, and the quotas after the pod was created; None where none changed."""

    denied: Denied | None = None
    quotas: Sequence[ResourceQuota] | None = None


def denied(new: NewPod, snapshot: Snapshot) -> Creation:
    """Whether the pod and its claims are created, and what becomes of the quotas of their namespace then."""
    space = new.pod.metadata.namespace
    if new.refused:
        return Creation(Denied.POD)
    if any(without_admin_label(claim, snapshot) for claim in new.claims.values()):
        return Creation(Denied.CLAIM)
    own = [quota for quota in snapshot.quotas if quota.metadata.namespace == space]
    if not own:
        return Creation()
    if any(True for _ in refusals(new.pod, own)):
        return Creation(Denied.POD)
    counted = needs(list(new.claims.values()), snapshot.classes) if new.claims else {}
    wanted = {key: Quantity.of(count) for key, count in counted.items()}
    if any(_exceeded(quota, wanted) for quota in own):
        return Creation(Denied.CLAIM)
    usage = used_by(new.pod)
    after = []
    for quota in snapshot.quotas:
        if quota.metadata.namespace == space:
            more = [wanted, usage] if in_scope(new.pod, quota) else [wanted]
            quota = _charged(quota, more)
        after.append(quota)
    return Creation(quotas=after)


def _exceeded(quota: ResourceQuota, wanted: Mapping[str, Quantity]) -> bool:
    used = amounts(quota.status.used)
    hard = amounts(quota.status.hard or quota.spec.hard)
    return any(key in hard and used.get(key, _ZERO) + amount > hard[key] for key, amount in wanted.items())


def _charged(quota: ResourceQuota, more: Iterable[Mapping[str, Quantity]]) -> ResourceQuota:
    """The quota after what it limits of these amounts was used."""
    used = amounts(quota.status.used)
    for usage in more:
        for key in usage.keys() & (quota.status.hard or quota.spec.hard).keys():
            used[key] = used.get(key, _ZERO) + usage[key]
    written: dict[str, Amount] = {key: str(amount) for key, amount in used.items()}
    return structs.replace(quota, status=structs.replace(quota.status, used=written))
