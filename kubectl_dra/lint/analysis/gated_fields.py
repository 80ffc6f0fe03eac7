"""Finds the fields of an object that need a feature gate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kubectl_dra.api.fields import Field, gated
from kubectl_dra.lint.context import Context, once
from kubectl_dra.manifests.changes import Path

_SPECS: Final[Mapping[str, str]] = {
    "DeviceClass": "DeviceClassSpec",
    "ResourceClaim": "ResourceClaimSpec",
    "ResourceClaimTemplate": "ResourceClaimSpec",
    "ResourceSlice": "ResourceSliceSpec",
}


@once
def gated_fields(context: Context) -> tuple[tuple[Path, Field], ...]:
    """The fields of the object's spec (in v1's shape) that need a gate, with their paths."""
    struct = _SPECS.get(context.item.kind)
    found = gated(context.spec, struct, context.spec_path) if struct else ()
    return tuple((path, field) for path, field, value in found if value != {})
