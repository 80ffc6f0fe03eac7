"""The resources of a whole pod: what the server derives from the containers, and how both must agree.

From ``SetDefaults_Pod`` and ``validatePodResources`` of Kubernetes 1.36 (KEP-2837).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kubectl_dra.admission.server.model import FORBIDDEN, INVALID, Key, Path, Violations, text, violation
from kubectl_dra.admission.server.resources import (
    POD_RESOURCES,
    Amounts,
    amounts,
    check_amounts,
    container_amounts,
    is_huge_page,
)
from kubectl_dra.api.quantity import Quantity


def check_pod_resources(spec: Mapping[str, Any], at: Path, is_pod: bool) -> Violations:
    """``resources`` of the pod spec at ``at``; ``is_pod``: of a pod, not of a template."""
    resources = spec.get("resources") or {}
    here = (*at, "resources")
    if resources.get("claims") is not None:
        message = "cannot be set for a whole pod, only for containers"
        yield violation((*here, "claims"), FORBIDDEN, "pod-level-claims", message)
    limits, requests = amounts(resources.get("limits")), amounts(resources.get("requests"))
    of_containers, limits_of_containers = _needs(spec, "requests", is_pod), _needs(spec, "limits", is_pod)
    if is_pod:
        limits, requests = _filled(limits, requests, of_containers, limits_of_containers)
    yield from check_amounts(limits, requests, here, for_pod=True)
    yield from _check_sum(requests, of_containers, (*here, "requests"))
    huge_pages = {name: amount for name, amount in limits_of_containers.items() if is_huge_page(name)}
    yield from _check_sum(limits, huge_pages, (*here, "limits"))
    for index, container in enumerate(spec.get("containers") or ()):
        for name, amount in container_amounts(container or {}, "limits", is_pod).items():
            if name in limits and amount > limits[name]:
                message = f"{name}: the container's limit {amount} must not be more than the pod's, {limits[name]}"
                path = (*at, "containers", index, "resources", "limits", Key(name))
                # The server looks for the container inside of the pod's resources.
                field = f"{'.'.join(map(str, here))}.containers[{index}][{name}].limits"
                yield violation(path, INVALID, "pod-level-amount", message, field=field)


def _check_sum(pod: Amounts, containers: Amounts, at: Path) -> Violations:
    for name, amount in containers.items():
        if name in pod and amount > pod[name]:
            message = f"{pod[name]} must be at least what the containers have together, {amount}"
            yield violation((*at, Key(name)), INVALID, "pod-level-amount", message)


def _filled(limits: Amounts, requests: Amounts, of_containers: Amounts, limits_of_containers: Amounts) -> list[Amounts]:
    """A pod's limits and requests, with those that the server adds if only some are given."""
    limits, requests = dict(limits), dict(requests)
    if limits or requests:
        for name, amount in limits_of_containers.items():
            if is_huge_page(name) and name not in requests:
                limits.setdefault(name, amount)
    if limits:
        for name, amount in of_containers.items():
            if name in POD_RESOURCES:
                requests.setdefault(name, amount)
        for name, amount in limits.items():
            if name in POD_RESOURCES or is_huge_page(name):
                requests.setdefault(name, amount)
    return [limits, requests]


def _needs(spec: Mapping[str, Any], side: str, is_pod: bool) -> Amounts:
    """What the containers need at one time: init containers run one by one, sidecars keep running."""
    total: Amounts = {}
    for container in spec.get("containers") or ():
        _add(total, container_amounts(container or {}, side, is_pod))
    sidecars: Amounts = {}
    most: Amounts = {}
    for container in spec.get("initContainers") or ():
        own = container_amounts(container or {}, side, is_pod)
        if text(container, "restartPolicy") == "Always":
            _add(total, own)
            _add(sidecars, own)
            now = sidecars
        else:
            now = dict(own)
            _add(now, sidecars)
        _raise(most, now.items())
    _raise(total, most.items())
    return total


def _add(total: Amounts, more: Amounts) -> None:
    for name, amount in more.items():
        total[name] = total[name] + amount if name in total else amount


def _raise(most: Amounts, others: Iterable[tuple[str, Quantity]]) -> None:
    for name, amount in others:
        if name not in most or amount > most[name]:
            most[name] = amount
