"""A diagnosis for JSON or YAML, in the shape of ``schemas/explain.json``."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import asdict

from kubectl_dra.api.slices import DeviceID
from kubectl_dra.explain.answer_notes import SearchLimit
from kubectl_dra.explain.diagnosis import ClaimReport, Diagnosis, Finding
from kubectl_dra.explain.overview import Alike, Overview
from kubectl_dra.explain.phrase import Joined, Phrase, Statement, Subject
from kubectl_dra.report.explain_commands import Invocation, command, fixes
from kubectl_dra.report.explain_words import answer, node_groups, overview_answer
from kubectl_dra.report.json_shapes import (
    SCHEMA_VERSION,
    device_json,
    key_json,
    not_starting_json,
    object_json,
    refusal_json,
)
from kubectl_dra.report.phrases import written
from kubectl_dra.report.remedy_json import (
    commands_json,
    evidence_json,
    fix_json,
    notes_json,
    placement_json,
    plan_json,
    unread_json,
)
from kubectl_dra.report.virtual_machine import without_pod_json
from kubectl_dra.text import page_of_cause

if TYPE_CHECKING:
    from kubectl_dra.fit.result import WorkloadFit


def to_json(
    diagnoses: Sequence[Diagnosis],
    invocation: Invocation,
    workloads: Sequence[WorkloadFit] = (),
    missing: Sequence[str] = (),
) -> dict[str, Any]:
    """One Diagnosis, or a DiagnosisList if a manifest has several subjects.

    ``workloads`` is what comes of the workloads of the manifest, with all their pods.
    """
    items = items_json(diagnoses, invocation)
    counts: dict[str, Any] = {}
    if workloads:
        from kubectl_dra.report.fit_json import counts_json

        counts["workloads"] = [counts_json(workload) for workload in workloads]
        if missing:
            counts["missingNamespaces"] = list(missing)
    if len(items) == 1:
        return {"schemaVersion": SCHEMA_VERSION, "kind": "Diagnosis", **counts, **items[0]}
    return {"schemaVersion": SCHEMA_VERSION, "kind": "DiagnosisList", **counts, "items": items}


def overview_json(overview: Overview, invocation: Invocation) -> dict[str, Any]:
    """Every pending claim: a DiagnosisList, each item with the pods and claims that it represents."""
    items = [_alike(alike, invocation) for alike in overview.found]
    without_pod = [without_pod_json(launcher, invocation.where) for launcher in overview.unmade]
    return {
        "schemaVersion": SCHEMA_VERSION,
        "kind": "DiagnosisList",
        "answer": overview_answer(overview),
        **notes_json(overview.notes, invocation.where),
        "unread": unread_json(overview.unread),
        "items": items,
        **({"withoutPod": without_pod} if without_pod else {}),
    }


def items_json(diagnoses: Sequence[Diagnosis], invocation: Invocation) -> list[dict[str, Any]]:
    """Diagnoses as the items of a list."""
    return [_diagnosis(diagnosis, invocation.about(diagnosis)) for diagnosis in diagnoses]


def _alike(alike: Alike, invocation: Invocation) -> dict[str, Any]:
    served = {} if alike.served is None else {"served": alike.served.fewest}
    return {**_diagnosis(alike.diagnosis, invocation), "standsFor": list(alike.names), **served}


def _diagnosis(diagnosis: Diagnosis, invocation: Invocation) -> dict[str, Any]:
    ranks = {id(solution): rank for rank, solution in enumerate(fixes(diagnosis), 1)}
    out: dict[str, Any] = {
        "subject": _subject(diagnosis.kind, diagnosis.namespace, diagnosis.name),
        "verdict": diagnosis.verdict.value,
        "exitCode": diagnosis.exit_code,
        "answer": answer(diagnosis),
        "assumed": {
            "kubernetesVersion": diagnosis.release,
            "source": diagnosis.release_source,
            "featureGates": list(diagnosis.gates),
        },
        "causes": [_finding(finding, invocation, ranks.get(id(finding))) for finding in diagnosis.findings],
        "claims": [_claim(claim) for claim in diagnosis.claims],
        "nodeGroups": [_plain(group) for group in node_groups(diagnosis)],
        "placements": [placement_json(placement) for placement in diagnosis.placements],
        "scheduler": _plain(diagnosis.scheduler),
        **notes_json(diagnosis.notes, invocation.where),
        "undetermined": [written(why) for why in diagnosis.unclear],
        "unread": unread_json((*diagnosis.unclear, *diagnosis.notes)),
    }
    if diagnosis.choice is not None and diagnosis.choice.certain:
        out["winners"] = list(diagnosis.choice.nodes)
    if diagnosis.message:
        out["schedulerMessage"] = diagnosis.message
    if diagnosis.supposed:
        out["supposed"] = [str(change) for change in diagnosis.supposed]
    if limits := [_limit(note) for note in diagnosis.notes if isinstance(note, SearchLimit)]:
        out["limits"] = limits
    if diagnosis.ways:
        found = sorted(diagnosis.ways, key=lambda way: ranks[id(way)])
        out["fixes"] = [plan_json(plan, invocation, ranks[id(plan)]) for plan in found]
    if diagnosis.way:
        out["stations"] = [
            {"time": step.time, "station": step.station, "what": written(step.what)} for step in diagnosis.way
        ]
    if diagnosis.not_starting:
        out["notStarting"] = [not_starting_json(node) for node in diagnosis.not_starting]
    if diagnosis.refused:
        out["refusedClaims"] = [*map(refusal_json, diagnosis.refused)]
    if diagnosis.elsewhere:
        out["elsewhere"] = written(diagnosis.elsewhere)
    if diagnosis.traces:
        out["traces"] = _plain(diagnosis.traces)
    if diagnosis.second_opinion is not None:
        out["secondOpinion"] = _plain(diagnosis.second_opinion)
    if shown := commands_json(command(diagnosis.next, invocation), where=invocation.where):
        (out["next"],) = shown
    return out


def _subject(kind: str, namespace: str, name: str) -> dict[str, str]:
    return object_json(namespace, name, "Pod" if kind == "pod" else "ResourceClaim")


def _limit(limit: SearchLimit) -> dict[str, Any]:
    given = asdict(limit)
    counted = {"nodeCount": given.pop("nodes")} if "nodes" in given else {}
    return {"code": limit.CODE, **given, **counted}


def _finding(finding: Finding, invocation: Invocation, rank: int | None) -> dict[str, Any]:
    out: dict[str, Any] = {
        "code": finding.kind.code,
        "title": finding.kind.title,
        "page": page_of_cause(finding.kind.code),
        "text": written(finding.summary),
        "evidence": [evidence_json(fact) for fact in finding.evidence],
        "fix": fix_json(finding, invocation, rank),
    }
    if finding.claim:
        out["claim"] = key_json(finding.claim)
    if finding.request:
        out["request"] = finding.request
    return out


def _claim(claim: ClaimReport) -> dict[str, Any]:
    """``namespace`` and ``name`` are there once the claim is, or its name is known."""
    named = key_json(claim.claim) if claim.claim else {}
    out: dict[str, Any] = {"entry": claim.entry, **named}
    if claim.template:
        out["template"] = claim.template
    out["state"] = written(claim.state)
    if claim.devices:
        out["devices"] = [{"request": request, **device_json(device)} for request, device in claim.devices]
    if claim.nodes:
        out["where"] = claim.nodes
    return {**out, "funnels": [_plain(funnel) for funnel in claim.funnels]}


_PAIRS = {
    "values": ("value", "deviceCount"),
    "details": ("reason", "deviceCount"),
    "reasons": ("reason", "evaluations"),
}


def _plain(value: Any, name: str = "") -> Any:
    if isinstance(value, Phrase | Statement | Joined | Subject):
        return written(value)
    if isinstance(value, Struct):
        out: dict[str, Any] = {}
        for field, held in asdict(value).items():
            if isinstance(held, DeviceID):
                out |= device_json(held)
            elif field not in _INTERNAL and (held not in ("", None, ()) or field in _KEPT):
                out[_camel(field)] = _plain(held, field)
        return out
    if isinstance(value, tuple):
        if name in _PAIRS:
            first, second = _PAIRS[name]
            return [{first: _plain(key), second: two} for key, two in value]
        return [item if item.__class__ is str else _plain(item) for item in value]
    return value.value if isinstance(value, Enum) else value


# Written even when empty: readers should not have to guess what is always there.
_KEPT = frozenset(("evidence", "funnels", "stages", "steps", "value", "message", "differ"))
_INTERNAL = frozenset(("selector", "nearness"))


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)
