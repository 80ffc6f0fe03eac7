"""Workloads that are kustomize patches: laid over the object of the same kind and name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from kubectl_dra.manifests.changes import Delete, Path, value_at
from kubectl_dra.manifests.workloads import WorkloadPodSpec, containers, key_of, pod_specs
from kubectl_dra.migrate.device_plugins.asks import Ask, read_asks
from kubectl_dra.migrate.device_plugins.doubts import of_driver
from kubectl_dra.migrate.device_plugins.emptied import tidied
from kubectl_dra.migrate.device_plugins.extended_resource import by_name
from kubectl_dra.migrate.device_plugins.placement import PlacementPlan, placement
from kubectl_dra.migrate.model import MigrationSettings, ObjectPlan, PlanRefusal, Safety, Step
from kubectl_dra.migrate.vendors.catalogue import VendorCatalogue
from kubectl_dra.migrate.vendors.model import Resource

_GROUPS: Final = ("apps", "batch")


def is_patch(raw: Mapping[str, Any]) -> bool:
    """Whether no container of the workload has an image, which every container needs in the end."""
    if key_of(raw)[0] not in _GROUPS:
        return False
    found = [container.content for spec in pod_specs(raw) for container in containers(spec)]
    return bool(found) and not any("image" in container for container in found)


def base_claims(raw: Mapping[str, Any], around: Iterable[Mapping[str, Any]], catalogue: VendorCatalogue) -> bool:
    """Whether the patched object is available and has claims or will get them, so that they can be patched as well."""
    return any(
        spec.content.get("resourceClaims") or read_asks(spec, catalogue).asks
        for base in _bases(raw, around)
        for spec in pod_specs(base)
    )


def _bases(raw: Mapping[str, Any], around: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """The objects that a patch may be for: of its kind and name, and no patches."""
    name = value_at(raw, ("metadata", "name"))
    for other in around:
        if other is raw or key_of(other) != key_of(raw) or value_at(other, ("metadata", "name")) != name:
            continue
        if not is_patch(other):
            yield other


def plan_patch(raw: Mapping[str, Any], around: Iterable[Mapping[str, Any]], settings: MigrationSettings) -> ObjectPlan:
    """Remove the requests of device plugins from a patch, and change nothing else.

    The build shows what the patched object needs instead. Lists in a patch, such as tolerations, would
    replace the base's.
    """
    refusals: list[PlanRefusal] = []
    gone: list[Path] = []
    moved: dict[str, Resource] = {}
    for spec in pod_specs(raw):
        asks = read_asks(spec, settings.catalogue)
        refusals += asks.refusals
        moving = [ask for ask in asks.asks if ask.resource.vendor not in asks.held]
        if moving and by_name(moving, _placements(raw, spec, moving, around, settings), settings):
            continue
        gone += [*(path for ask in moving for path in ask.keys), *asks.zeros]
        moved.update((ask.resource.name, ask.resource) for ask in moving)
    if not gone:
        return ObjectPlan(refusals=tuple(refusals))
    reason, safety = request_gone(moved)
    changes = tidied(raw, (Delete(path) for path in gone))
    return ObjectPlan((Step("MIG109", gone[0], reason, changes, safety),), refusals=tuple(refusals))


def request_gone(moved: Mapping[str, Resource]) -> tuple[str, Safety]:
    """Why a patch no longer asks for these resources, in words for people, and how safe that is."""
    reason = f"a patch asks for {', '.join(moved) or 'no device'}; what it patches claims devices"
    doubts = of_driver(moved)
    return (f"{reason}; unsafe, because {' and '.join(doubts)}", "unsafe") if doubts else (reason, "safe")


def _placements(
    raw: Mapping[str, Any],
    spec: WorkloadPodSpec,
    asks: Iterable[Ask],
    around: Iterable[Mapping[str, Any]],
    settings: MigrationSettings,
) -> dict[str, PlacementPlan]:
    """What the labels of the patched pods mean for the requests; those of the patch alone if nothing else is known."""
    contents = [one.content for base in _bases(raw, around) for one in pod_specs(base) if one.path == spec.path]
    return {
        ask.resource.name: placement(content, ask.resource, settings.catalogue, settings.release, {})
        for content in (spec.content, *contents)
        for ask in asks
    }
