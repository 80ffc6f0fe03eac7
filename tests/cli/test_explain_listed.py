"""`explain` of a class, a device and a driver: the verdict first, in text and JSON, with its exit code."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.cli.conftest import EXAMPLES, Dra, cluster_of
from tests.cli.test_devices import CLUSTER, DRIVER, SHARE, device_class, gpu, held, node, rule, slice_of

OBJECTS = [
    *CLUSTER,
    {**node("closed"), "spec": {"unschedulable": True}},
    slice_of("closed", [gpu("gpu-0", "closed")]),
    device_class("closed", f'device.attributes["{DRIVER}"].model == "closed"'),
    device_class("nothing", f'device.attributes["{DRIVER}"].model == "none"'),
    device_class("absent", 'device.driver == "absent.example.com"'),
    device_class("full", f'device.driver == "{DRIVER}" && device.attributes["{DRIVER}"].model == "full"'),
    slice_of("n4", [gpu("gpu-0", "full"), gpu("gpu-1", "full")]),
    node("n4"),
    held("busy", {"pool": "n4", "device": "gpu-0"}, pods=("busy-0",)),
    rule("r4", pool="n4"),
    {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "busy-0", "namespace": "ml", "uid": "busy-0"},
     "spec": {"nodeName": "n4", "containers": [{"name": "a"}], "resourceClaims": [{"name": "r"}]},
     "status": {"phase": "Running"}},
    node("n5"),
    slice_of("n5", [gpu("gpu-0", "n5", allowMultipleAllocations=True, capacity={"memory": {"value": "40Gi"}})]),
    held("share-5", {"pool": "n5", "device": "gpu-0", "shareID": SHARE, "consumedCapacity": {"memory": "10Gi"}},
         pods=("part-0",)),
    {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "part-0", "namespace": "ml", "uid": "part-0"},
     "spec": {"nodeName": "n5", "containers": [{"name": "a"}], "resourceClaims": [{"name": "r"}]},
     "status": {"phase": "Running"}},
    rule("r5", pool="n5"),
]  # fmt: skip


@pytest.fixture
def cluster(tmp_path: Path) -> str:
    (tmp_path / "cluster.yaml").write_text(yaml.safe_dump_all(OBJECTS))
    return "cluster.yaml"


ANSWERS = {
    "class/gpu": (0, "can-be-scheduled", "a request can get a share of its devices now"),
    "class/full": (1, "cannot-be-scheduled", "no request can get a device of it now; 2 devices on 1 node: 1 held (1 "),
    "class/closed": (1, "cannot-be-scheduled", "though 1 is free: node closed is cordoned"),
    "class/nothing": (1, "cannot-be-scheduled", "because no published device matches it"),
    "class/absent": (1, "cannot-be-scheduled", "no node has a ResourceSlice or a pod of driver absent.example.com"),
    "deviceclass/absent": (1, "cannot-be-scheduled", "no published device matches it"),
    "deviceclasses.resource.k8s.io/full": (1, "cannot-be-scheduled", "no request can get a device of it now"),
    "device/n1/gpu-0": (1, "allocated", "held by claim ml/train, whose pods have ended (train-0 and 1 more)"),
    "device/n1/gpu-1": (1, "allocated", "held by unused claim ml/idle: nothing frees it until that claim is deleted"),
    "device/n1/gpu-2": (1, "cannot-be-scheduled", "tainted: only a request that tolerates example.com/maintenance"),
    "device/n2/gpu-0": (0, "can-be-scheduled", "shared by 1 claim (memory 10Gi of 40Gi used); what is left can be"),
    "device/n3/gpu-0": (1, "cannot-be-scheduled", "unusable: the pool is incomplete: 1 of 2 slices"),
    "device/n4/gpu-0": (0, "allocated", "(DeviceTaintRule r4): afterwards only a request that tolerates that gets it"),
    "device/n5/gpu-0": (0, "allocated", "(DeviceTaintRule r5): only a request that tolerates that gets what is left"),
    "device/n4/gpu-1": (1, "cannot-be-scheduled", "tainted"),
    "device/closed/gpu-0": (1, "cannot-be-scheduled", "free, and no new pod gets it: node closed is cordoned"),
    "device/fabric/nic-0": (1, "cannot-be-scheduled", "free, and no request can ask for it: no DeviceClass selects"),
    "device/n2/gpu-2": (0, "can-be-scheduled", "free: a request can get it now"),
}


@pytest.mark.parametrize("target", ANSWERS)
def test_the_verdict_is_first(dra: Dra, cluster: str, target: str) -> None:
    code, verdict, said = ANSWERS[target]
    ran = dra("explain", target, "--snapshot", cluster, "--complete")
    assert ran.code == code, ran.err
    first = " ".join(ran.out.partition("\n\n")[0].split())
    assert first.startswith(("DeviceClass ", "Device ")) and said in first
    found = dra("explain", target, "--snapshot", cluster, "--complete", "-o", "json").valid("devices")
    assert (found["exitCode"], found["verdict"], found["answer"]) == (code, verdict, first)
    assert target.partition("/")[2].rpartition("/")[2] in found["subject"]["name"]
    assert ("Delete unused claim ml/idle" in found["fix"]["text"]) == (target in ("class/gpu", "device/n1/gpu-1"))
    assert found["fix"]["text"] in ran.flat
    deletes = "$ kubectl delete resourceclaim/idle -n ml" in ran.out
    assert deletes == ("Delete unused claim ml/idle" in found["fix"]["text"])


def cpus(tmp_path: Path, default: str = "", cordoned: bool = False) -> str:
    """Shares of CPUs, of which each device has some left. ``default``: what a request takes that names no amount."""
    cluster = yaml.safe_load((EXAMPLES / "cpu-capacity-exhausted" / "cluster.yaml").read_text())
    for item in cluster["items"]:
        if item["kind"] == "Node":
            item["spec"]["unschedulable"] = cordoned
        elif item["kind"] == "ResourceSlice" and default:
            for device in item["spec"]["devices"]:
                policy = {"default": default, "validRange": {"min": "1"}}
                device["capacity"]["dra.cpu/cpu"]["requestPolicy"] = policy
    (path := tmp_path / "cluster.yaml").write_text(yaml.safe_dump(cluster))
    return str(path)


@pytest.mark.parametrize(
    ("default", "plain"),
    [
        ("", "; one that names no amount gets none: it wants all 64 of dra.cpu/cpu"),
        ("32", "; one that names no amount gets none: it wants the default, 32, of dra.cpu/cpu"),
        ("8", ""),
    ],
)
def test_how_much_of_a_shared_device_can_be_had(dra: Dra, tmp_path: Path, default: str, plain: str) -> None:
    """A request that names no amount takes a whole device or the default, which may be more than is left."""
    ran = dra("explain", "class/dra.cpu", "--snapshot", cpus(tmp_path, default))
    first = " ".join(ran.out.partition("\n\n")[0].split())
    most = "at most 24 of dra.cpu/cpu on one device (telco-1/cpudevnuma001)"
    assert ran.code == 0 and f"{most}{plain}; 4 devices on 2 nodes" in first


def test_no_share_is_had_where_no_node_takes_pods(dra: Dra, tmp_path: Path) -> None:
    ran = dra("explain", "class/dra.cpu", "--snapshot", cpus(tmp_path, cordoned=True))
    assert ran.code == 1 and "no request can get a device of it now; 4 devices" in ran.flat


DRIVER_ANSWERS = {
    "driver-gone-from-node": (
        1,
        "not-registered on h100-1 (1 healthy on 1 more node): the kubelet says that it is not registered",
        "not-registered",
    ),
    "pool-incomplete": (1, "pool-incomplete on a30-1: the pool is incomplete: 2 of 3 slices", "pool-incomplete"),
    "gpu-part-switched-off": (1, "switched-off on h100-1 and 2 more nodes: its GPU part is off", "switched-off"),
    "prepare-fails": (
        1,
        "prepare-failing on l40s-1 (1 healthy on 1 more node): it cannot prepare the devices of pod dev/ide-lea (163",
        "prepare-failing",
    ),
    "fits": (
        3,
        "it publishes 12 devices on 3 nodes; whether it runs there is unknown: no pod was recognized",
        "unknown",
    ),
}


@pytest.mark.parametrize("example", DRIVER_ANSWERS)
def test_a_driver_with_its_cause_first(dra: Dra, example: str) -> None:
    code, said, state = DRIVER_ANSWERS[example]
    path = cluster_of(example)
    ran = dra("explain", "driver/gpu.nvidia.com", "--snapshot", path)
    first = " ".join(ran.out.partition("\n\n")[0].split())
    assert ran.code == code and first.startswith(f"Driver gpu.nvidia.com: {said}")
    found = dra("explain", "driver/gpu.nvidia.com", "--snapshot", path, "-o", "json").valid("drivers")
    assert (found["answer"], found["state"]) == (first, state)
    # The list of all drivers says the same of it.
    rows = dra("drivers", "--snapshot", path, "-o", "json").json["items"]
    assert found["items"] == [row for row in rows if row["driver"] == "gpu.nvidia.com"]


def test_a_driver_that_is_nowhere_is_to_be_installed(dra: Dra) -> None:
    """A class that nobody asks for is no fault of the cluster, but whoever asks about the driver is told no."""
    path = cluster_of("driver-not-installed")
    for asked in (("explain", "driver/gpu.amd.com"), ("drivers", "gpu.amd.com")):
        ran = dra(*asked, "--snapshot", path)
        fix = "Install driver gpu.amd.com on mi300x-1, mi300x-2, or see why it runs on no node."
        assert ran.code == 1 and f"Fix: {fix}" in ran.flat
        assert "kubectl get daemonsets -A" in ran.out
        found = dra(*asked, "--snapshot", path, "-o", "json").valid("drivers")
        (row,) = found["items"]
        assert (found["exitCode"], row["healthy"], row["fix"]["text"]) == (
            1,
            False,
            fix,
        )


def test_drivers_says_what_explain_says(dra: Dra) -> None:
    """The incomplete pool of `devices`, and what the kubelet says in `explain`, are states of `drivers`."""
    path = cluster_of("pool-incomplete")
    (row,) = dra("drivers", "--snapshot", path, "-o", "json").json["items"]
    devices = dra("devices", "--snapshot", path, "-o", "json").json["items"]
    assert row["state"] == "pool-incomplete"
    assert {item["reason"] for item in devices} == {row["why"].partition(",")[0]}
    path = cluster_of("driver-gone-from-node")
    rows = dra("drivers", "--snapshot", path, "-o", "json").json["items"]
    stuck = dra("explain", "pod/rollout-3", "-n", "ml", "--snapshot", path, "-o", "json").json
    assert stuck["causes"][0]["code"] == "driver-not-registered"
    assert [row["node"] for row in rows if row["state"] == "not-registered"] == ["h100-1"]
    assert rows[0]["waitingPod"] == {"namespace": "ml", "name": "rollout-3"}


def test_a_driver_that_is_nowhere_and_a_claim_that_waits_for_it(dra: Dra, tmp_path: Path) -> None:
    waits = held("waits")
    waits["status"] = {}
    waits["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"] = "absent"
    for objects, state, claims in ((OBJECTS, "no-devices", 0), ([*OBJECTS, waits], "publishes-nothing", 1)):
        (tmp_path / "cluster.yaml").write_text(yaml.safe_dump_all(objects))
        ran = dra("drivers", "absent.example.com", "--snapshot", "cluster.yaml", "--complete", "-o", "json")
        (row,) = ran.json["items"]
        assert (row["state"], row["healthy"], ran.code) == (state, False, 1)
        assert row["wantedBy"] == {"classes": ["absent"], "claimCount": claims, "nodes": []}
        ran.valid("drivers")


def test_held_and_tainted_are_both_shown(dra: Dra, cluster: str) -> None:
    for flags in ((), ("--full",), ("--tainted",)):
        out = dra("devices", "--pool", "n4", *flags, "--snapshot", cluster).out
        assert "held,tainted" in out and "1 held (1 tainted), 1 tainted" in out
        assert "tainted with example.com/maintenance:NoSchedule (DeviceTaintRule r4)" in " ".join(out.split())
    found = dra("devices", "--pool", "n4", "--snapshot", cluster, "-o", "json").valid("devices")
    assert [(item["state"], item["tainted"]) for item in found["items"]] == [("held", True), ("tainted", True)]


def test_a_blocked_device_names_what_blocks_it(dra: Dra) -> None:
    path = cluster_of("amd-partitions-in-use")
    ran = dra("explain", "device/mi300x-1/gpu-0-spx-nps1", "--snapshot", path)
    said = ran.flat
    assert "blocked by gpu-0-cpx-nps1 of the same hardware, held by claim serving/embed-0-gpu-s9txg" in said
    assert "Next: kubectl dra explain claim/embed-0-gpu-s9txg -n serving --snapshot" in ran.out


def test_a_class_whose_driver_is_not_whole_leads_to_the_driver(dra: Dra) -> None:
    path = cluster_of("gpu-part-switched-off")
    ran = dra("explain", "class/gpu.nvidia.com", "--snapshot", path)
    assert ran.code == 2 and "kubectl dra explain driver/gpu.nvidia.com --snapshot" in ran.err
    assert dra("explain", "driver/gpu.nvidia.com", "--snapshot", path).code == 1


def test_a_device_with_the_taint_of_a_rule_leads_to_the_rules(dra: Dra) -> None:
    path = cluster_of("taint-rule-maintenance")
    assert "Next: kubectl dra taint --list --snapshot" in dra("explain", "device/h100-1/gpu-1", "--snapshot", path).out


def test_a_taint_for_another_mode_is_no_fault_to_repair(dra: Dra) -> None:
    path = cluster_of("amd-partitions-in-use")
    for target in ("device/mi300x-2/gpu-3-spx-nps1", "class/gpu.amd.com-spx"):
        said = dra("explain", target, "--snapshot", path).out
        assert "The device is not broken" in " ".join(said.split()) and "Repair" not in said


def test_a_device_that_an_absent_driver_would_publish_is_no_misspelled_one(dra: Dra) -> None:
    words = ("--snapshot", cluster_of("driver-not-installed"))
    ran = dra("explain", "device/mi300x-1/gpu-0", *words)
    assert ran.code == 2 and "did you mean" not in ran.err
    assert "driver gpu.amd.com publishes none for node mi300x-1" in " ".join(ran.err.split())
    assert "Next: kubectl dra explain driver/gpu.amd.com --snapshot" in ran.err
    assert dra("explain", "device", "mi300x-1/gpu-0", *words) == ran
    assert "did you mean h100-1/gpu-0" in " ".join(dra("explain", "device/h100-1/gpu-9", *words).err.split())
    # Both pages say the same of where the driver is to be installed.
    fix = "Install driver gpu.amd.com on mi300x-1, mi300x-2, or see why it runs on no node."
    pod = str(EXAMPLES / "driver-not-installed" / "pod.yaml")
    for asked in (("driver/gpu.amd.com",), ("-f", pod)):
        assert fix in dra("explain", *asked, *words).flat


@pytest.mark.parametrize("example", sorted(path.parent.name for path in EXAMPLES.glob("*/cluster.yaml")))
def test_what_a_fix_of_a_driver_says_to_do_has_its_command(dra: Dra, example: str) -> None:
    """What deletes or labels something, by its marked command; JSON has the same."""
    words = ("--snapshot", cluster_of(example))
    text, found = dra("drivers", *words).out, dra("drivers", *words, "-o", "json").json
    fix = " ".join(text.partition("\nFix: ")[2].partition("\n\n")[0].split())
    for verb, mark in {
        "delete pod ": "Destructive",
        "Delete DeviceTaintRule ": "Destructive",
        "label ": "Writes",
    }.items():
        assert verb not in fix or f"{mark} (in the cluster, not the snapshot): $ kubectl " in fix
    for row in found["items"]:
        told = row.get("fix", {"text": ""})
        acts = any(verb in told["text"] for verb in ("delete pod ", "Delete DeviceTaintRule ", " label "))
        assert not acts or told["commands"]


def test_of_tainted_nodes_a_pod_needs_a_toleration(dra: Dra) -> None:
    """Where every node with something to be had is tainted."""
    for example, said in (("devices-on-tainted-nodes", "node taint sku=gpu:NoSchedule"), ("all-tainted", "")):
        cluster = cluster_of(example)
        told = dra("explain", "class", "gpu.nvidia.com", "--snapshot", cluster).flat
        assert ("by a pod that tolerates" in told) == bool(said) and said in told
