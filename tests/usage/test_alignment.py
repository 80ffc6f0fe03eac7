"""Where the devices of a pod are, and the constraint that would align them, tried on the cluster."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import referencing
import yaml

from kubectl_dra.cli.release import assumed
from kubectl_dra.cluster.files import read_snapshot
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.command import CURRENT
from kubectl_dra.report.alignment import pod_blocks, to_json, write_alignments
from kubectl_dra.report.json_output import with_exit_code
from kubectl_dra.usage.alignment import (
    Aligned,
    Alignment,
    Alignments,
    NotAlignable,
    Topology,
    Way,
    alignments,
    ways_to_align,
)
from tests.ran import ran

Json = dict[str, Any]

ROOT = Path(__file__).parents[2]
NUMA = "resource.kubernetes.io/numaNode"
ROOT_NAME = "resource.kubernetes.io/pcieRoot"


def node(name: str) -> Json:
    allocatable = {"cpu": "8", "memory": "32Gi", "pods": "110"}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": {"allocatable": allocatable}}


def slices(driver: str, on: str, **devices: Json) -> list[Json]:
    """A pool of these devices, and the class of the driver."""
    published = [{"name": name, "attributes": attributes} for name, attributes in devices.items()]
    pool = {"name": on, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": driver, "nodeName": on, "pool": pool, "devices": published}
    selector = {"cel": {"expression": f'device.driver == "{driver}"'}}
    api = "resource.k8s.io/v1"
    return [
        {"apiVersion": api, "kind": "ResourceSlice", "metadata": {"name": f"{on}-{driver}"}, "spec": spec},
        {"apiVersion": api, "kind": "DeviceClass", "metadata": {"name": driver}, "spec": {"selectors": [selector]}},
    ]


def pod(name: str, on: str, **claims: list[str]) -> list[Json]:
    """A pod that runs with devices DRIVER/DEVICE, each list in a claim with a request of that count."""
    found: list[Json] = []
    for entry, devices in claims.items():
        driver = devices[0].partition("/")[0]
        request = {"name": entry, "exactly": {"deviceClassName": driver, "count": len(devices)}}
        results = [
            {"request": entry, "driver": driver, "pool": on, "device": device.partition("/")[2]} for device in devices
        ]
        users = [{"resource": "pods", "name": name, "uid": name}]
        found.append(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceClaim",
                "metadata": {"name": f"{name}-{entry}", "namespace": "default"},
                "spec": {"devices": {"requests": [request]}},
                "status": {"allocation": {"devices": {"results": results}}, "reservedFor": users},
            }
        )
    entries = [{"name": entry, "resourceClaimName": f"{name}-{entry}"} for entry in claims]
    spec = {"nodeName": on, "containers": [{"name": "c"}], "resourceClaims": entries}
    meta = {"name": name, "namespace": "default", "uid": name}
    return [*found, {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": {"phase": "Running"}}]


def at(numa: int | list[int] | None = None, root: str = "", **own: int) -> Json:
    out: Json = {name: {"int": value} for name, value in own.items()}
    if numa is not None:
        out[NUMA] = {"ints": numa} if isinstance(numa, list) else {"int": numa}
    if root:
        out[ROOT_NAME] = {"string": root}
    return out


class World:
    """A cluster from objects, with what would align the first pod."""

    def __init__(self, tmp_path: Path, *objects: Json, version: str = "v1.36.2") -> None:
        kinds = ["ResourceSlice", "DeviceClass", "ResourceClaim", "ResourceClaimTemplate", "DeviceTaintRule", "Pod"]
        kinds += ["Node", "Namespace", "ResourceQuota", "Event"]
        document = {
            "apiVersion": "v1",
            "kind": "List",
            "kubectl-dra": {"schemaVersion": "1", "serverVersion": version, "read": kinds},
            "items": list(objects),
        }
        (path := tmp_path / "cluster.yaml").write_text(yaml.safe_dump(document))
        self.snapshot: Snapshot = read_snapshot([str(path)])
        self.found: Alignments = alignments(self.snapshot)
        self.ways: tuple[Way, ...] = ways_to_align(self.found.pods[0], self.snapshot, assumed(self.snapshot))

    @property
    def state(self) -> Alignment:
        return self.found.pods[0].alignment


TWO = slices("gpu", "n1", g0=at(0, "r0"), g1=at(1, "r1")) + slices("nic", "n1", e0=at(0, "r0"), e1=at(1, "r1"))


def test_two_claims_of_one_pod_come_together(tmp_path: Path) -> None:
    world = World(tmp_path, node("n1"), *TWO, *pod("p", "n1", gpu=["gpu/g0"], nic=["nic/e1"]))
    assert world.state is Alignment.APART
    (way,) = world.ways
    assert isinstance(way, Aligned)
    assert (way.topology, way.attribute, way.requests) == (Topology.PCIE_ROOT, ROOT_NAME, (("gpu", "nic"),))
    assert way.merged == ("default/p-gpu", "default/p-nic") and way.node == "n1"
    got = {device.device for device in way.devices}
    assert got in ({"g0", "e0"}, {"g1", "e1"}), "a GPU and a card of one root, from devices that it has now too"


def test_what_others_hold_is_not_promised(tmp_path: Path) -> None:
    mine, other = pod("p", "n1", gpu=["gpu/g0"], nic=["nic/e1"]), pod("q", "n1", gpu=["gpu/g1"], nic=["nic/e0"])
    world = World(tmp_path, node("n1"), *TWO, *mine, *other)
    assert [way.refused for way in world.ways if isinstance(way, Aligned)] == [True, True]
    assert not any(way.node for way in world.ways if isinstance(way, Aligned))


def test_requests_of_several_devices_are_tried_in_pairs(tmp_path: Path) -> None:
    gpus, cards = ["gpu/g0", "gpu/g1"], ["nic/e0", "nic/e1"]
    world = World(tmp_path, node("n1"), *TWO, *pod("p", "n1", gpu=gpus, nic=cards))
    assert world.state is Alignment.SPREAD
    way = next(way for way in world.ways if isinstance(way, Aligned) and way.node)
    assert way.pairs and way.requests == (("gpu-0", "nic-0"), ("gpu-1", "nic-1"))
    assert len(way.devices) == 4


def test_names_of_two_drivers_cannot_be_compared(tmp_path: Path) -> None:
    objects = slices("gpu", "n1", g0=at(0)) + slices("dra.net", "n1", e1=at(numaNode=1))
    world = World(tmp_path, node("n1"), *objects, *pod("p", "n1", gpu=["gpu/g0"], nic=["dra.net/e1"]))
    assert world.state is Alignment.APART
    assert world.ways == (NotAlignable(names=("dra.net/numaNode", NUMA)),)


def test_a_claim_of_several_pods_is_left_alone(tmp_path: Path) -> None:
    own = pod("p", "n1", gpu=["gpu/g0"], nic=["nic/e1"])
    own[0]["status"]["reservedFor"].append({"resource": "pods", "name": "q", "uid": "q"})
    world = World(tmp_path, node("n1"), *TWO, *own)
    assert world.ways == (NotAlignable(claims=("default/p-gpu",)),)


@pytest.mark.parametrize(
    ("first", "second", "state"),
    [
        (at(0), at(0), Alignment.ALIGNED),
        (at(0), at(1), Alignment.APART),
        (at([0, 1]), at(1), Alignment.ALIGNED),
        (at(-1), at(1), Alignment.UNKNOWN),
        (at(), at(1), Alignment.UNKNOWN),
        (at(0, "r0"), at(0, "r1"), Alignment.APART),
        (at(socketID=0), at(socketID=1), Alignment.APART),
    ],
)
def test_states(tmp_path: Path, first: Json, second: Json, state: Alignment) -> None:
    objects = slices("a", "n1", x=first) + slices("b", "n1", z=second)
    assert World(tmp_path, node("n1"), *objects, *pod("p", "n1", a=["a/x"], b=["b/z"])).state is state


def test_cpus_and_memory_are_devices_too(tmp_path: Path) -> None:
    objects = slices("gpu", "n1", g0=at(1)) + slices("dra.cpu", "n1", cpudevnuma000=at(0), cpudevnuma001=at(1))
    world = World(tmp_path, node("n1"), *objects, *pod("p", "n1", gpu=["gpu/g0"], cpu=["dra.cpu/cpudevnuma000"]))
    (way,) = world.ways
    assert isinstance(way, Aligned) and way.attribute == NUMA
    assert {device.device for device in way.devices} == {"g0", "cpudevnuma001"}
    assert "kubelet chooses them" not in str(list(pod_blocks(world.found.pods[0], world.ways)))


def test_a_name_that_another_driver_publishes_as_well_is_compared(tmp_path: Path) -> None:
    """google/dranet#92: CPUs near to the network card, whose driver has a name of its own for the NUMA node."""
    cpus = {"cpudevnuma000": {"dra.net/numaNode": {"int": 0}, "numaNodeID": {"int": 0}}}
    cpus["cpudevnuma001"] = {"dra.net/numaNode": {"int": 1}, "numaNodeID": {"int": 1}}
    objects = slices("dra.net", "n1", eth1=at(numaNode=1)) + slices("dra.cpu", "n1", **cpus)
    world = World(tmp_path, node("n1"), *objects, *pod("p", "n1", nic=["dra.net/eth1"], cpu=["dra.cpu/cpudevnuma000"]))
    (way,) = world.ways
    assert isinstance(way, Aligned) and way.attribute == "dra.net/numaNode"
    assert {device.device for device in way.devices} == {"eth1", "cpudevnuma001"}


def test_requests_of_one_name_are_told_apart(tmp_path: Path) -> None:
    own = pod("p", "n1", gpu=["gpu/g0"], nic=["nic/e1"])
    for claim in own[:2]:
        claim["spec"]["devices"]["requests"][0]["name"] = "device"
        claim["status"]["allocation"]["devices"]["results"][0]["request"] = "device"
    (way,) = World(tmp_path, node("n1"), *TWO, *own).ways
    assert isinstance(way, Aligned) and way.requests == (("device-0", "device-1"),) and way.node == "n1"


def test_json_fits_the_schema(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = ("alignment.json", "claims.json")
    contents = {name: json.loads((ROOT / "schemas" / name).read_text()) for name in names}
    registry = referencing.Registry().with_resources(
        (name, referencing.Resource.from_contents(content)) for name, content in contents.items()
    )
    validator = jsonschema.Draft202012Validator(contents["alignment.json"], registry=registry)
    for objects in (
        pod("p", "n1", gpu=["gpu/g0"], nic=["nic/e1"]),
        pod("p", "n1", gpu=["gpu/g0", "gpu/g1"], nic=["nic/e0", "nic/e1"]),
    ):
        world = World(tmp_path, node("n1"), *TWO, *objects)
        validator.validate(with_exit_code(to_json(world.found, world.ways), 1))
        write_alignments(world.found, world.ways, where=CURRENT)
        assert "constraints: [{requests:" in capsys.readouterr().out


def test_a_pod_that_only_names_a_claim_has_none_of_its_devices() -> None:
    cluster = str(ROOT / "examples" / "explain" / "claim-kept-by-finalizer" / "cluster.yaml")
    asked = ("claims", "--alignment", "--snapshot", cluster)
    assert "No pod has two devices or more (1 pod with a single device)." in ran(*asked)[1]
    code, out, _ = ran(*asked, "pod/notebook-new", "-n", "research")
    assert code == 1 and out.splitlines()[0] == "Pod research/notebook-new has no device."
    assert out.splitlines()[-1] == f"Next: kubectl dra explain pod/notebook-new -n research --snapshot {cluster}"
    old = ran(*asked, "pod/notebook-old", "-n", "research")[1]
    assert "has two devices or more (1 pod with a single device)." in " ".join(old.split())
