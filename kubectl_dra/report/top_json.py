"""Who uses what as JSON or YAML, in the shape of ``schemas/top.json``."""

from __future__ import annotations

from typing import Any, Final

from kubectl_dra.report.evidence_json import unread_json
from kubectl_dra.report.phrases import written
from kubectl_dra.usage.claim_use import ClaimUse
from kubectl_dra.usage.demand import DeviceDemand
from kubectl_dra.usage.report import UseReport
from kubectl_dra.usage.supply import DeviceSupply

SCHEMA_VERSION: Final = "1"


def to_json(report: UseReport) -> dict[str, Any]:
    """A UseReport."""
    return {
        "schemaVersion": SCHEMA_VERSION,
        "kind": "UseReport",
        "by": report.by.value,
        "summary": {
            "devices": report.devices,
            "nodes": report.nodes,
            "states": {state.value: count for state, count in report.states.items()},
            "unused": report.unused,
            "pendingClaims": report.pending,
        },
        "items": [
            *(_supply(row) for row in report.supply),
            *(_demand(row) for row in report.demand),
            *(_claim(row) for row in report.claims),
        ],
        "notes": [written(note) for note in report.notes],
        "unread": unread_json((*report.unread, *report.notes)),
    }


def _supply(row: DeviceSupply) -> dict[str, Any]:
    out: dict[str, Any] = {
        "name": row.name,
        "devices": row.tally.devices,
        "states": {state.value: count for state, count in row.tally.states.items()},
        "unused": row.unused,
        "nodes": row.tally.nodes,
    }
    if row.largest is not None:
        out["largestRequest"] = {
            "count": row.largest.count,
            "node": row.largest.node,
            "atLeast": row.largest.at_least,
        }
    return out


def _demand(row: DeviceDemand) -> dict[str, Any]:
    out: dict[str, Any] = {
        "namespace": row.namespace,
        "devices": row.devices,
        "unused": row.unused,
        "claims": row.claims,
        "pendingClaims": row.pending,
        "nodes": row.nodes,
    }
    if row.owner is not None:
        out["owner"] = row.owner._asdict()
    if row.largest is not None:
        out["largestOwner"] = row.largest._asdict()
    return out


def _claim(item: ClaimUse) -> dict[str, Any]:
    out: dict[str, Any] = {
        "namespace": item.claim.metadata.namespace,
        "name": item.claim.metadata.name,
        "devices": len(item.results),
        "state": item.state.value,
    }
    if item.node:
        out["node"] = item.node
    if item.owner is not None:
        out["owner"] = item.owner._asdict()
    if item.claim.metadata.creation_timestamp:
        out["created"] = item.claim.metadata.creation_timestamp
    return out
