"""DRA objects as plain JSON, in the shape of resource.k8s.io/v1."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tools.controlplane.client import Json

RESOURCE_API = "resource.k8s.io/v1"


def resource_object(kind: str, name: str, spec: Json | None = None) -> Json:
    """An object of resource.k8s.io; without `spec` only what identifies it."""
    described: Json = {"apiVersion": RESOURCE_API, "kind": kind, "metadata": {"name": name}}
    return described if spec is None else {**described, "spec": spec}


def device(
    name: str,
    attributes: Mapping[str, Any] | None = None,
    capacity: Mapping[str, str] | None = None,
    **more: object,
) -> Json:
    """A device. Attributes are str, int or bool, or an API value such as `{"version": "1.2.3"}`."""
    result: Json = {"name": name, **more}
    if attributes:
        result["attributes"] = {key: _attribute(value) for key, value in attributes.items()}
    if capacity:
        result["capacity"] = {key: {"value": value} for key, value in capacity.items()}
    return result


def request(device_class: str, name: str = "gpu", *, selectors: Sequence[str] = (), **more: object) -> Json:
    """A request; `more` holds further fields of `exactly` (`count`, `allocationMode`, …)."""
    exactly: Json = {"deviceClassName": device_class, **more}
    if selectors:
        exactly["selectors"] = cel_selectors(selectors)
    return {"name": name, "exactly": exactly}


def cel_selectors(expressions: Iterable[str]) -> list[Json]:
    """CEL expressions as the API writes selectors."""
    return [{"cel": {"expression": expression}} for expression in expressions]


def claims_of(pod: Json) -> dict[str, str | None]:
    """Name of the ResourceClaim for each claim of a pod; None while one from a template is not made yet."""
    made = {
        status["name"]: status.get("resourceClaimName")
        for status in pod.get("status", {}).get("resourceClaimStatuses", [])
    }
    return {
        reference["name"]: reference.get("resourceClaimName", made.get(reference["name"]))
        for reference in pod["spec"].get("resourceClaims", [])
    }


def _attribute(value: object) -> object:
    match value:
        case bool():
            return {"bool": value}
        case int():
            return {"int": value}
        case str():
            return {"string": value}
    return value
