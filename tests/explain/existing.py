"""Whether what a fact names as data is among the objects that the answer was given from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from kubectl_dra.api.neighbour_kinds import NEIGHBOUR_KINDS, kind_here

JSON = dict[str, Any]


def unknown(found: JSON, objects: Iterable[JSON]) -> Iterator[str]:
    """Everything that the evidence of a diagnosis names and that is not there, nor would be made by the question."""
    known = _Known(list(objects))
    made = {(found["subject"]["namespace"], claim.get("name", "")) for claim in found["claims"]}
    for cause in found["causes"]:
        for fact in cause["evidence"]:
            for part in (fact["about"], fact["found"]):
                yield from (f"{cause['code']}: {text}" for text in known.lacking(part, made))


class _Known:
    """Names by kind, also of what other objects refer to: a claim holds a device that nobody publishes any more."""

    def __init__(self, objects: Sequence[JSON]) -> None:
        self.objects = {(kind_here(entry["kind"], entry["apiVersion"]), *_name(entry)) for entry in objects}
        self.devices: set[tuple[str, str, str]] = set()
        self.pools: set[tuple[str, str]] = set()
        for entry in objects:
            spec, status = entry.get("spec") or {}, entry.get("status") or {}
            if entry["kind"] == "ResourceSlice":
                pool = (spec["driver"], spec["pool"]["name"])
                self.pools.add(pool)
                self.devices |= {(*pool, device["name"]) for device in spec.get("devices") or ()}
            if entry["kind"] == "ResourceClaim":
                results = ((status.get("allocation") or {}).get("devices") or {}).get("results") or ()
                self.devices |= {(one["driver"], one["pool"], one["device"]) for one in results}
                space = entry["metadata"].get("namespace", "default")
                users = status.get("reservedFor") or ()
                self.objects |= {("Pod", space, one["name"]) for one in users if one["resource"] == "pods"}

    def lacking(self, part: Mapping[str, Any], made: set[tuple[str, str]]) -> Iterator[str]:
        for device in part.get("devices", ()):
            if (device["driver"], device["pool"], device["device"]) not in self.devices:
                yield f"device {device}"
        for pool in part.get("pools", ()):
            if (pool["driver"], pool["name"]) not in self.pools:
                yield f"pool {pool}"
        yield from (f"Node {name}" for name in part.get("nodes", ()) if ("Node", "", name) not in self.objects)
        for name, kind in (("pods", "Pod"), ("claims", "ResourceClaim"), ("objects", "")):
            for one in part.get(name, ()):
                key = (one.get("kind", kind), one.get("namespace", ""), one["name"])
                if key not in self.objects and not (kind == "ResourceClaim" and key[1:] in made):
                    yield f"{' '.join(key)}"


def _name(entry: JSON) -> tuple[str, str]:
    meta, row = entry["metadata"], NEIGHBOUR_KINDS.get(kind_here(entry["kind"], entry["apiVersion"]))
    spaced = entry["kind"] in _IN_NAMESPACES or (row is not None and row.namespaced)
    space = meta.get("namespace", "default" if spaced else "")
    return space, meta.get("name") or meta.get("generateName", "")


_IN_NAMESPACES = frozenset(("Pod", "ResourceClaim", "ResourceClaimTemplate", "ResourceQuota", "PersistentVolumeClaim"))
