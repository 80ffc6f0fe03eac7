"""Extended resources that a DeviceClass backs (KEP-5004), and the claim that the scheduler makes for them."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from msgspec import Struct
from msgspec.structs import replace

from kubectl_dra.api.claims import DeviceClass, DeviceRequest, Request, ResourceClaim
from kubectl_dra.api.meta import ObjectMeta
from kubectl_dra.api.nodes import Node
from kubectl_dra.api.pods import Container, Pod
from kubectl_dra.api.quantity import Quantity, QuantityError

IMPLICIT_PREFIX = "deviceclass.resource.kubernetes.io/"
CLAIM_NAME = "<extended-resources>"
MADE_FOR_EXTENDED = "resource.kubernetes.io/extended-resource-claim"
"""The annotation of the claim that the scheduler makes for a pod's extended resources; its value is ``true``."""


def class_by_resource(classes: Mapping[str, DeviceClass]) -> dict[str, DeviceClass]:
    """The class that backs each resource name: the newest that names it, then the smaller name."""
    out = {IMPLICIT_PREFIX + name: device_class for name, device_class in classes.items()}
    for device_class in sorted(classes.values(), key=lambda device_class: device_class.name, reverse=True):
        resource = device_class.extended_resource_name
        if not resource:
            continue
        known = out.get(resource)
        if known is None or device_class.metadata.creation_timestamp >= known.metadata.creation_timestamp:
            out[resource] = device_class
    return out


def eligible_name(resource: str) -> bool:
    """Whether a class can back a resource name: it must be qualified and not Kubernetes' own."""
    if resource.startswith(IMPLICIT_PREFIX):
        return True
    domain = resource.split("/", 1)[0]
    kubernetes = domain == "kubernetes.io" or domain.endswith(".kubernetes.io")
    return "/" in resource and not kubernetes and not resource.startswith("requests.")


class ExtendedRequests(Struct, frozen=True):
    """The extended resources that a pod requests and a class backs, with their total amounts.

    ``supposed``: the claim for all of them, where it is not as the scheduler makes it.
    """

    pod: Pod
    classes: Mapping[str, DeviceClass]
    amounts: Mapping[str, int]
    supposed: ResourceClaim | None = None

    def delegated(self, node: Node) -> frozenset[str]:
        """The resources that devices must serve on this node, because no device plugin offers them there."""
        return frozenset(name for name in self.amounts if not amount_of(node.allocatable.get(name)))

    def never_binds(self, node: Node) -> bool:
        """Whether the pod passes the filters on the node and is then never bound: it has claims of its own, and a
        device plugin serves all its extended resources there. The scheduler makes an empty claim for these, which it
        then refuses to record (a defect of 1.36 and 1.37).
        """
        return bool(self.pod.claims) and not self.delegated(node)

    def claim(self, delegated: Collection[str]) -> ResourceClaim | None:
        """The claim for the delegated resources, or None if there are none."""
        if self.supposed is None:
            return self._made(delegated)
        claim = self._made(self.amounts.keys() - delegated)
        served = {request.name for request in claim.requests} if claim is not None else set()
        requests = tuple(request for request in self.supposed.requests if request.name not in served)
        return replace(self.supposed, requests=requests) if requests else None

    def _made(self, resources: Collection[str]) -> ResourceClaim | None:
        """The claim that the scheduler makes for some of the resources."""
        requests: list[DeviceRequest] = []
        for resource in sorted(resources):
            requests.extend(self._requests(resource))
        if not requests:
            return None
        requests.sort(key=lambda spec: spec.name)
        return ResourceClaim(
            metadata=ObjectMeta(name=CLAIM_NAME, namespace=self.pod.metadata.namespace),
            requests=tuple(Request(request.name, request) for request in requests),
        )

    def _requests(self, resource: str) -> list[DeviceRequest]:
        long_lived: list[tuple[int, DeviceRequest]] = []
        short_lived: list[DeviceRequest] = []
        containers = self.pod.containers
        for index, container in enumerate(containers):
            amount = amount_of(container.requests.get(resource))
            if amount and container.long_lived:
                long_lived.append((index, self._request(resource, index, container, amount)))
        for index, container in enumerate(containers):
            amount = amount_of(container.requests.get(resource))
            if not amount or container.long_lived:
                continue
            reusable = sum(spec.count for other, spec in long_lived if other >= index)
            if amount > reusable:
                short_lived.append(self._request(resource, index, container, amount - reusable))
        largest = max(short_lived, key=lambda spec: spec.count, default=None)
        return [spec for _, spec in long_lived] + ([largest] if largest else [])

    def _request(self, resource: str, index: int, container: Container, count: int) -> DeviceRequest:
        position = sorted(container.requests).index(resource)
        return DeviceRequest(
            name=f"container-{index}-request-{position}",
            device_class=self.classes[resource].name,
            count=count,
        )


def extended_requests(pod: Pod, classes: Mapping[str, DeviceClass]) -> ExtendedRequests | None:
    """The extended resources of the pod that a class backs, or None if there are none."""
    backed = class_by_resource(classes)
    amounts: dict[str, int] = {}
    for container in pod.containers:
        for resource, value in container.requests.items():
            if resource in backed and eligible_name(resource):
                amounts[resource] = amounts.get(resource, 0) + amount_of(value)
    amounts = {resource: amount for resource, amount in amounts.items() if amount}
    if not amounts:
        return None
    return ExtendedRequests(pod, {resource: backed[resource] for resource in amounts}, amounts)


def limit_of(pod: Pod, request: str) -> tuple[str, str]:
    """The container and the resource for which the scheduler makes a request of its own claim."""
    _, container, _, resource = request.split("-")
    asking = pod.containers[int(container)]
    return asking.name, sorted(asking.requests)[int(resource)]


def amount_of(value: object) -> int:
    """A resource amount as a whole number; 0 if absent or unreadable."""
    if value is None:
        return 0
    try:
        return Quantity.from_json(value).value()
    except QuantityError:
        return 0


def resources_of(pod: Pod) -> list[str]:
    """The names of the extended resources that a pod requests, in order."""
    return sorted(
        {
            name
            for container in pod.containers
            for name, value in container.requests.items()
            if eligible_name(name) and amount_of(value)
        }
    )
