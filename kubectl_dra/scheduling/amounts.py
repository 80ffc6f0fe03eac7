"""What a pod requests as a whole, in the scheduler's units: cpu in thousandths of a core, all else in whole units."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import Final, NamedTuple

from kubectl_dra.api.pods import Container, ContainerStatus, Pod, ResourceRequirements
from kubectl_dra.api.quantity import Quantity, QuantityError
from kubectl_dra.api.wire import Amount

Amounts = dict[str, int]
"""Resource name to amount."""

_MILLI: Final = 1_000_000
_UNIT: Final = 1_000_000_000
_Nanos = dict[str, int]
_POD_LEVEL: Final = ("cpu", "memory")
_HUGE_PAGES: Final = "hugepages-"


class Rules(NamedTuple):
    """How amounts are counted: by feature gates of the release."""

    pod_level: bool = True
    resize: bool = True
    pod_level_resize: bool = True

    @classmethod
    def of(cls, gates: Set[str]) -> Rules:
        """The rules of a scheduler with these gates on."""
        resize = "InPlacePodVerticalScaling" in gates
        return cls(
            pod_level="PodLevelResources" in gates,
            resize=resize,
            pod_level_resize=resize and "InPlacePodLevelResourcesVerticalScaling" in gates,
        )


ALL_RULES: Final = Rules()


def pod_amounts(pod: Pod, rules: Rules = ALL_RULES) -> Amounts:
    """What the pod takes of a node, overhead included.

    The peak of what runs at one time: all containers with all sidecars, or an init container with the sidecars that
    were started before it; where the pod itself requests a resource, that amount instead. What was resized in place
    counts with the most of what is written, allocated and actuated.
    """
    spec = pod.spec
    statuses = _statuses(pod) if rules.resize else {}
    infeasible = bool(statuses or pod.status.resources) and _infeasible(pod)
    total: _Nanos = {}
    for container in spec.containers:
        _add(total, _container(container, statuses.get(container.name), infeasible))
    if spec.init_containers:
        sidecars: _Nanos = {}
        peak: _Nanos = {}
        for container in spec.init_containers:
            sidecar = container.restart_policy == "Always"
            own = _container(container, statuses.get(container.name) if sidecar else None, infeasible)
            if sidecar:
                _add(total, own)
                _add(sidecars, own)
                _raise(peak, sidecars)
            else:
                beside = dict(sidecars)
                _add(beside, own)
                _raise(peak, beside)
        _raise(total, peak)
    if spec.resources is not None and rules.pod_level:
        total.update(_of_the_pod(pod, spec.resources, infeasible, rules.pod_level_resize))
    if spec.overhead:
        _add(total, nanos(spec.overhead))
    return in_units(total)


def in_units(amounts: Mapping[str, int]) -> Amounts:
    """Nano amounts in the scheduler's units, rounded up as it rounds."""
    return {name: -(-value // (_MILLI if name == "cpu" else _UNIT)) for name, value in amounts.items()}


def nanos(amounts: Mapping[str, Amount]) -> dict[str, int]:
    """Amounts as written in nano units; those that cannot be read are left out."""
    out: dict[str, int] = {}
    for name, value in amounts.items():
        try:
            out[name] = Quantity.from_json(value).nanos
        except QuantityError:
            continue
    return out


def pod_level_resource(name: str) -> bool:
    """Whether a pod can request the resource for itself (``spec.resources``)."""
    return name in _POD_LEVEL or name.startswith(_HUGE_PAGES)


def _of_the_pod(pod: Pod, resources: ResourceRequirements, infeasible: bool, resize: bool) -> Iterable[tuple[str, int]]:
    written = nanos(resources.effective())
    status = pod.status
    effective = written
    if resize and status.resources is not None:
        effective = {} if infeasible else dict(written)
        _raise(effective, nanos(status.resources.requests))
        _raise(effective, nanos(status.allocated_resources))
    return [(name, effective.get(name, 0)) for name in written if pod_level_resource(name)]


def _container(container: Container, status: ContainerStatus | None, infeasible: bool) -> _Nanos:
    written = nanos(container.requests)
    if status is None or status.resources is None:
        return written
    out: _Nanos = {} if infeasible else written
    _raise(out, nanos(status.resources.requests))
    _raise(out, nanos(status.allocated_resources))
    return out


def _statuses(pod: Pod) -> dict[str, ContainerStatus]:
    status = pod.status
    return {entry.name: entry for entry in (*status.container_statuses, *status.init_container_statuses)}


def _infeasible(pod: Pod) -> bool:
    pending = pod.condition("PodResizePending")
    return pending is not None and pending.reason == "Infeasible"


def _add(into: _Nanos, amounts: Mapping[str, int]) -> None:
    for name, amount in amounts.items():
        into[name] = into.get(name, 0) + amount


def _raise(into: _Nanos, amounts: Mapping[str, int]) -> None:
    for name, amount in amounts.items():
        if name not in into or amount > into[name]:
            into[name] = amount
