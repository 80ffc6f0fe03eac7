"""``--strategy extended-resource``: workloads stay unchanged, and DeviceClasses take over the resource names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kubectl_dra.api.releases import GROUP, first_with, gate_default
from kubectl_dra.migrate.device_plugins.asks import Ask
from kubectl_dra.migrate.device_plugins.placement import PlacementPlan
from kubectl_dra.migrate.model import MigrationSettings, NewObject, Note, ObjectPlan, PlanRefusal, PlanSurroundings
from kubectl_dra.migrate.naming import as_label

_GATE: Final = "DRAExtendedResource"

_TRADE_OFF: Final = (
    "pods stay unchanged, but cannot share devices, select them by attribute or configure them, "
    "and a node must not also serve the name through a device plugin"
)


def by_name(asks: Sequence[Ask], placements: Mapping[str, PlacementPlan], settings: MigrationSettings) -> bool:
    """Whether the strategy for these requests is to keep the extended resources."""
    if settings.strategy != "auto":
        return settings.strategy == "extended-resource"
    return not why_claims(asks, placements, settings)


def why_claims(asks: Sequence[Ask], placements: Mapping[str, PlacementPlan], settings: MigrationSettings) -> str:
    """Why a pod has to have claims, because a number of extended resources would not be the same; empty if it would."""
    if not gate_default(_GATE, settings.release):
        return f"Kubernetes {settings.release} has no DeviceClass for an extended resource"
    for ask in asks:
        name = ask.resource.name
        reason = _cannot(ask, placements)
        if reason is None and ask.resource.outcome != "auto":
            reason = "its driver works differently from the device plugin"
        if reason is None and placements.get(name, PlacementPlan()).changes:
            reason = "node labels choose the device, which only a claim can say"
        if reason is None and not ask.resource.extended_resource_since and not _selector(ask, settings):
            reason = f"the selector of the class {ask.resource.device_class} is not known"
        if reason is not None:
            return f"{name}: {reason}"
    return ""


def extended(
    asks: Sequence[Ask],
    placements: Mapping[str, PlacementPlan],
    surroundings: PlanSurroundings,
    settings: MigrationSettings,
) -> ObjectPlan:
    """DeviceClasses for the resources of a pod, or why none are needed or possible."""
    objects: list[NewObject] = []
    notes: list[Note] = []
    refusals: list[PlanRefusal] = []
    for ask in {ask.resource.name: ask for ask in reversed(asks)}.values():
        resource, path = ask.resource, ask.keys[0]
        if not gate_default(_GATE, settings.release):
            message = f"Kubernetes {settings.release} has no DeviceClass for an extended resource unless a gate is on"
            way_out = f"Use --strategy claims, or a release from {first_with(_GATE)}."
            refusals.append(PlanRefusal("MIG122", path, message, way_out))
            continue
        reason = _cannot(ask, placements)
        if reason is None and not resource.extended_resource_since and not _selector(ask, settings):
            reason = f"the selector of the class {resource.device_class} is not known"
        if reason is not None:
            message = f"a DeviceClass cannot stand for {resource.name}: {reason}"
            refusals.append(PlanRefusal("MIG122", path, message, "Use --strategy claims for this workload."))
        elif resource.extended_resource_since:
            message = (
                f"nothing to change: the class {resource.device_class} carries {resource.name} "
                f"(since {resource.extended_resource_since}); {_TRADE_OFF}"
            )
            notes.append(Note("MIG106", path, message))
        else:
            made = device_class(ask, _selector(ask, settings))
            if ("DeviceClass", "", made["metadata"]["name"]) not in surroundings.taken:
                reason = f"the scheduler gives pods that ask for {resource.name} devices of this class; {_TRADE_OFF}"
                objects.append(NewObject("MIG105", made, reason, "unsafe" if resource.outcome == "note" else "safe"))
    return ObjectPlan(objects=tuple(objects), notes=tuple(notes), refusals=tuple(refusals))


def device_class(ask: Ask, selector: str) -> dict[str, Any]:
    """The class for a resource name: ``mig-1g.5gb.nvidia.com`` for nvidia.com/mig-1g.5gb."""
    domain, _, name = ask.resource.name.partition("/")
    parts = [as_label(part) for part in name.split(".")]
    selectors = [{"cel": {"expression": expression}} for expression in (selector, *ask.resource.selectors)]
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "DeviceClass",
        "metadata": {"name": f"{'.'.join(part for part in parts if part)}.{domain}"},
        "spec": {"selectors": selectors, "extendedResourceName": ask.resource.name},
    }


def _cannot(ask: Ask, placements: Mapping[str, PlacementPlan]) -> str | None:
    """Why a number of extended resources does not express the request."""
    resource, placed = ask.resource, placements.get(ask.resource.name, PlacementPlan())
    if resource.capacity or resource.part_of:
        return "its count does not say how much of each device is meant"
    if resource.allocation_mode == "All":
        return "the driver gives all devices of a node to one claim"
    if resource.admin_access:
        return "it cannot ask for admin access"
    if placed.device_class and placed.device_class != resource.device_class:
        return f"the pod's labels mean devices of the class {placed.device_class}"
    return None


def _selector(ask: Ask, settings: MigrationSettings) -> str:
    found = settings.catalogue.device_class(ask.resource.device_class)
    return found.selector if found is not None else ""
