"""What a pod takes from a node, in the scheduler's units: cpu in thousandths of a core, everything else in
whole units.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from functools import lru_cache
from typing import Final, NamedTuple

from kubectl_dra.api import pod_resources
from kubectl_dra.api.meta import Amount
from kubectl_dra.api.pods import Container, Pod
from kubectl_dra.api.quantity import Quantity, QuantityError

Amounts = dict[str, int]
"""Resource name to amount."""

_MILLI: Final = 1_000_000
_UNIT: Final = 1_000_000_000


class Rules(NamedTuple):
    """Rules by which a release counts requests, from its feature gates."""

    pod_level: bool = True
    resize: bool = True
    pod_level_resize: bool = True
    of_devices: bool = True

    @classmethod
    def of(cls, gates: Set[str]) -> Rules:
        """The rules of a scheduler with these gates on."""
        resize = "InPlacePodVerticalScaling" in gates
        return cls(
            pod_level="PodLevelResources" in gates,
            resize=resize,
            pod_level_resize=resize and "InPlacePodLevelResourcesVerticalScaling" in gates,
            of_devices="DRANodeAllocatableResources" in gates,
        )


ALL_RULES: Final = Rules()


def pod_amounts(pod: Pod, rules: Rules = ALL_RULES) -> Amounts:
    """What the pod takes from a node, including overhead.

    A pod resized in place counts with the largest of the written, allocated and actuated amounts.
    """
    spec = pod.spec
    resized = rules.resize and _resized(pod)
    of_devices = pod.status.node_allocatable_resource_claim_statuses if rules.of_devices else ()
    if not (resized or of_devices or spec.init_containers or spec.overhead or spec.resources):
        return _sum(spec.containers)
    asking = _Resized(pod) if resized else pod_resources.requested
    total = pod_resources.container_total(pod, asking)
    for claim in of_devices:
        pod_resources.add(total, pod_resources.of_devices(claim))
    if rules.pod_level:
        total.update(_of_the_pod(pod, rules.pod_level_resize))
    pod_resources.add(total, pod_resources.amounts(spec.overhead))
    return {name: in_units(name, amount.nanos) for name, amount in total.items()}


def amounts_of(written: Mapping[str, Amount]) -> Amounts:
    """Amounts as written, in the scheduler's units, without unreadable ones."""
    return {name: amount for name, value in written.items() if (amount := _amount(name, value)) is not None}


def in_units(resource: str, nanos: int) -> int:
    """A nano amount in the unit of its resource, rounded up like the scheduler does."""
    return -(-nanos // (_MILLI if resource == "cpu" else _UNIT))


@lru_cache(maxsize=4096)
def _amount(resource: str, value: Amount) -> int | None:
    try:
        return in_units(resource, Quantity.from_json(value).nanos)
    except QuantityError:
        return None


@lru_cache(maxsize=4096)
def _nanos(value: Amount) -> int:
    try:
        return Quantity.from_json(value).nanos
    except QuantityError:
        return 0


def _sum(containers: tuple[Container, ...]) -> Amounts:
    """The requests of ordinary containers: the case of most pods in a large cluster."""
    if len(containers) == 1:
        return amounts_of(containers[0].requests)
    total: dict[str, int] = {}
    for container in containers:
        for name, value in container.requests.items():
            total[name] = total.get(name, 0) + _nanos(value)
    return {name: in_units(name, nanos) for name, nanos in total.items()}


class _Resized:
    """What the containers of a pod count that was or will be resized in place."""

    def __init__(self, pod: Pod) -> None:
        status = pod.status
        self._statuses = {
            container_status.name: container_status
            for container_status in (*status.container_statuses, *status.init_container_statuses)
        }
        self._infeasible = pod.condition("PodResizePending").reason == "Infeasible"

    def __call__(self, container: Container) -> Mapping[str, Amount]:
        status = self._statuses.get(container.name)
        if status is None or status.resources is None or not container.long_lived:
            return container.requests
        written = {} if self._infeasible else container.requests
        return _most(written, status.resources.requests, status.allocated_resources)


def _resized(pod: Pod) -> bool:
    """Whether the status reports amounts, which may exceed those requested."""
    status = pod.status
    if status.resources is not None:
        return True
    return any(
        container_status.resources is not None
        for container_status in (*status.container_statuses, *status.init_container_statuses)
    )


def _of_the_pod(pod: Pod, resize: bool) -> dict[str, Quantity]:
    written = pod_resources.pod_level(pod, "requests")
    status = pod.status
    if not written or not resize or status.resources is None:
        return written
    infeasible = pod.condition("PodResizePending").reason == "Infeasible"
    requested = {} if infeasible else {name: str(amount) for name, amount in written.items()}
    most = pod_resources.amounts(_most(requested, status.resources.requests, status.allocated_resources))
    return {name: most.get(name, Quantity.of(0)) for name in written}


def _most(*several: Mapping[str, Amount]) -> dict[str, Amount]:
    """The largest of each amount."""
    out: dict[str, Amount] = {}
    for amounts in several:
        for name, value in amounts.items():
            if name not in out or _nanos(value) > _nanos(out[name]):
                out[name] = value
    return out
