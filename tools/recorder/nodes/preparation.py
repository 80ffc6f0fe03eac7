"""States of pods that have a node and devices, and do not start."""

from __future__ import annotations

import time

from tools.controlplane.objects import RESOURCE_API
from tools.recorder.nodes.healthy import States
from tools.recorder.nodes.stage import DRIVER, NAMESPACE, Stage, Truth, names

REPAIR = "look into the driver's log, and repair what it says"
START = f"start {DRIVER} on gpu-1"
_FAULT = f"driver/gpu-1/{DRIVER}"


def prepare_error(stage: Stage) -> Truth:
    _, driver = stage.node_with_driver()
    driver.prepare(error="failed to generate CDI specification: device gpu-0 is busy")
    stage.pod()
    stage.event("FailedPrepareDynamicResources")
    return Truth("the driver fails to prepare the devices", "preparation", _FAULT, REPAIR)


def disk_full(stage: Stage) -> Truth:
    _, driver = stage.node_with_driver()
    driver.prepare(error="write /var/run/cdi/gpu.json: no space left on device")
    stage.pod()
    stage.event("FailedPrepareDynamicResources")
    return Truth("the driver cannot write: the node's disk is full", "preparation", "Node/gpu-1", "free disk on gpu-1")


def prepare_times_out(stage: Stage) -> Truth:
    _, driver = stage.node_with_driver()
    driver.prepare(hang=True)
    stage.pod()
    stage.event("FailedPrepareDynamicResources", "DeadlineExceeded")
    return Truth("the driver never answers: the kubelet gave up after 45 s", "preparation", _FAULT, REPAIR)


def prepare_hangs(stage: Stage) -> Truth:
    _, driver = stage.node_with_driver()
    driver.prepare(hang=True)
    stage.pod()
    stage.until(lambda: stage.get_pod()["status"].get("startTime"), "the kubelet")
    time.sleep(36)
    return Truth("the driver was asked 36 s ago and has not answered; no event says so", "preparation", _FAULT)


def wrong_registry(stage: Stage) -> Truth:
    stage.node_with_driver(elsewhere=True)
    stage.pod()
    stage.event("FailedPrepareDynamicResources", "not registered")
    return Truth(
        "the driver runs and publishes, but registers in a directory where the kubelet does not look",
        "preparation",
        _FAULT,
        "give the driver the kubelet's directory",
    )


def wrong_version(stage: Stage) -> Truth:
    stage.node_with_driver(services=["v1alpha4.Node"])
    stage.pod()
    stage.event("FailedPrepareDynamicResources", "not registered")
    return Truth("the kubelet refused the driver: too old a version", "preparation", _FAULT, "upgrade the driver")


def driver_gone_before_start(stage: Stage) -> Truth:
    stage.node_with_driver()
    stage.remove_driver()
    stage.pod()
    stage.event("FailedPrepareDynamicResources", "not registered")
    return Truth("the driver was uninstalled, its slices are still there", "preparation", _FAULT, START)


def driver_gone_and_wiped_before_start(stage: Stage) -> Truth:
    stage.node_with_driver()
    stage.remove_driver()
    stage.pod()
    stage.event("FailedPrepareDynamicResources", "not registered")
    stage.slices("gpu-1", 0)
    return Truth("the driver was uninstalled; the kubelet has deleted its slices too", "preparation", _FAULT, START)


def driver_crashed(stage: Stage) -> Truth:
    _, driver = stage.node_with_driver()
    stage.pod("before")
    stage.running("before")
    driver.crash()
    stage.pod()
    stage.event("FailedPrepareDynamicResources")
    return Truth("the driver's process was killed a moment ago, its socket is left", "preparation", _FAULT, START)


def driver_crash_loops(stage: Stage) -> Truth:
    stage.node_with_driver()
    stage.pod("before")
    stage.running("before")
    stage.break_driver("gpu-1")
    stage.pod()
    stage.event("FailedPrepareDynamicResources")
    return Truth("the driver's pod is in CrashLoopBackOff", "preparation", _FAULT, START)


def comes_back_with_other_names(stage: Stage) -> Truth:
    node, driver = stage.node_with_driver()
    driver.crash()
    stage.pod()
    stage.bound()
    newer = node.driver(DRIVER)
    newer.prepare(error="requested device is not allocatable: gpu-0")
    newer.publish(names(["mig-0", "mig-1"]))
    stage.event("FailedPrepareDynamicResources", "not allocatable")
    stage.until(lambda: _devices(stage) == ["mig-0", "mig-1"], "the new devices")
    return Truth(
        "the driver came back with other devices; the pod has one that no longer exists",
        "preparation",
        "Pod/train",
        "delete the pod",
    )


def _devices(stage: Stage) -> list[str]:
    slices = stage.api.list(RESOURCE_API, "ResourceSlice")
    return [spec["name"] for one in slices for spec in one["spec"].get("devices", [])]


def bound_by_hand_without_allocation(stage: Stage) -> Truth:
    stage.node_with_driver()
    claim = stage.claim()
    stage.pod(claim=claim, node="gpu-1")
    stage.event("FailedPrepareDynamicResources", "not allowed")
    return Truth(
        "somebody set nodeName, so nobody allocates the claim",
        "preparation",
        "Pod/train",
        "delete the pod and let the scheduler place it",
    )


def force_deleted_before(stage: Stage) -> Truth:
    stage.node_with_driver()
    claim = stage.claim()
    stage.pod("before", claim=claim)
    stage.running("before")
    stage.drivers["gpu-1"].unprepare(error="device gpu-0 is in use by process 4711")
    stage.delete("before", grace_seconds=0)
    stage.gone("before")
    stage.api.delete({"apiVersion": RESOURCE_API, "kind": "ResourceClaim", **stage.get_claim(claim)})
    stage.until(lambda: not stage.api.list(RESOURCE_API, "ResourceClaim", NAMESPACE), "the end of the claim")
    stage.claim()
    stage.pod(claim=claim)
    stage.event("FailedPrepareDynamicResources", "old ResourceClaim")
    return Truth(
        "an earlier pod was deleted by force, and its claim of the same name is not unprepared yet",
        "preparation",
        _FAULT,
        REPAIR,
    )


def kubelet_stopped(stage: Stage) -> Truth:
    node, _ = stage.node_with_driver()
    node.stop()
    stage.pod()
    stage.bound()
    time.sleep(50)
    return Truth("the kubelet stopped, and nobody has noticed yet", "preparation", "Node/gpu-1", "start the kubelet")


def node_not_ready_before_start(stage: Stage) -> Truth:
    node, _ = stage.node_with_driver()
    node.stop()
    stage.pod()
    stage.bound()
    stage.lifecycle()
    stage.until(lambda: _ready(stage, "gpu-1") == "Unknown", "the node to be lost")
    return Truth("the node is lost, and the pod was placed there", "preparation", "Node/gpu-1", "bring the node back")


def _ready(stage: Stage, node: str) -> str:
    conditions = stage.api.get("v1", "Node", node)["status"]["conditions"]
    return next(str(condition["status"]) for condition in conditions if condition["type"] == "Ready")


def container_crashes(stage: Stage) -> Truth:
    node, _ = stage.node_with_driver()
    node.end_containers({f"{NAMESPACE}/train/main": 1})
    stage.pod()

    def crashing() -> bool:
        statuses = stage.get_pod()["status"].get("containerStatuses", [])
        return bool(statuses and statuses[0]["state"].get("waiting", {}).get("reason") == "CrashLoopBackOff")

    stage.until(crashing, "CrashLoopBackOff")
    return Truth("the pod has its devices; its own container crashes", "running", "Pod/train", "read the pod's log")


def bound_by_hand_elsewhere(stage: Stage) -> Truth:
    stage.node_with_driver()
    stage.node_with_driver("gpu-2")
    claim = stage.claim()
    stage.pod("first", claim=claim)
    stage.running("first")
    home = str(stage.get_pod("first")["spec"]["nodeName"])
    other = "gpu-2" if home == "gpu-1" else "gpu-1"
    stage.pod(claim=claim, node=other)
    time.sleep(15)
    return Truth(
        f"somebody set nodeName {other}, and the claim's device is on {home}",
        "preparation",
        "Pod/train",
        "delete the pod and let the scheduler place it",
    )


STATES: States = {
    "prepare-error": prepare_error,
    "disk-full": disk_full,
    "prepare-times-out": prepare_times_out,
    "prepare-hangs": prepare_hangs,
    "wrong-registry": wrong_registry,
    "wrong-version": wrong_version,
    "driver-gone-before-start": driver_gone_before_start,
    "driver-gone-and-wiped-before-start": driver_gone_and_wiped_before_start,
    "driver-crashed": driver_crashed,
    "driver-crash-loops": driver_crash_loops,
    "comes-back-with-other-names": comes_back_with_other_names,
    "bound-by-hand-without-allocation": bound_by_hand_without_allocation,
    "force-deleted-before": force_deleted_before,
    "kubelet-stopped": kubelet_stopped,
    "node-not-ready-before-start": node_not_ready_before_start,
    "container-crashes": container_crashes,
    "bound-by-hand-elsewhere": bound_by_hand_elsewhere,
}
