"""Each field of a funnel is in its JSON, and nothing empty is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import jsonschema

from kubectl_dra.api.slices import DeviceID
from kubectl_dra.explain.funnel.shown import DeviceLine, Funnel, Observation, Position, Stage, StageError, StageName
from kubectl_dra.report.explain_json import funnel_json

SCHEMA: Final = json.loads((Path(__file__).parents[2] / "schemas/explain.json").read_text())
GPU: Final = DeviceID("gpu.example.com", "n1", "gpu-0")
SEEN: Final = Observation("model", (("A100", 1), (None, 2)))


def _valid(funnel: Funnel) -> dict[str, Any]:
    out = funnel_json(funnel)
    jsonschema.validate(out, {**SCHEMA["$defs"]["funnel"], "$defs": SCHEMA["$defs"]})
    return out


def test_all_that_there_is() -> None:
    error = StageError("no such key: model", GPU, 2, Position(3, 1, 4))
    stage = Stage(StageName.REQUEST_SELECTOR, "its selector", 1, 2, "x", (SEEN,), error, (("because", 2),), "its")
    line = DeviceLine(GPU, "n1", StageName.REQUEST_SELECTOR, "false", "term 1", (SEEN,))
    out = _valid(Funnel("gpu", "gpu.example.com", "ExactCount", 2, (stage,), "n1", 1, (line,)))
    defined = SCHEMA["$defs"]
    assert list(out) == list(defined["funnel"]["properties"])
    assert list(out["stages"][0]) == list(defined["stage"]["properties"])
    assert list(out["devices"][0]) == list(defined["deviceLine"]["properties"])
    assert out["stages"][0]["observations"] == out["devices"][0]["observations"]
    values = [{"value": "A100", "deviceCount": 1}, {"value": None, "deviceCount": 2}]
    assert out["stages"][0]["observations"] == [{"name": "model", "values": values}]
    assert list(out["stages"][0]["error"]) == ["message", "driver", "pool", "device", "count", "position"]


def test_what_is_empty_is_left_out_but_numbers() -> None:
    out = _valid(Funnel("gpu", "gpu.example.com", "All", 0, (Stage(StageName.NODE, "nodes", 0, 0),)))
    assert list(out) == ["request", "deviceClass", "mode", "needed", "stages", "bestCount"]
    assert out["stages"] == [{"name": "node", "label": "nodes", "passed": 0, "failed": 0}]
