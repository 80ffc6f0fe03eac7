"""``--with-node``: what nobody knows of a new node is never decided, and what the catalogue knows is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Dra
from tests.cli.test_explain_with_node import JSON, asked, notes, nvidia, pending
from tests.cli.test_with_node_answers import WITH
from tests.fit.worlds import ZONE, deployment, fitted, node, running, template

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
