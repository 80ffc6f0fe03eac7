"""A diagnosis for JSON or YAML, in the shape of ``schemas/explain.json``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import asdict

from kubectl_dra.explain.answer_notes import SearchLimit
from kubectl_dra.explain.diagnosis import (
    ClaimReport,
    Diagnosis,
    Finding,
    NodeGroup,
    SchedulerMessage,
    SecondOpinion,
    Trace,
    TraceStep,
)
from kubectl_dra.explain.overview import Alike, Overview
from kubectl_dra.report.explain_commands import Invocation, command, fixes
from kubectl_dra.report.explain_words import answer, node_groups, overview_answer
from kubectl_dra.report.funnel_json import filled, funnel_json
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
        "nodeGroups": [_node_group(group) for group in node_groups(diagnosis)],
        "placements": [placement_json(placement) for placement in diagnosis.placements],
        "scheduler": [_scheduler_message(said) for said in diagnosis.scheduler],
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
        out["traces"] = [_trace(trace) for trace in diagnosis.traces]
    if diagnosis.second_opinion is not None:
        out["secondOpinion"] = _second_opinion(diagnosis.second_opinion)
    if shown := commands_json(command(diagnosis.next, invocation), where=invocation.where):
        (out["next"],) = shown
    return out


def _subject(kind: str, namespace: str, name: str) -> dict[str, str]:
    return object_json(namespace, name, "Pod" if kind == "pod" else "ResourceClaim")


def _limit(limit: SearchLimit) -> dict[str, Any]:
    """A limit's code, and its own fields under their names: the limits differ in them."""
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
        out["devices"] = [{"request": result.request, **device_json(result.device)} for result in claim.devices]
    if claim.nodes:
        out["where"] = claim.nodes
    return {**out, "funnels": [funnel_json(funnel) for funnel in claim.funnels]}


def _node_group(group: NodeGroup) -> dict[str, Any]:
    return filled({"outcome": group.outcome, "reason": written(group.reason), "nodes": [*group.nodes]})


def _scheduler_message(said: SchedulerMessage) -> dict[str, Any]:
    return {
        **filled({"speaker": said.speaker.value, "source": said.source, "reason": said.reason}),
        "message": said.message,
        **filled({"time": said.time}),
    }


def _trace(trace: Trace) -> dict[str, Any]:
    return {
        **device_json(trace.device),
        **filled({"selectorOf": trace.selector_of, "expression": trace.expression, "result": trace.result}),
        "steps": [_trace_step(step) for step in trace.steps],
    }


def _trace_step(step: TraceStep) -> dict[str, Any]:
    return {
        "offset": step.offset,
        **filled({"text": step.text}),
        "value": step.value,
        "raised": step.raised,
        "depth": step.depth,
    }


def _second_opinion(opinion: SecondOpinion) -> dict[str, Any]:
    return {
        "agree": opinion.agree,
        "differ": [*opinion.differ],
        "notComparable": opinion.not_comparable,
        **filled({"reasons": [{"reason": reason, "evaluations": count} for reason, count in opinion.reasons]}),
    }
