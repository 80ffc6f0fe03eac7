"""Workloads that are kustomize patches: laid over the object of the same kind and name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from kubectl_dra.manifests.changes import Delete, Path, value_at
from kubectl_dra.manifests.workloads import containers, key_of, pod_specs
from kubectl_dra.migrate.device_plugins.asks import read_asks
from kubectl_dra.migrate.device_plugins.emptied import tidied
from kubectl_dra.migrate.model import MigrationSettings, ObjectPlan, PlanRefusal, Step
from kubectl_dra.migrate.vendors.catalogue import VendorCatalogue

_GROUPS: Final = ("apps", "batch")


def is_patch(raw: Mapping[str, Any]) -> bool:
    """Whether no container of the workload has an image, which every container needs in the end."""
    if key_of(raw)[0] not in _GROUPS:
        return False
    found = [container.content for spec in pod_specs(raw) for container in containers(spec)]
    return bool(found) and not any("image" in container for container in found)


def base_claims(raw: Mapping[str, Any], around: Iterable[Mapping[str, Any]], catalogue: VendorCatalogue) -> bool:
    """Whether the patched object is available and has claims or will get them, so that they can be patched as well."""
    name = value_at(raw, ("metadata", "name"))
    for other in around:
        if other is raw or key_of(other) != key_of(raw) or value_at(other, ("metadata", "name")) != name:
            continue
        if is_patch(other):
            continue
        if any(spec.content.get("resourceClaims") or read_asks(spec, catalogue).asks for spec in pod_specs(other)):
            return True
    return False


def plan_patch(raw: Mapping[str, Any], settings: MigrationSettings) -> ObjectPlan:
    """Remove the requests of device plugins from a patch, and change nothing else.

    The build shows what the patched object needs instead. Lists in a patch, such as tolerations, would
    replace the base's.
    """
    refusals: list[PlanRefusal] = []
    gone: list[Path] = []
    names: list[str] = []
    for spec in pod_specs(raw):
        asks = read_asks(spec, settings.catalogue)
        refusals += asks.refusals
        moving = [ask for ask in asks.asks if ask.resource.vendor not in asks.held]
        gone += [*(path for ask in moving for path in ask.keys), *asks.zeros]
        names += [ask.resource.name for ask in moving]
    if not gone:
        return ObjectPlan(refusals=tuple(refusals))
    reason = f"a patch asks for {', '.join(dict.fromkeys(names)) or 'no device'}; what it patches claims devices"
    step = Step("MIG109", gone[0], reason, tidied(raw, (Delete(path) for path in gone)))
    return ObjectPlan((step,), refusals=tuple(refusals))
