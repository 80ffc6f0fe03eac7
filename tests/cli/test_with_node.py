"""``--with-node`` as it is typed, and what is answered."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_dra.data.drivers import catalogue
from tests.cli.conftest import EXAMPLES, Dra, Ran, write_list
from tests.cli.test_explain_with_node import FULL, JSON, asked, notes, nvidia, of_example, pending
from tests.drivers.clusters import CRASHES, ENDED, plugin, status
from tests.fit.worlds import CLASS, DRIVER, ZONE, deployment, fitted, node, running, template, write_cluster

# What ``--with-node`` answers: of which nodes a reason is, on which a yes rests, and whether it was a yes before.


WITH = "--with-node"
PLUGIN = "example.com/gpu"
LABEL_UNKNOWN = "eks.amazonaws.com/nodegroup"


def plugin_pod() -> list[JSON]:
    """A pod that asks for what a device plugin offers, and has no claim."""
    (pod,) = running("train", "")
    resources = {"limits": {"example.com/gpu": "1"}, "requests": {"example.com/gpu": "1"}}
    pod["spec"] = {"containers": [{"name": "c", "image": "i", "resources": resources}]}
    pod["status"] = {"phase": "Pending"}
    return [pod]


def plugin_node(name: str) -> list[JSON]:
    (made,) = node(name)
    made["status"]["allocatable"]["example.com/gpu"] = "1"
    return [made]


def holding(on: str) -> list[JSON]:
    (pod,) = running("other", on)
    pod["spec"]["containers"] = plugin_pod()[0]["spec"]["containers"]
    return [pod]


def test_a_pod_without_claims_is_told_where_it_would_fit(dra: Dra, tmp_path: Path) -> None:
    cluster = [*plugin_node("n1"), *holding("n1"), *plugin_pod()]
    assert asked(dra, tmp_path, cluster)["verdict"] == "cannot-be-scheduled"
    found = asked(dra, tmp_path, cluster, WITH, "n1")
    assert found["verdict"] == "can-be-scheduled"
    assert "could be scheduled with this change: it would fit on 1 node (n1-more)" in found["answer"]
    # One that fits without the new node is not kept by devices.
    found = asked(dra, tmp_path, [*plugin_node("n1"), *plugin_pod()], WITH, "n1")
    assert "could be" not in found["answer"]


def test_a_pod_that_fits_already_is_told_so(dra: Dra, tmp_path: Path) -> None:
    cluster = [*FULL, *node("gpu-1", 1), *pending()]
    found = asked(dra, tmp_path, cluster, WITH, "gpu-0")
    told = "can be scheduled without this change: its claims fit on gpu-1 already, and on gpu-0-more as well."
    assert (found["verdict"], told in found["answer"]) == ("can-be-scheduled", True)
    assert asked(dra, tmp_path, cluster)["verdict"] == "can-be-scheduled"
    # With another change, what it would be without is no matter.
    found = asked(dra, tmp_path, cluster, WITH, "gpu-0", "--what-if", "count=1")
    assert "with these changes" in found["answer"]


def test_elsewhere_are_the_nodes_that_are_there(dra: Dra, tmp_path: Path) -> None:
    """The new one is not among them."""
    cluster = nvidia([*node("gpu-0", 4), *node("gpu-1", 2)])
    cluster[3]["spec"]["devices"][0]["attributes"]["productName"] = {"string": "Tesla T4"}
    wanted = {
        "count": 9,
        "selectors": [{"cel": {"expression": 'device.attributes["gpu.nvidia.com"].productName == "NVIDIA L4"'}}],
    }
    found = asked(dra, tmp_path, [*cluster, *pending(wanted)], WITH, "8xL4")
    assert "on new-node, " in found["answer"] and "no eligible node has more than 8" in found["answer"]
    elsewhere = found["answer"].partition("elsewhere, ")[2]
    assert "5 of 6 devices have that, at most 4 on one node" in elsewhere


@pytest.mark.parametrize("spec", [{"nodeSelector": {"zone": "c"}}, {"nodeSelector": {"kubernetes.io/os": "windows"}}])
def test_what_holds_of_all_nodes_is_said_once(dra: Dra, tmp_path: Path, spec: JSON) -> None:
    found = asked(dra, tmp_path, [*FULL, *node("gpu-1", 1), *pending(**spec)], WITH, "gpu-0")
    ((key, value),) = spec["nodeSelector"].items()
    assert found["answer"].endswith(
        f"gpu-0-more would not take the pod: nodeSelector {key}={value} does not match; elsewhere, the same."
    )


def test_a_missing_class_is_said_once(dra: Dra, tmp_path: Path) -> None:
    """Though the nodes that show what it is of are others."""
    there = node("gpu-0", 1)
    there[0]["metadata"]["labels"]["nvidia.com/gpu.present"] = "true"
    there[1]["spec"]["driver"] = "compute-domain.nvidia.com"
    write_cluster(tmp_path / "cluster.json", [*there, *pending({"deviceClassName": "gpu.nvidia.com"})])
    ran = dra("explain", "pod/train", "--snapshot", str(tmp_path / "cluster.json"), WITH, "gpu-0")
    said = ran.flat.partition("class-missing")[0]
    assert "although nodes gpu-0-more have GPUs; elsewhere, the same." in said


def test_a_condition_is_of_the_nodes_that_fit(dra: Dra, tmp_path: Path) -> None:
    """And where one that needs none fits as well, the yes does not rest on it."""
    wanted = {"selectors": [{"cel": {"expression": 'device.attributes["gpu.nvidia.com"].productName == "NVIDIA L4"'}}]}
    pod = pending(wanted)
    pod[1]["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "2"}
    cluster = [*nvidia([*node("gpu-0", 1)]), *running("other", "gpu-0", [0]), *pod]
    for held in (each for each in cluster if each["kind"] == "ResourceClaim" and "status" in each):
        held["status"]["allocation"]["devices"]["results"][0]["driver"] = "gpu.nvidia.com"
    found = asked(dra, tmp_path, cluster, WITH, "8xT4", WITH, "gpu-0")
    assert "with these changes: its claims would fit on 1 node (gpu-0-more)" in found["answer"]
    found = asked(dra, tmp_path, cluster, WITH, "8xL4", WITH, "gpu-0")
    assert "with these changes: its claims would fit on 1 node (gpu-0-more)" in found["answer"]
    assert "new-node would fit as well, if new-node has room for the pod (cpu 2)" in notes(found)
    found = asked(dra, tmp_path, cluster, WITH, "8xT4", WITH, "1xL4")
    assert "if new-node-2 has room for the pod (cpu 2): " in found["answer"]
    found = asked(dra, tmp_path, cluster, WITH, "2xL4", WITH, "1xL4")
    room = "has room for the pod (cpu 2)"
    assert f"if new-node {room}, or new-node-2 {room}: " in found["answer"]


def test_a_node_of_a_file_without_allocatable_has_room_perhaps(dra: Dra, tmp_path: Path) -> None:
    new = node("big", 1)
    del new[0]["status"]["allocatable"]
    write_list(tmp_path / "new.json", new)
    pod = pending()
    pod[1]["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "2"}
    found = asked(dra, tmp_path, [*FULL, *pod], WITH, str(tmp_path / "new.json"))
    assert "with this change, if big has room for the pod (cpu 2): " in found["answer"]
    del pod[1]["spec"]["containers"][0]["resources"]["requests"]
    found = asked(dra, tmp_path, [*FULL, *pod], WITH, str(tmp_path / "new.json"))
    assert "with this change: " in found["answer"]


@pytest.mark.parametrize("flags", [(), ("--max",), ("--replicas", "2")])
@pytest.mark.parametrize("count", ["", ",count=1"])
def test_fit_and_explain_have_the_same_conditions(dra: Dra, tmp_path: Path, count: str, flags: tuple[str, ...]) -> None:
    """Whether or not the number of nodes is looked for."""
    like = nvidia([*node("gpu-0", 1)])
    manifest = [template(), deployment(2, cpu="2")]
    code, report = fitted(tmp_path, like, manifest, *flags, WITH, f"8xL4{count}")
    said = json.dumps(report)
    assert (code, report["items"][0]["verdict"]) == (0, "can-be-scheduled")
    assert "if each has room for " in said or ", if new-node has room for " in report["items"][0]["answer"]
    manifest = [template(), deployment(2, nodeSelector={LABEL_UNKNOWN: "gpu"})]
    code, report = fitted(tmp_path, like, manifest, *flags, WITH, f"8xL4{count}")
    item: Any = report["items"][0]
    assert (code, item["verdict"]) == (3, "undetermined")
    assert item["answer"].endswith(f", if new-node has label {LABEL_UNKNOWN}=gpu.") and item["undetermined"]
    if not flags:
        write_cluster(tmp_path / "cluster.json", [CLASS, *like])
        files = ("-f", str(tmp_path / "manifest.json"), "--snapshot", str(tmp_path / "cluster.json"))
        assert dra("explain", *files, WITH, f"8xL4{count}").code == 3


@pytest.mark.parametrize(
    ("words", "verdict"),
    [
        ("p4d.24xlarge", "cannot-be-scheduled"),
        ("Standard_NC24ads_A100_v4", "cannot-be-scheduled"),
        ("a2-highgpu-1g", "can-be-scheduled"),
        ("a2-ultragpu-1g", "cannot-be-scheduled"),
    ],
)
def test_gke_labels_no_node_of_another_cloud(dra: Dra, tmp_path: Path, words: str, verdict: str) -> None:
    asks = {"cloud.google.com/gke-accelerator": "nvidia-tesla-a100"}
    for spec, told in ((asks, verdict), ({}, "can-be-scheduled")):
        found = asked(dra, tmp_path, [*node("cpu"), *pending(nodeSelector=spec)], WITH, words)
        assert found["verdict"] == told
        if words.startswith(("p4d", "Standard")):
            assert "cloud.google.com" not in json.dumps([each for each in found["notes"] if "is taken to run" in each])


def test_gke_labels_a_node_where_others_show_it(dra: Dra, tmp_path: Path) -> None:
    there = node("cpu")
    assert "cloud.google.com" not in notes(asked(dra, tmp_path, [*there, *pending()], WITH, "1xL4"))
    there[0]["metadata"]["labels"]["cloud.google.com/gke-nodepool"] = "cpu"
    assert "label cloud.google.com/gke-accelerator=nvidia-l4" in notes(
        asked(dra, tmp_path, [*there, *pending()], WITH, "1xL4")
    ).replace("labels ", "label ")


def test_a_new_node_may_be_asked_about_alone(dra: Dra, tmp_path: Path) -> None:
    pod = pending()
    pod[1]["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "2"}
    found = asked(dra, tmp_path, [*FULL, *pod], WITH, "gpu-0", "--node", "gpu-0-more")
    assert (found["verdict"], "(gpu-0-more)" in found["answer"]) == ("can-be-scheduled", True)
    like = nvidia([*node("gpu-0", 1)])
    found = asked(dra, tmp_path, [*like, *pod], WITH, "1xL4", "--node", "new-node")
    assert "if new-node has room for the pod (cpu 2): " in found["answer"]


def test_nothing_helps_a_pod_that_has_its_devices(dra: Dra, tmp_path: Path) -> None:
    write_cluster(tmp_path / "cluster.json", [CLASS, *FULL])
    files = ("--snapshot", str(tmp_path / "cluster.json"))
    ran = dra("explain", "pod/other", *files, WITH, "gpu-0", "--full")
    assert ran.code == 0 and "does not help" not in ran.out


def test_short_text_does_not_repeat_the_flag(dra: Dra, tmp_path: Path) -> None:
    write_cluster(tmp_path / "cluster.json", [CLASS, *FULL, *pending()])
    files = ("pod/train", "--snapshot", str(tmp_path / "cluster.json"))
    told = "supposed: the nodes of --with-node gpu-0"
    assert told not in dra("explain", *files, WITH, "gpu-0").out
    assert told in dra("explain", *files, WITH, "gpu-0", "--full").out
    assert "supposed: count=1" in dra("explain", *files, WITH, "gpu-0", "--what-if", "count=1").out


def test_that_a_new_node_is_not_cordoned_is_said(dra: Dra, tmp_path: Path) -> None:
    cluster = [*node("gpu-0", 1), *pending()]
    told = "gpu-0 is cordoned, which a new node is taken not to be"
    assert told not in notes(asked(dra, tmp_path, cluster, WITH, "gpu-0"))
    cluster[0]["spec"] = {"unschedulable": True}
    found = asked(dra, tmp_path, cluster, WITH, "gpu-0")
    assert (found["verdict"], told in notes(found)) == ("can-be-scheduled", True)


def test_a_claim_that_fits_already_is_told_so(dra: Dra, tmp_path: Path) -> None:
    write_cluster(tmp_path / "cluster.json", [CLASS, *FULL, *node("gpu-1", 1), pending()[0]])
    ran = dra("explain", "claim/gpu", "--snapshot", str(tmp_path / "cluster.json"), WITH, "gpu-0")
    told = "can be allocated without this change: it fits on gpu-1 already, and on gpu-0-more as well"
    assert (ran.code, told in ran.flat) == (0, True)


def test_a_selector_that_fails_everywhere_is_told_once(dra: Dra, tmp_path: Path) -> None:
    """On which device it fails first is no other reason."""
    wanted = {"selectors": [{"cel": {"expression": 'device.attributes["gpu.example.com"].absent == "1"'}}]}
    found = asked(dra, tmp_path, [*node("gpu-0", 1), *pending(wanted)], WITH, "gpu-0")
    assert "fails on device gpu.example.com/gpu-0-more/" in found["answer"]
    assert found["answer"].endswith("; elsewhere, the same.")


@pytest.mark.parametrize("resource", ["example.com/gpu", "nvidia.com/gpu"])
def test_a_resource_is_what_a_device_plugin_offers_there(dra: Dra, tmp_path: Path, resource: str) -> None:
    cluster = json.loads(json.dumps([*plugin_node("n1"), *holding("n1"), *plugin_pod()]).replace(PLUGIN, resource))
    found = asked(dra, tmp_path, cluster, WITH, f"{resource}=8")
    assert (found["verdict"], "new-node" in found["answer"]) == ("can-be-scheduled", True)
    assert f"a device plugin that offers them as {resource} to pods without claims" in notes(found)
    many = json.loads(json.dumps(cluster).replace('"1"', '"9"'))
    assert asked(dra, tmp_path, many, WITH, f"{resource}=8")["verdict"] == "cannot-be-scheduled"


def test_a_class_in_its_place_gives_devices_of_the_driver(dra: Dra, tmp_path: Path) -> None:
    """Then the new node has these, and no device plugin."""
    extended = {**CLASS, "metadata": {"name": "gpu.nvidia.com"}, "spec": {"extendedResourceName": "nvidia.com/gpu"}}
    pod = json.loads(json.dumps(plugin_pod()).replace(PLUGIN, "nvidia.com/gpu"))
    found = asked(dra, tmp_path, [*node("cpu"), extended, *pod], WITH, "nvidia.com/gpu=8", release="1.37")
    assert "a device plugin that offers" not in notes(found)


def test_a_new_node_is_not_told_of_as_if_it_were_there(dra: Dra, tmp_path: Path) -> None:
    """It came at no time, and nobody has seen a driver there."""
    there = node("gpu-0", 1)
    there[0]["metadata"]["creationTimestamp"] = "2026-01-01T00:02:00Z"
    del there[1]
    asking = pending()
    event = {
        "kind": "Event",
        "apiVersion": "v1",
        "metadata": {"name": "e", "namespace": "default"},
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": "train", "uid": "u-train"},
        "reason": "TriggeredScaleUp",
        "message": "pod triggered scale-up: [{gpu 0->1 (max: 3)}]",
        "source": {"component": "cluster-autoscaler"},
        "firstTimestamp": "2026-01-01T00:01:00Z",
        "lastTimestamp": "2026-01-01T00:01:00Z",
    }
    found = asked(dra, tmp_path, [*there, *asking, event], WITH, "gpu-0")
    assert "node gpu-0 has come since" in found["answer"]


def test_a_driver_that_crashes_elsewhere_is_not_seen_on_a_new_node(dra: Dra, tmp_path: Path) -> None:
    container = [{"name": "plugin", "image": "i", "env": [{"name": "DRIVER_NAME", "value": DRIVER}]}]
    crashes = plugin("gpu-0", [status(state=CRASHES, lastState=ENDED)], containers=container)
    cluster = [*FULL, crashes, *pending()]
    found = asked(dra, tmp_path, cluster, WITH, f"driver={DRIVER},devices=2")
    told = f"it would fit on new-node, where pods would not start: driver {DRIVER} crashes on gpu-0, and a new node is"
    assert (found["verdict"], told in found["answer"]) == ("does-not-start", True)


def test_a_file_has_all_slices_of_its_pools(dra: Dra, tmp_path: Path) -> None:
    new = node("big", 1)
    new[1]["spec"]["pool"]["resourceSliceCount"] = 2
    write_list(tmp_path / "new.json", new)
    write_cluster(tmp_path / "cluster.json", [CLASS, *FULL, *pending()])
    ran = dra("explain", "pod/train", "--snapshot", str(tmp_path / "cluster.json"), WITH, str(tmp_path / "new.json"))
    told = "it holds 1 ResourceSlice of pool gpu.example.com/big, whose resourceSliceCount says 2: add what is missing"
    assert ran.code == 2 and told in " ".join(ran.err.split())


def test_what_keeps_the_new_node_off_comes_first(dra: Dra, tmp_path: Path) -> None:
    """Of a workload, too, and where another node alone is in the way."""
    manifest = [template(2), deployment(2, gpus=2, cpu="5")]
    write_list(tmp_path / "manifest.json", json.loads(json.dumps(manifest)))
    write_cluster(tmp_path / "cluster.json", [CLASS, *nvidia(node("gpu-0", 1))])
    files = ("-f", str(tmp_path / "manifest.json"), "--snapshot", str(tmp_path / "cluster.json"))
    ran = dra("explain", *files, WITH, "g6.xlarge")
    told = ran.flat
    assert "new-node would not take the pod: Insufficient cpu: needs 5, 3.94 of 3.94 left; elsewhere, " in told
    broken = node("gpu-1", 1)
    broken[1]["spec"]["pool"]["resourceSliceCount"] = 2
    found = asked(dra, tmp_path, [*FULL, *broken, *pending({"allocationMode": "All"})], WITH, "gpu-0")
    assert "gpu-0-more would take the pod if there were no others; elsewhere, " in found["answer"]


@pytest.mark.parametrize("why", ["placed", "class", "template"])
def test_where_no_node_is_missing_a_new_one_changes_nothing(dra: Dra, tmp_path: Path, why: str) -> None:
    pod = pending()
    if why == "placed":
        pod = [each for each in running("train", "gpu-0", [0]) if each["kind"] == "ResourceClaim"] + pod[1:]
        pod[0]["metadata"]["name"] = "gpu"
        pod[1]["spec"]["nodeName"] = "gpu-0"
    elif why == "class":
        pod = pending({"deviceClassName": "absent"})
    else:
        pod[1]["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "absent"}]
    found = asked(dra, tmp_path, [*node("gpu-0", 1), *pod], WITH, "gpu-0")
    assert "a new node changes nothing: " in notes(found)
    assert "a new node changes nothing" not in notes(asked(dra, tmp_path, [*FULL, *pending()], WITH, "gpu-0"))


def test_a_new_node_that_lacks_a_resource_is_told_of_one_that_has_it(dra: Dra, tmp_path: Path) -> None:
    cluster = [*nvidia(node("n1", 1)), *plugin_pod()]
    cluster[-1]["spec"]["containers"][0]["resources"] = {"requests": {"nvidia.com/gpu": "2"}}
    found = asked(dra, tmp_path, cluster, WITH, "n1,count=2")
    told = "n1-more, n1-more-2 have no nvidia.com/gpu; a node that has it would do: --with-node nvidia.com/gpu=2"
    assert told in notes(found) and "changes nothing" not in notes(found)
    assert asked(dra, tmp_path, cluster, WITH, "nvidia.com/gpu=2")["verdict"] == "can-be-scheduled"
    # Not where something else keeps the pod as well.
    cluster[-1]["spec"]["schedulingGates"] = [{"name": "example.com/wait"}]
    assert "would do" not in notes(asked(dra, tmp_path, cluster, WITH, "n1"))


def test_no_new_node_helps_where_another_pod_uses_the_volume(dra: Dra, tmp_path: Path) -> None:
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
    volume: JSON = {"kind": "PersistentVolumeClaim", "apiVersion": "v1"}
    volume["metadata"] = {"name": "data", "namespace": "default", "uid": "u-data"}
    volume["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
    volume["spec"] = {"accessModes": ["ReadWriteOncePod"], "volumeName": "pv"}
    there: JSON = {"kind": "PersistentVolume", "apiVersion": "v1", "metadata": {"name": "pv", "uid": "u-pv"}}
    there["spec"] = {"accessModes": ["ReadWriteOncePod"], "capacity": {"storage": "1Gi"}, "csi": {"driver": "d"}}
    there["spec"]["claimRef"] = {"namespace": "default", "name": "data", "uid": "u-data"}
    cluster = [*node("n1", 2), volume, there, *running("other", "n1", volumes=volumes), *pending(volumes=volumes)]
    found = asked(dra, tmp_path, cluster, WITH, "n1")
    assert "if there were no others" not in found["answer"] and "(ReadWriteOncePod)" in found["answer"]
    assert "no new node helps: that is so on whatever node" in notes(found)


def test_that_a_new_node_changes_nothing_is_never_cut(dra: Dra, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    ran = of_example(dra, "driver-gone-from-node", "pod/rollout-3", "-n", "ml", WITH, "h100-2")
    assert "Note: a new node changes nothing: the pod has its node" in ran.out


@pytest.mark.parametrize(
    ("flags", "given"),
    [
        ((WITH, "8xL4,count=2"), {"8xL4,count=2": 2}),
        (("--max", WITH, "8xL4"), {"8xL4": 1}),
        ((WITH, "8xL4,count=2", WITH, "1xL4"), {"8xL4,count=2": 2}),
        ((WITH, "8xL4"), {}),
    ],
)
def test_fit_says_with_which_nodes_its_answer_is(
    dra: Dra, tmp_path: Path, flags: tuple[str, ...], given: dict[str, int]
) -> None:
    _, report = fitted(tmp_path, nvidia(node("gpu-0", 1)), [template(), deployment(3)], *flags)
    nodes = report.get("givenNodes", {"additions": []})["additions"]
    assert {each["withNode"]: each["number"] for each in nodes} == given
    ran = dra("fit", "-f", str(tmp_path / "manifest.json"), "--snapshot", str(tmp_path / "cluster.json"), *flags)
    assert all(f"With {number} new node" in ran.out and f"({typed})" in ran.out for typed, number in given.items())


# ``--with-node``: what nobody knows of a new node is never decided, and what the catalogue knows is.


YES, NO, OPEN = "can-be-scheduled", "cannot-be-scheduled", "undetermined"


def required(*terms: list[tuple[str, str, list[str]]]) -> JSON:
    """Node affinity with these terms."""
    made = [{"matchExpressions": [_expression(*each) for each in term]} for term in terms]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": made}}}


def _expression(key: str, operator: str, values: list[str]) -> JSON:
    return {"key": key, "operator": operator, **({"values": values} if values else {})}


@pytest.mark.parametrize(
    ("words", "arch"),
    [
        ("4xGB200", "arm64"),
        ("4xGB300", "arm64"),
        ("1xGH200", "arm64"),
        ("a4x-highgpu-4g", "arm64"),
        ("p6e-gb200.36xlarge", "arm64"),
        ("g5g.xlarge", "arm64"),
        ("8xB200", "amd64"),
        ("p5.48xlarge", "amd64"),
        ("1xT4", "amd64"),
    ],
)
def test_grace_and_graviton_are_arm64(dra: Dra, tmp_path: Path, words: str, arch: str) -> None:
    for key in ("kubernetes.io/arch", "beta.kubernetes.io/arch"):
        for value in ("arm64", "amd64"):
            found = asked(dra, tmp_path, [*node("cpu"), *pending(nodeSelector={key: value})], WITH, words)
            assert found["verdict"] == (YES if value == arch else NO), (key, value)
    assert f"Linux on {arch}" in notes(found)


@pytest.mark.parametrize(
    ("words", "cpu", "memory", "told"),
    [
        ("g4dn.xlarge", "4", "1Gi", None),
        ("g4dn.xlarge", "1", "16Gi", None),
        ("g4dn.xlarge", "3900m", "15Gi", True),
        ("g4dn.xlarge", "3", "12Gi", False),
        ("a3-highgpu-1g", "26", "1Gi", None),
        ("a3-highgpu-1g", "25", "1Gi", True),
        ("a3-highgpu-1g", "20", "187Gi", False),
        ("a3-highgpu-1g", "27", "1Gi", None),
    ],
)
def test_of_a_machine_pods_get_less_than_all(
    dra: Dra, tmp_path: Path, words: str, cpu: str, memory: str, told: bool | None
) -> None:
    """A request near its whole size is no plain yes; one of all of it is a no."""
    pod = pending()
    pod[1]["spec"]["containers"][0]["resources"]["requests"] = {"cpu": cpu, "memory": memory}
    found = asked(dra, tmp_path, [*node("cpu"), *pod], WITH, words)
    assert found["verdict"] == (NO if told is None else YES)
    assert (f"has room for the pod (cpu {cpu}, memory {memory})" in found["answer"]) is (told is True)


def test_pods_of_one_machine_are_summed_up(dra: Dra, tmp_path: Path) -> None:
    for cpu, told, number in (("11", True, 1), ("9", False, 1), ("12", False, 2)):
        manifest = [template(), deployment(4, cpu=cpu)]
        code, report = fitted(tmp_path, nvidia(node("cpu")), manifest, WITH, "g6.12xlarge")
        assert (code, report["newNodes"]["number"]) == (0, number)
        assert ("has room for 4 pods (cpu 44)" in str(report["newNodes"])) is told


@pytest.mark.parametrize(
    ("terms", "verdict", "told"),
    [
        ([[("pool", "Gt", ["4"])]], OPEN, "has label pool Gt (4) is not known; add label:pool=VALUE if it has"),
        ([[("pool", "Lt", ["4"])]], OPEN, "label:pool=VALUE"),
        ([[("pool", "Exists", [])]], OPEN, "has label pool is not known; add label:pool=VALUE if it has"),
        ([[("pool", "In", ["a"])], [("team", "In", ["b"])]], OPEN, "add label:pool=a"),
        ([[("kubernetes.io/arch", "In", ["arm64"])], [("pool", "In", ["b"])]], OPEN, "add label:pool=b"),
        ([[("pool", "In", ["b"])], [("kubernetes.io/arch", "In", ["amd64"])]], OPEN, "add label:pool=b"),
        ([[("kubernetes.io/arch", "In", ["arm64"])], [("kubernetes.io/os", "In", ["windows"])]], NO, ""),
        ([[("pool", "NotIn", ["cpu"])]], YES, "no label pool=cpu:"),
        ([[("pool", "DoesNotExist", [])]], YES, "no label pool:"),
        ([[("nvidia.com/gpu.memory", "Gt", ["16384"])]], YES, ""),
        ([[("nvidia.com/gpu.memory", "Gt", ["90000"])]], NO, ""),
        ([[("nvidia.com/gpu.memory", "Lt", ["60000"])]], OPEN, "label:nvidia.com/gpu.memory=VALUE"),
        ([[("nvidia.com/gpu.compute.major", "In", ["8"])]], YES, ""),
        ([[("nvidia.com/gpu.family", "In", ["hopper"])]], NO, ""),
    ],
)
def test_labels_that_nobody_knows(dra: Dra, tmp_path: Path, terms: Any, verdict: str, told: str) -> None:
    """A100 has 40 or 80 GB, and is Ampere."""
    found = asked(dra, tmp_path, [*node("cpu"), *pending(affinity=required(*terms))], WITH, "8xA100")
    assert (found["verdict"], told in found["answer"] + " ".join(found.get("undetermined") or [])) == (verdict, True)


def spread() -> JSON:
    labels = {"matchLabels": {"app": "web"}}
    wanted = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": labels}
    return {"topologySpreadConstraints": [wanted]}


def apart() -> JSON:
    term = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": ZONE}
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


@pytest.mark.parametrize("spec", [spread(), apart()], ids=["spread", "anti-affinity"])
@pytest.mark.parametrize("count", ["", ",count=2"])
def test_a_domain_that_nobody_knows_leaves_fit_open(dra: Dra, tmp_path: Path, spec: JSON, count: str) -> None:
    manifest = [template(), deployment(2, **spec)]
    code, report = fitted(tmp_path, nvidia(node("n")), manifest, WITH, f"p5.48xlarge{count}")
    assert (code, report["items"][0]["verdict"]) == (3, OPEN)
    assert f"add label:{ZONE}=VALUE" in str(report["notes"])
    code, report = fitted(tmp_path, nvidia(node("n")), manifest, WITH, f"p5.48xlarge,label:{ZONE}=z{count}")
    assert code == (0 if spec == spread() else 1)


def test_no_number_rests_on_a_domain_that_nobody_knows(dra: Dra, tmp_path: Path) -> None:
    """How many it takes is told once the zone is said, by a command with one of the cluster."""
    cluster = nvidia([*node("a", zone="z1"), *node("b", zone="z2")])
    _, report = fitted(tmp_path, cluster, [template(), deployment(2, **spread())], WITH, "p5.48xlarge")
    assert "newNodes" not in report
    files = ("-f", str(tmp_path / "manifest.json"), "--snapshot", str(tmp_path / "cluster.json"))
    told = dra("fit", *files, WITH, "p5.48xlarge").flat
    depends = f"depends on label {ZONE} of each, which is not known; those here have z1, z2. $ kubectl dra fit"
    assert depends in told and f"{WITH} p5.48xlarge,label:{ZONE}=z1 " in told and "It takes" not in told
    # Of nodes without zones there is none to propose.
    fitted(tmp_path, nvidia(node("a")), [template(), deployment(2, **spread())], WITH, "p5.48xlarge")
    told = dra("fit", *files, WITH, "p5.48xlarge").flat
    assert "of each, which is not known. Both" in told and f"label:{ZONE}=z" not in told


def test_a_domain_is_no_matter_where_no_pod_is_meant(dra: Dra, tmp_path: Path) -> None:
    (other,) = running("other", "cpu")
    for labels, verdict in (({"app": "web"}, OPEN), ({"app": "db"}, YES)):
        other["metadata"]["labels"] = labels
        found = asked(dra, tmp_path, [*node("cpu", zone="a"), other, *pending(**apart())], WITH, "1xL4")
        assert found["verdict"] == verdict
    # Nor where the devices do not do anyway.
    other["metadata"]["labels"] = {"app": "web"}
    found = asked(dra, tmp_path, [*node("cpu", zone="a"), other, *pending({"count": 2}, **apart())], WITH, "1xL4")
    assert found["verdict"] == NO


def test_a_label_of_another_size_is_not_taken_over(dra: Dra, tmp_path: Path) -> None:
    key = "cloud.google.com/gke-tpu-topology"
    there = node("tpu", 4, pods="0")
    there[0]["metadata"]["labels"] |= {key: "2x2", "pool": "small"}
    there[1]["spec"]["driver"] = "tpu.google.com"
    for device in there[1]["spec"]["devices"]:
        device["attributes"] = {"accelerator": {"string": "tpu-v6e-slice"}, "topology": {"string": "2x2"}}
    wanted = {"allocationMode": "All"}
    for label, value in ((key, "2x2"), (key, "2x4"), ("pool", "small")):
        pod = pending(wanted, nodeSelector={label: value})
        found = asked(dra, tmp_path, [*there, *pod], WITH, "ct6e-standard-8t")
        assert found["verdict"] == OPEN
    found = asked(dra, tmp_path, [*there, *pending(wanted, nodeSelector={key: "2x2"})], WITH, "ct6e-standard-4t")
    assert found["verdict"] == YES


@pytest.mark.parametrize(
    ("words", "value", "verdict"),
    [
        ("p5.48xlarge", "nvidia-h100-80gb", NO),
        ("a3-highgpu-8g", "nvidia-h100-80gb", YES),
        ("a3-highgpu-8g", "nvidia-h100-mega-80gb", NO),
        ("a3-megagpu-8g", "nvidia-h100-mega-80gb", YES),
        ("8xH100", "nvidia-h100-80gb", OPEN),
    ],
)
def test_a_cloud_labels_its_own_machines(dra: Dra, tmp_path: Path, words: str, value: str, verdict: str) -> None:
    pod = pending(nodeSelector={"cloud.google.com/gke-accelerator": value})
    assert asked(dra, tmp_path, [*node("cpu"), *pod], WITH, words)["verdict"] == verdict


@pytest.mark.parametrize(("label", "code"), [("x=", 0), ("zone=a b", 2), ("-x=1", 2), ("a/b/c=1", 2)])
def test_a_label_is_one_that_a_node_may_have(dra: Dra, tmp_path: Path, label: str, code: int) -> None:
    asked(dra, tmp_path, [*node("gpu-0", 1), *pending()])
    ran = dra("explain", "pod/train", "--snapshot", str(tmp_path / "cluster.json"), WITH, f"gpu-0,label:{label}")
    assert ran.code == code and ("is no label: " in ran.err) is bool(code)


# What ``--with-node`` refuses, and what it proposes in place of that.


def said(ran: Ran) -> str:
    return " ".join(ran.err.split())


def proposed(ran: Ran) -> list[str]:
    """The values of the flag in the commands that an error proposes."""
    lines = [line.partition(": kubectl dra ")[2] for line in ran.err.splitlines() if ": kubectl dra " in line]
    return [words[words.index(WITH) + 1] for words in map(shlex.split, lines)]


@pytest.mark.parametrize(
    ("example", "words", "asks", "lacking", "like"),
    [
        ("compute-domain-one-per-node", "4xGB200", ("pod/nccl-0", "-n", "ml"), "compute-domain.nvidia.com", "gb200-1"),
        ("nic-gpu-pcie-root", "8xH100", (), "dra.net", "dgx-1"),
    ],
)
def test_words_say_nothing_of_another_driver(
    dra: Dra, example: str, words: str, asks: tuple[str, ...], lacking: str, like: str
) -> None:
    """Where the claims need devices of two, no answer about one means anything."""
    asks = asks or ("-f", str(EXAMPLES / example / "manifest.yaml"))
    ran = of_example(dra, example, *asks, WITH, words)
    assert (ran.code, proposed(ran)) == (2, [like])
    assert f"need devices of {lacking} too" in said(ran) and "of which words say nothing" in said(ran)
    assert of_example(dra, example, *asks, WITH, like).code in (0, 1)


def test_an_example_is_of_the_kind_that_is_asked_for(dra: Dra) -> None:
    asks = ("-f", str(EXAMPLES / "mig-profile-missing" / "manifest.yaml"))
    ran = of_example(dra, "mig-profile-missing", *asks, WITH, "8xH100")
    assert (ran.code, proposed(ran)) == (2, ["8xH100,type=mig,profile=3g.40gb"])
    assert of_example(dra, "mig-profile-missing", *asks, WITH, *proposed(ran)).code == 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("8xA100,type=mig,profile=3g.40gb", "NVIDIA A100-SXM4-40GB has no profile 3g.40gb; its profiles are 1g.5gb, "),
        ("8xH200", "read profile of devices"),
        ("8xL4", "read profile of devices"),
        ("8xA100,type=mig", "read profile of devices"),
        ("8xL4,type=mig,profile=3g.40gb", "NVIDIA L4 has no partitions (MIG)"),
        ("a100-mig-1,profile=3g.40gb", "NVIDIA A100-SXM4-40GB has no profile 3g.40gb; its profiles are 1g.5gb, "),
    ],
)
def test_partitions_are_those_of_the_product(dra: Dra, words: str, told: str) -> None:
    """What a GPU cannot be cut into is neither taken nor proposed."""
    asks = ("-f", str(EXAMPLES / "mig-profile-missing" / "manifest.yaml"))
    ran = of_example(dra, "mig-profile-missing", *asks, WITH, words)
    assert ran.code == 2 and told in said(ran)
    first = proposed(ran)[0]
    assert "product=NVIDIA A100 80GB PCIe" in first and "profile=3g.40gb" in first
    assert of_example(dra, "mig-profile-missing", *asks, WITH, first).code == 0


@pytest.mark.parametrize("command", ["explain", "fit"])
@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("Node", "so whether there is a Node a100-mig-1 is unknown"),
        ("ResourceSlice", "so which devices node a100-mig-1 has is unknown"),
    ],
)
def test_what_was_not_read_of_a_node_is_not_denied(
    dra: Dra, tmp_path: Path, command: str, kind: str, told: str
) -> None:
    example = EXAMPLES / "mig-profile-missing"
    cluster = yaml.safe_load((example / "cluster.yaml").read_text())
    cluster["items"] = [item for item in cluster["items"] if item["kind"] != kind]
    cluster["kubectl-dra"]["read"].remove(kind)
    (tmp_path / "cluster.json").write_text(json.dumps(cluster))
    words = "a100-mig-1,profile=3g.20gb"
    asks = ("-f", str(example / "manifest.yaml"), "--snapshot", str(tmp_path / "cluster.json"), WITH, words)
    ran = dra(command, *asks)
    assert (ran.code, said(ran).count(words)) == (3, 1) and told in said(ran)


NVIDIA = catalogue().drivers["gpu.nvidia.com"]


@pytest.mark.parametrize("form", ["product={product},devices=8,type=mig,profile={profile}", "a100-mig-1,{both}"])
@pytest.mark.parametrize("profile", ["1g.5gb", "3g.40gb", "4g.24gb"])
def test_each_product_is_taken_with_the_partitions_that_it_can_have(dra: Dra, form: str, profile: str) -> None:
    """In words and for one more node like another: refused is just what the catalogue says cannot be."""
    asks = ("-f", str(EXAMPLES / "mig-profile-missing" / "manifest.yaml"))
    for product in NVIDIA.product_names:
        words = form.format(product=product, profile=profile, both=f"product={product},profile={profile}")
        refused = of_example(dra, "mig-profile-missing", *asks, WITH, words).code == 2
        assert refused is (NVIDIA.has_mig_profile(product, profile) is False), words


def test_other_products_of_the_name_have_the_partition(dra: Dra) -> None:
    asks = ("-f", str(EXAMPLES / "mig-profile-missing" / "manifest.yaml"))
    assert of_example(dra, "mig-profile-missing", *asks, WITH, "8xH100,type=mig,profile=3g.40gb").code == 0


def new_node(change: JSON) -> str:
    made = node("new", 1)
    made[1]["spec"] |= change
    return json.dumps({"kind": "List", "apiVersion": "v1", "items": made})


@pytest.mark.parametrize("command", ["explain", "fit"])
@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"drivr": "gpu.example.com"}, "spec.drivr: there is no field 'drivr' here; did you mean 'driver'?"),
        ({"driver": ""}, "spec.driver: must be set"),
        ({"devices": [{"name": "GPU_0"}]}, "spec.devices[0].name: "),
    ],
)
def test_what_no_server_stores_is_no_node(dra: Dra, tmp_path: Path, command: str, change: JSON, told: str) -> None:
    (tmp_path / "new.json").write_text(new_node(change))
    pod = pending()[1]
    del pod["spec"]["resourceClaims"], pod["spec"]["containers"][0]["resources"]
    (tmp_path / "pod.json").write_text(json.dumps(pod))
    write_cluster(tmp_path / "cluster.json", [CLASS, *FULL])
    files = ("-f", str(tmp_path / "pod.json"), "--snapshot", str(tmp_path / "cluster.json"))
    ran = dra(command, *files, WITH, str(tmp_path / "new.json"))
    assert ran.code == 2 and f"ResourceSlice new is not valid: {told}" in said(ran)
    (tmp_path / "new.json").write_text(new_node({}))
    assert dra(command, *files, WITH, str(tmp_path / "new.json")).code == 0


@pytest.mark.parametrize("typed", ["trn1.32xlarge", "m5.metal", "n1-standard-8", "Standard_D4s_v5"])
def test_a_machine_type_that_is_not_known_is_called_one(dra: Dra, typed: str) -> None:
    ran = of_example(dra, "no-device-matches", "pod/train-0", "-n", "ml", WITH, typed)
    assert (ran.code, proposed(ran)) == (2, ["gpu-1"])
    assert "as a machine type it is not in the catalogue: write which devices it has (8xH100), or a file" in said(ran)


def test_which_number_is_looked_for_can_be_pasted(dra: Dra, tmp_path: Path) -> None:
    (tmp_path / "pod.json").write_text(json.dumps(pending()[1]))
    write_cluster(tmp_path / "cluster.json", [CLASS, *FULL, *node("gpu-1", 1), pending()[0]])
    files = ("-f", str(tmp_path / "pod.json"), "--snapshot", str(tmp_path / "cluster.json"))
    ran = dra("fit", *files, WITH, "gpu-0", WITH, "gpu-1")
    assert ran.code == 2 and f"{WITH} gpu-0 {WITH} gpu-1,count=1" in ran.err
    assert dra("fit", *files, WITH, "gpu-0", WITH, "gpu-1,count=1").code == 0


@pytest.mark.parametrize(
    ("typed", "instead"),
    [
        ("driver=gpu.example.com,device=8", "driver=gpu.example.com,devices=8"),
        ("gpu-0,labels:zone=c", "gpu-0,label:zone=c"),
        ("a3-highgpu-9g", "a3-highgpu-8g"),
        ("a2-highgpu-3g", "a2-highgpu-2g"),
        ("8xFOO", "driver=gpu.example.com,devices=8"),
        ("devices=1", "driver=gpu.example.com,devices=1"),
        ("count=3", "driver=gpu.example.com,devices=8,count=3"),
    ],
)
def test_what_is_proposed_is_near_and_of_the_cluster(dra: Dra, tmp_path: Path, typed: str, instead: str) -> None:
    write_cluster(tmp_path / "cluster.json", [CLASS, *FULL, *pending()])
    ran = dra("explain", "pod/train", "--snapshot", str(tmp_path / "cluster.json"), WITH, typed)
    assert (ran.code, proposed(ran)) == (2, [instead])
    assert dra("explain", "pod/train", "--snapshot", str(tmp_path / "cluster.json"), WITH, instead).code in (0, 1)


def test_of_a_driver_that_is_there_no_other_one_is_meant(dra: Dra, tmp_path: Path) -> None:
    there = json.loads(json.dumps([*FULL, *pending()]).replace("gpu.example.com", "nic.example.com"))
    write_cluster(tmp_path / "cluster.json", [CLASS, *there])
    files = ("--snapshot", str(tmp_path / "cluster.json"))
    ran = dra("explain", "pod/train", *files, WITH, "driver=nic.example.com,devices=2")
    assert (ran.code, proposed(ran)) == (2, ["gpu-0"]) and "did you mean" not in ran.err
