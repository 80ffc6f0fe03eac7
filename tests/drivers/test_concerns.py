"""What is odd about a driver on a node beside its state, each seen by a comparison."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kubectl_dra.drivers.concerns import Concern, ConcernKind, concerns_of
from kubectl_dra.drivers.drivers_on_nodes import joined
from kubectl_dra.drivers.health import DriverState
from tests.drivers.clusters import DRIVER, ENDED, JSON, LONG_AGO, node, plugin, slices, snapshot_of, status

LATER = "2026-10-01T10:00:00Z"
NVIDIA = "gpu.nvidia.com"
GPUS = [{"name": "gpus", "image": "registry.test/gpu:v25.8.1", "command": ["gpu-kubelet-plugin"]}]


def concerns(items: Sequence[JSON], driver: str = DRIVER, on: str = "n1") -> tuple[Concern, ...]:
    snapshot = snapshot_of(items)
    return concerns_of(snapshot, joined(snapshot).rows).get((driver, on), ())


def claim(name: str, *devices: str, driver: str = DRIVER, pool: str = "n1", **more: Any) -> JSON:
    results = [{"request": "r", "driver": driver, "pool": pool, "device": device, **more} for device in devices]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "ml", "uid": f"uid-{name}"},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}},
        "status": {"allocation": {"devices": {"results": results}}},
    }


def test_nothing_is_odd_about_a_healthy_driver() -> None:
    own = [node("n1"), plugin("n1"), slices("n1", 4), claim("a", "dev-0"), claim("b", "dev-1")]
    assert concerns(own) == ()


def test_two_plugins_of_a_node_look_for_the_kubelet_in_different_folders() -> None:
    other = plugin("n1", root="/var/lib/k0s/kubelet", daemon="csi-node", containers=[{"name": "csi", "image": "x"}])
    found = concerns([node("n1"), plugin("n1"), slices("n1", 4), other])
    assert found == (
        Concern(ConcernKind.OTHER_ROOT, ("/var/lib/kubelet", "drivers/csi-node-n1", "/var/lib/k0s/kubelet")),
    )


def test_a_driver_is_older_than_what_it_needs() -> None:
    own = plugin("n1", containers=GPUS, daemon="nvidia-dra-driver-gpu-kubelet-plugin")
    toolkit: JSON = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "nvidia-container-toolkit-daemonset-x",
            "namespace": "gpu-operator",
            "creationTimestamp": LATER,
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "DaemonSet",
                    "name": "nvidia-container-toolkit-daemonset",
                    "uid": "u",
                    "controller": True,
                }
            ],
        },
        "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "x"}]},
        "status": {"phase": "Running"},
    }
    items = [node("n1"), own, slices("n1", 4, NVIDIA), toolkit]
    pod = "gpu-operator/nvidia-container-toolkit-daemonset-x"
    assert concerns(items, NVIDIA) == (Concern(ConcernKind.OLDER, (pod, LATER)),)
    toolkit["metadata"]["creationTimestamp"] = LONG_AGO
    assert concerns(items, NVIDIA) == ()


def test_most_nodes_run_another_release() -> None:
    def release(on: str, tag: str) -> JSON:
        env = [{"name": "DRIVER_NAME", "value": DRIVER}]
        return plugin(on, containers=[{"name": "plugin", "image": f"r.test/npu:{tag}", "env": env}])

    items: list[JSON] = []
    for name, tag in (("n1", "v2.0.0"), ("n2", "v1.9.0"), ("n3", "v1.9.0")):
        items += [node(name), release(name, tag), slices(name, 4)]
    assert concerns(items) == (Concern(ConcernKind.OTHER_VERSION, ("v2.0.0", "v1.9.0")),)
    assert concerns(items, on="n2") == ()


def test_a_device_plugin_offers_the_same_devices() -> None:
    own = node("n1")
    own["status"]["allocatable"] = {"cpu": "8", "nvidia.com/gpu": "4"}
    items = [own, plugin("n1", containers=GPUS), slices("n1", 4, NVIDIA)]
    assert concerns(items, NVIDIA) == (Concern(ConcernKind.PLUGIN_TOO, ("nvidia.com/gpu", "4")),)
    own["status"]["allocatable"]["nvidia.com/gpu"] = "0"
    assert concerns(items, NVIDIA) == ()


def test_a_driver_that_publishes_only_what_is_free_is_healthy() -> None:
    items = [node("n1", "big"), plugin("n1"), slices("n1", 0), claim("a", "dev-0", "dev-1", "dev-2", "dev-3")]
    for name in ("n2", "n3"):
        items += [node(name, "big"), plugin(name), slices(name, 4)]
    row = joined(snapshot_of(items)).of(DRIVER, "n1")
    assert row is not None
    assert (row.state, row.in_use) == (DriverState.HEALTHY, 4)
    assert concerns(items) == (Concern(ConcernKind.IN_USE, ("4",)),)
    # Without the claims nothing says where the devices are.
    row = joined(snapshot_of([item for item in items if item["kind"] != "ResourceClaim"])).of(DRIVER, "n1")
    assert row is not None
    assert row.state is DriverState.SILENT


def test_two_claims_have_one_device() -> None:
    items = [node("n1"), plugin("n1"), slices("n1", 4), claim("a", "dev-0"), claim("b", "dev-0")]
    assert concerns(items) == (Concern(ConcernKind.TWICE, ("dev-0", "ml/a", "ml/b")),)
    shared = [*items[:3], claim("a", "dev-0", shareID="s1"), claim("b", "dev-0", shareID="s2")]
    assert concerns(shared) == ()
    assert concerns([*items[:4], claim("b", "dev-0", adminAccess=True)]) == ()


def test_a_restart_within_a_running_pod() -> None:
    """It is told for a day, with what the container said last."""
    again = status(lastState=ENDED, restartCount=1)
    (concern,) = concerns([node("n1"), plugin("n1", [again]), slices("n1", 2)])
    assert (concern.kind, concern.values) == (
        ConcernKind.RESTARTED,
        ("2026-10-01T11:58:00Z", "Error", "no such device"),
    )
    old = {"terminated": {**ENDED["terminated"], "finishedAt": "2026-09-01T11:58:00Z"}}
    assert concerns([node("n1"), plugin("n1", [status(lastState=old, restartCount=1)]), slices("n1", 2)]) == ()
