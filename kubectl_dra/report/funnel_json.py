"""Funnels for JSON: what is left of the devices for each request, as ``schemas/explain.json`` has it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubectl_dra.explain.funnel.shown import DeviceLine, Funnel, Observation, Stage, StageError
from kubectl_dra.report.json_shapes import device_json
from kubectl_dra.report.phrases import written


def filled(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that are not empty: the others are left out."""
    return {name: value for name, value in fields.items() if value not in ("", None, [])}


def funnel_json(funnel: Funnel) -> dict[str, Any]:
    """A funnel, with all of its stages."""
    return {
        "request": funnel.request,
        "deviceClass": funnel.device_class,
        "mode": funnel.mode,
        "needed": funnel.needed,
        "stages": [_stage(stage) for stage in funnel.stages],
        **filled({"bestNode": funnel.best_node}),
        "bestCount": funnel.best_count,
        **filled({"devices": [_device_line(line) for line in funnel.devices]}),
    }


def _stage(stage: Stage) -> dict[str, Any]:
    return filled(
        {
            "name": stage.name.value,
            "label": written(stage.label),
            "passed": stage.passed,
            "failed": stage.failed,
            "expression": stage.expression,
            "observations": [_observation(seen) for seen in stage.observations],
            "error": _error(stage.error) if stage.error is not None else None,
            "details": [{"reason": written(reason), "deviceCount": count} for reason, count in stage.details],
        }
    )


def _error(error: StageError) -> dict[str, Any]:
    out = {"message": error.message, **device_json(error.device), "count": error.count}
    if (at := error.position) is not None:
        out["position"] = {"offset": at.offset, "line": at.line, "column": at.column}
    return out


def _device_line(line: DeviceLine) -> dict[str, Any]:
    return {
        **device_json(line.device),
        **filled(
            {
                "where": line.where,
                "stage": line.stage.value,
                "reason": written(line.reason),
                "label": written(line.label),
                "observations": [_observation(seen) for seen in line.observations],
            }
        ),
    }


def _observation(seen: Observation) -> dict[str, Any]:
    """What devices have; a value of null means that they have none."""
    values = [{"value": value, "deviceCount": count} for value, count in seen.values]
    return filled({"name": seen.name, "values": values})
