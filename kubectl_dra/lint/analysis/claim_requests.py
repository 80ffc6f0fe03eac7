"""The requests of a claim or template, in the form that all rules about them use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

from kubectl_dra.lint.context import Context, once
from kubectl_dra.manifests.changes import Path

CLAIM_KINDS: Final = ("ResourceClaim", "ResourceClaimTemplate")


class RequestAlternative(Struct, frozen=True):
    """The content of ``exactly``, or one subrequest. ``name`` is as constraints write it."""

    request: str
    name: str
    path: Path
    content: Mapping[str, Any]

    @property
    def all_devices(self) -> bool:
        """Whether it requests all matching devices."""
        return self.content.get("allocationMode") == "All"

    @property
    def number(self) -> int:
        """How many devices it requests; for all devices, the minimum."""
        found = self.content.get("count")
        given = isinstance(found, int | float) and not isinstance(found, bool)
        return 1 if self.all_devices or not given else max(int(found or 1), 1)


@once
def alternatives(context: Context) -> tuple[RequestAlternative, ...]:
    """Every ``exactly`` and subrequest of a claim or template, in v1's shape."""
    return tuple(_alternatives(context))


def _alternatives(context: Context) -> Iterator[RequestAlternative]:
    for index, request in enumerate(items(context.spec.get("devices"), "requests")):
        path = (*context.spec_path, "devices", "requests", index)
        name = str(request.get("name") or "")
        exactly = request.get("exactly")
        if isinstance(exactly, dict):
            yield RequestAlternative(name, name, (*path, "exactly"), exactly)
        for position, sub in enumerate(items(request, "firstAvailable")):
            yield RequestAlternative(name, f"{name}/{sub.get('name') or ''}", (*path, "firstAvailable", position), sub)


def items(holder: Any, key: str) -> list[Mapping[str, Any]]:
    """The mappings in a list field."""
    found = holder.get(key) if isinstance(holder, dict) else None
    return [entry if isinstance(entry, dict) else {} for entry in found] if isinstance(found, list) else []
