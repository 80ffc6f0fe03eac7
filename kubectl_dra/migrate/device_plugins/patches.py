"""Workloads that are patches of others: kustomize lays them over the object of their kind and name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from kubectl_dra.manifests.changes import value_at
from kubectl_dra.manifests.workloads import containers, key_of, pod_specs
from kubectl_dra.migrate.device_plugins.asks import read_asks
from kubectl_dra.migrate.vendors.catalogue import VendorCatalogue

_GROUPS: Final = ("apps", "batch")


def is_patch(raw: Mapping[str, Any]) -> bool:
    """Whether no container of the workload has an image, which every container of these groups needs in the end."""
    if key_of(raw)[0] not in _GROUPS:
        return False
    found = [container.content for spec in pod_specs(raw) for container in containers(spec)]
    return bool(found) and not any("image" in container for container in found)


def base_claims(raw: Mapping[str, Any], around: Iterable[Mapping[str, Any]], catalogue: VendorCatalogue) -> bool:
    """Whether what is patched is at hand and claims devices, or will: then its new objects can be patched as well."""
    name = value_at(raw, ("metadata", "name"))
    for other in around:
        if other is raw or key_of(other) != key_of(raw) or value_at(other, ("metadata", "name")) != name:
            continue
        if is_patch(other):
            continue
        if any(spec.content.get("resourceClaims") or read_asks(spec, catalogue).asks for spec in pod_specs(other)):
            return True
    return False
