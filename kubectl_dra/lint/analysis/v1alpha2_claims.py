"""Claims from before structured parameters (v1alpha2), and what each field becomes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kubectl_dra.api.releases import GROUP
from kubectl_dra.lint.context import Item


def classic_advice(item: Item, better: str) -> str:
    """How to write the object in a current version, for each of its fields."""
    spec: Any = item.raw.get("spec")
    if item.kind == "ResourceClaimTemplate" and isinstance(spec, dict):
        spec = spec.get("spec")
    spec = spec if isinstance(spec, dict) else {}
    parts = [f"No release converts it. Write it anew for {GROUP}/{better}: {_request(spec)}."]
    return " ".join([*parts, *_rest(spec)])


def _request(spec: Mapping[str, Any]) -> str:
    name = spec.get("resourceClassName")
    fields = [f"deviceClassName: {name if isinstance(name, str) and name else 'CLASS'}"]
    parameters = spec.get("parameters")
    count = parameters.get("count") if isinstance(parameters, dict) else None
    if isinstance(count, int) and not isinstance(count, bool):
        fields.append(f"count: {count}")
    return f"devices: {{requests: [{{name: device, exactly: {{{', '.join(fields)}}}}}]}}"


def _rest(spec: Mapping[str, Any]) -> Iterator[str]:
    """What the fields beside the class's name become."""
    for key, value in spec.items():
        if key == "allocationMode":
            yield "allocationMode goes: a claim is allocated when a pod needs it."
        elif key == "parametersRef":
            named = f"{value.get('kind')} {value.get('name')}" if isinstance(value, dict) else "the object"
            yield f"What {named} says becomes selectors and count of the request, or opaque in devices.config."
        elif key == "parameters" and isinstance(value, dict):
            yield from _parameters(value)
        elif key == "constraints":
            yield from _constraints(value)
        elif key != "resourceClassName":
            yield f"{key} goes."


def _parameters(value: Mapping[str, Any]) -> Iterator[str]:
    known = {"apiVersion", "kind", "count"}
    said = [key for key, below in value.items() if key not in known and below not in ({}, [], None, "")]
    if said:
        yield f"Of its parameters {', '.join(said)} become selectors of the request, or opaque in devices.config."
    else:
        yield "Nothing else of its parameters is needed."


def _constraints(value: Any) -> Iterator[str]:
    for entry in value if isinstance(value, list) else ():
        labels = entry.get("nodeSelector") if isinstance(entry, dict) else None
        if isinstance(labels, dict) and labels:
            shown = ", ".join(f"{key}: {label}" for key, label in labels.items())
            yield f"A claim never chose nodes by label: put nodeSelector {{{shown}}} into the pod's spec."
