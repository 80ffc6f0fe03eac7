"""What happens when a claim gives its devices back: the pods that use it end, and with them further claims."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.pods import Pod
from kubectl_dra.cluster.snapshot import Key


class GivingBack(NamedTuple):
    """Pods that end, and the claims that are then free."""

    pods: frozenset[Key]
    claims: tuple[ResourceClaim, ...]


def of_claims(
    claims: Collection[ResourceClaim], others: Iterable[ResourceClaim], pods: Mapping[Key, Pod]
) -> GivingBack:
    """The consequences of giving claims back: a claim keeps its devices as long as a pod uses it."""
    ended = {key: pod for claim in claims for key, pod in _consumers(claim, pods)}
    uids = {entry.uid for claim in claims for entry in claim.reserved_for if entry.uid}
    own = {id(claim) for claim in claims}
    more = (claim for claim in others if id(claim) not in own and _only_for(claim, uids))
    return GivingBack(frozenset(ended), (*claims, *more))


def of_pods(ended: Iterable[Pod], claims: Iterable[ResourceClaim]) -> GivingBack:
    """The consequences of ending pods: claims that nobody else uses are free."""
    gone = tuple(ended)
    uids = {pod.metadata.uid for pod in gone if pod.metadata.uid}
    keys = frozenset((pod.metadata.namespace, pod.metadata.name) for pod in gone)
    return GivingBack(keys, tuple(claim for claim in claims if _only_for(claim, uids)))


def _only_for(claim: ResourceClaim, uids: Collection[str]) -> bool:
    users = claim.reserved_for
    return bool(users) and all(entry.resource == "pods" and entry.uid in uids for entry in users)


def _consumers(claim: ResourceClaim, pods: Mapping[Key, Pod]) -> Iterable[tuple[Key, Pod]]:
    for entry in claim.reserved_for:
        key = (claim.metadata.namespace, entry.name)
        pod = pods.get(key)
        if entry.resource == "pods" and pod is not None and (not pod.metadata.uid or pod.metadata.uid == entry.uid):
            yield key, pod
