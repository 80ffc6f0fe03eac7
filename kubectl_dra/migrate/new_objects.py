"""New objects as they are written: in the requested API version, and what makes two of them the same."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from kubectl_dra.api.codec import from_v1
from kubectl_dra.api.releases import GROUP


def in_version(raw: Mapping[str, Any], version: str) -> Mapping[str, Any]:
    """A new object in the requested API version."""
    if raw.get("apiVersion") != f"{GROUP}/v1" or version == "v1":
        return raw
    return from_v1(raw, version)


def template_key(raw: Mapping[str, Any]) -> str:
    """What tells whether two ResourceClaimTemplates of one API version say the same."""
    return json.dumps(raw["spec"]["spec"], sort_keys=True)
