"""A diagnosis for JSON or YAML, in the shape of ``schemas/explain.json``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

from kubectl_dra.explain.diagnosis import SCHEMA_VERSION, CauseKind, Diagnosis, PlacedDevice
from kubectl_dra.explain.overview import Overview


def to_json(diagnoses: Sequence[Diagnosis]) -> dict[str, Any]:
    """One Diagnosis, or a DiagnosisList where a manifest holds several subjects."""
    items = [_diagnosis(diagnosis) for diagnosis in diagnoses]
    if len(items) == 1:
        return {"schemaVersion": SCHEMA_VERSION, "kind": "Diagnosis", **items[0]}
    return {"schemaVersion": SCHEMA_VERSION, "kind": "DiagnosisList", "items": items}


def overview_json(overview: Overview) -> dict[str, Any]:
    """Every pending claim: a DiagnosisList, each item with the pods and claims that it stands for."""
    items = [{**_diagnosis(alike.diagnosis), "standsFor": list(alike.names)} for alike in overview.found]
    return {
        "schemaVersion": SCHEMA_VERSION,
        "kind": "DiagnosisList",
        "exitCode": overview.exit_code,
        "answer": overview.answer,
        "notes": list(overview.unseen),
        "items": items,
    }


def _diagnosis(diagnosis: Diagnosis) -> dict[str, Any]:
    out: dict[str, Any] = {
        "subject": {"kind": diagnosis.kind, "namespace": diagnosis.namespace, "name": diagnosis.name},
        "verdict": diagnosis.verdict.value,
        "exitCode": diagnosis.verdict.exit_code,
        "answer": diagnosis.answer,
        "assumed": {
            "kubernetesVersion": diagnosis.release,
            "source": diagnosis.release_source,
            "featureGates": list(diagnosis.gates),
        },
    }
    for name in ("causes", "claims", "nodes", "placements", "scheduler", "notes"):
        out[name] = _plain(getattr(diagnosis, name))
    if diagnosis.supposed:
        out["supposed"] = list(diagnosis.supposed)
    if diagnosis.ways:
        out["waysOut"] = _plain(diagnosis.ways)
    if diagnosis.traces:
        out["traces"] = _plain(diagnosis.traces)
    if diagnosis.second_opinion is not None:
        out["secondOpinion"] = _plain(diagnosis.second_opinion)
    if diagnosis.next_command:
        out["next"] = diagnosis.next_command
    return out


_PAIRS = {
    "values": ("value", "devices"),
    "details": ("reason", "devices"),
    "reasons": ("reason", "evaluations"),
}


def _plain(value: Any, name: str = "") -> Any:
    if isinstance(value, CauseKind):
        return {"code": value.code, "title": value.title}
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value) and not isinstance(value, type):
        return {
            _camel(entry.name): _plain(getattr(value, entry.name), entry.name)
            for entry in fields(value)
            if entry.name not in _INTERNAL and (getattr(value, entry.name) not in ("", None, ()) or entry.name in _KEPT)
        }
    if isinstance(value, tuple):
        if name in _PAIRS:
            first, second = _PAIRS[name]
            return [{first: one, second: two} for one, two in value]
        if name == "devices" and value and isinstance(value[0], PlacedDevice):
            return [_placed(entry) for entry in value]
        return [_plain(entry) for entry in value]
    return value


def _placed(entry: PlacedDevice) -> dict[str, Any]:
    out: dict[str, Any] = {"claim": entry.claim, "request": entry.request, "device": entry.device}
    if entry.consumed_capacity:
        out["consumedCapacity"] = dict(entry.consumed_capacity)
    return out


# Written even when empty: readers should not have to guess what is always there.
_KEPT = frozenset(("evidence", "funnels", "stages", "steps", "value", "message", "differ"))
_INTERNAL = frozenset(("weight", "remedy"))


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)
