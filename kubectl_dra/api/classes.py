"""DeviceClasses and CEL selectors, in their v1 shape."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from kubectl_dra.api.meta import EMPTY, JSONObject, ObjectMeta


class DeviceClass(Struct, frozen=True, gc=False):
    """A v1 DeviceClass. A selector is its CEL text, or None for an entry without ``cel``."""

    metadata: ObjectMeta
    selectors: tuple[str | None, ...]
    config: tuple[JSONObject, ...]
    extended_resource_name: str = ""

    @classmethod
    def from_json(cls, raw: JSONObject) -> DeviceClass:
        spec = raw.get("spec") or EMPTY
        return cls(
            metadata=ObjectMeta.from_json(raw.get("metadata") or EMPTY),
            selectors=selectors_from_json(spec.get("selectors")),
            config=tuple(spec.get("config") or ()),
            extended_resource_name=spec.get("extendedResourceName") or "",
        )

    @property
    def name(self) -> str:
        return self.metadata.name


def selectors_from_json(raw: Any) -> tuple[str | None, ...]:
    """The CEL expressions of a ``selectors`` list, None for an entry without ``cel``."""
    return tuple(
        (entry["cel"] or EMPTY).get("expression") or "" if entry and entry.get("cel") is not None else None
        for entry in raw or ()
    )
