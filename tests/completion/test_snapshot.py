"""Names that come from the objects of a snapshot."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from kubectl_dra.cli.completion.answer import KEEP_ORDER, NO_FILES, NO_SPACE, complete

DRIVER = "gpu.example.com"


def names(*words: str) -> list[str]:
    """The candidates without their meanings."""
    return [candidate.partition("\t")[0] for candidate in complete(words)[0]]


def claim(name: str, *, allocated: bool, owner: str = "") -> dict[str, object]:
    device = {"request": "gpu", "driver": DRIVER, "pool": "node-1", "device": "gpu-0"}
    owners = [{"apiVersion": "v1", "kind": "Pod", "name": owner, "uid": "u", "controller": True}] if owner else []
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "ml", "ownerReferences": owners},
        "spec": {
            "devices": {
                "requests": [
                    {"name": "gpu", "exactly": {"deviceClassName": "gpu"}},
                    {"name": "nic", "firstAvailable": [{"name": "fast", "deviceClassName": "gpu"}]},
                ]
            }
        },
        **({"status": {"allocation": {"devices": {"results": [device]}}}} if allocated else {}),
    }


def pod(name: str, node: str, *, claims: bool = True) -> dict[str, object]:
    spec: dict[str, object] = {"containers": [{"name": "main"}]}
    if node:
        spec["nodeName"] = node
    if claims:
        spec["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "a"}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "ml"}, "spec": spec}


OWNED: dict[str, object] = {
    "name": "trainer-5d8f7c9b6d-x2x4z",
    "namespace": "ml",
    "labels": {"pod-template-hash": "5d8f7c9b6d"},
    "ownerReferences": [
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "trainer-5d8f7c9b6d", "uid": "r", "controller": True}
    ],
}


def published(pool: str, devices: int, generation: int = 1, taint: str = "") -> dict[str, object]:
    tainted = {"taints": [{"key": taint, "effect": "NoSchedule"}]} if taint else {}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{pool}-{generation}"},
        "spec": {
            "driver": DRIVER,
            "nodeName": pool,
            "pool": {"name": pool, "generation": generation, "resourceSliceCount": 1},
            "devices": [{"name": f"gpu-{index}", **tainted} for index in range(devices)],
        },
    }


@pytest.fixture
def snapshot(tmp_path: Path) -> str:
    """A small cluster in which ``b`` waits."""
    rule = {
        "apiVersion": "resource.k8s.io/v1beta2",
        "kind": "DeviceTaintRule",
        "metadata": {"name": "maintenance"},
        "spec": {
            "deviceSelector": {"driver": DRIVER, "pool": "node-2"},
            "taint": {"key": "example.com/maintenance", "effect": "NoExecute"},
        },
    }
    items = [
        *({"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"node-{index}"}} for index in (2, 1)),
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ml"}},
        {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}},
        claim("a", allocated=True),
        claim("b", allocated=False, owner="waiting"),
        pod("running", "node-1"),
        pod("web", "node-1", claims=False),
        pod("waiting", ""),
        pod("trainer-5d8f7c9b6d-x2x4z", "node-1", claims=False) | {"metadata": OWNED},
        claim("gpus", allocated=False) | {"kind": "ResourceClaimTemplate", "spec": {"spec": {}}},
        published("node-1", 2, generation=1),
        published("node-1", 3, generation=2),
        published("node-2", 1, taint="example.com/broken"),
        rule,
    ]
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return str(path)


def test_pending_pods_and_claims_come_first(snapshot: str) -> None:
    words = ("explain", "--snapshot", snapshot, "-n", "ml", "")
    found, directive = complete(words)
    assert found == [
        "pod/waiting\tpending, 1 claim",
        "claim/b\tpending",
        "pod/running\ton node-1, 1 claim",
        "claim/a\tallocated",
    ]
    assert directive == NO_FILES | KEEP_ORDER


@pytest.mark.parametrize("kind", ["pod", "pods", "po"])
def test_the_kind_is_kept_as_it_was_typed(snapshot: str, kind: str) -> None:
    assert names("explain", "--snapshot", snapshot, "-n", "ml", f"{kind}/w") == [f"{kind}/waiting"]


def test_a_name_that_is_begun_is_completed_without_its_kind(snapshot: str) -> None:
    assert names("explain", "--snapshot", snapshot, "-n", "ml", "wa") == ["waiting"]


def test_namespaces_are_those_of_the_objects_as_well(tmp_path: Path) -> None:
    path = tmp_path / "cluster.json"
    path.write_text(
        json.dumps({"apiVersion": "v1", "kind": "List", "items": [pod("web", ""), claim("a", allocated=True)]})
    )
    assert names("explain", "--snapshot", str(path), "-n", "") == ["ml"]


def test_another_namespace_has_none_of_them(snapshot: str) -> None:
    assert complete(["explain", "--snapshot", snapshot, ""]) == (["pod/", "claim/"], NO_FILES | KEEP_ORDER | NO_SPACE)


@pytest.mark.parametrize(
    ("words", "candidates"),
    [
        (("devices", "--node", ""), ["node-1", "node-2"]),
        (("devices", "--class", ""), ["gpu"]),
        (("devices", "--driver", "gpu.e"), [DRIVER]),
        (("devices", "--pool", ""), ["node-1", "node-2"]),
        (("devices", "--pool", f"{DRIVER}/"), [f"{DRIVER}/node-1", f"{DRIVER}/node-2"]),
        (("explain", "-n", ""), ["ml"]),
        (("explain", "--trace", "node-1/"), ["node-1/gpu-0", "node-1/gpu-1", "node-1/gpu-2"]),
        (("explain", "--trace", f"{DRIVER}/node-2"), [f"{DRIVER}/node-2/gpu-0"]),
        (("explain", "de"), ["device/", "deployment/"]),
        (("explain", "node/"), ["node/node-1", "node/node-2"]),
        (("explain", "class/"), ["class/gpu"]),
        (("explain", "driver/"), [f"driver/{DRIVER}"]),
        (("explain", "device/node-1/gpu-2"), ["device/node-1/gpu-2"]),
        (("explain", "-n", "ml", "template/"), ["template/gpus"]),
        (("explain", "-n", "ml", "deploy/"), ["deploy/trainer"]),
        (("explain", "-n", "ml", "pod", "w"), ["waiting"]),
        (("explain", "-n", "ml", "pod/waiting", "claim/"), ["claim/b", "claim/a"]),
        (("explain", "-n", "ml", "claim/b", "claim/"), ["claim/a"]),
        (("explain", "-n", "ml", "pod/waiting", "no"), []),
        (("explain", "node/node-1", ""), []),
        (("explain", "-n", "ml", "pod/waiting", "--request", ""), ["gpu", "nic", "nic/fast"]),
        (("explain", "-n", "ml", "claim/none", "--request", ""), []),
        (("explain", "--what-if", "class="), ["class=gpu"]),
        (("explain", "--what-if", "free="), ["free=ml/a"]),
        (("explain", "--what-if", "untaint=node-2"), ["untaint=node-2/gpu-0"]),
    ],
)
def test_names(snapshot: str, words: tuple[str, ...], candidates: list[str]) -> None:
    command, *rest = words
    assert names(command, "--snapshot", snapshot, *rest) == candidates


def test_taints_after_a_device(snapshot: str) -> None:
    before = names("taint", "--snapshot", snapshot, "")
    assert before == [f"{DRIVER}/node-1/gpu-{index}" for index in range(3)] + [f"{DRIVER}/node-2/gpu-0"]
    keys = names("taint", "--snapshot", snapshot, "node-1/gpu-0", "example.com/")
    assert keys == [
        f"example.com/{key}:{effect}"
        for key in ("maintenance", "broken")
        for effect in ("None", "NoSchedule", "NoExecute")
    ]
    assert names("taint", "--snapshot", snapshot, "node-1/gpu-0", "mine=1:No") == [
        "mine=1:None",
        "mine=1:NoSchedule",
        "mine=1:NoExecute",
    ]


def test_many_devices_are_offered_part_by_part(tmp_path: Path) -> None:
    path = tmp_path / "many.json"
    items = [published(f"node-{index}", 8) for index in range(20)]
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    asked = ("explain", "--snapshot", str(path), "--trace")
    assert complete([*asked, ""]) == ([f"{DRIVER}/"], NO_FILES | KEEP_ORDER | NO_SPACE)
    assert len(names(*asked, f"{DRIVER}/")) == 20
    assert names(*asked, f"{DRIVER}/node-7/") == [f"{DRIVER}/node-7/gpu-{index}" for index in range(8)]


def test_names_of_a_kubeconfig(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text("contexts: [{name: prod}, {name: dev}]\nusers: [{name: me}]\nclusters: broken\n")
    given = ("explain", "--kubeconfig", str(path))
    assert names(*given, "--context", "") == ["dev", "prod"]
    assert names(*given, "--user", "") == ["me"]
    assert names(*given, "--cluster", "") == []


@pytest.mark.parametrize("text", ["", "not: [yaml", '{"apiVersion": "v1", "kind": "List"'])
def test_what_cannot_be_read_gives_nothing(tmp_path: Path, text: str) -> None:
    path = tmp_path / "broken.json"
    path.write_text(text)
    assert names("devices", "--snapshot", str(path), "--node", "") == []
    assert names("devices", "--snapshot", str(tmp_path / "none"), "--node", "") == []


def test_a_server_that_does_not_answer_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    monkeypatch.setenv("KUBECTL_DRA_COMPLETION_TIMEOUT", "0.6")
    took: list[float] = []
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        # The best of some: others may use the machine.
        while len(took) < 5 and min(took, default=3) >= 3:
            begun = time.monotonic()
            assert names("explain", "-s", address, "") == ["pod/", "claim/"]
            took.append(time.monotonic() - begun)
    assert min(took) < 3
