"""What claims count as in quotas, and which claims of a manifest the quotas let the API server create."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import json, structs

from kubectl_dra.allocation.extended_resources import IMPLICIT_PREFIX
from kubectl_dra.api.claims import ALL, DeviceClass, ResourceClaim
from kubectl_dra.api.limits import MAX_RESULTS
from kubectl_dra.api.meta import Amount
from kubectl_dra.api.pod_resources import amounts
from kubectl_dra.api.policy import ResourceQuota
from kubectl_dra.api.quantity import Quantity
from kubectl_dra.cluster.cluster import Cluster
from kubectl_dra.cluster.snapshot import Snapshot

ADMIN_LABEL: Final = "resource.kubernetes.io/admin-access"
CLAIM_COUNT: Final = "count/resourceclaims.resource.k8s.io"
CLASS_DEVICES: Final = ".deviceclass.resource.k8s.io/devices"
USED: Final = "kubectl-dra/used"
"""An annotation of quotas that were charged with what only a manifest brings: what the cluster says is used."""
_ZERO: Final = Quantity.of(0)


def needs(claims: Sequence[ResourceClaim], classes: Mapping[str, DeviceClass]) -> dict[str, int]:
    """What the claims count as, by quota key. All counts as 32 devices, a list as its largest amount per
    class.

    Devices of a class with an extended resource name also count as that resource (KEP-5004).
    """
    out = {CLAIM_COUNT: len(claims)}
    for claim in claims:
        for request in claim.requests:
            largest: dict[str, int] = {}
            for spec in request.alternatives():
                amount = MAX_RESULTS if spec.allocation_mode == ALL else spec.count
                largest[spec.device_class] = max(amount, largest.get(spec.device_class, 0))
            for name, amount in largest.items():
                for key in _keys(name, classes):
                    out[key] = out.get(key, 0) + amount
    return out


def wanted_by(claims: Sequence[ResourceClaim], snapshot: Snapshot) -> dict[str, Quantity]:
    """The same as quantities; nothing of no claims."""
    counted = needs(claims, snapshot.classes) if claims else {}
    return {key: Quantity.of(count) for key, count in counted.items()}


def _keys(name: str, classes: Mapping[str, DeviceClass]) -> Iterator[str]:
    """The quota keys under which devices of a class count."""
    yield f"{name}{CLASS_DEVICES}"
    extended = classes[name].extended_resource_name if name in classes else ""
    if extended:
        yield f"requests.{IMPLICIT_PREFIX}{name}"
        yield f"requests.{extended}"


def exceeded(quota: ResourceQuota, wanted: Mapping[str, Quantity]) -> bool:
    """Whether a quota has too little left for these amounts."""
    used = amounts(quota.status.used)
    hard = amounts(quota.status.hard or quota.spec.hard)
    return any(key in hard and used.get(key, _ZERO) + amount > hard[key] for key, amount in wanted.items())


def charged(quota: ResourceQuota, more: Iterable[Mapping[str, Quantity]], sign: int = 1) -> ResourceQuota:
    """The quota after what it limits of these amounts was used, or is not any more; it keeps what a cluster says."""
    used, written = amounts(quota.status.used), quota.status.used
    for usage in more:
        for key in usage.keys() & (quota.status.hard or quota.spec.hard).keys():
            before = used.get(key, _ZERO)
            used[key] = before + usage[key] if sign > 0 else max(_ZERO, before - usage[key])
    noted = {USED: json.encode(written).decode(), **quota.metadata.annotations}
    after: dict[str, Amount] = {key: str(amount) for key, amount in used.items()}
    status = structs.replace(quota.status, used=after)
    return structs.replace(quota, metadata=structs.replace(quota.metadata, annotations=noted), status=status)


def used_in_cluster(quota: ResourceQuota, key: str) -> str:
    """How much of an amount the cluster says is used: what only a manifest brings may have been charged since."""
    noted = quota.metadata.annotations.get(USED)
    return str((json.decode(noted) if noted else quota.status.used).get(key, "0"))


# A manifest creates its ResourceClaims before its pods, and quotas count them.


def only_written(claim: ResourceClaim) -> bool:
    """Whether a claim is only in a manifest: a server has given it nothing yet."""
    return not (claim.metadata.uid or claim.metadata.creation_timestamp) and claim.allocation is None


def to_create(claim: ResourceClaim, snapshot: Snapshot) -> bool:
    """Whether the manifest brings a claim that the server has not created yet, whatever uid is written there."""
    key = ("ResourceClaim", claim.metadata.namespace, claim.metadata.name)
    return key in snapshot.created and claim.allocation is None and claim.metadata.uid != _created(claim)


def _created(claim: ResourceClaim) -> str:
    """The uid that stands for the one that the server gives a claim."""
    return f"created:{claim.key}"


def without_admin_label(claim: ResourceClaim, snapshot: Snapshot) -> bool:
    """Whether a claim asks for admin access in a namespace that does not allow it, as far as that was read."""
    namespace = snapshot.namespaces.get(claim.metadata.namespace)
    asks = any(spec.admin_access for spec in claim.alternatives())
    return asks and namespace is not None and namespace.labels.get(ADMIN_LABEL) != "true"


def with_created_claims(snapshot: Snapshot) -> Snapshot:
    """The cluster after the server created the claims of the manifest that quotas leave room for, one after another.

    Those have a uid then, and the quotas count them. Where a namespace has no quota, its claims stay as they are.
    """
    quotas, created = list(snapshot.quotas), list[ResourceClaim]()
    new = [claim for claim in snapshot.claims.values() if to_create(claim, snapshot)] if snapshot.created else []
    for claim in new:
        own = [at for at, quota in enumerate(quotas) if quota.metadata.namespace == claim.metadata.namespace]
        if not own or without_admin_label(claim, snapshot):
            continue
        wanted = wanted_by([claim], snapshot)
        if any(exceeded(quotas[at], wanted) for at in own):
            continue
        for at in own:
            quotas[at] = charged(quotas[at], [wanted])
        metadata = structs.replace(claim.metadata, uid=_created(claim))
        created.append(structs.replace(claim, metadata=metadata))
    return Cluster(snapshot).editing(*quotas, *created).snapshot if created else snapshot
