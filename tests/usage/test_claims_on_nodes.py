"""What `claims` says a claim waits for, and that no command alarms, in recorded states of real nodes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.explain.test_on_nodes import EXPECTED, NAMES, RECORDED, gates, said

WAITS = {
    "prepare-error": "node gpu-1 to prepare the devices of pod train (failing since 20",
    "unprepare-error": "and driver gpu.example.com on node gpu-1 has not given its devices back",
    "slices-wiped-before-end": "driver gpu.example.com is away from node gpu-1: nobody gives its devices back",
    "claim-deallocated": "pod train to be deleted: it runs on node gpu-1 with devices that the claim has lost",
    "started-a-second-ago": "pod train to start (Pending)",
    "ends-in-order": "pod train to end (terminating since 20",
    "running": "",
}
BY_DESIGN = {
    # No device is published: there is nothing to list or count (1), which says so and how many are held all the same;
    # how the driver is cannot be told while it starts (3).
    "kubelet-restarted": {"devices", "top", "drivers"},
    "node-boots": {"devices", "top", "drivers", "explain", "claim"},  # and the pod waits until it has started
    "finished": {"claims"},  # There is none any more.
    "claim-deleted-while-used": {"claim"},  # It takes no further pod, which is what was asked.
    "ends-in-order": {"claim"},  # It is held for a pod that ends; its step is to wait.
    "ended-and-given-on": {"claim"},  # Asked for by name: its device is held, so another pod with it would wait.
    "binding-waits": {"explain", "claim"},  # The pod waits; its step is to wait.
}
"""Commands that do not end with 0 in a state in which nothing is wrong, and why; none names a fault."""
HEALTHY = [line for line in RECORDED if not line["truth"]["fault"]]


def snapshot_of(line: dict[str, Any], folder: Path) -> list[str]:
    path = folder / "cluster.json"
    path.write_text(json.dumps(line["served"]))
    return ["--snapshot", str(path)]


@pytest.mark.parametrize("line", [line for line in RECORDED if line["id"] in WAITS], ids=lambda line: line["id"])
def test_a_claim_waits_for_who_acts(line: dict[str, Any], tmp_path: Path) -> None:
    _, out, _ = said("claims", "-n", "ml", "-o", "json", *snapshot_of(line, tmp_path))
    (claim,) = json.loads(out)["items"]
    assert WAITS[line["id"]] in claim.get("waitsFor", ""), claim
    assert bool(WAITS[line["id"]]) == bool(claim.get("waitsFor"))


@pytest.mark.parametrize(
    "line", HEALTHY, ids=[name for name, line in zip(NAMES, RECORDED, strict=True) if line in HEALTHY]
)
def test_no_command_alarms_where_nothing_is_wrong(line: dict[str, Any], tmp_path: Path) -> None:
    where = snapshot_of(line, tmp_path)
    claims = [each["metadata"]["name"] for each in line["served"]["items"] if each["kind"] == "ResourceClaim"]
    asked = {
        "claims": ["claims", "-A"],
        "devices": ["devices"],
        "top": ["top"],
        "drivers": ["drivers"],
        "taint": ["taint", "--list"],
        "explain": ["explain", "-n", "ml", *gates(line)],
        **{f"claim {name}": ["explain", f"claim/{name}", "-n", "ml", *gates(line)] for name in claims},
    }
    alarmed = {}
    for name, words in asked.items():
        code, out, _ = said(*words, *where)
        if code and name.split()[0] not in BY_DESIGN.get(line["id"], ()):
            alarmed[name] = (code, out)
        assert name != "drivers" or code != 1, out
        if name == "explain":
            assert "stuck: " not in out and ("of them stuck" not in out or "0 of them stuck" in out), out
    assert not alarmed
    assert EXPECTED[line["id"]]
