"""What the devices of a pod take from the node's own resources, such as cpu and memory (KEP-5517, alpha in 1.37).

Source: nodeallocatabledynamicresources.go of the DynamicResources plugin of 1.37. 1.36 wrote it otherwise, which is not
modelled.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final

from msgspec import Struct, structs

from kubectl_dra.allocation.pools import scope_matches
from kubectl_dra.api import pod_resources
from kubectl_dra.api.claims import DeviceResult, ResourceClaim
from kubectl_dra.api.labels import InvalidNodeSelector
from kubectl_dra.api.nodes import Node
from kubectl_dra.api.pods import MappedResource, NodeResourcesOfClaim, OverheadResource, Pod
from kubectl_dra.api.quantity import Quantity
from kubectl_dra.api.slices import Device, DeviceID, NodeResource, NodeScope, PoolID, ResourceSlice
from kubectl_dra.scheduling.amounts import Rules, in_units, pod_amounts
from kubectl_dra.scheduling.framework import NodeState
from kubectl_dra.scheduling.node_resources import Insufficient
from kubectl_dra.scheduling.reasons import Reason, Rejection

GATE: Final = "DRANodeAllocatableResources"
_CHECKED: Final = ("cpu", "memory", "ephemeral-storage")
_HUGE_PAGES: Final = "hugepages-"
_NANO: Final = 10**9

Slices = Mapping[PoolID, Sequence[ResourceSlice]]


class InsufficientForDevices(Insufficient, frozen=True):
    """Too little is left for the pod's containers together with what its devices take: ``of_devices`` of
    ``requested``.
    """

    of_devices: int
    devices: tuple[DeviceID, ...]


class MappedClaimInUse(Reason, frozen=True):
    """A device of the claim stands for resources of the node, and another pod uses the claim."""

    SAID = "claim {claim} stands for resources of the node, for one pod alone"

    claim: str

    @property
    def words(self) -> str:
        name = self.claim.rpartition("/")[2]
        return f"node allocatable resource claim {name} has a mapped device and cannot be shared across pods"


class PodRequestExceeded(Reason, frozen=True):
    """The containers and devices need more of a resource than the pod-level request has; amounts in units of the
    scheduler.
    """

    TEXT = (
        "pod level request for {resource} is insufficient to cover the aggregated container and "
        "node-allocatable DRA requests"
    )
    resource: str
    needed: int
    of_devices: int
    requested: int
    devices: tuple[DeviceID, ...]


class PodLimitExceeded(Reason, frozen=True):
    """The limits of the containers and the devices exceed the pod-level limit. ``container`` is empty where the sum
    does, else the one whose limit does.
    """

    resource: str
    container: str
    needed: int
    limit: int
    devices: tuple[DeviceID, ...]

    @property
    def words(self) -> str:
        start = f"pod level limit for {self.resource} is insufficient to cover the"
        if self.container:
            return f"{start} limit and DRA overhead for container {self.container}"
        return f"{start} aggregated container and node-allocatable DRA limits"


class DeviceGone(Reason, frozen=True):
    """Another device of the claim takes resources of the node, and this one is not published, or not for the node."""

    SAID = "what claim {claim} takes from the node is not known: {device} is gone"

    claim: str
    device: DeviceID
    elsewhere: bool

    @property
    def words(self) -> str:
        driver, pool, device = self.device
        why = "does not match node" if self.elsewhere else f"not found in pool {pool} for driver {driver}"
        return f"claim {self.claim}, device {device}, driver {driver}: device {device} {why}"


class NothingConsumed(Reason, frozen=True):
    """A device takes from the node by how much is consumed of a capacity, but nothing of it is consumed."""

    TEXT = (
        "claim {claim}, device {device.device}: ConsumedCapacity is nil, but Capacity key "
        "'{capacity}' is set in NodeAllocatableResources for resource {resource}"
    )
    SAID = "{device} takes {resource} by {capacity}, of which nothing is consumed"
    claim: str
    device: DeviceID
    capacity: str
    resource: str


class PublishedTwice(Reason, frozen=True):
    """Undetermined: slices say different things about the device, and the scheduler reads any of them."""

    SAID = "slices differ in what {device} takes from the node"

    device: DeviceID


_REASONS: Final = (
    InsufficientForDevices,
    MappedClaimInUse,
    PodRequestExceeded,
    PodLimitExceeded,
    DeviceGone,
    NothingConsumed,
    PublishedTwice,
)


class Taken(Struct, frozen=True):
    """What a pod's claims take on one node: as its status says it then, and the devices that count for it."""

    claims: tuple[NodeResourcesOfClaim, ...] = ()
    devices: tuple[DeviceID, ...] = ()


NOTHING: Final = Taken()


class CannotTell(Exception):
    """What the devices take cannot be computed."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason.words)
        self.reason = reason


def taken_on(
    node: Node,
    pod: Pod,
    claims: Iterable[ResourceClaim],
    names: Mapping[str, str],
    slices: Slices,
) -> Taken:
    """What the claims of a pod take on a node.

    Args:
        node: the node.
        pod: the pod.
        claims: the claims with the devices that they have, or would have.
        names: the claim's name for each entry of the pod's claims.
        slices: what is published, by pool.

    Raises:
        CannotTell: the scheduler cannot compute it, or we do not know.
    """
    by_claim: dict[str, NodeResourcesOfClaim] = {}
    counted: list[DeviceID] = []
    for claim in claims:
        if claim.metadata.name in by_claim or not any(_counts(node, result, slices) for result in claim.results):
            continue
        resources, devices = _of_claim(node, claim, slices)
        counted.extend(devices)
        if resources.mapping or resources.overhead:
            by_claim[claim.metadata.name] = structs.replace(resources, containers=tuple(_users(pod, claim, names)))
    return Taken(tuple(by_claim[name] for name in sorted(by_claim)), tuple(dict.fromkeys(counted)))


def refusals(pod: Pod, node: NodeState, taken: Taken, rules: Rules) -> tuple[Reason, ...]:
    """Why the pod with these devices does not fit its own pod-level resources or the node."""
    with_devices = structs.replace(
        pod, status=structs.replace(pod.status, node_allocatable_resource_claim_statuses=taken.claims)
    )
    rules = rules._replace(resize=False, pod_level_resize=False)
    if rules.pod_level and (exceeded := next(_exceeded(pod, taken), None)) is not None:
        return (exceeded,)
    alone = pod_amounts(pod, rules._replace(of_devices=False))
    requested = pod_amounts(with_devices, rules)
    reasons: list[Reason] = []
    for name, amount in requested.items():
        huge = name.startswith(_HUGE_PAGES)
        if not huge and (name not in _CHECKED or amount <= 0):
            continue
        capacity, used = node.allocatable.get(name, 0), node.requested.get(name, 0)
        if amount > capacity - used:
            of_devices = amount - alone.get(name, 0)
            reasons.append(InsufficientForDevices(name, amount, used, capacity, of_devices, taken.devices))
    return tuple(reasons)


def about_nodes(rejection: Rejection) -> bool:
    """Whether a node is refused for what the pod's devices take of it."""
    return any(isinstance(reason, _REASONS) for reason in rejection.reasons)


def is_mapped(claim: ResourceClaim, slices: Slices) -> bool:
    """Whether a device of the allocated claim stands for part of a resource of its node."""
    devices = (device for result in claim.results for _, device in _published(result.device, slices))
    return any(node_resource.mapped for device in devices for node_resource in device.node_resources)


def _counts(node: Node, result: DeviceResult, slices: Slices) -> bool:
    try:
        return bool(_device(node, "", result, slices).node_resources)
    except CannotTell as error:
        if isinstance(error.reason, PublishedTwice):
            raise
        return False


def _of_claim(node: Node, claim: ResourceClaim, slices: Slices) -> tuple[NodeResourcesOfClaim, list[DeviceID]]:
    mapped: dict[str, Quantity] = {}
    per_pod: dict[str, Quantity] = {}
    per_container: dict[str, Quantity] = {}
    counted = []
    for result in claim.results:
        for node_resource in _device(node, claim.key, result, slices).node_resources:
            counted.append(result.device)
            if (amount := _mapped(node_resource, claim, result)) is not None:
                pod_resources.add(mapped, {node_resource.name: amount})
            if node_resource.per_pod is not None:
                pod_resources.add(per_pod, {node_resource.name: node_resource.per_pod})
            if node_resource.per_container is not None:
                pod_resources.add(per_container, {node_resource.name: node_resource.per_container})
    overhead = tuple(
        OverheadResource(name, _text(per_pod.get(name)), _text(per_container.get(name)))
        for name in sorted(per_pod.keys() | per_container.keys())
    )
    mapping = tuple(MappedResource(name, _text(amount)) for name, amount in sorted(mapped.items()))
    return NodeResourcesOfClaim(claim.metadata.name, mapping=mapping, overhead=overhead), counted


def _mapped(node_resource: NodeResource, claim: ResourceClaim, result: DeviceResult) -> Quantity | None:
    """What one device stands for of a resource; None if nothing."""
    if not node_resource.capacity:
        return node_resource.multiplier
    if not result.consumed_capacity:
        raise CannotTell(NothingConsumed(claim.key, result.device, node_resource.capacity, node_resource.name))
    consumed = result.consumed_capacity.get(node_resource.capacity)
    if consumed is None or node_resource.multiplier is None:
        return consumed
    # Finer than a billionth is rounded up, as where it is stored.
    return Quantity(-(-consumed.nanos * node_resource.multiplier.nanos // _NANO), -9, consumed.format, wide=True)


def _device(node: Node, claim: str, result: DeviceResult, slices: Slices) -> Device:
    """The device as published for the node.

    Raises:
        CannotTell: there is none, or several that differ.
    """
    devices: dict[tuple[object, ...], Device] = {}
    for slice_, device in _published(result.device, slices):
        if slice_.per_device_node_selection:
            if not _usable(device.scope, node):
                raise CannotTell(DeviceGone(claim, result.device, elsewhere=True))
        elif not _usable(slice_.scope, node):
            continue
        devices.setdefault(tuple(map(structs.astuple, device.node_resources)), device)
    if not devices:
        raise CannotTell(DeviceGone(claim, result.device, elsewhere=False))
    if len(devices) > 1:
        raise CannotTell(PublishedTwice(result.device))
    return next(iter(devices.values()))


def _published(device: DeviceID, slices: Slices) -> Iterator[tuple[ResourceSlice, Device]]:
    for slice_ in slices.get(PoolID(device.driver, device.pool), ()):
        for published, name in zip(slice_.devices, slice_.names, strict=True):
            if name == device.device:
                yield slice_, published


def _usable(scope: NodeScope, node: Node) -> bool:
    try:
        return scope_matches(scope, node)
    except InvalidNodeSelector:
        return False


def _users(pod: Pod, claim: ResourceClaim, names: Mapping[str, str]) -> Iterator[str]:
    """The containers that use a claim, one for each mention."""
    for container in chain(pod.spec.init_containers, pod.spec.containers):
        for mention in container.resources.claims:
            if names.get(mention.name) == claim.metadata.name:
                yield container.name


def _exceeded(pod: Pod, taken: Taken) -> Iterator[Reason]:
    """What pod-level resources do not cover: requests of all containers, then limits."""
    resources = pod.spec.resources
    if resources is None:
        return
    of_devices: dict[str, Quantity] = {}
    for claim in taken.claims:
        pod_resources.add(of_devices, pod_resources.of_devices(claim))
    total = pod_resources.container_total(pod, pod_resources.requested)
    pod_resources.add(total, of_devices)
    for name, most in sorted(pod_resources.pod_level(pod, "requests").items()):
        if (needed := total.get(name)) is not None and needed > most:
            own = of_devices.get(name, Quantity.of(0))
            units = [in_units(name, amount.nanos) for amount in (needed, own, most)]
            yield PodRequestExceeded(name, units[0], units[1], units[2], taken.devices)
    limits = pod_resources.amounts(resources.limits)
    total = pod_resources.container_total(pod, pod_resources.limited)
    for name, amount in of_devices.items():
        if name in total or name.startswith(_HUGE_PAGES):
            pod_resources.add(total, {name: amount})
    for name, needed in sorted(total.items()):
        if name.startswith(_HUGE_PAGES) and name in limits and needed > limits[name]:
            yield _limit(name, "", needed, limits[name], taken)
    for container in pod.spec.containers:
        here: dict[str, Quantity] = {}
        for claim in taken.claims:
            pod_resources.add(here, pod_resources.of_devices_in(claim, container.name))
        for name, limit in sorted(pod_resources.amounts(container.resources.limits).items()):
            if name.startswith(_HUGE_PAGES) or name not in limits:
                continue
            if (needed := limit + here.get(name, Quantity.of(0))) > limits[name]:
                yield _limit(name, container.name, needed, limits[name], taken)


def _limit(name: str, container: str, needed: Quantity, limit: Quantity, taken: Taken) -> Reason:
    return PodLimitExceeded(name, container, in_units(name, needed.nanos), in_units(name, limit.nanos), taken.devices)


def _text(amount: Quantity | None) -> str | None:
    return None if amount is None else str(amount)
