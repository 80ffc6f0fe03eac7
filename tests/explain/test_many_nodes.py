"""Changes that would help are found wherever they are in a cluster of more nodes than are tried one by one."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from kubectl_dra.cli.main import run
from tools.benchmarks.explain import A, holder, node_of, objects, question, slice_of
from tools.live.proved import proof_of, way_of

NODES = 450
LAST = NODES - 1


def explained(
    extra: Iterable[dict[str, Any]], name: str, path: Path, capsys: pytest.CaptureFixture[str]
) -> dict[str, Any]:
    items = [entry for entry in objects(0) if entry["kind"] == "DeviceClass"]
    items.extend(entry for node in range(NODES) for entry in (node_of(node), slice_of(node)))
    items.extend(extra)
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    run(["explain", f"pod/{name}", "--snapshot", str(path), "--complete", "-o", "json"])
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def user(node: int) -> dict[str, Any]:
    """The pod that uses the claim of a node."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"train-{node}", "namespace": "ml", "uid": f"pod-{node}"},
        "spec": {"nodeName": f"node-{node:05}", "containers": [{"name": "main"}]},
        "status": {"phase": "Running"},
    }


def test_the_holder_that_nobody_uses_is_on_the_last_node(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    holders = [holder(node) for node in range(NODES)]
    del holders[LAST]["status"]["reservedFor"]
    found = explained([*question("busy", "true"), *holders], "busy", tmp_path / "c.json", capsys)
    (cause,) = found["causes"]
    assert cause["code"] == "allocation-orphaned"
    assert cause["fix"]["text"] == f"Delete unused claim ml/train-{LAST} if nobody needs it."
    assert f"fits on node-{LAST:05}" in proof_of(cause)


def test_a_misspelt_uuid(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    uuid = slice_of(LAST)["spec"]["devices"][3]["attributes"]["uuid"]["string"]
    pod = list(question("typo", f'{A}.uuid == "{uuid[:-1]}x"'))
    pod[0]["spec"]["devices"]["requests"][0]["exactly"]["count"] = 1
    found = explained(pod, "typo", tmp_path / "c.json", capsys)
    (cause,) = found["causes"]
    assert cause["fix"]["text"].startswith(f'Ask for a value that devices have: write "{uuid}" in place of')
    assert f"fits on node-{LAST:05}" in proof_of(cause)


def test_the_next_number_of_a_series_is_another_device(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    uuid = slice_of(LAST)["spec"]["devices"][3]["attributes"]["uuid"]["string"]
    pod = list(question("gone", f'{A}.uuid == "{uuid[:-1]}f"'))
    pod[0]["spec"]["devices"]["requests"][0]["exactly"]["count"] = 1
    (cause,) = explained(pod, "gone", tmp_path / "c.json", capsys)["causes"]
    assert cause["fix"]["text"].startswith("Bring that device back") and uuid not in cause["fix"]["text"]


def test_a_uuid_that_nothing_has(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Values of single devices are no way out for two; that the term can go is said once, and not with more."""
    found = explained(question("none", f'{A}.uuid == "GPU-bad"'), "none", tmp_path / "c.json", capsys)
    (cause,) = found["causes"]
    assert cause["code"] == "selector-matches-nothing"
    assert "drop the term" in cause["fix"]["text"]
    assert proof_of(cause).startswith("without the term it fits on node-00000")
    assert all(len(way["changes"]) == 1 for way in found.get("fixes", ()))


def test_the_node_that_comes_closest_is_the_last(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of more kinds of nodes than are tried, those with most devices left are; and the answer says so."""
    held = [mask for mask in range(256) if mask.bit_count() > 1]
    holders = [holder(node) for node in range(NODES)]
    for node, entry in enumerate(holders):
        mask = held[node % len(held)] if node < LAST else 1
        devices = entry["status"]["allocation"]["devices"]
        devices["results"] = [one for index, one in enumerate(devices["results"]) if mask >> index & 1]
    pod = list(question("most", "true"))
    pod[0]["spec"]["devices"]["requests"][0]["exactly"]["count"] = 8
    pods = [user(node) for node in range(NODES)]
    found = explained([*pod, *holders, *pods], "most", tmp_path / "c.json", capsys)
    (cause,) = found["causes"]
    assert cause["fix"]["text"].startswith(f"End pod ml/train-{LAST}")
    assert any("lower count to 7: then" in way_of(way) for way in found["fixes"])
    assert "changes were tried on the 200 nodes that come closest to what is asked for, of 450" in found["notes"]
