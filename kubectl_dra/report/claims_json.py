"""Claims as JSON or YAML, in the shape of ``schemas/claims.json``."""

from __future__ import annotations

from typing import Any, Final

from kubectl_dra.api.claims import DeviceResult
from kubectl_dra.report.evidence_json import unread_json
from kubectl_dra.report.phrases import written
from kubectl_dra.usage.claim_use import ClaimUse, ClaimUses

SCHEMA_VERSION: Final = "1"


def to_json(found: ClaimUses) -> dict[str, Any]:
    """A ClaimList."""
    return {
        "schemaVersion": SCHEMA_VERSION,
        "kind": "ClaimList",
        "summary": {
            "claims": len(found.items),
            "states": {state.value: count for state, count in found.states().items()},
        },
        "items": [_claim(item) for item in found.items],
        "notes": [written(note) for note in found.unread],
        "unread": unread_json(found.unread),
    }


def _claim(item: ClaimUse) -> dict[str, Any]:
    meta = item.claim.metadata
    out: dict[str, Any] = {
        "namespace": meta.namespace,
        "name": meta.name,
        "state": item.state.value,
        "classes": list(dict.fromkeys(each.device_class for one in item.claim.requests for each in one.alternatives())),
        "devices": [_device(result) for result in item.results],
        "pods": list(item.pods),
    }
    if item.node:
        out["node"] = item.node
    if item.owner is not None:
        out["owner"] = item.owner._asdict()
    if meta.creation_timestamp:
        out["created"] = meta.creation_timestamp
    if item.waits_for:
        out["waitsFor"] = written(item.waits_for)
    return out


def _device(result: DeviceResult) -> dict[str, str]:
    driver, pool, device = result.device
    shared = {"shareID": result.share_id} if result.share_id else {}
    return {"request": result.request, "driver": driver, "pool": pool, "device": device, **shared}
