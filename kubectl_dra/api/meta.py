"""Object metadata, as far as allocation or its explanation reads it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import field

from kubectl_dra.api.wire import Wire

JSONObject = Mapping[str, Any]

EMPTY: Mapping[str, Any] = {}


class OwnerReference(Wire, frozen=True):
    """One entry of ``metadata.ownerReferences``."""

    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False
    api_version: str = ""


class ObjectMeta(Wire, frozen=True):
    """``metadata`` of one object. Timestamps are the RFC 3339 text of the API; empty means not set."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    generate_name: str = ""
    creation_timestamp: str = ""
    deletion_timestamp: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    finalizers: tuple[str, ...] = ()
    owners: tuple[OwnerReference, ...] = field(default=(), name="ownerReferences")

    @property
    def key(self) -> str:
        """``namespace/name``, or the bare name of a cluster-scoped object."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    def controller(self) -> OwnerReference | None:
        """The owner reference that is the controller, if any."""
        return next((owner for owner in self.owners if owner.controller), None)


def title(raw: Mapping[str, Any]) -> str:
    """An object's kind and name, for people."""
    meta = raw.get("metadata")
    meta = meta if isinstance(meta, dict) else {}
    name = meta.get("name") or meta.get("generateName") or "without a name"
    namespace = meta.get("namespace")
    return f"{raw['kind']} {namespace}/{name}" if namespace else f"{raw['kind']} {name}"
