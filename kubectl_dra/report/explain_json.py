"""A diagnosis for JSON or YAML, in the shape of ``schemas/explain.json``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import asdict

from kubectl_dra.explain.answer_notes import SearchLimit
from kubectl_dra.explain.cause_kinds import CauseKind
from kubectl_dra.explain.diagnosis import (
    ClaimReport,
    Diagnosis,
    Finding,
    SchedulerMessage,
    SecondOpinion,
    Trace,
    TraceStep,
)
from kubectl_dra.explain.funnel.shown import DeviceLine, Funnel, Observation, Stage, StageError
from kubectl_dra.report.explain_commands import Invocation, command, fixes
from kubectl_dra.report.explain_words import answer, node_groups
from kubectl_dra.report.json_output import SCHEMA_VERSION, filled
from kubectl_dra.report.json_shapes import (
    assumed_json,
    device_json,
    key_json,
    not_starting_json,
    object_json,
    refusal_json,
)
from kubectl_dra.report.phrases import written
from kubectl_dra.report.remedy_json import (
    command_json,
    evidence_json,
    fix_json,
    notes_json,
    placement_json,
    plan_json,
    unread_json,
)
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


def items_json(diagnoses: Sequence[Diagnosis], invocation: Invocation) -> list[dict[str, Any]]:
    """Diagnoses as the items of a list."""
    return [_diagnosis(diagnosis, invocation.about(diagnosis)) for diagnosis in diagnoses]


def _diagnosis(diagnosis: Diagnosis, invocation: Invocation) -> dict[str, Any]:
    ranks = {id(solution): rank for rank, solution in enumerate(fixes(diagnosis), 1)}
    kind = "Pod" if diagnosis.kind == "pod" else "ResourceClaim"
    winners = list(diagnosis.choice.nodes) if diagnosis.choice is not None and diagnosis.choice.certain else None
    return {
        "subject": object_json(diagnosis.namespace, diagnosis.name, kind),
        "verdict": diagnosis.verdict.value,
        "exitCode": diagnosis.exit_code,
        "answer": answer(diagnosis),
        "assumed": assumed_json(diagnosis.release, diagnosis.release_source, diagnosis.gates),
        "causes": [_finding(finding, invocation, ranks.get(id(finding))) for finding in diagnosis.findings],
        "claims": [*map(_claim, diagnosis.claims)],
        "nodeGroups": [
            filled(outcome=group.outcome, reason=written(group.reason), nodes=[*group.nodes])
            for group in node_groups(diagnosis)
        ],
        "placements": [*map(placement_json, diagnosis.placements)],
        "scheduler": [*map(_scheduler_message, diagnosis.scheduler)],
        **notes_json(diagnosis.notes, invocation.where),
        "undetermined": [written(why) for why in diagnosis.unclear],
        "unread": unread_json((*diagnosis.unclear, *diagnosis.notes)),
        **({} if winners is None else {"winners": winners}),
        **filled(
            schedulerMessage=diagnosis.message,
            supposed=[*map(str, diagnosis.supposed)],
            limits=[_limit(note) for note in diagnosis.notes if isinstance(note, SearchLimit)],
            fixes=[
                plan_json(plan, invocation, ranks[id(plan)])
                for plan in sorted(diagnosis.ways, key=lambda way: ranks[id(way)])
            ],
            stations=[
                {"time": step.time, "station": step.station, "what": written(step.what)} for step in diagnosis.way
            ],
            notStarting=[*map(not_starting_json, diagnosis.not_starting)],
            refusedClaims=[*map(refusal_json, diagnosis.refused)],
            elsewhere=written(diagnosis.elsewhere),
            traces=[*map(_trace, diagnosis.traces)],
            secondOpinion=_second_opinion(diagnosis.second_opinion) if diagnosis.second_opinion is not None else None,
            next=command_json(command(diagnosis.next, invocation), where=invocation.where),
        ),
    }


def _limit(limit: SearchLimit) -> dict[str, Any]:
    """A limit's code, and its own fields under their names: the limits differ in them."""
    given = asdict(limit)
    counted = {"nodeCount": given.pop("nodes")} if "nodes" in given else {}
    return {"code": limit.CODE, **given, **counted}


def _finding(finding: Finding, invocation: Invocation, rank: int | None) -> dict[str, Any]:
    return {
        "code": finding.kind.code,
        "title": finding.kind.title,
        "page": page_of_cause(finding.kind.code),
        "text": written(finding.summary),
        "evidence": [*map(evidence_json, finding.evidence)],
        "fix": fix_json(finding, invocation, rank),
        **filled(claim=key_json(finding.claim) if finding.claim else None, request=finding.request),
    }


def _claim(claim: ClaimReport) -> dict[str, Any]:
    """``namespace`` and ``name`` are there once the claim is, or its name is known."""
    devices = [{"request": result.request, **device_json(result.device)} for result in claim.devices]
    return {
        "entry": claim.entry,
        **(key_json(claim.claim) if claim.claim else {}),
        **filled(template=claim.template),
        "state": written(claim.state),
        **filled(devices=devices, where=claim.nodes),
        "funnels": [*map(funnel_json, claim.funnels)],
    }


def _scheduler_message(said: SchedulerMessage) -> dict[str, Any]:
    who = filled(speaker=said.speaker.value, source=said.source, reason=said.reason)
    return {**who, "message": said.message, **filled(time=said.time)}


def _trace(trace: Trace) -> dict[str, Any]:
    return {
        **device_json(trace.device),
        **filled(selectorOf=trace.selector_of, expression=trace.expression, result=trace.result),
        "steps": [*map(_trace_step, trace.steps)],
    }


def _trace_step(step: TraceStep) -> dict[str, Any]:
    found = {"value": step.value, "raised": step.raised, "depth": step.depth}
    return {"offset": step.offset, **filled(text=step.text), **found}


def _second_opinion(opinion: SecondOpinion) -> dict[str, Any]:
    return {
        "agree": opinion.agree,
        "differ": [*opinion.differ],
        "notComparable": opinion.not_comparable,
        **filled(reasons=[{"reason": reason, "evaluations": count} for reason, count in opinion.reasons]),
    }


# Funnels: what is left of the devices for each request.


def funnel_json(funnel: Funnel) -> dict[str, Any]:
    """A funnel, with all of its stages."""
    return {
        "request": funnel.request,
        "deviceClass": funnel.device_class,
        "mode": funnel.mode,
        "needed": funnel.needed,
        "stages": [_stage(stage) for stage in funnel.stages],
        **filled(bestNode=funnel.best_node),
        "bestCount": funnel.best_count,
        **filled(devices=[_device_line(line) for line in funnel.devices]),
    }


def _stage(stage: Stage) -> dict[str, Any]:
    return filled(
        name=stage.name.value,
        label=written(stage.label),
        passed=stage.passed,
        failed=stage.failed,
        expression=stage.expression,
        observations=[*map(_observation, stage.observations)],
        error=_error(stage.error) if stage.error is not None else None,
        details=[{"reason": written(reason), "deviceCount": count} for reason, count in stage.details],
    )


def _error(error: StageError) -> dict[str, Any]:
    at = error.position
    position = {"offset": at.offset, "line": at.line, "column": at.column} if at is not None else None
    return {"message": error.message, **device_json(error.device), "count": error.count, **filled(position=position)}


def _device_line(line: DeviceLine) -> dict[str, Any]:
    said = filled(
        where=line.where,
        stage=line.stage.value,
        reason=written(line.reason),
        label=written(line.label),
        observations=[*map(_observation, line.observations)],
    )
    return {**device_json(line.device), **said}


def _observation(seen: Observation) -> dict[str, Any]:
    """What devices have; a value of null means that they have none."""
    values = [{"value": value, "deviceCount": count} for value, count in seen.values]
    return filled(name=seen.name, values=values)


# The page of a cause as data.


def cause_json(kind: CauseKind) -> dict[str, Any]:
    """Its page as data, in the shape of ``schemas/cause.json``."""
    return {
        "schemaVersion": SCHEMA_VERSION,
        "kind": "Cause",
        "code": kind.code,
        "title": kind.title,
        "stage": kind.family.value,
        "page": page_of_cause(kind.code),
        "sample": kind.page.code("What it looks like"),
        "seenAs": kind.seen_as,
        "why": kind.why,
        "confirm": [{"shows": check.shows, "command": check.command} for check in kind.confirm],
        "fix": {"text": kind.fix},
        "normal": kind.normal,
    }
