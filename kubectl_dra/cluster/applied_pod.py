"""A pod that exists after a manifest of it was applied: the server lets few fields of its spec be changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import structs

from kubectl_dra.api.meta import builtins, convert
from kubectl_dra.api.pods import Container, Pod, PodSpec
from kubectl_dra.cluster.merge import JSON, canonical, merged

_FREE: Final = frozenset(
    ("schedulingGates", "tolerations", "activeDeadlineSeconds", "terminationGracePeriodSeconds", "priority")
)
"""Fields that may change, in one direction, or that the server computes from others."""
_WHILE_GATED: Final = frozenset(("nodeSelector", "affinity"))
"""Fields that may become narrower as long as a scheduling gate keeps the pod."""
_NOT_SAVED: Final = frozenset(("priorityClassName", "hostUsers", "runtimeClassName", "serviceAccountName"))
"""Fields that ``kubectl dra snapshot`` leaves out: where there is nothing, nothing is known."""


def applied_pod(live: Pod, written: JSON) -> tuple[Pod, tuple[str, ...]]:
    """The pod afterwards, and the fields of its spec that the server refuses to change; with any, the pod stays.

    Its metadata is not looked at.
    """
    before = builtins(live.spec)
    written_spec = {name: value for name, value in (written.get("spec") or {}).items() if name != "nodeName"}
    after = merged(before, written_spec)
    node = (written.get("spec") or {}).get("nodeName") or live.node_name
    spec = convert(after, PodSpec)
    refused = [*_refused(live, before, builtins(spec)), *(("spec.nodeName",) if node != live.node_name else ())]
    if refused:
        return live, tuple(refused)
    changes: dict[str, Any] = {}
    # Those that the server added itself stay.
    if more := tuple(toleration for toleration in spec.tolerations if toleration not in live.spec.tolerations):
        changes["tolerations"] = (*live.spec.tolerations, *more)
    if "schedulingGates" in written_spec:
        changes["scheduling_gates"] = spec.scheduling_gates
    if live.spec.scheduling_gates:
        changes.update(node_selector=spec.node_selector, affinity=spec.affinity)
    changes["containers"] = _with_images(live.spec.containers, spec.containers)
    changes["init_containers"] = _with_images(live.spec.init_containers, spec.init_containers)
    changes = {name: value for name, value in changes.items() if value != getattr(live.spec, name)}
    return (structs.replace(live, spec=structs.replace(live.spec, **changes)) if changes else live), ()


def _refused(live: Pod, before: JSON, after: JSON) -> Iterator[str]:
    free = _FREE | _WHILE_GATED if live.spec.scheduling_gates else _FREE
    return (f"spec.{name}" for name in _differing(before, after) if name not in free)


def are_alike(live: PodSpec, new: PodSpec) -> bool:
    """Whether a pod that exists is as one that would be created, but for volumes, which its controller may add."""
    other = {"volumes", "tolerations", "priority", "preemptionPolicy"}
    same = not set(_differing(builtins(live), builtins(new))) - other
    return same and _tolerated(live) == _tolerated(new) and (live.priority or 0) == (new.priority or 0)


def has_all_of(live: Pod, written: JSON, priority: int | None) -> bool:
    """Whether a pod that exists says all that its template says now, with this priority; images are not compared.

    What else it says may have been added by the server, a controller or a webhook.
    """
    before = builtins(live.spec)
    spec = convert(merged(before, written.get("spec") or {}), PodSpec)
    same = not set(_differing(before, builtins(spec))) - _FREE
    return same and _tolerated(spec) <= _tolerated(live.spec) and (live.spec.priority or 0) == (priority or 0)


def _tolerated(spec: PodSpec) -> set[str]:
    """The tolerations but for those with which a node is left after a while, which the server adds."""
    return {str(toleration) for toleration in spec.tolerations if toleration.toleration_seconds is None}


def _differing(before: JSON, after: JSON) -> Iterator[str]:
    for name in {**before, **after}:
        was, now = _said(name, before.get(name)), _said(name, after.get(name))
        if was != now and not (name in _NOT_SAVED and not was):
            yield name


def _said(name: str, value: Any) -> Any:
    """What a field says that may not change, without what saved snapshots leave out."""
    if name in ("containers", "initContainers"):
        return [_container(item) for item in value or ()]
    if name == "volumes":
        # Any other volume can be used on every node.
        return [_without_empty(canonical(item)) for item in value or () if item.keys() - {"name", "image"}]
    return _without_empty(canonical(value, name))


def _container(raw: JSON) -> Any:
    kept = {**raw, "image": None, "ports": [port for port in raw.get("ports") or () if port.get("hostPort")]}
    return _without_empty(canonical(kept))


def _without_empty(value: Any) -> Any:
    if isinstance(value, Mapping):
        fields = {name: _without_empty(item) for name, item in value.items()}
        return {name: item for name, item in fields.items() if not _empty(item)}
    return [_without_empty(item) for item in value] if isinstance(value, list) else None if _empty(value) else value


def _empty(value: Any) -> bool:
    return value is None or value is False or (isinstance(value, str | list | dict) and not value)


def _with_images(live: Sequence[Container], written: Sequence[Container]) -> tuple[Any, ...]:
    images = {container.name: container.image for container in written}
    return tuple(structs.replace(container, image=images.get(container.name) or container.image) for container in live)
