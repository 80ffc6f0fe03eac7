"""The claims that a pod names, what is known about them, and which containers use them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

from kubectl_dra.data.drivers import Driver, catalogue
from kubectl_dra.lint.analysis.claim_requests import items
from kubectl_dra.lint.analysis.selector_targets import drivers_of
from kubectl_dra.lint.context import Context, Item, once
from kubectl_dra.manifests.changes import Path

REFERENCES: Final = {"resourceClaimName": "ResourceClaim", "resourceClaimTemplateName": "ResourceClaimTemplate"}
_NETWORK: Final = re.compile(
    r"(^|[-.])((multi)?nics?|(e|nccl-)?rdma|net(work|works)?|dranet|efa|roce|ib|vfs?|sriov|imex|channel|interfaces?|whereabouts)"
    r"($|[-.])|compute-?domain"
)


class Reference(Struct, frozen=True):
    """An entry of a pod's ``spec.resourceClaims`` that names an object through one of the two fields."""

    path: Path
    name: str
    field: str
    target: str

    @property
    def kind(self) -> str:
        """The kind it names."""
        return REFERENCES[self.field]


@once
def references(context: Context) -> tuple[Reference, ...]:
    """What ``references_of`` finds in the pod that is examined."""
    return tuple(references_of(context.raw))


def references_of(pod: Mapping[str, Any]) -> Iterator[Reference]:
    """The claims and templates that a pod names, without entries that name both or neither (the API server
    reports those).
    """
    for index, entry in enumerate(items(pod.get("spec"), "resourceClaims")):
        found = [field for field in REFERENCES if isinstance(entry.get(field), str) and entry[field]]
        if len(found) == 1:
            path = ("spec", "resourceClaims", index)
            yield Reference(path, str(entry.get("name") or ""), found[0], entry[found[0]])


def uses(pod: Mapping[str, Any]) -> Iterator[tuple[Path, str, str]]:
    """What containers use: path, the claim entry's name, and the request if given."""
    for list_name in ("initContainers", "containers"):
        for index, container in enumerate(items(pod.get("spec"), list_name)):
            for position, use in enumerate(items(container.get("resources"), "claims")):
                path = ("spec", list_name, index, "resources", "claims", position)
                yield path, str(use.get("name") or ""), str(use.get("request") or "")
    spec = pod.get("spec")
    for field, server in spec.items() if isinstance(spec, dict) else ():
        # A pod spec has no such field; in KServe's a model server stands under the key of its framework.
        for position, use in enumerate(items(server.get("resources"), "claims") if isinstance(server, dict) else ()):
            yield (
                ("spec", str(field), "resources", "claims", position),
                str(use.get("name") or ""),
                str(use.get("request") or ""),
            )


def drivers_of_claim(context: Context, reference: Reference) -> tuple[Driver, ...] | None:
    """The known drivers of a claim or template; None if it is not given, or its class is unknown."""
    given = context.world.find(reference.kind, reference.target, context.item.namespace)
    if not given:
        return _of_compute_domain(context, reference)
    found: list[Driver] = []
    for name in claim_classes(given[0]):
        drivers = drivers_of(context, name)
        if not drivers:
            return None
        found.extend(drivers)
    return tuple(found)


def _of_compute_domain(context: Context, reference: Reference) -> tuple[Driver, ...] | None:
    """Whether NVIDIA's controller makes the template, because a ComputeDomain names it."""
    for item in context.world.of_kind("ComputeDomain"):
        spec: Any = item.raw.get("spec")
        for key in ("channel", "resourceClaimTemplate", "name"):
            spec = spec.get(key) if isinstance(spec, dict) else None
        if spec == reference.target and reference.kind == "ResourceClaimTemplate":
            driver = catalogue().driver("compute-domain.nvidia.com")
            return () if driver is None else (driver,)
    return None


def speaks_of_network(context: Context, reference: Reference) -> bool:
    """Whether an unknown claim sounds, by its names, like a network interface or an IMEX channel."""
    names = [reference.name, reference.target]
    for item in context.world.find(reference.kind, reference.target, context.item.namespace):
        names.extend(claim_classes(item))
    return any(_NETWORK.search(name) for name in names)


def claim_classes(item: Item) -> tuple[str, ...]:
    """The classes that a claim or template requests."""
    content = (item.v1 or item.raw).get("spec")
    if item.kind == "ResourceClaimTemplate" and isinstance(content, dict):
        content = content.get("spec")
    names = []
    for request in items(content.get("devices") if isinstance(content, dict) else None, "requests"):
        exactly = request.get("exactly")
        for one in ([exactly] if isinstance(exactly, dict) else []) + items(request, "firstAvailable"):
            names.append(str(one.get("deviceClassName") or ""))
    return tuple(name for name in names if name)


def is_given(context: Context, kind: str, name: str, namespace: str) -> bool:
    """Whether the manifests or the snapshot contain a claim or template."""
    if context.world.find(kind, name, namespace):
        return True
    snapshot = context.snapshot
    if snapshot is None:
        return False
    known = snapshot.claims if kind == "ResourceClaim" else snapshot.templates
    return (namespace or "default", name) in known
