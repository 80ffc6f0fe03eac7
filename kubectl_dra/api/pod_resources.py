"""The resources that a whole pod requests: the formula of ``k8s.io/component-helpers/resource``.

Containers and sidecars add up. Each init container needs its own request plus those of the sidecars started
before it. Pod-level resources replace the sum. Overhead is added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from msgspec import structs

from kubectl_dra.api.meta import Amount
from kubectl_dra.api.pods import Container, NodeResourcesOfClaim, Pod
from kubectl_dra.api.quantity import Quantity, QuantityError

Amounts = dict[str, Quantity]
"""Resource name to amount."""

Asking = Callable[[Container], Mapping[str, Amount]]
"""The amounts that a container counts with."""

_ZERO = Quantity.of(0)
_POD_LEVEL = ("cpu", "memory")
_HUGE_PAGES = "hugepages-"


def requested(container: Container) -> Mapping[str, Amount]:
    """A container's requests; limits stand in for missing ones."""
    return container.requests


def limited(container: Container) -> Mapping[str, Amount]:
    """A container's limits."""
    return container.resources.limits


def pod_requests(pod: Pod) -> Amounts:
    """What a pod requests, by resource name."""
    total = container_total(pod, requested)
    total.update(pod_level(pod, "requests"))
    add(total, amounts(pod.spec.overhead))
    return total


def pod_limits(pod: Pod) -> Amounts:
    """The limits of a pod. Overhead counts only where a limit exists."""
    total = container_total(pod, limited)
    total.update(pod_level(pod, "limits"))
    for name, amount in amounts(pod.spec.overhead).items():
        if total.get(name, _ZERO):
            total[name] = total[name] + amount
    return total


def container_total(pod: Pod, asking: Asking) -> Amounts:
    """What the containers need together at the pod's most demanding moment."""
    return together(
        (amounts(asking(container)) for container in pod.spec.containers),
        ((amounts(asking(init)), init.long_lived) for init in pod.spec.init_containers),
    )


def together(containers: Iterable[Amounts], inits: Iterable[tuple[Amounts, bool]]) -> Amounts:
    """The same of the amounts of containers, and of init containers of which some stay as sidecars."""
    running: Amounts = {}
    sidecars: Amounts = {}
    peak: Amounts = {}
    for own in containers:
        add(running, own)
    for own, stays in inits:
        if stays:
            add(running, own)
            add(sidecars, own)
            _raise(peak, sidecars)
        else:
            add(own, sidecars)
            _raise(peak, own)
    _raise(running, peak)
    return running


def pod_level(pod: Pod, side: str) -> Amounts:
    """The pod-level ``requests`` or ``limits`` of resources that can be set for a whole pod (KEP-2837).

    As in the API server's defaults, a request named only by a limit is the sum of the containers' requests,
    else the limit.
    """
    resources = pod.spec.resources
    if resources is None:
        return {}
    limits = {name: amount for name, amount in amounts(resources.limits).items() if is_pod_level(name)}
    if side == "limits":
        return limits
    own = {name: amount for name, amount in amounts(resources.requests).items() if is_pod_level(name)}
    if not limits:
        return own
    for name, amount in container_total(pod, requested).items():
        if name in _POD_LEVEL:
            own.setdefault(name, amount)
    return {**limits, **own}


def of_devices(claim: NodeResourcesOfClaim) -> Amounts:
    """What the devices of a pod's claim take from the node's own resources (1.36 and 1.37, alpha)."""
    total = amounts(claim.resources)
    for mapped in claim.mapping:
        add(total, amounts({mapped.name: mapped.quantity or 0}))
    for overhead_resource in claim.overhead:
        add(total, amounts({overhead_resource.name: overhead_resource.per_pod or 0}))
        for _ in claim.containers:
            add(total, amounts({overhead_resource.name: overhead_resource.per_container or 0}))
    return total


def of_devices_in(claim: NodeResourcesOfClaim, container: str) -> Amounts:
    """What the devices of a pod's claim take for one of its containers; nothing if it does not use the claim."""
    if container not in claim.containers:
        return {}
    return of_devices(structs.replace(claim, containers=(container,)))


def is_pod_level(name: str) -> bool:
    """Whether a resource can be requested for a pod as a whole."""
    return name in _POD_LEVEL or name.startswith(_HUGE_PAGES)


def amounts(written: Mapping[str, Amount]) -> Amounts:
    """Amounts as quantities. Unreadable ones count as absent."""
    quantities: Amounts = {}
    for name, value in written.items():
        try:
            quantities[name] = Quantity.from_json(value)
        except QuantityError:
            continue
    return quantities


def add(into: Amounts, more: Mapping[str, Quantity]) -> None:
    """Adds amounts to ``into``."""
    for name, amount in more.items():
        known = into.get(name)
        into[name] = amount if known is None else known + amount


def _raise(into: Amounts, more: Mapping[str, Quantity]) -> None:
    for name, amount in more.items():
        known = into.get(name)
        if known is None or amount > known:
            into[name] = amount
