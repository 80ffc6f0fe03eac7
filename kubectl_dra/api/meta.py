"""Object metadata, as far as an allocation or its explanation reads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

JSONObject = Mapping[str, Any]

EMPTY: Mapping[str, Any] = {}


@dataclass(frozen=True, slots=True)
class OwnerReference:
    """One entry of ``metadata.ownerReferences``."""

    kind: str
    name: str
    uid: str
    controller: bool


@dataclass(frozen=True, slots=True)
class ObjectMeta:
    """``metadata`` of one object. Timestamps are the RFC 3339 text of the API; empty means not set."""

    name: str
    namespace: str = ""
    uid: str = ""
    generate_name: str = ""
    creation_timestamp: str = ""
    deletion_timestamp: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    finalizers: tuple[str, ...] = ()
    owners: tuple[OwnerReference, ...] = ()

    @classmethod
    def from_json(cls, raw: JSONObject) -> ObjectMeta:
        """Reads ``metadata`` of an object as served by the API."""
        return cls(
            name=raw.get("name") or "",
            namespace=raw.get("namespace") or "",
            uid=raw.get("uid") or "",
            generate_name=raw.get("generateName") or "",
            creation_timestamp=raw.get("creationTimestamp") or "",
            deletion_timestamp=raw.get("deletionTimestamp") or "",
            labels=raw.get("labels") or EMPTY,
            annotations=raw.get("annotations") or EMPTY,
            finalizers=tuple(raw.get("finalizers") or ()),
            owners=tuple(
                OwnerReference(
                    kind=owner.get("kind") or "",
                    name=owner.get("name") or "",
                    uid=owner.get("uid") or "",
                    controller=bool(owner.get("controller")),
                )
                for owner in raw.get("ownerReferences") or ()
            ),
        )

    @property
    def key(self) -> str:
        """``namespace/name``, or the bare name of a cluster-scoped object."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    def controller(self) -> OwnerReference | None:
        """The owner reference that is the controller, if any."""
        return next((owner for owner in self.owners if owner.controller), None)
