"""Devices that the scheduler gives and nobody can work with: no command counts them as free."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.ran import ran

EXAMPLES = Path(__file__).parents[2] / "examples" / "explain"
BROKEN = ("--snapshot", str(EXAMPLES / "driver-gone-from-node" / "cluster.yaml"))
PART = ("--snapshot", str(EXAMPLES / "tpu-all-one-held" / "cluster.yaml"))
TPU_NODE = "gke-ml-v6e-pool-7b20d4c1-t2vd"


def _json(*words: str) -> tuple[int, dict[str, Any]]:
    code, out, _ = ran(*words, "-o", "json")
    return code, json.loads(out)


@pytest.mark.parametrize(("cluster", "free"), [(BROKEN, 3), (PART, 0)])
def test_all_commands_count_them_alike(cluster: tuple[str, ...], free: int) -> None:
    """``devices``, ``top``, ``top classes`` and ``metrics`` say the same of the same cluster."""
    for words in (("devices",), ("top",), ("top", "classes")):
        states = _json(*words, *cluster)[1]["summary"]["states"]
        assert (states.get("free", 0), states["unserved"]) == (free, 3)
    _, out, _ = ran("metrics", *cluster)
    lines = [line for line in out.splitlines() if line.startswith("kubectl_dra_devices{")]
    assert sum(float(line.split()[-1]) for line in lines if 'state="unserved"' in line) == 3
    assert sum(float(line.split()[-1]) for line in lines if 'state="free"' in line) == free
    code, _, _ = ran("devices", "--free", *cluster)
    assert code == (0 if free else 1)


def test_the_working_node_is_named() -> None:
    """A request for the class gets devices of the node where the driver runs, and no others."""
    code, found = _json("explain", "class/gpu.nvidia.com", *BROKEN)
    assert (code, found["verdict"]) == (0, "can-be-scheduled")
    assert "a request can get up to 3 devices of it now, on node h100-2" in found["answer"]
    (row,) = _json("top", "classes", *BROKEN)[1]["items"]
    assert row["largestRequest"] == {"count": 3, "node": "h100-2", "atLeast": False}


def test_a_part_of_a_node_is_nobodys() -> None:
    """Single chips of a driver that gives whole nodes only are no room for anybody."""
    code, found = _json("explain", "class/tpu.google.com", *PART)
    assert (code, found["verdict"]) == (1, "cannot-be-scheduled")
    assert "no pod can use a device of it now: driver tpu.google.com gives a claim" in found["answer"]
    _, out, _ = ran("metrics", *PART)
    fitting = [line for line in out.splitlines() if line.startswith("kubectl_dra_device_class_fitting_pods{")]
    assert {float(line.split()[-1]) for line in fitting} == {0.0}


@pytest.mark.parametrize(
    ("device", "cluster", "said"),
    [
        (
            "h100-1/gpu-1",
            BROKEN,
            "free, but a pod that gets it does not start: driver gpu.nvidia.com is not registered",
        ),
        (f"{TPU_NODE}/tpu-1", PART, "or none, and tpu-2 is held"),
    ],
)
def test_one_device(device: str, cluster: tuple[str, ...], said: str) -> None:
    code, found = _json("explain", f"device/{device}", *cluster)
    assert (code, found["verdict"]) == (1, "cannot-be-scheduled")
    assert said in found["answer"]
    assert found["items"][0]["state"] == "unserved"


def test_a_whole_node_can_be_had(tmp_path: Path) -> None:
    """Where nobody holds any of a node's chips, a claim for all of them gets them, and so it is said."""
    objects = (EXAMPLES / "tpu-all-one-held" / "cluster.yaml").read_text()
    cut = objects.replace("tpu-2", "tpu-gone").replace("name: tpu-gone", "name: tpu-2")
    (tmp_path / "cluster.yaml").write_text(cut)
    cluster = ("--snapshot", str(tmp_path / "cluster.yaml"))
    code, found = _json("explain", f"device/{TPU_NODE}/tpu-2", *cluster)
    assert (code, found["items"][0]["state"]) == (0, "free")
    assert "a request for all 4 devices of its node can get it now" in found["answer"]
    code, found = _json("explain", "class/tpu.google.com", *cluster)
    assert code == 0
    assert f"a request for all devices of a node can get 4 of it now, on node {TPU_NODE}" in found["answer"]


@pytest.mark.parametrize("example", ["driver-gone-from-node", "prepare-fails"])
def test_a_driver_that_publishes_is_not_why_nothing_matches(example: str) -> None:
    """The fault of one node has nothing to do with a class that asks for devices of another type."""
    _, out, _ = ran("explain", "class/mig.nvidia.com", "--snapshot", str(EXAMPLES / example / "cluster.yaml"))
    assert "because no published device matches it." in " ".join(out.split())


def test_pods_that_were_not_read_are_named(tmp_path: Path) -> None:
    """Whether a pod starts with a free device is then unknown."""
    whole = yaml.safe_load(Path(BROKEN[1]).read_text())
    path = tmp_path / "cluster.json"
    items = [item for item in whole["items"] if item["kind"] != "Pod"]
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}, default=str))
    for words in (("devices",), ("explain", "class/gpu.nvidia.com")):
        assert "Pod" in ran(*words, "--snapshot", str(path))[2]
