"""`explain node/NAME`: a node with its drivers and pods, of recorded states of real nodes."""

from __future__ import annotations

import copy
import json
from collections import Counter
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.explain.test_on_nodes import NAMES, RECORDED, expected, gates
from tests.ran import ran

SCHEMA = jsonschema.Draft202012Validator(json.loads((Path(__file__).parents[2] / "schemas/explain.json").read_text()))
OF_NODE = {
    "node-lost-while-running": "Node gpu-1: it has not been ready since",
    "runtime-down-while-running": "Node gpu-1: it has not been ready since",
    "node-gone": "Node gpu-1: there is no node gpu-1 any more, and pods are bound to it",
    "driver-crash-loops-and-next-waits": "Node gpu-1: driver gpu.example.com does not run: container plugin of pod",
    "slices-wiped-while-running": "Node gpu-1: driver gpu.example.com is gone: it publishes nothing any more",
    "publishes-nothing": "Node gpu-1: driver gpu.example.com publishes no devices, though pod gpu-system/",
}
"""The answer where the node itself or a driver of it is at fault, not what a pod shows."""


def asked(line: dict[str, Any], folder: Path, *more: str) -> tuple[int, str, str]:
    path = folder / "cluster.json"
    path.write_text(json.dumps(line["served"]))
    return ran("explain", "node/gpu-1", "--snapshot", str(path), *gates(line), *more)


def doubled(text: str) -> list[str]:
    """What is said twice: eight words in a row."""
    words = text.split()
    runs = [" ".join(words[at : at + 8]) for at in range(len(words) - 7)]
    return [run for run, count in Counter(runs).items() if count > 1]


@pytest.mark.parametrize("line", RECORDED, ids=NAMES)
def test_a_node_is_at_fault_where_its_pods_are(line: dict[str, Any], tmp_path: Path) -> None:
    expect, truth = expected(line), line["truth"]
    code, out, err = asked(line, tmp_path, "-o", "json")
    found = json.loads(out)
    SCHEMA.validate(found)
    assert found["exitCode"] == code, err
    whole, text, _ = asked(line, tmp_path)
    assert whole == code and text.startswith(" ".join(found["answer"].split()[:2]))
    assert len(text.splitlines()) <= 22
    assert not doubled(text)
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


HELD_FOR_NOBODY = {
    "unused": ([], "unused: nothing frees its devices until it is deleted"),
    "ended": (["gone-0"], "its pods have ended, and it is still reserved for them"),
}


@pytest.mark.parametrize("state", HELD_FOR_NOBODY)
def test_a_device_that_no_pod_uses_is_listed(state: str, tmp_path: Path) -> None:
    pods, said = HELD_FOR_NOBODY[state]
    line = next(line for line in RECORDED if line["id"] == "running")
    given = next(item for item in line["served"]["items"] if item["kind"] == "ResourceClaim")
    (result,) = given["status"]["allocation"]["devices"]["results"]
    claim = {
        **given,
        "metadata": {"name": "scratch", "namespace": "ml"},
        "status": {
            "allocation": {"devices": {"results": [{**result, "device": "gpu-1"}]}},
            "reservedFor": [{"resource": "pods", "name": pod, "uid": pod} for pod in pods],
        },
    }
    served = {**line["served"], "items": [*line["served"]["items"], claim]}
    code, text, _ = asked({**line, "served": served}, tmp_path)
    assert code == 0 and "; 1 device is idle." in text.partition("\n\n")[0].replace("\n", " ")
    assert ["ml/scratch", "gpu-1", *said.split()] in [row.split() for row in text.splitlines()]
    found = json.loads(asked({**line, "served": served}, tmp_path, "-o", "json")[1])
    SCHEMA.validate(found)
    device = {"driver": "gpu.example.com", "pool": "gpu-1", "device": "gpu-1"}
    (other,) = found["otherClaims"]
    commands = [command["text"] for command in other.pop("commands", [])]
    assert other == {"namespace": "ml", "name": "scratch", "state": state, "devices": [device]}
    # What is reserved for pods that have ended is released without anybody.
    assert commands == (["kubectl delete resourceclaim/scratch -n ml"] if state == "unused" else [])
    assert ("$ kubectl delete resourceclaim/scratch -n ml" in text) == (state == "unused")
    assert ("Delete unused claim ml/scratch if nobody needs it." in text) == (state == "unused")


def test_an_unused_claim_that_a_pod_waits_to_use_is_not_to_be_deleted(tmp_path: Path) -> None:
    line = next(line for line in RECORDED if line["id"] == "running")
    given = next(item for item in line["served"]["items"] if item["kind"] == "ResourceClaim")
    (result,) = given["status"]["allocation"]["devices"]["results"]
    allocation = {"devices": {"results": [{**result, "device": "gpu-1"}]}}
    claim = {**given, "metadata": {"name": "kept", "namespace": "ml"}, "status": {"allocation": allocation}}
    spec = {"containers": [{"name": "main"}], "resourceClaims": [{"name": "gpu", "resourceClaimName": "kept"}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "next", "namespace": "ml"}, "spec": spec}
    served = {**line["served"], "items": [*line["served"]["items"], claim, pod]}
    text = asked({**line, "served": served}, tmp_path)[1]
    assert "ml/kept" in text and "delete" not in text.lower().replace("until it is deleted", "")


def test_a_device_out_of_service_is_listed(tmp_path: Path) -> None:
    line = next(line for line in RECORDED if line["id"] == "running" and line["release"].startswith("1.36."))
    served = copy.deepcopy(line["served"])
    slice_ = next(item for item in served["items"] if item["kind"] == "ResourceSlice")
    device = slice_["spec"]["devices"][1]
    device["taints"] = [{"key": "ecc", "effect": "NoSchedule"}]
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps(served))
    _, text, err = ran("explain", "node/gpu-1", "--snapshot", str(path), *gates(line))
    listed = f"DEVICES   TAINT\n{device['name']}     ecc:NoSchedule (driver)\n"
    assert f"Devices out of service here\n{listed}" in text, err
    assert "; 1 of 2 devices is tainted" in " ".join(text.split())
    found = json.loads(ran("explain", "node/gpu-1", "--snapshot", str(path), *gates(line), "-o", "json")[1])
    SCHEMA.validate(found)
    own = {"driver": slice_["spec"]["driver"], "pool": slice_["spec"]["pool"]["name"], "device": device["name"]}
    owner = {"kind": "ResourceSlice", "name": slice_["metadata"]["name"]}
    taint = {"key": "ecc", "effect": "NoSchedule", "owner": owner}
    assert found["taintedDevices"] == [{**own, "taints": [taint]}]


EXAMPLES = Path(__file__).parents[2] / "examples" / "explain"


def test_what_a_device_plugin_offers_and_who_has_it(tmp_path: Path) -> None:
    path = str(EXAMPLES / "extended-resource" / "cluster.yaml")
    code, text, err = ran("explain", "node/gpu-1", "--snapshot", path)
    assert code == 0, err
    assert "; a device plugin offers 2 nvidia.com/gpu, all in use." in " ".join(text.split())
    assert "RESOURCE         OFFERED   IN-USE   PODS\nnvidia.com/gpu   2         2        media/render-1\n" in text
    found = json.loads(ran("explain", "node/gpu-1", "--snapshot", path, "-o", "json")[1])
    SCHEMA.validate(found)
    pods = [{"namespace": "media", "name": "render-1"}]
    share = {"resource": "nvidia.com/gpu", "offered": 2, "inUse": 2, "unhealthy": 0, "pods": pods}
    assert found["devicePlugins"] == [share]


def test_a_node_whose_devices_are_all_tainted_is_out_of_service() -> None:
    path = str(EXAMPLES / "taint-rule-maintenance" / "cluster.yaml")
    code, text, err = ran("explain", "node/h100-1", "--snapshot", path)
    rule = "ops.example.com/maintenance=firmware:NoSchedule"
    first = " ".join(text.partition("\n\n")[0].split())
    assert code == 1, err
    assert first.startswith(f"Node h100-1: all 4 devices are tainted with {rule} (DeviceTaintRule h100-1-firmware)")
    assert f"\ngpu-0..3   {rule}" in text and "$ kubectl delete devicetaintrule/h100-1-firmware" in text
    assert f"Next: kubectl dra taint --list --snapshot {path}" in text
    SCHEMA.validate(json.loads(ran("explain", "node/h100-1", "--snapshot", path, "-o", "json")[1]))
    code, text, _ = ran("explain", "node/h100-1", "--snapshot", str(EXAMPLES / "all-tainted" / "cluster.yaml"))
    assert code == 1 and "Its driver set the taint" in text and "kubectl dra devices --tainted" in text


def test_what_the_answer_says_of_a_driver_is_not_said_again_in_the_table() -> None:
    _, text, err = ran("explain", "node/h100-1", "--snapshot", str(EXAMPLES / "mixed-fleet" / "cluster.yaml"))
    assert text.count("no pod was recognized") == 1 and "DRIVER           STATE     DEVICES\n" in text, err


def test_a_cordoned_node_is_told_so(tmp_path: Path) -> None:
    line = next(line for line in RECORDED if line["id"] == "running" and line["release"].startswith("1.36."))
    served = copy.deepcopy(line["served"])
    own = next(item for item in served["items"] if item["kind"] == "Node" and item["metadata"]["name"] == "gpu-1")
    own["spec"]["unschedulable"] = True
    code, text, err = asked({**line, "served": served}, tmp_path)
    said = " ".join(text.split())
    assert code == 1 and said.startswith("Node gpu-1: it is cordoned, so no new pod comes here; nothing is wrong"), err
    assert "kubectl uncordon gpu-1" in said


@pytest.mark.parametrize(
    ("example", "node", "command"),
    [
        ("pool-incomplete", "a30-1", "kubectl get pods -A --field-selector spec.nodeName=a30-1"),
        ("driver-gone-from-node", "h100-1", "kubectl label node h100-1 nvidia.com/dra-kubelet-plugin=true"),
        ("prepare-fails", "l40s-1", "kubectl get resourceclaimtemplate/shared-gpu -n dev -o yaml"),
    ],
)
def test_what_to_repair_comes_with_the_command_that_shows_or_does_it(example: str, node: str, command: str) -> None:
    path = str(EXAMPLES / example / "cluster.yaml")
    code, text, err = ran("explain", f"node/{node}", "--snapshot", path)
    fixes = text.partition("\nFixes\n")[2].partition("\n\n")[0]
    assert code == 1 and f"$ {command}" in fixes, err
    found = json.loads(ran("explain", f"node/{node}", "--snapshot", path, "-o", "json")[1])
    SCHEMA.validate(found)
    assert found["fix"]["commands"][0]["text"].startswith(command)


def test_pods_that_wait_for_the_driver_at_fault_are_named() -> None:
    file = str(Path(__file__).parents[2] / "examples/explain/pool-incomplete/cluster.yaml")
    code, out, _ = ran("explain", "node/a30-1", "--snapshot", file)
    said = " ".join(out.split())
    assert code == 1 and "pod ml/train-a30-0 waits for its devices." in said
    assert "Next: kubectl dra explain pod/train-a30-0 -n ml" in said
    found = json.loads(ran("explain", "node/a30-1", "--snapshot", file, "-o", "json")[1])
    SCHEMA.validate(found)
    assert found["awaiting"] == [{"namespace": "ml", "name": "train-a30-0"}]
