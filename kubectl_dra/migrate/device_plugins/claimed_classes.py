"""The classes of a pod's existing claims, as far as this run has read them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from kubectl_dra.api.releases import GROUP
from kubectl_dra.manifests.changes import value_at

_TEMPLATE: Final = "ResourceClaimTemplate"


def claimed_classes(spec: Mapping[str, Any], namespace: str, objects: Sequence[Mapping[str, Any]]) -> frozenset[str]:
    """The DeviceClasses of a pod's claims and claim templates that are among the objects."""
    claims = spec.get("resourceClaims")
    wanted = set()
    for claim in claims if isinstance(claims, list) else ():
        if isinstance(claim, Mapping):
            source = claim.get("source") if isinstance(claim.get("source"), Mapping) else {}
            for field, kind in (("resourceClaimName", "ResourceClaim"), ("resourceClaimTemplateName", _TEMPLATE)):
                wanted.add((kind, str(claim.get(field) or (source or {}).get(field))))
    found: set[str] = set()
    for raw in objects if wanted else ():
        name = (str(raw.get("kind")), str(value_at(raw, ("metadata", "name"))))
        own = str(value_at(raw, ("metadata", "namespace")) or "")
        if name in wanted and own == namespace and str(raw.get("apiVersion")).startswith(f"{GROUP}/"):
            path = ("spec", "spec", "devices") if name[0] == _TEMPLATE else ("spec", "devices")
            found.update(_classes(value_at(raw, (*path, "requests"))))
    return frozenset(found)


def _classes(requests: Any) -> Iterator[str]:
    """The class of each request: flat before v1beta2, in ``exactly`` or ``firstAvailable`` since then."""
    for request in requests if isinstance(requests, list) else ():
        choices = value_at(request, ("firstAvailable",))
        for one in (request, value_at(request, ("exactly",)), *(choices if isinstance(choices, list) else ())):
            if isinstance(one, Mapping) and isinstance(one.get("deviceClassName"), str):
                yield one["deviceClassName"]
