"""The driver of real nodes in their recorded states (tools/recorder/nodes): found, joined with its pod, and judged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kubectl_dra.cluster.files import read_snapshot
from kubectl_dra.drivers.drivers_on_nodes import joined
from kubectl_dra.drivers.health import DriverState
from tools.recorder.nodes.__main__ import STATES
from tools.recorder.recorded import DATA, lines

RECORDED = [line for path in sorted(DATA.glob("nodes-*.jsonl.gz")) for line in lines(path)]
DRIVER = "gpu.example.com"
OTHERWISE: dict[str, DriverState | None] = {
    # Its pod is seconds old, or the kubelet has just deleted the slices.
    "node-boots": DriverState.STARTING,
    "kubelet-restarted": DriverState.STARTING,
    "one-of-two-nodes-without-driver": DriverState.STARTING,
    # A pod that was here before is gone. That its slices are left over says nothing about a driver outside of pods.
    "driver-gone-before-start": DriverState.NOT_REGISTERED,
    "driver-gone-while-running": DriverState.UNKNOWN,
    "driver-gone-before-end": DriverState.UNKNOWN,
    "waits-for-a-terminating-pod": DriverState.UNKNOWN,
    "driver-gone-and-wiped-before-start": DriverState.GONE,
    "slices-wiped-while-running": DriverState.GONE,
    "slices-wiped-before-end": DriverState.GONE,
    "slices-wiped-and-next-waits": DriverState.GONE,
    # The kubelet says so, whatever the state of its pod.
    "wrong-registry": DriverState.NOT_REGISTERED,
    "wrong-version": DriverState.NOT_REGISTERED,
    "driver-crashed": DriverState.NOT_ANSWERING,
    # It answers that it cannot.
    "prepare-error": DriverState.PREPARE_FAILING,
    "disk-full": DriverState.PREPARE_FAILING,
    "prepare-times-out": DriverState.PREPARE_FAILING,
    "comes-back-with-other-names": DriverState.PREPARE_FAILING,
    "driver-crash-loops": DriverState.CRASHING,
    "driver-crash-loops-and-next-waits": DriverState.CRASHING,
    "node-not-ready-before-start": DriverState.NODE_DOWN,
    "node-lost-while-running": DriverState.NODE_DOWN,
    "node-lost-and-pod-evicted": DriverState.NODE_DOWN,
    "node-lost-and-next-waits": DriverState.NODE_DOWN,
    "node-gone": DriverState.NODE_DOWN,
    "runtime-down-while-running": DriverState.NODE_DOWN,
    "publishes-nothing": DriverState.SILENT,
    "no-driver": None,
}
"""Where the driver is not healthy on the node at fault, or on gpu-1, as far as the API shows it.

In the other states it runs and publishes.
"""


@pytest.mark.parametrize("line", RECORDED, ids=[f"{line['release']}: {line['id']}" for line in RECORDED])
def test_the_driver_is_found_joined_and_judged(line: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps(line["served"]))
    fault = line["truth"]["fault"].split("/")
    row = joined(read_snapshot([str(path)])).of(DRIVER, fault[1] if fault[0] == "driver" and fault[1:] else "gpu-1")
    expected = OTHERWISE.get(line["id"], DriverState.HEALTHY)
    if expected is None:
        assert row is None
        return
    assert row is not None
    assert row.state is expected
    # A driver that runs in a pod is joined with it.
    if expected not in (DriverState.UNKNOWN, DriverState.GONE) and line["id"] != "driver-gone-before-start":
        assert row.pod is not None
        assert row.pod.namespace == "gpu-system"
    else:
        assert row.pod is None


def test_what_is_expected_is_recorded() -> None:
    assert OTHERWISE.keys() <= STATES.keys()
