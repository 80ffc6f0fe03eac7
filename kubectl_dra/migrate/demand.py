"""Demand for devices in a namespace: the remaining requests of device plugins, and the classes of claims."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from kubectl_dra.api.releases import GROUP
from kubectl_dra.manifests.changes import fields_at, value_at
from kubectl_dra.manifests.objects import title
from kubectl_dra.manifests.workloads import containers
from kubectl_dra.migrate.device_plugins.asks import is_zero
from kubectl_dra.migrate.device_plugins.claim_wiring import requested_classes
from kubectl_dra.migrate.device_plugins.pods import claimless, pods_of
from kubectl_dra.migrate.model import NamespaceDemand
from kubectl_dra.migrate.new_objects import namespace_of
from kubectl_dra.migrate.other_texts import requested
from kubectl_dra.migrate.vendors.catalogue import VendorCatalogue, is_extended

_REQUESTS: Final[Mapping[str, tuple[str, ...]]] = {
    "ResourceClaim": ("spec", "devices", "requests"),
    "ResourceClaimTemplate": ("spec", "spec", "devices", "requests"),
}


def demand_of(
    objects: Iterable[Mapping[str, Any]], catalogue: VendorCatalogue, offered: Iterable[Mapping[str, Any]] = ()
) -> NamespaceDemand:
    """What objects ask for; ``offered`` are those that only --unsafe adds."""
    asking: dict[str, dict[str, str]] = {}
    claims: list[Mapping[str, Any]] = []
    for raw in objects:
        if raw.get("kind") in _REQUESTS and str(raw.get("apiVersion")).startswith(f"{GROUP}/"):
            claims.append(raw)
            continue
        for name in _asked(raw, catalogue):
            asking.setdefault(namespace_of(raw), {}).setdefault(name, title(raw))
    return NamespaceDemand(asking, _classes(claims), _classes(raw for raw in offered if raw.get("kind") in _REQUESTS))


def _classes(claims: Iterable[Mapping[str, Any]]) -> Mapping[str, frozenset[str]]:
    """The DeviceClasses that claims and claim templates ask for, by namespace."""
    out: dict[str, set[str]] = {}
    for raw in claims:
        requests = value_at(raw, _REQUESTS[str(raw["kind"])])
        out.setdefault(namespace_of(raw), set()).update(requested_classes(requests))
    return {namespace: frozenset(classes) for namespace, classes in out.items()}


def _asked(raw: Mapping[str, Any], catalogue: VendorCatalogue) -> Iterator[str]:
    """The resources that the pods of an object ask device plugins for."""
    barred = claimless(raw)
    if barred is not None and not barred.partly:
        yield from requested(raw.get("spec"), catalogue)
        return
    for spec in pods_of(raw, catalogue).specs:
        for container in containers(spec):
            for field in ("limits", "requests"):
                for name, amount in fields_at(container.content, "resources", field).items():
                    if is_extended(name) and not is_zero(amount):
                        yield name
