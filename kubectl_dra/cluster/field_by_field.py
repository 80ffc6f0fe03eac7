"""Reads objects field by field: rare kinds, and objects of an unusual shape."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from kubectl_dra.api.claims import DeviceClass, ResourceClaim, ResourceClaimTemplate
from kubectl_dra.api.meta import EMPTY, ObjectMeta, convert
from kubectl_dra.api.nodes import Node
from kubectl_dra.api.pods import Pod
from kubectl_dra.api.policy import ResourceQuota
from kubectl_dra.api.slices import ResourceSlice
from kubectl_dra.api.taints import DeviceTaintRule
from kubectl_dra.cluster.snapshot import Event


def _namespace(raw: Mapping[str, Any]) -> ObjectMeta:
    return ObjectMeta.from_json(raw.get("metadata") or EMPTY)


def _event(raw: Mapping[str, Any]) -> Event:
    about = raw.get("involvedObject") or raw.get("regarding") or EMPTY
    series = raw.get("series") or EMPTY
    first = raw.get("firstTimestamp") or raw.get("deprecatedFirstTimestamp") or raw.get("eventTime") or ""
    last = series.get("lastObservedTime") or raw.get("lastTimestamp") or raw.get("deprecatedLastTimestamp")
    source = raw.get("source") or raw.get("deprecatedSource") or EMPTY
    fields = {
        "kind": about.get("kind") or "",
        "namespace": about.get("namespace") or (raw.get("metadata") or EMPTY).get("namespace") or "",
        "name": about.get("name") or "",
        "uid": about.get("uid") or "",
        "reason": raw.get("reason") or "",
        "message": raw.get("message") or raw.get("note") or "",
        "type": raw.get("type") or "",
        "count": int(series.get("count") or raw.get("count") or raw.get("deprecatedCount") or 1),
        "first": first,
        "last": last or first,
        "component": raw.get("reportingComponent") or raw.get("reportingController") or source.get("component") or "",
    }
    return convert(fields, Event)


READ: Final[Mapping[str, Callable[[Any], Any]]] = {
    "DeviceClass": DeviceClass.from_json,
    "DeviceTaintRule": DeviceTaintRule.from_json,
    "Event": _event,
    "Namespace": _namespace,
    "Node": Node.from_json,
    "Pod": Pod.from_json,
    "ResourceClaim": ResourceClaim.from_json,
    "ResourceClaimTemplate": ResourceClaimTemplate.from_json,
    "ResourceQuota": ResourceQuota.from_json,
    "ResourceSlice": ResourceSlice.from_json,
}
