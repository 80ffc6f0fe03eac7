"""Finds the fields of an object that need a feature gate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kubectl_dra.api.fields import Field, depends_on_gates, fields
from kubectl_dra.lint.context import Context, once
from kubectl_dra.manifests.changes import Path

_SPECS: Final[Mapping[str, str]] = {
    "DeviceClass": "DeviceClassSpec",
    "ResourceClaim": "ResourceClaimSpec",
    "ResourceClaimTemplate": "ResourceClaimSpec",
    "ResourceSlice": "ResourceSliceSpec",
}


@once
def gated_fields(context: Context) -> tuple[tuple[Field, Path], ...]:
    """The fields of the object's spec (in v1's shape) that need a gate, with their paths."""
    struct = _SPECS.get(context.item.kind)
    return tuple(_found(context.spec, struct, context.spec_path)) if struct else ()


def _found(value: Any, struct: str, at: Path) -> Iterator[tuple[Field, Path]]:
    if not isinstance(value, dict):
        return
    for name, field in fields(struct).items():
        if name not in value:
            continue
        below, path = value[name], (*at, name)
        if field.gates and below not in (None, [], {}):
            yield field, path
        if field.scalar or not depends_on_gates(field.type):
            continue
        if not field.container:
            yield from _found(below, field.type, path)
        elif isinstance(below, dict):
            for key, item in below.items():
                yield from _found(item, field.type, (*path, key))
        elif isinstance(below, list):
            for index, item in enumerate(below):
                yield from _found(item, field.type, (*path, index))
