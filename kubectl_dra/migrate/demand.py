"""Who asks for devices in a namespace: what is left of requests of device plugins, and the classes of claims."""

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


def demand_of(objects: Iterable[Mapping[str, Any]], catalogue: VendorCatalogue) -> NamespaceDemand:
    """What objects ask for."""
    asking: dict[str, dict[str, str]] = {}
    claimed: dict[str, set[str]] = {}
    for raw in objects:
        path = _REQUESTS.get(str(raw.get("kind")))
        if path is not None and str(raw.get("apiVersion")).startswith(f"{GROUP}/"):
            claimed.setdefault(namespace_of(raw), set()).update(requested_classes(value_at(raw, path)))
            continue
        for name in _asked(raw, catalogue):
            asking.setdefault(namespace_of(raw), {}).setdefault(name, title(raw))
    return NamespaceDemand(asking, {namespace: frozenset(classes) for namespace, classes in claimed.items()})


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
