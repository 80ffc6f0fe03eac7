"""The way of a pod with times, and where else it would fit, of recorded states of real nodes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.explain.test_on_nodes import NAMES, RECORDED, gates
from tests.ran import ran

ROOT = Path(__file__).parents[2]

LAST = {
    "running": ("running", "containers ready"),
    "prepare-error": ("preparation", "devices not prepared"),
    "prepare-recovered": ("running", "containers ready"),
    "unprepare-error": ("ending", "grace period over"),
    "no-driver": ("scheduling", "not placed"),
    "kubelet-stopped": ("scheduling", "placed on node gpu-1"),
    "container-crashes": ("running", "container main ended with exit code 1"),
}
"""The last step of the way, by state."""


def explained(line: dict[str, Any], folder: Path, *more: str) -> str:
    path = folder / "cluster.json"
    path.write_text(json.dumps(line["served"]))
    _, out, err = ran("explain", "pod/train", "-n", "ml", "--snapshot", str(path), *gates(line), *more)
    assert out, err
    return out


@pytest.mark.parametrize("line", RECORDED, ids=NAMES)
def test_the_way_is_told_in_order(line: dict[str, Any], tmp_path: Path) -> None:
    way = json.loads(explained(line, tmp_path, "-o", "json"))["stations"]
    assert way[0]["station"] == "admission" and way[0]["what"] == "pod created"
    times = [step["time"][:19] for step in way]
    assert times == sorted(times)
    if line["id"] in LAST:
        station, what = LAST[line["id"]]
        assert way[-1]["station"] == station and what in way[-1]["what"], way


def test_repeated_events_are_counted(tmp_path: Path) -> None:
    counts = [
        step["what"]
        for line in RECORDED
        if line["id"] == "driver-gone-and-wiped-before-start"
        for step in json.loads(explained(line, tmp_path, "-o", "json"))["stations"]
        if step["station"] == "preparation"
    ]
    assert counts and all(" times until " in what for what in counts)


def test_a_pod_that_runs_is_told_where_else_it_would_fit(tmp_path: Path) -> None:
    lines = {line["id"]: line for line in RECORDED if line["release"].startswith("1.36.")}
    assert "Now no other node would suit it." in explained(lines["running"], tmp_path, "--full")
    two = explained(lines["bound-by-hand-elsewhere"], tmp_path, "--full")
    assert "Now 1 other node would suit it too: gpu-" in two
    assert "would suit it" not in explained(lines["unprepare-error"], tmp_path, "--full")


FOLDERS = ("taint-rule-evicts-all", "all-held", "claim-kept-by-finalizer")
QUESTIONS = (("claims",), ("explain", "-A", "-o", "wide"), ("explain", "-A", "-o", "json"), ("devices", "-o", "wide"))


@pytest.mark.parametrize("folder", FOLDERS)
def test_nothing_has_been_so_since_a_time_to_come(folder: str) -> None:
    """deletionTimestamp is the end of the grace period: what is being deleted is so since a time before."""
    cluster = ROOT / "examples" / "explain" / folder / "cluster.yaml"
    said = "".join(part for words in QUESTIONS for part in ran(*words, "--snapshot", str(cluster))[1:])
    (now,) = set(re.findall(r"as of ([0-9T:Z-]+)", said))
    since = re.findall(r"since\s+([0-9-]{10}T[0-9:]{8}Z)", said)
    assert since and max(since) <= now


def test_a_time_to_end_that_is_not_over_is_not_told_as_over() -> None:
    cluster = ROOT / "examples" / "explain" / "taint-rule-evicts-all" / "cluster.yaml"
    _, out, _ = ran("explain", "pod/train-0", "-n", "ml", "--snapshot", str(cluster), "-o", "json")
    last = json.loads(out)["stations"][-1]
    assert (last["what"], last["time"]) == ("deletion requested", "2026-08-22T10:40:01Z")
    old = cluster.parents[1] / "claim-kept-by-finalizer" / "cluster.yaml"
    _, out, _ = ran("explain", "pod/notebook-old", "-n", "research", "--snapshot", str(old), "-o", "json")
    last = json.loads(out)["stations"][-2:]
    assert [(step["time"], step["what"]) for step in last] == [
        ("2026-08-21T19:04:30Z", "deletion requested"),
        ("2026-08-21T19:05:00Z", "grace period over"),
    ]
