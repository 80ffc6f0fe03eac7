"""``kubectl dra devices`` from files."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_dra.cli.completion.answer import FILES, NO_FILES, complete
from tests.cli.conftest import EXAMPLES, Dra, Ran, cluster_of

Json = dict[str, Any]
API = "resource.k8s.io/v1"
DRIVER = "gpu.example.com"
NO_CLAIMS = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimList", "items": []}
"""What ``kubectl get resourceclaims -A -o yaml`` comes to in a cluster without any."""
UNSEEN = "there is no ResourceClaim in what was read, so which devices are held is unknown"
OPEN = f"{UNSEEN}; if the cluster has none, add --complete"
NO_RULES = {"apiVersion": "resource.k8s.io/v1beta2", "kind": "DeviceTaintRuleList", "items": []}


def listed(ran: Ran) -> dict[str, Json]:
    """The devices of a JSON answer by pool/device; the answer is as the schema says."""
    answer = ran.valid("devices")
    assert answer["summary"]["devices"] == len(answer["items"]) == sum(answer["summary"]["states"].values())
    return {f"{item['pool']}/{item['device']}": item for item in answer["items"]}


def gpu(name: str, model: str = "a", **fields: Any) -> Json:
    return {"name": name, "attributes": {"model": {"string": model}}, **fields}


def slice_of(name: str, devices: list[Json], count: int = 1, generation: int = 1, pool: str = "", **spec: Any) -> Json:
    spec = spec or {"nodeName": name}
    at = {"name": pool or name, "generation": generation, "resourceSliceCount": count}
    return {
        "apiVersion": API,
        "kind": "ResourceSlice",
        "metadata": {"name": f"{name}-slice-{generation}"},
        "spec": {"driver": DRIVER, "pool": at, "devices": devices, **spec},
    }


def node(name: str, **labels: str) -> Json:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}


def device_class(name: str, *selectors: str) -> Json:
    spec = {"selectors": [{"cel": {"expression": text}} for text in selectors]}
    return {"apiVersion": API, "kind": "DeviceClass", "metadata": {"name": name}, "spec": spec}


def held(name: str, *results: Json, pods: tuple[str, ...] = ()) -> Json:
    return {
        "apiVersion": API,
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "ml"},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}},
        "status": {
            "reservedFor": [{"resource": "pods", "name": pod, "uid": pod} for pod in pods],
            "allocation": {
                "devices": {"results": [{"request": "r", "driver": DRIVER, **result} for result in results]}
            },
        },
    }


def rule(name: str, effect: str = "NoSchedule", **selector: str) -> Json:
    taint = {"key": "example.com/maintenance", "effect": effect}
    return {
        "apiVersion": "resource.k8s.io/v1beta2",
        "kind": "DeviceTaintRule",
        "metadata": {"name": name},
        "spec": {"deviceSelector": {"driver": DRIVER, **selector}, "taint": taint},
    }


SHARE = "4f2b6cde-7a39-4a5e-9d7c-8a6b1c2d3e4f"
CLUSTER = [
    node("n1"),
    node("n2", zone="east"),
    node("n3"),
    slice_of("n1", [gpu("gpu-0"), gpu("gpu-1"), gpu("gpu-2", "b")]),
    slice_of(
        "n2",
        [
            gpu("gpu-0", "shared", allowMultipleAllocations=True, capacity={"memory": {"value": "40Gi"}}),
            gpu("gpu-1", taints=[{"key": "broken", "value": "xid", "effect": "NoExecute"}]),
            gpu("gpu-2", taints=[{"key": "noted", "effect": "None"}]),
        ],
    ),
    slice_of("n3", [gpu("gpu-0")], count=2),
    slice_of("gone", [gpu("gpu-0")]),
    slice_of("fabric", [gpu("nic-0", "nic")], allNodes=True),
    device_class("gpu", f'device.driver == "{DRIVER}"', f'device.attributes["{DRIVER}"].model != "nic"'),
    device_class("picky", f'device.attributes["{DRIVER}"].memory == "x"'),
    device_class("broken", "device.drivr == 1"),
    held("train", {"pool": "n1", "device": "gpu-0"}, pods=("train-0", "train-1")),
    held("idle", {"pool": "n1", "device": "gpu-1"}),
    held("watch", {"pool": "n1", "device": "gpu-2", "adminAccess": True}, pods=("watch-0",)),
    held(
        "part",
        {"pool": "n2", "device": "gpu-0", "shareID": SHARE, "consumedCapacity": {"memory": "10Gi"}},
        pods=("part-0",),
    ),
    rule("r1", pool="n1", device="gpu-2"),
]


@pytest.fixture
def cluster(tmp_path: Path) -> str:
    # With any Pod the file has those of the cluster: none of a driver that is unwell.
    other = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "other", "namespace": "ml", "uid": "other"}}
    (tmp_path / "cluster.yaml").write_text(yaml.safe_dump_all([*CLUSTER, other]))
    return "cluster.yaml"


@pytest.mark.parametrize("count", [3, 4])
def test_slices_that_the_release_leaves_out(dra: Dra, tmp_path: Path, count: int) -> None:
    gate = "DRADeviceCompatibilityGroups"
    draws = [{"counterSet": "card", "counters": {"memory": {"value": "1"}}, "compatibilityGroups": ["mig"]}]
    sets = [{"name": "card", "counters": {"memory": {"value": "8"}}}]
    objects = [
        node("n1"),
        slice_of("n1", [gpu("mig-0", consumesCounters=draws)], count),
        {**slice_of("n1", [gpu("gpu-0")], count), "metadata": {"name": "n1-plain"}},
        {**slice_of("n1", [], count, nodeName="n1", sharedCounters=sets), "metadata": {"name": "n1-sets"}},
    ]
    (tmp_path / "groups.yaml").write_text(yaml.safe_dump_all(objects))
    given = ("--snapshot", "groups.yaml", "--kubernetes-version", "1.37", "-o", "json")
    devices = listed(dra("devices", *given, "--feature-gates", f"{gate}=false"))
    assert devices["n1/mig-0"]["reason"] == f"its slice has compatibility groups, and the feature {gate} is off"
    why = f"the pool is incomplete: 2 of {count} slices; 1 more has compatibility groups, and the feature {gate} is off"
    assert devices["n1/gpu-0"]["reason"] == why
    # What is stored shows that the gate is on, unless somebody says otherwise.
    assert {item["reason"] for item in listed(dra("devices", *given)).values()} == (
        {OPEN if count == 3 else "the pool is incomplete: 3 of 4 slices"}
    )


def test_states_holders_and_reasons(dra: Dra, cluster: str) -> None:
    ran = dra("devices", "--snapshot", cluster, "-o", "json")
    assert ran.code == 0 and not ran.err
    devices = listed(ran)
    assert {name: item["state"] for name, item in devices.items()} == {
        "fabric/nic-0": "free",
        "gone/gpu-0": "unusable",
        "n1/gpu-0": "held",
        "n1/gpu-1": "held",
        "n1/gpu-2": "tainted",
        "n2/gpu-0": "shared",
        "n2/gpu-1": "tainted",
        "n2/gpu-2": "free",
        "n3/gpu-0": "unusable",
    }
    assert devices["n3/gpu-0"]["reason"] == "the pool is incomplete: 1 of 2 slices"
    assert devices["gone/gpu-0"]["reason"] == "there is no node gone"
    pods = [{"resource": "pods", "name": "train-0"}, {"resource": "pods", "name": "train-1"}]
    assert devices["n1/gpu-0"]["heldBy"] == [{"namespace": "ml", "name": "train", "consumers": pods}]
    assert devices["n1/gpu-1"]["heldBy"][0]["consumers"] == []
    assert devices["n1/gpu-2"]["heldBy"] == []
    assert devices["n2/gpu-0"]["capacity"] == {"memory": {"value": "40Gi", "consumed": "10Gi"}}
    assert devices["n2/gpu-0"]["reason"] == "memory 10Gi of 40Gi used"
    assert devices["n1/gpu-2"]["taints"][0]["owner"] == {"kind": "DeviceTaintRule", "name": "r1"}
    assert devices["n2/gpu-1"]["taints"][0]["owner"] == {"kind": "ResourceSlice", "name": "n2-slice-1"}
    assert devices["fabric/nic-0"]["where"] == "all nodes" and devices["fabric/nic-0"]["nodeCount"] == 3
    assert "node" not in devices["fabric/nic-0"] and devices["n1/gpu-0"]["node"] == "n1"
    assert devices["fabric/nic-0"]["classes"] == [] and devices["n1/gpu-0"]["classes"] == ["gpu"]
    notes = ran.json["notes"]
    assert any("DeviceClass broken" in note and "compile" in note for note in notes)
    assert any("DeviceClass picky fails on 9 devices" in note for note in notes)


SUMMARY = "9 devices on 3 nodes: 2 free, 1 shared, 2 held, 2 tainted, 2 unusable"


def test_alike_devices_share_a_row(dra: Dra, cluster: str) -> None:
    ran = dra("devices", "--snapshot", cluster)
    first, empty, header, *rows = ran.out.splitlines()
    assert (first, empty) == (SUMMARY, "")
    assert header.split("   ")[0] == "NODE (POOL)" and "CLASS (DRIVER)" in header
    table = [tuple(re.split(" {3,}", row)) for row in rows[: rows.index("")]]
    assert table == [
        ("all nodes (fabric)", "- (gpu.example.com)", "nic", "1 free", "nic-0", "-"),
        ("gone", "gpu (gpu.example.com)", "a", "1 unusable", "gpu-0", "there is no node gone"),
        (
            "n1",
            "gpu (gpu.example.com)",
            "a",
            "2 held",
            "gpu-0,1",
            "held by ml/idle (unused), ml/train (pod train-0 and 1 more)",
        ),
        (
            "n1",
            "gpu (gpu.example.com)",
            "b",
            "1 tainted",
            "gpu-2",
            "example.com/maintenance:NoSchedule (DeviceTaintRule r1)",
        ),
        (
            "n2",
            "gpu (gpu.example.com)",
            "shared",
            "1 shared",
            "gpu-0",
            "held by ml/part (pod part-0); memory 10Gi of 40Gi used",
        ),
        ("n2", "gpu (gpu.example.com)", "a", "1 tainted", "gpu-1", "broken=xid:NoExecute (driver)"),
        ("n2", "gpu (gpu.example.com)", "a", "1 free", "gpu-2", "tainted with noted:None (driver)"),
        ("n3", "gpu (gpu.example.com)", "a", "1 unusable", "gpu-0", "the pool is incomplete: 1 of 2 slices"),
    ]
    assert rows[-1] == "Each device: kubectl dra devices --full --snapshot cluster.yaml"
    assert "note: DeviceClass broken" in ran.err and "DeviceClass broken" not in ran.out


def test_a_row_for_each_device(dra: Dra, cluster: str) -> None:
    first, _, header, *rows = dra("devices", "--snapshot", cluster, "--full").out.splitlines()
    assert first == SUMMARY and len(rows) == 9
    column = header.index("STATE")
    assert {line[column:].split()[0] for line in rows} == {"free", "shared", "held", "tainted", "unusable"}
    wide = dra("devices", "--snapshot", cluster, "-o", "wide").out
    assert wide.splitlines()[2].split()[-3:] == ["CAPACITY", "TAINTS", "ATTRIBUTES"]
    assert "memory=10Gi/40Gi" in wide and "model=shared" in wide
    assert "example.com/maintenance:NoSchedule (DeviceTaintRule r1)" in wide and "broken=xid:NoExecute (driver)" in wide


def test_wide_has_all_attributes(dra: Dra, tmp_path: Path) -> None:
    """Those that say what the device is come first; two of one name have their domains."""
    known = {f"a-{number}": {"int": number} for number in range(9)}
    same = {"x.example/type": {"string": "left"}, "z.example/type": {"string": "right"}}
    device = {"name": "gpu-0", "attributes": {**known, **same, "productName": {"string": "Best GPU"}}}
    (tmp_path / "cluster.yaml").write_text(yaml.safe_dump_all([node("n1"), slice_of("n1", [device]), NO_CLAIMS]))
    *_, row = dra("devices", "--snapshot", "cluster.yaml", "-o", "wide").out.splitlines()
    shown = row.split("   ")[-1].strip().split(",")
    assert shown[0] == "productName=Best GPU" and len(shown) == 12
    assert {"a-8=8", "x.example/type=left", "z.example/type=right"} <= {*shown}


@pytest.mark.parametrize("columns", [60, 80, 120, 200])
def test_many_devices_take_few_lines(dra: Dra, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    """Nodes with alike devices share rows; a long reason takes a line of its row alone."""
    objects: list[Json] = [NO_CLAIMS]
    for number in range(300):
        objects += [node(f"n{number}"), slice_of(f"n{number}", [gpu(f"gpu-{index}") for index in range(8)])]
        count = number % 3
        results = [{"pool": f"n{number}", "device": f"gpu-{index}"} for index in range(count)]
        objects += [held(f"claim-{number}", *results, pods=(f"a-rather-long-name-of-a-pod-{number}",))] if count else []
    (tmp_path / "many.yaml").write_text(yaml.safe_dump_all(objects))
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = dra("devices", "--snapshot", "many.yaml", "--complete").out.splitlines()
    assert len(lines) <= 20 and lines[0] == "2,400 devices on 300 nodes: 2,100 free, 300 held"
    assert all(len(line) <= columns for line in lines[:-1])
    assert any(line.startswith("n1 and 99 alike") and "1 held each" in line for line in lines)
    assert any("held by 100 claims of namespace ml" in line for line in lines)
    rows = dra("devices", "--snapshot", "many.yaml", "--complete", "--full").out.splitlines()[3:]
    assert sum(not row.startswith(" ") for row in rows) == 2400


def test_the_example_takes_few_lines(dra: Dra, monkeypatch: pytest.MonkeyPatch) -> None:
    for columns in (80, 120, 160):
        monkeypatch.setenv("COLUMNS", str(columns))
        ran = dra("devices", "--snapshot", cluster_of("mixed-fleet"))
        shown = [line for line in ran.out.splitlines() if not line.startswith("Left out for want of room: ")]
        assert ran.out.startswith("46 devices on 4 nodes") and len(shown) < 20


@pytest.mark.parametrize(
    ("example", "heading", "said"),
    [
        ("nic-gpu-pcie-root", "NODE CLASS STATE NAMES", "DRIVER"),
        ("mixed-fleet", "NODE CLASS STATE NAMES", "MODEL"),
        ("scale-from-zero", "NODE MODEL STATE NAMES", "CLASS, which is gpu.nvidia.com in all rows"),
    ],
)
def test_the_class_stays_where_it_tells_rows_apart(
    dra: Dra, monkeypatch: pytest.MonkeyPatch, example: str, heading: str, said: str
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = dra("devices", "--snapshot", cluster_of(example)).out.splitlines()
    assert lines[2].split() == heading.split()
    assert f"Left out for want of room: {said}" in lines
    assert all(len(line) <= 80 for line in lines[:-1])


@pytest.mark.parametrize("columns", [60, 80])
def test_a_model_is_whole_where_it_has_a_line(dra: Dra, monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = dra("devices", "--snapshot", cluster_of("mixed-fleet")).out.splitlines()
    below = [line.strip() for line in lines if line.startswith("    model: ")]
    assert bool(below) is (columns == 60)
    assert not below or "model: AMD_Instinct_MI300X_OAM spx nps1" in below


def test_a_holder_and_a_reason_are_told_of_their_devices_alone(dra: Dra, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = dra("devices", "--snapshot", cluster_of("pool-incomplete")).out.splitlines()
    assert lines[0] == "7 devices on 1 node: 1 held (1 unusable), 6 unusable"
    held = next(n for n, line in enumerate(lines) if line.split()[2:] == ["1", "held,unusable", "gpu-0-mig-2g12gb-5-0"])
    other = next(n for n, line in enumerate(lines) if line.split()[2:] == ["1", "unusable", "gpu-0-mig-2g12gb-5-2"])
    assert "held by serving/ner-0-mig-l2bcx" in " ".join(lines[held + 1 : other])
    assert "held by" not in " ".join(lines[other:])
    assert "    model: NVIDIA A30 2g.12gb" in lines and "…" not in "".join(lines)
    shared = dra("devices", "--snapshot", cluster_of("shared-capacity-fits")).out
    assert "cpudevnuma001: dra.cpu/cpu 40 of 64 used" in " ".join(shared.split())


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        (["gpu-0", "gpu-1", "gpu-2", "gpu-5"], "gpu-0..2,5"),
        (["gpu-9", "gpu-10"], "gpu-9,10"),
        (["0000-0b-00-0", "0000-19-00-0"], "0000-0b-00-0 + 1 more"),
        (["gpu-01", "gpu-02"], "gpu-01 + 1 more"),
    ],
)
def test_names_are_put_together(dra: Dra, tmp_path: Path, names: list[str], shown: str) -> None:
    (tmp_path / "x.yaml").write_text(
        yaml.safe_dump_all([node("n1"), slice_of("n1", [gpu(name) for name in names]), NO_CLAIMS])
    )
    row = dra("devices", "--snapshot", "x.yaml").out.splitlines()[3]
    assert re.split(" {3,}", row)[-2] == shown


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (
            ["--by", "node"],
            [
                ["NODE", "DEVICES", "FREE", "SHARED", "HELD", "TAINTED", "UNUSABLE"],
                ["all nodes", "1", "1", "-", "-", "-", "-"],
                ["gone", "1", "-", "-", "-", "-", "1"],
                ["n1", "3", "-", "-", "2", "1", "-"],
                ["n2", "3", "1", "1", "-", "1", "-"],
                ["n3", "1", "-", "-", "-", "-", "1"],
            ],
        ),
        (
            ["--by", "class", "--pool", "n1"],
            [["CLASS", "DEVICES", "NODES", "HELD", "TAINTED"], ["gpu", "3", "1", "2", "1"]],
        ),
        (
            ["--by", "model", "--sort-by", "devices"],
            [
                ["MODEL", "DEVICES", "NODES", "FREE", "SHARED", "HELD", "TAINTED", "UNUSABLE"],
                ["a", "6", "3", "1", "-", "2", "1", "2"],
                ["b", "1", "1", "-", "-", "-", "1", "-"],
                ["nic", "1", "3", "1", "-", "-", "-", "-"],
                ["shared", "1", "1", "-", "1", "-", "-", "-"],
            ],
        ),
        (
            ["--by", "state", "--free"],
            [["STATE", "DEVICES", "NODES"], ["free", "2", "3"]],
        ),
    ],
)
def test_counts(dra: Dra, cluster: str, words: list[str], expected: list[list[str]]) -> None:
    lines = dra("devices", "--snapshot", cluster, *words).out.splitlines()
    assert [re.split(" {3,}", line) for line in lines[2:]] == expected
    answer = dra("devices", "--snapshot", cluster, *words, "-o", "json").valid("devices")
    assert [one["name"] for one in answer["counts"]] == [row[0] for row in expected[1:]]
    assert [str(one["deviceCount"]) for one in answer["counts"]] == [row[1] for row in expected[1:]]


def test_a_device_of_several_classes_counts_in_each(dra: Dra) -> None:
    ran = dra("devices", "--snapshot", cluster_of("mixed-fleet"), "--by", "class")
    assert ran.out.endswith("\n\nA device of several classes is counted in each of them.\n")


@pytest.mark.parametrize(
    ("key", "first"),
    [
        ("name", "fabric/nic-0"),
        ("class", "fabric/nic-0"),
        ("model", "gone/gpu-0"),
        ("state", "fabric/nic-0"),
        ("free", "fabric/nic-0"),
        ("held", "n1/gpu-0"),
    ],
)
def test_sorted(dra: Dra, cluster: str, key: str, first: str) -> None:
    words = ("devices", "--snapshot", cluster, "--sort-by", key)
    assert dra(*words, "-o", "name").out.startswith(f"{DRIVER}/{first}\n")
    assert next(iter(listed(dra(*words, "-o", "json")))) == first


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--by", "class", "-o", "wide"], "--by counts devices; -o wide lists them"),
        (["--by", "class", "--full"], "--by counts devices; --full lists each"),
        (["--by", "class", "--sort-by", "model"], "sort by name, devices, free or held, not by model"),
    ],
)
def test_counting_does_not_go_with_listing(dra: Dra, cluster: str, words: list[str], said: str) -> None:
    ran = dra("devices", "--snapshot", cluster, *words)
    assert ran.code == 2 and said in ran.err


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--node", "n1"], ["fabric/nic-0", "n1/gpu-0", "n1/gpu-1", "n1/gpu-2"]),
        (["--node", "gone"], ["gone/gpu-0"]),
        (["--pool", "n2"], ["n2/gpu-0", "n2/gpu-1", "n2/gpu-2"]),
        (["--pool", f"{DRIVER}/n3", "--pool", "gone"], ["gone/gpu-0", "n3/gpu-0"]),
        (["--class", "gpu", "--free"], ["n2/gpu-2"]),
        (["--free"], ["fabric/nic-0", "n2/gpu-2"]),
        (["--tainted"], ["n1/gpu-2", "n2/gpu-1", "n2/gpu-2"]),
        (["--tainted", "--node", "n1"], ["n1/gpu-2"]),
        (["--selector", f'device.attributes["{DRIVER}"].model == "b"'], ["n1/gpu-2"]),
        (["--driver", DRIVER, "--free", "--pool", "fabric"], ["fabric/nic-0"]),
        (["n1", "gone", "--free"], ["fabric/nic-0"]),
        (["-n", "ml"], ["n1/gpu-0", "n1/gpu-1", "n2/gpu-0"]),
    ],
)
def test_selections_combine(dra: Dra, cluster: str, words: list[str], expected: list[str]) -> None:
    ran = dra("devices", "--snapshot", cluster, "-o", "name", *words)
    assert ran.code == 0
    assert ran.out.splitlines() == [f"{DRIVER}/{name}" for name in expected]


def test_nothing_matches(dra: Dra, cluster: str) -> None:
    ran = dra("devices", "--snapshot", cluster, "--node", "n1", "--pool", "n2")
    assert ran.code == 1
    assert ran.out == "No device matches: 9 published, 3 in pool n2, none on node n1.\n"
    ran = dra("devices", "--snapshot", cluster, "--class", "picky", "-o", "json")
    assert ran.code == 1 and listed(ran) == {}
    assert dra("devices", "--snapshot", cluster, "--class", "picky", "-o", "name").out == ""


def test_no_device_at_all(dra: Dra, tmp_path: Path) -> None:
    (tmp_path / "nodes.yaml").write_text(yaml.safe_dump(node("n1")))
    ran = dra("devices", "--snapshot", "nodes.yaml")
    assert ran.code == 3 and ran.err.startswith("note: not read: Pod, ResourceSlice, ")
    assert "; which devices exist is unknown; " in ran.err
    ran = dra("devices", "--snapshot", "nodes.yaml", "--complete")
    assert (ran.code, ran.out, ran.err) == (1, "No device is published.\n", "")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--node", "n11"], "there is no node n11; did you mean n1?"),
        (["n11"], "there is no node n11; did you mean n1?"),
        (["gpu"], "there is no node gpu; it is a DeviceClass: write --class gpu"),
        ([DRIVER], f"there is no node {DRIVER}; it is a driver: write --driver {DRIVER}"),
        (["fabric"], "there is no node fabric; it is a pool: write --pool fabric"),
        (["--class", "n2"], "there is no DeviceClass n2; it is a pool: write --pool n2"),
        (["gpu-2"], "there is no node gpu-2; it is a device of n1, n2: name its node, or its pool with --pool"),
        (["--driver", "gpu.example.org"], "did you mean gpu.example.com?"),
        (["--class", "gpus"], "there is no DeviceClass gpus; did you mean gpu?"),
        (["--pool", "farbic"], "did you mean fabric?"),
        (["--pool", "xxxxxxxx"], "there are: "),
        (["--selector", "device.drivr == 'x'"], "undefined field 'drivr'"),
        (["--selector", "'text'"], "--selector"),
        (["--kubernetes-version", "1.20"], "1.34"),
    ],
)
def test_names_and_selectors_that_are_wrong(dra: Dra, cluster: str, words: list[str], expected: str) -> None:
    ran = dra("devices", "--snapshot", cluster, *words)
    assert ran.code == 2 and not ran.out
    assert ran.err.startswith("error: ") and expected in ran.err


def test_a_selector_that_does_not_compile_has_a_caret(dra: Dra, cluster: str) -> None:
    ran = dra("devices", "--snapshot", cluster, "--selector", "device.driver == 'x' &&\n  device.drivr == 'y'")
    _, text, caret = ran.err.splitlines()
    assert text[caret.index("^") :].startswith(".drivr")


def test_a_selector_that_fails_on_some_devices_is_noted(dra: Dra, cluster: str, tmp_path: Path) -> None:
    devices = [gpu("gpu-0"), {"name": "gpu-1"}]
    (tmp_path / "two.yaml").write_text(yaml.safe_dump_all([node("n1"), slice_of("n1", devices)]))
    selector = f'device.attributes["{DRIVER}"].model == "a"'
    ran = dra("devices", "--snapshot", "two.yaml", "--selector", selector, "-o", "name")
    assert ran.code == 0 and ran.out == f"{DRIVER}/n1/gpu-0\n"
    assert f"--selector fails on 1 devices, which are left out; on {DRIVER}/n1/gpu-1" in ran.err


def test_a_newer_generation_elsewhere_leaves_devices_behind(dra: Dra, tmp_path: Path) -> None:
    objects = [
        node("n1"),
        node("n2"),
        slice_of("n1", [gpu("left"), gpu("moved")], count=2, pool="p"),
        slice_of("n2", [gpu("moved")], generation=2, pool="p"),
        NO_CLAIMS,
        NO_RULES,
    ]
    (tmp_path / "two.yaml").write_text(yaml.safe_dump_all(objects))
    ran = dra("devices", "--snapshot", "two.yaml", "-o", "json")
    devices = listed(ran)
    assert devices["p/left"]["state"] == "unusable" and "generation 1 is obsolete" in devices["p/left"]["reason"]
    assert devices["p/moved"]["state"] == "free" and devices["p/moved"]["node"] == "n2"


def test_an_invalid_pool(dra: Dra, tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text(yaml.safe_dump_all([node("n1"), slice_of("n1", [gpu("a"), gpu("a")])]))
    answer = dra("devices", "--snapshot", "x.yaml", "-o", "json").json
    assert [item["reason"] for item in answer["items"]] == ["the pool is invalid: duplicate device name a"] * 2


def test_devices_without_their_nodes(dra: Dra, tmp_path: Path) -> None:
    """Which nodes a label selects is then unknown."""
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["east"]}]}
    objects = [
        slice_of("n1", [gpu("gpu-0")]),
        slice_of("zone", [gpu("nic-0")], nodeSelector={"nodeSelectorTerms": [term]}),
        NO_CLAIMS,
        NO_RULES,
    ]
    (tmp_path / "slices.yaml").write_text(yaml.safe_dump_all(objects))
    devices = listed(dra("devices", "--snapshot", "slices.yaml", "-o", "json"))
    assert {item["state"] for item in devices.values()} == {"unknown"}
    assert devices["n1/gpu-0"]["reason"].startswith("there is no Node in what was read, so whether the nodes")
    assert devices["zone/nic-0"]["where"] == "nodes with zone In (east)"
    everywhere = [slice_of("zone", [gpu("nic-0")], allNodes=True), NO_CLAIMS, NO_RULES]
    (tmp_path / "one.yaml").write_text(yaml.safe_dump_all(everywhere))
    assert dra("devices", "--snapshot", "one.yaml").out.splitlines()[0] == "1 device: 1 unknown"


def test_slices_alone_do_not_say_what_is_free(dra: Dra, tmp_path: Path) -> None:
    """They are enough to list devices; who holds them is not in the file."""
    (tmp_path / "slices.yaml").write_text(yaml.safe_dump_all([node("n1"), slice_of("n1", [gpu("gpu-0")])]))
    ran = dra("devices", "--snapshot", "slices.yaml", "-o", "json")
    (device,) = listed(ran).values()
    why = UNSEEN
    assert (ran.code, device["state"]) == (3, "unknown") and device["reason"].startswith(why)
    free = dra("devices", "--snapshot", "slices.yaml", "--free")
    assert free.code == 3 and "note: whether 1 device is free is unknown\n" in free.err
    assert free.err.startswith("note: not read: Pod, ResourceClaim, DeviceTaintRule, ")
    assert dra("devices", "--snapshot", "slices.yaml", "--free", "--complete").code == 0


def test_claims_that_were_hidden_leave_the_state_open(dra: Dra, tmp_path: Path) -> None:
    gaps = [{"kind": "ResourceClaim", "reason": "forbidden", "detail": "no"}]
    whole = {
        "apiVersion": "v1",
        "kind": "List",
        "items": [node("n1"), slice_of("n1", [gpu("gpu-0")])],
        "kubectl-dra": {"gaps": gaps},
    }
    (tmp_path / "x.json").write_text(json.dumps(whole))
    ran = dra("devices", "--snapshot", "x.json")
    assert "1 unknown" in ran.out and "(list resourceclaims.resource.k8s.io is forbidden)" in ran.err
    whole["kubectl-dra"] = {"gaps": [{**gaps[0], "kind": "ResourceSlice"}]}
    (tmp_path / "x.json").write_text(json.dumps(whole))
    ran = dra("devices", "--snapshot", "x.json")
    assert ran.code == 3 and "no ResourceSlices could be read" in ran.err


def test_rules_that_the_scheduler_does_not_see_are_shown_and_do_not_count(dra: Dra, tmp_path: Path) -> None:
    objects = [node("n1"), slice_of("n1", [gpu("gpu-0")]), rule("r", device="gpu-0")]
    said = {"serverVersion": "v1.36.1", "read": ["ResourceClaim"]}
    whole = {"apiVersion": "v1", "kind": "List", "items": objects, "kubectl-dra": said}
    (tmp_path / "x.json").write_text(json.dumps(whole))
    ran = dra("devices", "--snapshot", "x.json", "-o", "json")
    (device,) = listed(ran).values()
    assert device["state"] == "free" and device["taints"][0]["owner"]["name"] == "r"
    assert any("does not see" in note for note in ran.json["notes"])


@pytest.mark.parametrize("example", sorted(path.name for path in EXAMPLES.iterdir() if path.is_dir()))
def test_examples(dra: Dra, example: str) -> None:
    """Held and shared devices are those that allocated claims name; partitions of used cards are blocked."""
    (path,) = (EXAMPLES / example).glob("cluster.*")
    devices = listed(dra("devices", "--snapshot", str(path), "-o", "json"))
    items = yaml.safe_load(path.read_text())["items"]
    expected = {
        f"{result['pool']}/{result['device']}"
        for item in items
        if item["kind"] == "ResourceClaim" and "allocation" in item.get("status", {})
        for result in item["status"]["allocation"]["devices"]["results"]
    }
    assert {name for name, item in devices.items() if item["heldBy"]} == expected
    for name, item in devices.items():
        if item["state"] in ("held", "shared"):
            assert name in expected
    if example == "amd-partitions-in-use":
        assert devices["mi300x-1/gpu-0-spx-nps1"]["state"] == "blocked"
        assert "partition-mode" in devices["mi300x-1/gpu-0-spx-nps1"]["reason"]


def test_yaml_says_the_same_as_json(dra: Dra, cluster: str) -> None:
    words = ("devices", "--snapshot", cluster, "-o")
    assert yaml.safe_load(dra(*words, "yaml").out) == dra(*words, "json").json


def test_completion_offers_flags_and_nodes(cluster: str, tmp_path: Path) -> None:
    assert complete(["devices", "--snapshot", str(tmp_path / cluster), ""])[0] == ["n1", "n2", "n3"]
    assert complete(["devices", "--ta"]) == (["--tainted\tOnly devices with taints, held or not"], NO_FILES)
    assert complete(["devices", "-o", "w"]) == (["wide"], NO_FILES)
    assert complete(["snapshot", "--output", ""]) == ([], FILES)
