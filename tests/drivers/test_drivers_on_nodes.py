"""Drivers joined with their pods: which pod is a driver's, and how the driver is on each node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from kubectl_dra.api.meta import FAILED_PREPARE
from kubectl_dra.cluster.builder import SnapshotBuilder
from kubectl_dra.cluster.duplicates import Place
from kubectl_dra.cluster.save import reduced
from kubectl_dra.drivers.drivers_on_nodes import joined
from kubectl_dra.drivers.health import DriverState, LeftOut
from kubectl_dra.explain.driver_repair import labelling, repair
from kubectl_dra.explain.driver_words import next_look, why
from kubectl_dra.report.explain_commands import Invocation, command
from kubectl_dra.report.phrases import written
from tests.drivers.clusters import (
    AT,
    CRASHES,
    DRIVER,
    ENDED,
    JSON,
    LONG_AGO,
    daemon_set,
    event,
    node,
    plugin,
    slices,
    snapshot_of,
    status,
)

YOUNG = "2026-10-01T11:59:00Z"
LIKES = [node("n2", "big"), plugin("n2"), slices("n2", 4), node("n3", "big"), plugin("n3"), slices("n3", 4)]
STATES: dict[str, tuple[DriverState, list[JSON]]] = {
    "healthy": (DriverState.HEALTHY, [plugin("n1"), slices("n1", 4)]),
    "crashes": (DriverState.CRASHING, [plugin("n1", [status(state=CRASHES, lastState=ENDED, restartCount=37)])]),
    "has just crashed": (DriverState.CRASHING, [plugin("n1", [status(state=ENDED)])]),
    "up between two crashes": (DriverState.CRASHING, [plugin("n1", [status(ready=False, restartCount=9)])]),
    "no image": (DriverState.NOT_STARTING, [plugin("n1", [status(state={"waiting": {"reason": "ImagePullBackOff"}})])]),
    "waits for an init container": (
        DriverState.NOT_STARTING,
        [
            {
                **plugin("n1"),
                "status": {
                    "phase": "Pending",
                    "initContainerStatuses": [status("wait", ready=False)],
                    "containerStatuses": [status(state={"waiting": {"reason": "PodInitializing"}})],
                },
            }
        ],
    ),
    "starts": (
        DriverState.STARTING,
        [
            plugin(
                "n1",
                [status(state={"waiting": {"reason": "ContainerCreating"}})],
                phase="Pending",
                metadata={"creationTimestamp": YOUNG},
            )
        ],
    ),
    "starts for hours": (
        DriverState.NOT_STARTING,
        [plugin("n1", [status(state={"waiting": {"reason": "ContainerCreating"}})], phase="Pending")],
    ),
    "no pod, slices left over": (DriverState.NO_POD, [slices("n1", 4)]),
    "publishes nothing": (DriverState.SILENT, [plugin("n1")]),
    "publishes less": (DriverState.FEWER, [plugin("n1"), slices("n1", 3)]),
    "a slice is missing": (DriverState.INCOMPLETE, [plugin("n1"), slices("n1", 4, count=2)]),
    "not ready": (DriverState.NOT_READY, [plugin("n1", [status(ready=False)]), slices("n1", 4)]),
    "being deleted": (DriverState.ENDING, [plugin("n1", metadata={"deletionTimestamp": AT}), slices("n1", 4)]),
}


@pytest.mark.parametrize("name", STATES)
def test_a_state_is_told_and_a_saved_snapshot_tells_the_same(name: str) -> None:
    state, own = STATES[name]
    items = [node("n1", "big"), *own, *LIKES]
    found = joined(snapshot_of(items))
    row = found.of(DRIVER, "n1")
    assert row is not None
    assert row.state is state
    assert found.gaps == ()
    assert all(other.state is DriverState.HEALTHY for other in found.rows if other.node != "n1")
    # Worst first, and nothing of it is lost by saving.
    assert found.rows[0].node == "n1" or state is DriverState.HEALTHY
    assert joined(snapshot_of([reduced(item) for item in items])) == found


def test_last_words_are_kept() -> None:
    own = plugin("n1", [status(state=CRASHES, lastState=ENDED, restartCount=37)])
    row = joined(snapshot_of([node("n1"), own])).rows[0]
    assert row.pod is not None and row.pod.last is not None
    assert (row.pod.last.message, row.pod.last.exit_code, row.pod.restarts) == ("no such device", 1, 37)
    assert (row.pod.version, row.pod.container, row.since) == ("v1.2.3", "plugin", "2026-10-01T11:58:00Z")


def _containers(**more: Any) -> list[JSON]:
    return [{"name": "main", "image": "registry.test/any:1", **more}]


LOOKS: dict[str, tuple[str, list[JSON], str, str]] = {
    "a variable": (DRIVER, _containers(env=[{"name": "DRIVER_NAME", "value": DRIVER}]), "/var/lib/kubelet", "d"),
    "a flag": (DRIVER, _containers(args=["--driver-name", DRIVER]), "/var/lib/k0s/kubelet", "d"),
    "any flag with a published name": (DRIVER, _containers(args=[f"--serve={DRIVER}"]), "/var/lib/kubelet", "d"),
    "the catalogue": (
        "gpu.nvidia.com",
        [{"name": "gpus", "image": "example.test/gpu", "command": ["gpu-kubelet-plugin"]}],
        "/var/lib/kubelet",
        "d",
    ),
    "the name of its DaemonSet": ("gpu.intel.com", _containers(), "/x", "intel-gpu-resource-driver-kubelet-plugin"),
    "nothing but its nodes": (DRIVER, _containers(), "/var/lib/kubelet", "d"),
}


@pytest.mark.parametrize("name", LOOKS)
def test_a_pod_is_found_by_its_structure(name: str) -> None:
    driver, containers, root, daemon = LOOKS[name]
    pod = plugin("n1", containers=containers, root=root, daemon=daemon)
    storage = plugin(
        "n1",
        containers=[{"name": "node-driver-registrar", "image": "registry.test/csi-node-driver-registrar:1"}],
        daemon="csi-node",
    )
    items = [node("n1"), pod, storage, slices("n1", 2, driver)]
    found = joined(snapshot_of(items))
    (row,) = found.rows
    assert (row.driver, row.state) == (driver, DriverState.HEALTHY)
    assert row.pod is not None and row.pod.owner == daemon
    assert joined(snapshot_of([reduced(item) for item in items])).rows[0].pod == row.pod


def test_two_plugins_without_a_name_are_not_guessed() -> None:
    pods = [plugin("n1", containers=_containers(), daemon=name) for name in ("a", "b")]
    (row,) = joined(snapshot_of([node("n1"), *pods, slices("n1", 2)])).rows
    assert (row.state, row.pod) == (DriverState.UNKNOWN, None)


def test_one_of_two_drivers_of_a_pod_crashes() -> None:
    containers = [
        {"name": name, "image": "registry.test/dra-driver-nvidia-gpu:v0.4.0"} for name in ("gpus", "compute-domains")
    ]
    pod = plugin("n1", [status("gpus", CRASHES), status("compute-domains")], containers=containers)
    found = joined(snapshot_of([node("n1"), pod, slices("n1", 2, "compute-domain.nvidia.com")]))
    states = {row.driver: row.state for row in found.rows}
    assert states == {"gpu.nvidia.com": DriverState.CRASHING, "compute-domain.nvidia.com": DriverState.HEALTHY}


def test_a_pod_that_only_its_daemon_sets_name_tells_is_that_of_the_driver_which_publishes() -> None:
    """NVIDIA's two drivers share names; a pod without their containers and folders serves the one that is there."""
    shape: Any = {"daemon": "nvidia-dra-driver-gpu-kubelet-plugin", "volumes": []}
    own = [{"name": "main", "image": "nvcr.io/nvidia/k8s-dra-driver-gpu:v25.12.0"}]
    there = [node("n1"), plugin("n1", containers=own, **shape), node("n2"), plugin("n2", containers=own, **shape)]
    found = joined(snapshot_of([*there, slices("n1", 4, "gpu.nvidia.com")]))
    states = {row.node: (row.state, row.pod is not None) for row in found.rows}
    assert states == {"n1": (DriverState.HEALTHY, True), "n2": (DriverState.SILENT, True)}
    both = [slices("n1", 4, "gpu.nvidia.com"), slices("n2", 1, "compute-domain.nvidia.com")]
    doubtful = joined(snapshot_of([*there, *both])).rows
    assert {row.state for row in doubtful} == {DriverState.UNKNOWN}
    assert {written(why(row)) for row in doubtful} == {"no pod was recognized as the driver's"}


def test_a_driver_that_cannot_prepare_devices_is_told_with_what_it_says() -> None:
    said = "prepare devices failed: error applying GpuConfig: time-slicing settings are disabled"
    refused = [failing("a", f"NodePrepareResources failed for ResourceClaim a: {said}", count=163), *waits("a")]
    second = [failing("b", "NodePrepareResources: rpc error: out"), *waits("b")]
    for more, others in (([], ""), (second, " and 1 more")):
        found = joined(snapshot_of([node("n1"), plugin("n1"), slices("n1", 4), *refused, *more]))
        (row,) = found.rows
        assert row.state is DriverState.PREPARE_FAILING and found.broken() == (row,)
        assert written(why(row)) == f"it cannot prepare the devices of pod drivers/a{others} (163 times): {said}"


@pytest.mark.parametrize(
    ("own", "message", "state"),
    [
        # What its pod's status says comes first; the kubelet's own troubles are none of the driver's.
        ([plugin("n1", [status(state=CRASHES)])], "NodePrepareResources failed for ResourceClaim a: x", "crashing"),
        ([plugin("n1")], "pod a (1) is not allowed to use ResourceClaim a (2)", "healthy"),
        ([plugin("n1")], "fetch ResourceClaim drivers/a referenced by pod a: not found", "healthy"),
    ],
)
def test_what_the_kubelet_says_is_not_always_that_the_driver_cannot_prepare(
    own: list[JSON], message: str, state: str
) -> None:
    (row,) = joined(snapshot_of([node("n1"), *own, slices("n1", 4), failing("a", message), *waits("a")])).rows
    assert row.state.value == state


def failing(pod: str, message: str, count: int = 1) -> JSON:
    """The kubelet's event about a pod."""
    return {**event("Pod", pod, FAILED_PREPARE, f"Failed to prepare dynamic resources: {message}"), "count": count}


def waits(name: str) -> list[JSON]:
    """A pod on n1 that does not start, and its claim."""
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "drivers", "uid": f"uid-{name}-claim"},
        "spec": {"devices": {"requests": [{"name": "npu", "exactly": {"deviceClassName": "npu"}}]}},
        "status": {
            "allocation": {
                "devices": {"results": [{"request": "npu", "driver": DRIVER, "pool": "n1", "device": "dev-0"}]}
            },
            "reservedFor": [{"resource": "pods", "name": name, "uid": f"uid-{name}"}],
        },
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "drivers", "uid": f"uid-{name}"},
        "spec": {
            "nodeName": "n1",
            "containers": [{"name": "main"}],
            "resourceClaims": [{"name": "npu", "resourceClaimName": name}],
        },
        "status": {"phase": "Pending"},
    }
    return [claim, pod]


def test_a_node_that_lost_the_label_of_its_daemon_set_is_told_so_while_its_slices_are_left() -> None:
    own = daemon_set(desired=1, selector={"npu": "yes"})
    items = [node("n1"), slices("n1", 4), node("n2", npu="yes"), plugin("n2"), slices("n2", 4), own]
    row = joined(snapshot_of(items)).of(DRIVER, "n1")
    assert row is not None and (row.state, row.left_out) == (DriverState.NO_POD, LeftOut(labels=("npu=yes",)))
    name, left = "DaemonSet drivers/npu-driver", "its 1 ResourceSlice is left over"
    assert written(why(row)) == f"{name} asks for label npu=yes, which node n1 does not have; {left}"
    assert [str(command) for command in labelling(row)] == ["kubectl label node n1 npu=yes"]
    assert all(command.effect.changes for command in labelling(row))
    assert written(repair(row)) == f"Give node n1 label npu=yes, by which {name} selects nodes."


def test_a_daemon_set_that_cannot_make_a_pod_says_why() -> None:
    denied = 'pods "npu-driver-" is forbidden: exceeded quota: pods, requested: pods=1'
    items = [node("n1"), node("n2"), plugin("n2"), slices("n2", 1), daemon_set(desired=2)]
    items.append(event("DaemonSet", "npu-driver", "FailedCreate", denied))
    row = joined(snapshot_of(items)).of(DRIVER, "n1")
    assert row is not None and row.daemon is not None
    assert (row.state, row.daemon.failure) == (DriverState.NO_POD, denied)


def test_a_daemon_set_that_selects_no_node_names_the_label() -> None:
    own = daemon_set(desired=0, current=0, selector={"npu": "yes"})
    cls = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "npu"},
        "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]},
    }
    (row,) = joined(snapshot_of([node("n1"), own, cls])).rows
    assert row.daemon is not None
    assert (row.node, row.state, row.daemon.labels) == ("", DriverState.NO_POD, ("npu=yes",))


def labelled(of: JSON, labels: Mapping[str, str]) -> JSON:
    return {**of, "metadata": {**of["metadata"], "labels": {**of["metadata"]["labels"], **labels}}}


def tainted(of: JSON, key: str) -> JSON:
    return {**of, "spec": {"taints": [{"key": key, "value": "ml", "effect": "NoSchedule"}]}}


@pytest.mark.parametrize(
    ("left", "selector", "why_not"),
    [
        (tainted(node("n1", "big"), "team"), {}, LeftOut(taint="team=ml:NoSchedule")),
        (node("n1", "big"), {"npu": "yes"}, LeftOut(labels=("npu=yes",))),
    ],
)
def test_a_node_that_its_daemon_set_leaves_out(left: JSON, selector: dict[str, str], why_not: LeftOut) -> None:
    # The nodes that are alike have the label.
    alike = [labelled(node("n2", "big"), selector), plugin("n2"), slices("n2", 4)]
    items = [left, *alike, daemon_set(desired=1, selector=selector)]
    found = joined(snapshot_of(items))
    row = found.of(DRIVER, "n1")
    assert row is not None and (row.state, row.left_out, row.usual) == (DriverState.LEFT_OUT, why_not, 4)
    assert not found.broken()
    assert written(why(row)).startswith("DaemonSet drivers/npu-driver ")
    assert joined(snapshot_of([reduced(item) for item in items])) == found


@pytest.mark.parametrize(
    "left",
    [
        tainted(node("n1", "cpu-only"), "team"),
        tainted(node("n1"), "team"),
    ],
)
def test_a_node_without_a_sign_of_hardware_is_not_left_out(left: JSON) -> None:
    assert joined(snapshot_of([left, *LIKES, daemon_set(desired=2)])).of(DRIVER, "n1") is None


def test_a_node_that_a_second_daemon_set_wants_is_not_left_out() -> None:
    """A driver may have a DaemonSet for each kind of node; and whoever sees no pods does not know where one is."""
    left = tainted(node("n1", "big"), "team")
    second = daemon_set("npu-driver-of-team", desired=1, current=0)
    second["metadata"]["uid"] = "uid-second"
    second["spec"]["template"]["spec"]["tolerations"] = [{"operator": "Exists"}]
    items = [left, node("n2", "big"), slices("n2", 4), daemon_set(desired=1)]
    for snapshot in (snapshot_of([*items, plugin("n2"), second]), snapshot_of(items, ("Pod",))):
        row = joined(snapshot).of(DRIVER, "n1")
        assert row is None or row.state is not DriverState.LEFT_OUT


def test_a_node_that_a_device_plugin_serves_is_not_left_out() -> None:
    driver, label = "gpu.nvidia.com", {"nvidia.com/gpu.present": "true"}
    pod = plugin("n2", containers=[{"name": "gpus", "image": "x", "env": [{"name": "DRIVER_NAME", "value": driver}]}])
    daemon = daemon_set(selector={"dra": "yes"})
    daemon["spec"]["template"]["spec"]["containers"] = pod["spec"]["containers"]
    for count, state in (("8", None), ("0", DriverState.LEFT_OUT)):
        bare = labelled(node("n1"), label)
        bare["status"]["allocatable"] = {"nvidia.com/gpu": count}
        alike = labelled(node("n2", dra="yes"), label)
        row = joined(snapshot_of([bare, alike, pod, slices("n2", 8, driver), daemon])).of(driver, "n1")
        assert (row.state if row is not None else None) is state


def test_a_node_of_another_kind_is_no_like() -> None:
    small = joined(snapshot_of([node("n1", "small"), plugin("n1"), slices("n1", 1), *LIKES])).of(DRIVER, "n1")
    assert small is not None and small.state is DriverState.HEALTHY
    bare = joined(snapshot_of([node("n1", "cpu-only"), plugin("n1"), *LIKES])).of(DRIVER, "n1")
    assert bare is not None and bare.state is DriverState.IDLE


def test_a_node_that_does_not_answer_is_named_before_its_driver() -> None:
    found = joined(snapshot_of([node("n1", ready=False), plugin("n1", [status(state=CRASHES)]), slices("n1", 1)]))
    assert [row.state for row in found.rows] == [DriverState.NODE_DOWN]


@pytest.mark.parametrize("kind", ["Pod", "ResourceSlice", "Node"])
def test_what_was_not_read_is_a_gap_and_no_state(kind: str) -> None:
    items = [node("n1"), plugin("n1"), slices("n1", 1)]
    found = joined(snapshot_of([item for item in items if item["kind"] != kind], unread=[kind]))
    assert [gap.kind for gap in found.gaps] == [kind]
    assert [row for row in found.rows if row.state in (DriverState.NO_POD, DriverState.SILENT)] == []


def test_a_pod_on_one_page_of_a_list_is_read_like_any_other() -> None:
    """The fast reader of large lists gives what the reader of single objects gives."""
    from msgspec import json

    from kubectl_dra.cluster.reader import page

    items = [plugin(name, [status(state=CRASHES, lastState=ENDED)]) for name in ("n1", "n2")]
    builder = SnapshotBuilder()
    builder.read_at(AT)
    given = page(json.encode({"kind": "PodList", "apiVersion": "v1", "items": items}), pods=True)
    assert given is not None and builder.add_page(given, "Pod", Place("test")) == []
    fast = builder.build().pods
    slow = snapshot_of(items).pods
    assert {key: pod.plugin for key, pod in fast.items()} == {key: pod.plugin for key, pod in slow.items()}
    assert len({id(pod.plugin.spec) for pod in fast.values() if pod.plugin is not None}) == 1


ODD: list[JSON] = [
    {"containers": [{"name": "a", "env": [{"name": 1}]}]},
    {"containers": [{"name": "a", "args": "--driver-name"}]},
    {"containers": [{"name": "a", "command": [None]}], "volumes": [{"hostPath": {"path": 7}}]},
    {"containers": None, "volumes": [{"hostPath": {"path": "/plugins_registry"}}]},
]


@pytest.mark.parametrize("spec", ODD)
def test_an_odd_pod_is_no_driver_and_stays_a_pod(spec: JSON) -> None:
    pod = plugin("n1", metadata={"creationTimestamp": LONG_AGO})
    pod["spec"] = {"nodeName": "n1", "hostPath": "/plugins_registry", **spec}
    found = snapshot_of([node("n1"), pod])
    assert len(found.pods) == 1
    joined(found)


def test_a_deployment_makes_the_pod() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "npu-driver-6d4f9", "uid": "u", "controller": True}
    own = plugin("n1", metadata={"ownerReferences": [owner]})
    (row,) = joined(snapshot_of([node("n1"), own, slices("n1", 2)])).rows
    assert row.state is DriverState.HEALTHY
    assert row.pod is not None and (row.pod.owner_kind, row.pod.owner) == ("ReplicaSet", "npu-driver-6d4f9")


def test_a_deployment_whose_pod_nobody_may_make() -> None:
    """Its ReplicaSet is known by an event alone, and the driver by the name."""
    said = 'pods "dra-example-driver-7c5-" is forbidden: exceeded quota'
    cls = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "gpu.example.com"},
        "spec": {"selectors": [{"cel": {"expression": 'device.driver == "gpu.example.com"'}}]},
    }
    found = joined(snapshot_of([node("n1"), cls, event("ReplicaSet", "dra-example-driver-7c5", "FailedCreate", said)]))
    (row,) = found.rows
    assert (row.driver, row.state) == ("gpu.example.com", DriverState.NO_POD)
    assert row.daemon is not None and (row.daemon.kind, row.daemon.failure) == ("ReplicaSet", said)
    assert written(why(row)) == f"ReplicaSet drivers/dra-example-driver-7c5 cannot make its pod: {said}"
    assert str(command(next_look(row), Invocation())) == "kubectl describe replicaset/dra-example-driver-7c5 -n drivers"
