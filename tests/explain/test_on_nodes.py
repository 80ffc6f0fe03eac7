"""Recorded states of real nodes, and what the commands say of them. See on_nodes.yaml, and tools/recorder/nodes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.ran import ran
from tools.recorder.nodes.__main__ import STATES
from tools.recorder.recorded import DATA, lines

EXPECTED: dict[str, dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("on_nodes.yaml").read_text())
RECORDED = [line for path in sorted(DATA.glob("nodes-*.jsonl.gz")) for line in lines(path)]
REJECTS, ADMITS = "rejected-for-implicit-resource", "admitted-without-its-implicit-device"
NOT_THERE = {
    "1.34": {"unhealthy", REJECTS, "binding-times-out"},
    "1.35": {REJECTS},
    "1.36": {ADMITS},
    "1.37": {ADMITS},
}
"""States that a release does not have. The kubelet of 1.34 reports no health of this driver's devices, whatever the
gates, and its scheduler waits ten minutes for binding conditions, whatever it is told. Up to 1.35 kubelets do not count
implicit extended resources (with DRAExtendedResource on), since 1.36 they do.
"""
_PASSED_OVER = {
    "exit": 1,
    "causes": ["runs-without-its-devices"],
    "answer": "the scheduler of 1.34 places pods on nodes as if they did not ask for such an implicit",
    "fix": "Create the pod again with a ResourceClaim",
    "listed": ["pod/train"],
}
IN_1_34 = {"implicit-resource": _PASSED_OVER, ADMITS: _PASSED_OVER}
"""What is expected of 1.34 instead."""
OFF = {
    "binding-waits": "DRADeviceBindingConditions",
    "binding-passes": "DRADeviceBindingConditions",
    "binding-fails": "DRADeviceBindingConditions",
    "binding-times-out": "DRADeviceBindingConditions",
    "implicit-resource": "DRAExtendedResource",
    REJECTS: "DRAExtendedResource",
    ADMITS: "DRAExtendedResource",
    "admitted-without-its-device": "DRAExtendedResource",
}
"""Gates that were turned on for a state, and are off by default up to 1.35."""
GIVEN_TWICE = "pod ml/first runs on node gpu-1 with gpu.example.com/gpu-1/gpu-0, too"
NAMES = [f"{line['release']}: {line['id']}" for line in RECORDED]


def gates(line: dict[str, Any]) -> list[str]:
    """The gates that were on, where they are off by default."""
    old = line["release"].startswith(("1.34.", "1.35."))
    return ["--feature-gates", f"{OFF[line['id']]}=true"] if old and line["id"] in OFF else []


def expected(line: dict[str, Any]) -> dict[str, Any]:
    """What is expected of a recorded state."""
    old = IN_1_34 if line["release"].startswith("1.34.") else {}
    return old.get(line["id"], EXPECTED[line["id"]])


def test_every_state_is_recorded_and_expected() -> None:
    releases = {line["release"].rpartition(".")[0] for line in RECORDED}
    assert releases >= {"1.36", "1.37"}
    for release in releases:
        recorded = {line["id"] for line in RECORDED if line["release"].startswith(f"{release}.")}
        assert recorded == STATES.keys() - NOT_THERE.get(release, set())
    assert STATES.keys() == EXPECTED.keys()


@pytest.mark.parametrize("line", RECORDED, ids=NAMES)
def test_the_state_is_told(line: dict[str, Any], tmp_path: Path) -> None:
    expect, truth = expected(line), line["truth"]
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps(line["served"]))
    where = ["--snapshot", str(path), *gates(line)]
    code, out, _ = ran("explain", f"pod/{truth['pod']}", "-n", "ml", *where, "-o", "json")
    found = json.loads(out)
    print(found["answer"], found["causes"][:1])
    assert code == expect["exit"]
    causes = [cause["code"] for cause in found["causes"]]
    assert len(causes) == len(expect["causes"])
    for cause, wanted in zip(causes, expect["causes"], strict=True):
        assert cause in (wanted if isinstance(wanted, list) else [wanted])
    assert expect["answer"] in found["answer"]
    if "fix" in expect:
        assert expect["fix"] in found["causes"][0]["fix"]["text"]
    notes = "\n".join(found["notes"])
    assert expect.get("note", "") in notes
    # Older kubelets do not say which devices a container was given.
    told = line["id"] == "two-pods-on-one-device" and line["release"] >= "1.36"
    assert (GIVEN_TWICE in notes) == told

    _, out, _ = ran("explain", "-n", "ml", *where, "-o", "json")
    listed = {f"{item['subject']['kind'].lower()}/{item['subject']['name']}" for item in json.loads(out)["items"]}
    assert listed == set(expect.get("listed", ()))

    _, out, _ = ran("top", "--snapshot", str(path))
    assert expect.get("top", "") in out.splitlines()[0]


@pytest.mark.parametrize(
    "line", [line for line in RECORDED if line["release"].startswith("1.36.")], ids=lambda line: line["id"]
)
def test_a_snapshot_of_it_says_the_same(line: dict[str, Any], tmp_path: Path) -> None:
    """What the answers rest on is kept by `kubectl dra snapshot`."""
    whole, reduced = tmp_path / "whole.json", tmp_path / "reduced.json"
    whole.write_text(json.dumps(line["served"]))
    code, _, err = ran("snapshot", "--snapshot", str(whole), "-o", str(reduced))
    assert code == 0, err
    answers = []
    for path in (whole, reduced):
        _, out, _ = ran("explain", f"pod/{line['truth']['pod']}", "-n", "ml", "--snapshot", str(path), "-o", "json")
        found = json.loads(out)
        causes = [(cause["code"], cause["fix"]["text"], cause["evidence"]) for cause in found["causes"]]
        answers.append((found["exitCode"], found["answer"], causes))
    assert answers[0] == answers[1]
