"""`explain node/NAME`: a node with its drivers and pods, of recorded states of real nodes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.explain.test_on_nodes import NAMES, RECORDED, expected, gates
from tests.ran import ran

SCHEMA = json.loads((Path(__file__).parents[2] / "schemas/explain.json").read_text())
OF_NODE = {
    "node-lost-while-running": "Node gpu-1: it has not been ready since",
    "runtime-down-while-running": "Node gpu-1: it has not been ready since",
    "node-gone": "Node gpu-1: there is no node gpu-1 any more, and pods are bound to it",
    "driver-crash-loops-and-next-waits": "Node gpu-1: driver gpu.example.com is crashing: container plugin of pod",
    "slices-wiped-while-running": "Node gpu-1: driver gpu.example.com is gone: it publishes nothing any more",
    "publishes-nothing": "Node gpu-1: driver gpu.example.com is publishes-nothing",
}
"""The answer where the node itself or a driver of it is at fault, not what a pod shows."""


def asked(line: dict[str, Any], folder: Path, *more: str) -> tuple[int, str, str]:
    path = folder / "cluster.json"
    path.write_text(json.dumps(line["served"]))
    return ran("explain", "node/gpu-1", "--snapshot", str(path), *gates(line), *more)


@pytest.mark.parametrize("line", RECORDED, ids=NAMES)
def test_a_node_is_at_fault_where_its_pods_are(line: dict[str, Any], tmp_path: Path) -> None:
    expect, truth = expected(line), line["truth"]
    code, out, err = asked(line, tmp_path, "-o", "json")
    found = json.loads(out)
    jsonschema.validate(found, SCHEMA)
    assert found["exitCode"] == code, err
    whole, text, _ = asked(line, tmp_path)
    assert whole == code and text.startswith(" ".join(found["answer"].split()[:2]))
    assert len(text.splitlines()) <= 22
    if line["id"] in OF_NODE:
        assert code == 1 and found["answer"].startswith(OF_NODE[line["id"]])
    elif not truth["fault"] and not expect["exit"]:
        assert code == 0 and found["fix"]["text"] == "", found["answer"]
    pods = {item["subject"]["name"]: item["exitCode"] for item in found["items"]}
    if truth["pod"] in pods:
        assert pods[truth["pod"]] == expect["exit"]
        assert code == 1 or not expect["exit"]


def test_a_name_that_no_node_has(tmp_path: Path) -> None:
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps(RECORDED[0]["served"]))
    code, _, err = ran("explain", "node/gpu-2", "--snapshot", str(path))
    assert (code, err) == (2, "error: there is no node gpu-2; did you mean gpu-1?\n")
    code, _, err = ran("explain", "node/gpu-1", "--what-if", "count=2", "--snapshot", str(path))
    assert code == 2 and err.startswith("error: --what-if needs a pod or claim")
