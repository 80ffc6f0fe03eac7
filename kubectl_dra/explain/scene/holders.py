"""Who holds devices: the claims, and the pods that consume them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kubectl_dra.allocation.pools import Pool
from kubectl_dra.allocation.state import AllocatedState
from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.pods import Pod
from kubectl_dra.api.slices import DeviceID
from kubectl_dra.explain.phrase import Joined, ObjectName, Phrase, Words, named, say


class HolderIndex:
    """Holders of devices.

    ``pods`` may be incomplete: an unknown pod is named all the same. ``complete`` tells for a namespace whether all
    its pods are known: one that is not among them is gone then.
    """

    def __init__(
        self,
        state: AllocatedState,
        pods: Mapping[tuple[str, str], Pod],
        complete: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self._state = state
        self._pods = pods
        self._complete = complete
        self._described: dict[int, Phrase] = {}

    def claims(self, device: DeviceID) -> tuple[ResourceClaim, ...]:
        """The claims that hold a device."""
        return self._state.holders.get(device, ())

    def stuck(self, claim: ResourceClaim) -> bool:
        """Whether a consumer will not release the claim by itself: a pod that is gone or in Terminating, or no pod."""
        for entry in claim.reserved_for:
            if entry.resource != "pods":
                return True
            pod = self._pods.get((claim.metadata.namespace, entry.name))
            if self._gone(claim, entry.name) or (pod is not None and pod.metadata.deletion_timestamp):
                return True
        return False

    def _gone(self, claim: ResourceClaim, name: str) -> bool:
        """Whether there is no pod of that name, as far as all pods are known."""
        space = claim.metadata.namespace
        return (space, name) not in self._pods and self._complete(space)

    def rank(self, claim: ResourceClaim) -> int:
        """Whose devices to ask for first: 0 nobody uses them, 1 a consumer that hangs, 2 a healthy one."""
        if not claim.reserved_for:
            return 0
        return 1 if self.stuck(claim) else 2

    @staticmethod
    def size(claim: ResourceClaim) -> int:
        """How many devices a claim holds."""
        return len(claim.allocation.results) if claim.allocation else 0

    def pods_of(self, claim: ResourceClaim) -> list[Pod]:
        """The pods that consume a claim, as far as they are known."""
        found = (self._pods.get((claim.metadata.namespace, entry.name)) for entry in claim.reserved_for)
        return [pod for pod in found if pod is not None]

    def describe(self, device: DeviceID) -> Joined:
        """Who holds a device."""
        return Joined(tuple(self.describe_claim(claim) for claim in self.claims(device)), " and ")

    def users(self, claim: ResourceClaim) -> Words:
        """Who uses a claim: its pods, or else the claim itself."""
        space = claim.metadata.namespace
        pods = [entry for entry in claim.reserved_for if entry.resource == "pods"]
        if len(pods) != len(claim.reserved_for) or not pods:
            return say("claim {key}", key=claim.key)
        return say("pod {names}", names=[f"{space}/{entry.name}" for entry in pods])

    def describe_claim(self, claim: ResourceClaim) -> Phrase:
        """A claim and its consumers: pods with phase, other kinds by name, or nobody."""
        known = self._described.get(id(claim))
        if known is None:
            known = self._described[id(claim)] = self._describe(claim)
        return known

    def _describe(self, claim: ResourceClaim) -> Phrase:
        consumers = [self._consumer(claim, entry.resource, entry.name, entry.uid) for entry in claim.reserved_for]
        if not consumers:
            return say("claim {key} (allocated, but nobody consumes it)", key=named("ResourceClaim", claim))
        if not claim.metadata.deletion_timestamp:
            return say("claim {key} ({consumers:some 3})", key=named("ResourceClaim", claim), consumers=consumers)
        return say(
            "claim {key} ({consumers:some 3}; the claim is being deleted since {since})",
            key=named("ResourceClaim", claim),
            consumers=consumers,
            since=claim.metadata.deletion_timestamp,
        )

    def _consumer(self, claim: ResourceClaim, resource: str, name: str, uid: str) -> Phrase:
        if resource != "pods":
            return say(
                "{resource} {name}, which is not a pod: nothing releases it by itself", resource=resource, name=name
            )
        pod = self._pods.get((claim.metadata.namespace, name))
        known = ObjectName("Pod", name, claim.metadata.namespace)
        if pod is None and self._gone(claim, name):
            return say("pod {name}, which does not exist any more", name=name)
        if pod is None:
            return say("pod {name}", name=name)
        if uid and pod.metadata.uid and pod.metadata.uid != uid:
            return say("pod {name:bare}, an earlier one of that name", name=known)
        if pod.metadata.deletion_timestamp:
            return say("pod {name:bare}, Terminating since {since}", name=known, since=pod.metadata.deletion_timestamp)
        return say("pod {name:bare}, {phase}" if pod.phase else "pod {name:bare}", name=known, phase=pod.phase)

    def of_counter_set(self, pool: Pool, counter_set: str) -> tuple[Phrase, ...]:
        """The allocated devices of a pool that draw on a counter set, with their claims."""
        drawing = {
            device.name
            for entry in (*pool.slices, *pool.other_slices)
            for device in entry.devices
            if any(consumption.counter_set == counter_set for consumption in device.consumes_counters)
        }
        return tuple(
            say("{device:bare} (claim {key})", device=device, key=named("ResourceClaim", claims[0]))
            for device, claims in sorted(self._state.holders.items())
            if device[:2] == pool.id and device.device in drawing
        )
