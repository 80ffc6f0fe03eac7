"""Replaces names in objects of resource.k8s.io, field by field as ``api.fields`` says.

A text without an instruction there, and a field without a row, leaves only its presence; numbers, times and amounts
stay.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from kubectl_dra.api.fields import Field, fields
from kubectl_dra.cluster.anonymize_parts import LEFT_OUT, Changes, Json, Parts
from kubectl_dra.cluster.identities import Identities

_OPERATIONS: Final = frozenset(("NodePrepareResources", "NodeUnprepareResources", "*"))
_TEXTS: Final = frozenset(("string", "any", "object"))
_KEPT_OF_STATUS: Final = ("allocation", "reservedFor", "devices")


class DraParts(Parts):
    """Slices, classes, claims, templates and rules."""

    def __init__(self, new: Identities) -> None:
        super().__init__(new)
        self._texts: dict[str, Callable[[Any], Any]] = {
            "cel": new.expression,
            "class": new.device_class,
            "driver": new.driver,
            "embedded": new.names.embedded,
            "keep": self._kept,
            "message": new.names.text,
            "operation": lambda name: name if name in _OPERATIONS else new.plain("operation", name),
            "qualified": new.qualified,
            "request": new.request,
            "resource": new.resource,
            "scrambled": new.names.scrambled,
            **{kind: partial(new.plain, kind) for kind in ("condition", "group", "reason")},
            **{kind: partial(new.names.of, kind) for kind in ("node", "pool")},
        }
        self._structs: dict[str, Callable[[Any], Any]] = {
            "DeviceTaint": self._taint,
            "DeviceToleration": self._taint,
            "NodeSelector": self._node_selector,
            "OpaqueDeviceConfiguration": self._opaque,
            "ResourceClaimConsumerReference": self._consumer,
        }

    def content(self, raw: Mapping[str, Any]) -> Json:
        """Spec and status of an object: the status of a claim only."""
        version = raw["apiVersion"].rpartition("/")[2]
        spec, kind = raw.get("spec") or {}, raw["kind"]
        if kind == "ResourceClaimTemplate":
            inner = self._struct(spec.get("spec") or {}, "ResourceClaimSpec", version)
            return {"spec": {"spec": inner}}
        out = {"spec": self._struct(spec, f"{kind}Spec", version)}
        status = (raw.get("status") or {}) if kind == "ResourceClaim" else {}
        kept = {key: status[key] for key in _KEPT_OF_STATUS if status.get(key)}
        return {**out, "status": self._struct(kept, "ResourceClaimStatus", version)} if kept else out

    def _struct(self, raw: Mapping[str, Any], struct: str, version: str) -> Any:
        if struct in self._structs:
            return self._structs[struct](raw)
        table, out = fields(struct, version), {}
        for key, value in raw.items():
            field = table.get(key)
            if field is None:
                out[self._new.identifier(key)] = self._unknown(value)
            elif field.anonymize != "drop":
                out[key] = self._value(value, field, version)
        return out

    def _value(self, value: Any, field: Field, version: str) -> Any:
        if value is None:
            return None
        if field.container == "list":
            return [self._item(each, field, version) for each in value]
        if field.type == "DeviceAttribute":
            return {self._new.qualified(key): self._new.attribute(key, each) for key, each in value.items()}
        if field.container == "map":
            rename = self._texts[field.anonymize or "qualified"]
            return {rename(key): self._item(each, field, version) for key, each in value.items()}
        return self._item(value, field, version)

    def _item(self, value: Any, field: Field, version: str) -> Any:
        if value is None:
            return None
        if not field.scalar:
            return self._struct(value, field.type, version)
        if field.anonymize and field.container != "map":
            return self._texts[field.anonymize](value)
        return self._unknown(value) if field.type in _TEXTS else value

    def _opaque(self, raw: Mapping[str, Any]) -> Json:
        """Configuration for a driver, without its content."""
        return {"driver": self._new.driver(raw.get("driver") or ""), "parameters": {LEFT_OUT: True}}

    def _consumer(self, raw: Mapping[str, Any]) -> Json:
        category = {"pods": "pod", "podgroups": "podgroup"}.get(raw.get("resource") or "", "owner")
        changes: Changes = {"name": partial(self._new.names.of, category), "uid": self._new.names.scrambled}
        return self._fields(raw, changes, ("resource", "apiGroup"))
