"""A diagnosis for JSON or YAML, in the shape of ``schemas/explain.json``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, replace

from kubectl_dra.addresses import page_of_cause
from kubectl_dra.api.slices import DeviceID
from kubectl_dra.explain.diagnosis import SCHEMA_VERSION, ClaimReport, Diagnosis, Finding, PlacedDevice, Way
from kubectl_dra.explain.overview import Overview
from kubectl_dra.explain.phrase import Joined, Phrase, Statement, Subject
from kubectl_dra.report.evidence_json import device_json, evidence_json
from kubectl_dra.report.explain_words import (
    Invocation,
    answer,
    changes,
    command,
    fix,
    node_groups,
    notes,
    overview_answer,
    proof,
    proved,
)
from kubectl_dra.report.phrases import written

_UNKNOWN = Invocation()


def to_json(diagnoses: Sequence[Diagnosis], invocation: Invocation = _UNKNOWN) -> dict[str, Any]:
    """One Diagnosis, or a DiagnosisList if a manifest has several subjects."""
    items = [_diagnosis(diagnosis, invocation) for diagnosis in diagnoses]
    if len(items) == 1:
        return {"schemaVersion": SCHEMA_VERSION, "kind": "Diagnosis", **items[0]}
    return {"schemaVersion": SCHEMA_VERSION, "kind": "DiagnosisList", "items": items}


def overview_json(overview: Overview, invocation: Invocation = _UNKNOWN) -> dict[str, Any]:
    """Every pending claim: a DiagnosisList, each item with the pods and claims that it represents."""
    items = [{**_diagnosis(alike.diagnosis, invocation), "standsFor": list(alike.names)} for alike in overview.found]
    return {
        "schemaVersion": SCHEMA_VERSION,
        "kind": "DiagnosisList",
        "exitCode": overview.exit_code,
        "answer": overview_answer(overview),
        "notes": [written(note) for note in overview.unseen],
        "items": items,
    }


def _diagnosis(diagnosis: Diagnosis, invocation: Invocation) -> dict[str, Any]:
    out: dict[str, Any] = {
        "subject": {"kind": diagnosis.kind, "namespace": diagnosis.namespace, "name": diagnosis.name},
        "verdict": diagnosis.verdict.value,
        "exitCode": diagnosis.verdict.exit_code,
        "answer": answer(diagnosis),
        "assumed": {
            "kubernetesVersion": diagnosis.release,
            "source": diagnosis.release_source,
            "featureGates": list(diagnosis.gates),
        },
        "causes": [_finding(finding) for finding in diagnosis.findings],
        "claims": [_claim(claim) for claim in diagnosis.claims],
        "nodes": [_plain(group) for group in node_groups(diagnosis)],
        "placements": _plain(diagnosis.placements),
        "scheduler": _plain(diagnosis.scheduler),
        "notes": notes(diagnosis),
    }
    if diagnosis.choice is not None and diagnosis.choice.certain:
        out["winners"] = list(diagnosis.choice.nodes)
    if diagnosis.message:
        out["schedulerMessage"] = diagnosis.message
    if diagnosis.supposed:
        out["supposed"] = [str(change) for change in diagnosis.supposed]
    if diagnosis.ways:
        out["waysOut"] = [_way(way) for way in diagnosis.ways]
    if diagnosis.traces:
        out["traces"] = _plain(diagnosis.traces)
    if diagnosis.second_opinion is not None:
        out["secondOpinion"] = _plain(diagnosis.second_opinion)
    if following := command(diagnosis.next, invocation):
        out["next"] = following
    return out


def _finding(finding: Finding) -> dict[str, Any]:
    evidence = [evidence_json(fact) for fact in finding.evidence]
    out = {
        "kind": {
            "code": finding.kind.code,
            "title": finding.kind.title,
            "url": page_of_cause(finding.kind.code),
        },
        "summary": written(finding.summary),
        "evidence": evidence,
        "fix": fix(finding),
        "proved": proved(finding),
        "claim": finding.claim,
        "request": finding.request,
    }
    return {name: value for name, value in out.items() if value or name == "evidence"}


def _claim(claim: ClaimReport) -> dict[str, Any]:
    out = _plain(replace(claim, devices=()))
    if not claim.devices:
        return dict(out)
    funnels = out.pop("funnels")
    nodes = {"nodes": out.pop("nodes")} if "nodes" in out else {}
    return {
        **out,
        "devices": [{"request": request, **device_json(device)} for request, device in claim.devices],
        **nodes,
        "funnels": funnels,
    }


def _way(way: Way) -> dict[str, Any]:
    out: dict[str, Any] = {"changes": changes(way), "proved": proof(way.proof)}
    if way.what_if:
        out["whatIf"] = [str(change) for change in way.what_if]
    return out


_PAIRS = {
    "values": ("value", "devices"),
    "details": ("reason", "devices"),
    "reasons": ("reason", "evaluations"),
}


def _plain(value: Any, name: str = "") -> Any:
    if isinstance(value, Phrase | Statement | Joined | Subject | DeviceID):
        return written(value)
    if isinstance(value, Struct):
        return {
            _camel(field): _plain(held, field)
            for field, held in asdict(value).items()
            if field not in _INTERNAL and (held not in ("", None, ()) or field in _KEPT)
        }
    if isinstance(value, tuple):
        if name in _PAIRS:
            first, second = _PAIRS[name]
            return [{first: _plain(one), second: two} for one, two in value]
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
_INTERNAL = frozenset(("selector", "nearness"))


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)
