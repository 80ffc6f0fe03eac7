"""``kubectl dra top`` from files."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.errors import ClusterError
from tests.cli.conftest import EXAMPLES, Dra, Ran, cluster_of
from tests.cli.test_devices import DRIVER, NO_CLAIMS, device_class, gpu, held, node, slice_of

CLUSTER = cluster_of("mixed-fleet")
SUBJECTS = ("nodes", "classes", "namespaces", "owners", "claims")
Json = dict[str, Any]


def table(ran: Ran) -> list[list[str]]:
    """The rows of the table with the header, as cells."""
    lines = ran.out.split("\n\n")[1].splitlines()
    return [re.split(" {3,}", line) for line in lines]


@pytest.mark.parametrize("by", SUBJECTS)
@pytest.mark.parametrize("example", sorted(path.name for path in EXAMPLES.iterdir() if path.is_dir()))
def test_examples_fit_the_schema(dra: Dra, example: str, by: str) -> None:
    cluster = str(next((EXAMPLES / example).glob("cluster.*")))
    answer = dra("top", by, "--snapshot", cluster, "-o", "json").valid("top")
    devices = dra("devices", "--snapshot", cluster, "-o", "json").json["summary"]
    assert answer["summary"]["states"] == devices["states"]
    if by == "nodes":
        assert sum(item["deviceCount"] for item in answer["items"]) == devices["devices"]


def test_nodes(dra: Dra) -> None:
    ran = dra("top", "--snapshot", CLUSTER)
    assert ran.out.startswith("46 devices on 4 nodes: 12 free, 10 held, 24 tainted; 1 claim pending\n")
    assert table(ran) == [
        ["NODE", "DEVICES", "FREE", "HELD", "TAINTED", "OTHER", "IDLE", "USED(%)"],
        ["gaudi-1", "8", "1", "7", "-", "-", "-", "87%"],
        ["h100-1", "4", "1", "3", "-", "-", "-", "75%"],
        ["flex-1", "2", "2", "-", "-", "-", "-", "0%"],
        ["mi300x-2", "32", "8", "-", "24", "-", "-", "0%"],
    ]
    assert table(dra("top", "--sort-by", "free", "--snapshot", CLUSTER))[1][0] == "mi300x-2"
    assert table(dra("top", "--sort-by", "name", "--snapshot", CLUSTER))[1][0] == "flex-1"


def test_namespaces_and_owners(dra: Dra) -> None:
    assert table(dra("top", "namespaces", "--snapshot", CLUSTER)) == [
        ["NAMESPACE", "DEVICES", "IDLE", "CLAIMS", "PENDING", "NODES", "LARGEST-OWNER"],
        ["ml", "10", "-", "3", "1", "2", "StatefulSet/bert"],
    ]
    assert table(dra("top", "owners", "--snapshot", CLUSTER)) == [
        ["NAMESPACE", "OWNER", "DEVICES", "IDLE", "CLAIMS", "PENDING", "NODES"],
        ["ml", "StatefulSet/bert", "7", "-", "1", "-", "1"],
        ["ml", "StatefulSet/pretrain", "3", "-", "1", "-", "1"],
        ["ml", "StatefulSet/serve", "-", "-", "1", "1", "-"],
    ]
    header, first, *_ = table(dra("top", "claims", "--snapshot", CLUSTER))
    assert header == ["NAMESPACE", "CLAIM", "DEVICES", "STATE", "NODE", "OWNER", "AGE"]
    assert first[:-1] == ["ml", "bert-0-hpu-lq8vz", "7", "in-use", "gaudi-1", "StatefulSet/bert"]


def fleet(tmp_path: Path, *more: Json) -> str:
    """Three nodes of four devices, of which two, three and all are held; the last by an unused claim."""
    listed: Json = {"read": ["DeviceTaintRule", "Pod"]}
    head: Json = {"apiVersion": "v1", "kind": "List", "kubectl-dra": listed, "items": []}
    objects: list[Json] = [head, device_class("gpu", f'device.driver == "{DRIVER}"'), *more]
    for number, count in enumerate((2, 3, 4)):
        name = f"n{number}"
        objects += [node(name), slice_of(name, [gpu(f"gpu-{index}") for index in range(4)])]
        results = [{"pool": name, "device": f"gpu-{index}"} for index in range(count)]
        objects.append(held(f"claim-{number}", *results, pods=() if count == 4 else (f"pod-{number}",)))
    (tmp_path / "fleet.yaml").write_text(yaml.safe_dump_all(objects))
    return "fleet.yaml"


def test_classes_say_the_largest_request_that_fits(dra: Dra, tmp_path: Path) -> None:
    ran = dra("top", "classes", "--snapshot", fleet(tmp_path))
    assert ran.out.startswith("12 devices on 3 nodes: 3 free, 9 held; 4 idle\n")
    assert table(ran)[1] == ["gpu", "12", "3", "9", "-", "-", "4", "75%", "3", "2", "n0"]
    assert ran.out.endswith("\n\ngpu: 3 free, and no request for more than 2 fits on one node.\n")


def test_a_cordoned_node_serves_no_request(dra: Dra, tmp_path: Path) -> None:
    path = tmp_path / fleet(tmp_path)
    objects = list(yaml.safe_load_all(path.read_text()))
    next(one for one in objects if one["kind"] == "Node" and one["metadata"]["name"] == "n0")["spec"] = {
        "unschedulable": True
    }
    path.write_text(yaml.safe_dump_all(objects))
    assert table(dra("top", "classes", "--snapshot", "fleet.yaml"))[1][-1] == "n1"


@pytest.mark.parametrize(
    ("pools", "largest", "said"),
    [("n0", ["1 at least", "n1"], "a request for 1 fits on one node at least"), ("n0 n1", ["?", "-"], "is open")],
)
def test_devices_with_unknown_fields_are_promised_to_nobody(
    dra: Dra, tmp_path: Path, pools: str, largest: list[str], said: str
) -> None:
    """Whether the scheduler gives out a device with a field that we do not know is open."""
    path = tmp_path / fleet(tmp_path)
    objects = list(yaml.safe_load_all(path.read_text()))
    for one in objects:
        if one["kind"] == "ResourceSlice" and one["spec"]["nodeName"] in pools:
            for device in one["spec"]["devices"]:
                device["fromTheFuture"] = True
    path.write_text(yaml.safe_dump_all(objects))
    ran = dra("top", "classes", "--snapshot", "fleet.yaml")
    assert table(ran)[1][-2:] == largest and said in ran.out


@pytest.mark.parametrize(("columns", "room"), [(120, True), (50, False)])
def test_the_largest_request_is_said_on_any_screen(
    dra: Dra, monkeypatch: pytest.MonkeyPatch, columns: int, room: bool
) -> None:
    """In its column or, where that has no room, in a sentence."""
    monkeypatch.setenv("COLUMNS", str(columns))
    ran = dra("top", "classes", "--snapshot", cluster_of("scale-from-zero"))
    text = ran.flat
    if room:
        assert table(ran)[0][-2:] == ["LARGEST-REQUEST", "ON-NODE"] and table(ran)[1][-2] == "3"
    else:
        assert "LARGEST-REQUEST" in text.partition("Left out for want of room:")[2]
        assert "gpu.nvidia.com: 3 free, and a request for 3 fits on ip-10-0-52-40.eu-west-1.compute.internal." in text


def test_of_shared_devices_is_said_why_there_is_no_number(dra: Dra) -> None:
    words = ("--snapshot", cluster_of("mixed-fleet"), "--kubernetes-version", "1.36.3")
    ran = dra("top", "classes", *words)
    rows = {row[0]: row for row in table(ran)}
    assert rows["gpu.amd.com"][-2:] == ["computeUnits 38", "-"] and rows["gpu.amd.com-spx"][-2:] == ["0", "-"]
    assert (
        "gpu.amd.com: 8 free; its devices can be shared, so how many fit depends on the capacity that is asked for: "
        "at most 38 computeUnits on one device, 304 in all." in ran.flat
    )


def test_devices_that_a_defect_of_the_scheduler_refuses_are_no_room(dra: Dra) -> None:
    """1.36.2 and earlier count devices that were tried and refused for their taint against the shared counters."""
    words = ("--snapshot", cluster_of("mixed-fleet"))
    ran = dra("top", "classes", *words)
    assert {row[0]: row for row in table(ran)}["gpu.amd.com"][-2:] == ["0", "-"]
    kept = "it keeps the shared counters of each device that it tries first and refuses for a taint or a constraint"
    defect = f"kube-scheduler before 1.36.3 (assumed; --kubernetes-version says which) refuses them: {kept}"
    assert f"gpu.amd.com: 8 free, and no plain request gets one: {defect}" in ran.flat
    ran = dra("explain", "deviceclass/gpu.amd.com", *words)
    assert ran.code == 1 and defect in ran.flat and "Upgrade the scheduler to 1.36.3" in ran.out
    assert "Ask for one with selector device.attributes" in ran.out
    assert dra("explain", "deviceclass/gpu.amd.com", *words, "--kubernetes-version", "1.36.3").code == 0
    ran = dra("share", "--class", "gpu.amd.com", *words)
    assert f"a known defect of this release's scheduler refuses them: {kept}" in ran.flat
    measured = dra("metrics", *words).out
    of_class = [
        line for line in measured.splitlines() if 'device_class="gpu.amd.com"' in line and "largest_request{" in line
    ]
    assert len(of_class) == 5 and all(line.endswith(" 0.0") for line in of_class)
    assert "there is not a device for each" not in ran.out
    Path("claim.yaml").write_text(
        "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: one}\n"
        "spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.amd.com}}]}}\n"
    )
    ran = dra("explain", "-f", "claim.yaml", *words, "--full")
    assert "(mi300x-2): a known defect of the scheduler refuses the devices" in ran.flat
    ran = dra("explain", "-f", "claim.yaml", *words, "--full", "--kubernetes-version", "1.36.3")
    assert "Kubernetes 1.36.3, default" in ran.flat


def test_a_claim_of_any_name_keeps_its_devices_while_requests_are_tried(dra: Dra, tmp_path: Path) -> None:
    mine = held("largest", {"pool": "n0", "device": "gpu-2"}, pods=("pod-9",))
    mine["metadata"]["namespace"] = "default"
    ran = dra("top", "classes", "--snapshot", fleet(tmp_path, mine))
    assert table(ran)[1][-2:] == ["1", "n0"]


def test_devices_that_share_counters_do_not_add_up(dra: Dra) -> None:
    """Partitions of one card are all free until one is taken: the allocator says how many go together."""
    cluster = cluster_of("mig-profile-missing")
    answer = dra("top", "classes", "--snapshot", cluster, "-o", "json").json
    found = {item["name"]: item for item in answer["items"]}["mig.nvidia.com"]
    assert 0 < found["largestRequest"]["count"] < found["states"]["free"]
    name, count, where = "x", found["largestRequest"]["count"], found["largestRequest"]["node"]
    for asked, code in ((count, 0), (count + 1, 1)):
        request = {"name": "r", "exactly": {"deviceClassName": "mig.nvidia.com", "count": asked}}
        claim = {"metadata": {"name": name}, "spec": {"devices": {"requests": [request]}}}
        manifest = Path("claim.yaml")
        manifest.write_text(yaml.safe_dump({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", **claim}))
        ran = dra("explain", "-f", "claim.yaml", "--snapshot", cluster, *(["--node", where] if not code else []))
        assert ran.code == code, ran.out


def test_many_rows_are_cut(dra: Dra, tmp_path: Path) -> None:
    objects: list[Json] = [NO_CLAIMS]
    for number in range(40):
        objects += [node(f"n{number}"), slice_of(f"n{number}", [gpu("gpu-0")])]
    (tmp_path / "many.yaml").write_text(yaml.safe_dump_all(objects))
    short = dra("top", "--snapshot", "many.yaml").out.splitlines()
    assert len(short) == 34 and short[-1] == "and 10 more: --full shows them"
    assert len(dra("top", "--snapshot", "many.yaml", "--full").out.splitlines()) == 43


@pytest.mark.parametrize("columns", [60, 80, 120, 200])
@pytest.mark.parametrize("by", SUBJECTS)
def test_lines_fit(dra: Dra, monkeypatch: pytest.MonkeyPatch, by: str, columns: int) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    ran = dra("top", by, "--snapshot", CLUSTER)
    assert all(len(line) <= columns for line in ran.out.splitlines())


def test_nothing_to_count(dra: Dra, tmp_path: Path) -> None:
    (tmp_path / "nodes.yaml").write_text(yaml.safe_dump_all([node("n1"), NO_CLAIMS]))
    ran = dra("top", "--complete", "--snapshot", "nodes.yaml")
    assert (ran.code, ran.out) == (1, "0 devices\nThere are no nodes with devices to count.\n")


def test_what_cannot_be_sorted_by(dra: Dra) -> None:
    ran = dra("top", "claims", "--sort-by", "free", "--snapshot", CLUSTER)
    assert ran.code == 2 and "--sort-by free: claims are sorted by name, devices, held" in ran.err
    assert dra("top", "deployments", "--snapshot", CLUSTER).code == 2


def test_watch_counts_again(dra: Dra, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It writes when something has changed, and a cluster that is away for a while is asked again."""
    from kubectl_dra.cli import listing

    path = tmp_path / fleet(tmp_path)
    ticks: list[float] = []
    read: Callable[..., Snapshot] = listing.read

    def wait(seconds: float) -> None:
        ticks.append(seconds)
        if len(ticks) == 3:
            kept = [
                one
                for one in yaml.safe_load_all(path.read_text())
                if (one.get("metadata") or {}).get("name") != "claim-0"
            ]
            path.write_text(yaml.safe_dump_all(kept))
        if len(ticks) == 5:
            raise KeyboardInterrupt

    def reading(*words: Any, **named: Any) -> Snapshot:
        if len(ticks) == 1:
            raise ClusterError("the server is away")
        return read(*words, **named)

    monkeypatch.setattr("kubectl_dra.cli.live.time.sleep", wait)
    monkeypatch.setattr(listing, "read", reading)
    ran = dra("top", "--snapshot", "fleet.yaml", "--watch")
    assert ran.code == 130 and "note: the server is away; asking again" in ran.err
    assert [line for line in ran.out.splitlines() if line.startswith("12 devices")] == [
        "12 devices on 3 nodes: 3 free, 9 held; 4 idle",
        "12 devices on 3 nodes: 5 free, 7 held; 4 idle",
    ]


@pytest.mark.parametrize(
    ("words", "rows"),
    [
        (("top", "nodes"), 3),
        (("top", "claims"), 7),
        (("claims",), 7),
        (("devices", "--full"), 10),
        (("devices", "--by", "node"), 3),
        (("devices", "--by", "state"), 2),
    ],
)
def test_so_many_rows_and_how_many_more(words: tuple[str, ...], rows: int, dra: Dra) -> None:
    """The same flag for all tables; the summary before them still counts everything."""
    cluster = ("--snapshot", cluster_of("all-held"))
    whole, short = dra(*words, *cluster), dra(*words, "--limit", "1", *cluster)
    head, _, *table = short.out.splitlines()
    assert (head, short.code) == (whole.out.splitlines()[0], 0)
    assert table[2].startswith(f"and {rows - 1} more: ")
    assert " more: " not in dra(*words, "--limit", str(rows), *cluster).out


def test_all_rows_and_a_limit_exclude_each_other(dra: Dra) -> None:
    ran = dra("top", "--full", "--limit", "3", "--snapshot", CLUSTER)
    assert (ran.code, ran.err) == (2, "error: --full shows all rows; leave --limit out\n")


def test_columns_say_what_they_count(dra: Dra) -> None:
    """The state that alone occurs names its column, a part that is used is no device that is held, --full has all."""
    shared = cluster_of("shared-capacity-fits")
    assert (
        "USED(%): devices that are held, and of shared ones the part that is used"
        in dra("top", "--snapshot", shared).out
    )
    blocked = cluster_of("amd-partitions-in-use")
    ran = dra("top", "classes", "--snapshot", blocked)
    assert "BLOCKED" in table(ran)[0] and "OTHER" not in ran.out
    broken = cluster_of("driver-gone-from-node")
    ran = dra("top", "--snapshot", broken)
    assert "UNSERVED" in table(ran)[0] and "Unserved: free, but a pod that gets one does not start" in ran.out


def test_full_has_all_columns(dra: Dra, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    cluster = cluster_of("amd-partitions-in-use")
    assert "Left out for want of room: NODES, USED(%), LEFT" in dra("top", "classes", "--snapshot", cluster).out
    ran = dra("top", "classes", "--full", "--snapshot", cluster)
    assert "Left out" not in ran.out and {"NODES", "USED(%)", "LEFT"} <= {*table(ran)[0]}


def test_what_is_left_of_shared_devices(dra: Dra) -> None:
    path = str(Path(__file__).parent.parent.parent / "examples/explain/shared-capacity-fits/cluster.yaml")
    header, *rows = (re.split(" {3,}", line) for line in dra("top", "--snapshot", path).out.splitlines()[2:5])
    telco = [dict(zip(header, row, strict=True)) for row in rows]
    assert [(row["NODE"], row["SHARED"], row["HELD"], row["USED(%)"], row["LEFT"]) for row in telco] == [
        ("telco-2", "2", "-", "75%", "cpu 32 of 128"),
        ("telco-1", "2", "-", "68%", "cpu 40 of 128"),
    ]
    found = dra("top", "--snapshot", path, "-o", "json").json
    assert found["items"][1]["capacity"] == {"dra.cpu/cpu": {"value": "128", "remaining": "40", "largest": "24"}}
    assert found["items"][1]["heldPart"] == 0.6875


def test_divisions_of_one_card_count_as_one(dra: Dra) -> None:
    """What is used agrees with what is left: 3 of 64 partitions, however many divisions are tainted or blocked."""
    path = str(Path(__file__).parent.parent.parent / "examples/explain/amd-partitions-in-use/cluster.yaml")
    found = {item["name"]: item for item in dra("top", "--snapshot", path, "-o", "json").json["items"]}
    partitions = found["mi300x-2"]["capacity"]["partitions"]
    assert (partitions["remaining"], partitions["value"]) == ("61", "64")
    assert found["mi300x-2"]["heldPart"] == round(3 / 64, 4) and found["mi300x-1"]["heldPart"] == 1 / 8


def test_the_most_that_is_left_is_what_a_request_gets(dra: Dra) -> None:
    """A defect of the scheduler refuses the whole card that is free."""
    path = str(Path(__file__).parent.parent.parent / "examples/explain/amd-partitions-in-use/cluster.yaml")
    (row,) = [line for line in dra("top", "classes", "--snapshot", path).out.splitlines() if "gpu.amd.com  " in line]
    assert "partitions 7" in row
    assert "at most 7 partitions on one device, 77 in all" in dra("top", "classes", "--snapshot", path).flat
    free = dra("explain", "device", "mi300x-2/gpu-5-cpx-nps4", "--snapshot", path)
    assert free.code == 1 and "free, but no plain request for DeviceClass gpu.amd.com gets it" in free.flat
    assert "at most 7 of partitions on one device" in dra("explain", "class", "gpu.amd.com", "--snapshot", path).out


def test_blocked_partitions_are_no_room(dra: Dra) -> None:
    """Two whole cards are held, and with them all 12 partitions of theirs."""
    path = str(Path(__file__).parent.parent.parent / "examples/explain/different-reason-per-node/cluster.yaml")
    (row,) = (line.split() for line in dra("top", "--snapshot", path).out.splitlines() if line.startswith("a30-2"))
    assert row == ["a30-2", "14", "-", "2", "-", "12", "-", "100%"]
