"""What an end does: which pods go, which claims give their devices back, and which claims go with their pods.

The rules are those of the claim controller (pkg/controller/resourceclaim): it removes the entries of pods that are gone
or have ended. If none is left, it clears the allocation, and deletes a claim that was made for such a pod; one that
somebody made by hand stays.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.pods import Pod
from kubectl_dra.cluster.relation import PodSet, consumers_of
from kubectl_dra.cluster.snapshot import Key


class GivingBack(NamedTuple):
    """Pods that end, the claims that are then free, and those of them that somebody deletes."""

    pods: frozenset[Key]
    claims: tuple[ResourceClaim, ...]
    deleted: frozenset[Key] = frozenset()

    def left(self, claims: Mapping[Key, ResourceClaim]) -> dict[Key, ResourceClaim]:
        """The claims that are there then: one made for a pod goes with it, another one stays without devices."""
        after = dict(claims)
        for claim in self.claims:
            key = claim.metadata.namespace, claim.metadata.name
            owner = claim.metadata.controller()
            of_pod = owner is not None and owner.kind == "Pod" and (key[0], owner.name) in self.pods
            if of_pod or key in self.deleted:
                after.pop(key, None)
            else:
                after[key] = claim.deallocated()
        return after


def of_claims(
    claims: Collection[ResourceClaim],
    others: Iterable[ResourceClaim],
    pods: Mapping[Key, Pod],
    keep: Key | None = None,
) -> GivingBack:
    """The consequences of giving claims back: a claim keeps its devices as long as a pod uses it.

    The pods of the claims end, but for ``keep``: that is the one that waits for the devices.
    """
    ended, known = PodSet(), set[Key]()
    for claim in claims:
        for use in consumers_of(claim, pods).entries:
            if (claim.metadata.namespace, use.entry.name) == keep:
                continue
            if use.relation.of_pod:
                ended.add(claim.metadata.namespace, use.entry.name, use.entry.uid)
            if use.pod is not None:
                known.add((claim.metadata.namespace, use.entry.name))
    own = {id(claim) for claim in claims}
    more = _free_without(ended, (claim for claim in others if id(claim) not in own), pods)
    return GivingBack(frozenset(known), (*claims, *more))


def of_pods(ended: Iterable[Pod], claims: Iterable[ResourceClaim], pods: Mapping[Key, Pod] | None = None) -> GivingBack:
    """The consequences of ending pods: claims that nobody else uses are free. ``pods`` are all that are known."""
    gone, known = PodSet(), dict[Key, Pod]()
    for pod in ended:
        gone.add(pod.metadata.namespace, pod.metadata.name, pod.metadata.uid)
        known[pod.metadata.namespace, pod.metadata.name] = pod
    return GivingBack(frozenset(known), tuple(_free_without(gone, claims, known if pods is None else pods)))


def _free_without(ended: PodSet, claims: Iterable[ResourceClaim], pods: Mapping[Key, Pod]) -> Iterator[ResourceClaim]:
    """The claims that hold devices, and none when these pods have ended."""
    for claim in claims:
        if claim.allocation is None:
            continue
        space, owner = claim.metadata.namespace, claim.metadata.controller()
        used = any(ended.has(space, entry.name, entry.uid) for entry in claim.reserved_for)
        made = owner is not None and owner.kind == "Pod" and ended.has(space, owner.name, owner.uid)
        if (used or made) and consumers_of(claim, pods).end_with(ended):
            yield claim
