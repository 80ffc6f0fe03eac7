"""States of pods that ran, that end, or that wait because of what happened on nodes."""

from __future__ import annotations

import time

from tools.controlplane.client import Json
from tools.controlplane.objects import RESOURCE_API, device
from tools.recorder.nodes.healthy import States
from tools.recorder.nodes.preparation import REPAIR, START
from tools.recorder.nodes.stage import DRIVER, NAMESPACE, Stage, Truth, names

_FAULT = f"driver/gpu-1/{DRIVER}"
_XID = "Xid 79: GPU has fallen off the bus"


# The pod runs


def driver_gone_while_running(stage: Stage) -> Truth:
    stage.node_with_driver()
    stage.pod()
    stage.running()
    stage.remove_driver()
    return Truth("the driver was uninstalled; the pod runs on", "running", _FAULT, START)


def slices_wiped_while_running(stage: Stage) -> Truth:
    stage.node_with_driver()
    stage.pod()
    stage.running()
    stage.remove_driver()
    stage.slices("gpu-1", 0)
    return Truth("the driver was uninstalled and its slices are deleted; the pod runs on", "running", _FAULT, START)


def other_names_while_running(stage: Stage) -> Truth:
    node, driver = stage.node_with_driver()
    stage.pod()
    stage.running()
    driver.stop()
    stage.slices("gpu-1", 0)
    node.driver(DRIVER).publish(names(["mig-0", "mig-1"]))
    stage.slices("gpu-1", 1)
    return Truth("the driver came back with other devices; the pod runs on its old one", "running", "Pod/train")


def unhealthy(stage: Stage) -> Truth:
    _, driver = stage.node_with_driver(gates="ResourceHealthStatus=true")
    # Of claims from templates, kubelets report health only from 1.35 on.
    stage.pod(claim=stage.claim())
    stage.running()
    driver.health("gpu-0", "Unhealthy", _XID)
    driver.health("gpu-1", "Unhealthy", _XID)

    def said() -> bool:
        return "Unhealthy" in str(stage.get_pod()["status"].get("containerStatuses"))

    stage.until(said, "the health")
    return Truth(f"the device is broken ({_XID}); the pod runs on", "running", "device", "delete the pod")


def unhealthy_without_gate(stage: Stage) -> Truth:
    message = ",ResourceHealthStatusMessage=false" if stage.minor >= 36 else ""
    _, driver = stage.node_with_driver(gates=f"ResourceHealthStatus=false{message}")
    stage.pod()
    stage.running()
    driver.health("gpu-0", "Unhealthy", _XID)
    time.sleep(8)
    return Truth("the device is broken, but the kubelet does not report health: nobody can know", "running")


def tainted_while_running(stage: Stage) -> Truth:
    _, driver = stage.node_with_driver()
    stage.pod()
    stage.running()
    driver.publish([_tainted("gpu-0", "NoSchedule"), _tainted("gpu-1", "NoSchedule")])
    stage.settle(2)
    return Truth("the driver tainted the device with NoSchedule; the pod runs on", "running", "device")


def tainted_before(stage: Stage) -> Truth:
    _, driver = stage.node_with_driver()
    driver.publish([_tainted("gpu-0", "NoSchedule"), _tainted("gpu-1", "NoSchedule")])
    time.sleep(2)
    stage.pod()
    stage.unschedulable()
    return Truth("the driver has tainted all devices", "scheduling", "device", "repair the devices")


def _tainted(name: str, effect: str) -> Json:
    return device(name, {"model": "A100"}, taints=[{"key": "gpu.example.com/broken", "value": "xid", "effect": effect}])


def claim_deallocated(stage: Stage) -> Truth:
    stage.node_with_driver()
    stage.pod()
    stage.running()
    time.sleep(31)
    whole = {"apiVersion": RESOURCE_API, "kind": "ResourceClaim", **stage.get_claim(stage.claim_of())}
    stage.api.patch(whole, {"status": {"allocation": None, "reservedFor": None}}, "status")
    stage.settle(3)
    return Truth("somebody took the claim's allocation away; the pod runs on its device", "running", "ResourceClaim")


def claim_force_deleted(stage: Stage) -> Truth:
    stage.node_with_driver()
    claim = stage.claim()
    stage.pod(claim=claim)
    stage.running()
    time.sleep(31)
    whole = {"apiVersion": RESOURCE_API, "kind": "ResourceClaim", **stage.get_claim(claim)}
    stage.api.delete(whole)
    stage.api.patch(whole, {"metadata": {"finalizers": None}})
    stage.settle(3)
    return Truth("somebody deleted the claim by force; the pod runs on its device", "running", "ResourceClaim")


def two_pods_on_one_device(stage: Stage) -> Truth:
    stage.node_with_driver(devices=1)
    stage.pod("first")
    stage.running("first")
    whole = {"apiVersion": RESOURCE_API, "kind": "ResourceClaim", **stage.get_claim(stage.claim_of("first"))}
    stage.api.patch(whole, {"status": {"allocation": None, "reservedFor": None}}, "status")
    stage.pod()
    stage.running()
    stage.settle(2)
    return Truth(
        "the claim of first was deallocated while it runs: both pods run on the one device", "running", "Pod/first"
    )


def runtime_down_while_running(stage: Stage) -> Truth:
    node, _ = stage.node_with_driver()
    stage.pod()
    stage.running()
    node.end_runtime()
    stage.until(lambda: _ready(stage) == "False", "the node to be NotReady", 120)
    stage.settle(2)
    return Truth(
        "the container runtime of the node is down, and the kubelet says so", "running", "Node/gpu-1", "start it"
    )


def node_lost_while_running(stage: Stage) -> Truth:
    node, _ = stage.node_with_driver()
    stage.pod()
    stage.running()
    node.fail()
    stage.lifecycle()
    stage.until(lambda: _ready(stage) == "Unknown", "the node to be lost")
    stage.settle(2)
    return Truth("the machine is lost; the pod is only said to run", "running", "Node/gpu-1", "bring the node back")


def node_lost_and_pod_evicted(stage: Stage) -> Truth:
    # Where all nodes are lost, nobody evicts: the controller takes it for its own fault.
    stage.node("other-1")
    node, _ = stage.node_with_driver()
    keys = ("node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready")
    tolerations = [{"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 2} for key in keys]
    stage.pod(tolerations=tolerations)
    stage.running()
    node.fail()
    stage.lifecycle()
    stage.until(lambda: stage.get_pod()["metadata"].get("deletionTimestamp"), "the eviction", 90)
    stage.settle(5)
    return Truth("the machine is lost, and nobody confirms the end of the pod", "ending", "Node/gpu-1", "delete it")


def node_gone(stage: Stage) -> Truth:
    stage.node("other-1")
    node, _ = stage.node_with_driver()
    stage.pod()
    stage.running()
    node.fail()
    stage.api.delete({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "gpu-1"}})
    stage.slices("gpu-1", 0)
    return Truth("the Node was deleted; the pod is only said to run", "running", "Node/gpu-1")


def _ready(stage: Stage) -> str:
    conditions = stage.api.get("v1", "Node", "gpu-1")["status"]["conditions"]
    return next(str(condition["status"]) for condition in conditions if condition["type"] == "Ready")


# The pod ends


def driver_gone_before_end(stage: Stage) -> Truth:
    stage.node_with_driver()
    stage.pod()
    stage.running()
    stage.remove_driver()
    stage.delete()
    stage.terminated()
    stage.settle(12)
    return Truth("the driver is away, so the kubelet cannot unprepare the devices", "ending", _FAULT, START)


def slices_wiped_before_end(stage: Stage) -> Truth:
    stage.node_with_driver()
    stage.pod()
    stage.running()
    stage.remove_driver()
    stage.delete()
    stage.terminated()
    stage.slices("gpu-1", 0)
    return Truth("the driver is away for longer: the slices are deleted, the pod stays", "ending", _FAULT, START)


def unprepare_error(stage: Stage) -> Truth:
    _, driver = stage.node_with_driver()
    stage.pod()
    stage.running()
    driver.unprepare(error="device gpu-0 is in use by process 4711")
    stage.delete()
    stage.terminated()
    time.sleep(50)
    return Truth("the driver fails to unprepare; no event says so", "ending", _FAULT, REPAIR)


def unprepare_hangs(stage: Stage) -> Truth:
    _, driver = stage.node_with_driver()
    stage.pod()
    stage.running()
    driver.unprepare(hang=True)
    stage.delete()
    stage.terminated()
    time.sleep(40)
    return Truth("the driver never answers the unprepare; no event says so", "ending", _FAULT, REPAIR)


def waits_for_a_terminating_pod(stage: Stage) -> Truth:
    stage.node_with_driver(devices=1)
    stage.pod("before")
    stage.running("before")
    stage.remove_driver()
    stage.delete("before")
    stage.terminated("before")
    stage.pod()
    stage.unschedulable()
    stage.settle(12)
    return Truth(
        "the only device is held by a pod that cannot end while the driver is away", "scheduling", _FAULT, START
    )


def force_deleted_while_prepared(stage: Stage) -> Truth:
    stage.node_with_driver(devices=1)
    stage.pod("before")
    stage.running("before")
    stage.drivers["gpu-1"].unprepare(error="device gpu-0 is in use by process 4711")
    stage.delete("before", grace_seconds=0)
    stage.gone("before")
    stage.pod()
    stage.running()
    return Truth("an earlier pod was deleted by force; the device was given on and the pod runs", "running")


def finalizer_keeps(stage: Stage) -> Truth:
    stage.node_with_driver()
    stage.pod()
    stage.running()
    stage.api.patch(
        {"apiVersion": "v1", "kind": "Pod", **stage.get_pod()}, {"metadata": {"finalizers": ["a.example/b"]}}
    )
    stage.delete()
    stage.terminated()
    time.sleep(35)
    return Truth("the pod has ended, a finalizer a.example/b keeps it", "ending", "Pod/train", "remove the finalizer")


def evicted_and_unprepare_hangs(stage: Stage) -> Truth:
    _, driver = stage.node_with_driver()
    stage.pod()
    stage.running()
    driver.unprepare(hang=True)
    driver.publish([_tainted("gpu-0", "NoExecute"), _tainted("gpu-1", "NoExecute")])
    stage.until(lambda: stage.get_pod()["metadata"].get("deletionTimestamp"), "the eviction")
    stage.terminated()
    time.sleep(40)
    return Truth(
        "the driver tainted its devices with NoExecute; the pod was evicted, and nobody answers the unprepare",
        "ending",
        _FAULT,
        REPAIR,
    )


# The next pod waits


def slices_wiped_and_next_waits(stage: Stage) -> Truth:
    stage.node_with_driver()
    stage.pod("before", count=2)
    stage.running("before")
    stage.remove_driver()
    stage.slices("gpu-1", 0)
    stage.pod()
    stage.unschedulable()
    return Truth(
        "the driver is away and its slices are deleted; two devices are held that nobody publishes",
        "scheduling",
        _FAULT,
        START,
    )


def driver_crash_loops_and_next_waits(stage: Stage) -> Truth:
    stage.node_with_driver()
    stage.pod("before")
    stage.running("before")
    stage.break_driver("gpu-1")
    stage.slices("gpu-1", 0)
    stage.pod()
    stage.unschedulable()
    return Truth("the driver's pod crashes again and again, its slices are deleted", "scheduling", _FAULT, START)


def one_of_two_nodes_without_driver(stage: Stage) -> Truth:
    stage.node_with_driver("gpu-1")
    stage.node_with_driver("gpu-2")
    stage.pod("before", count=2)
    stage.running("before")
    free = "gpu-2" if stage.get_pod("before")["spec"]["nodeName"] == "gpu-1" else "gpu-1"
    stage.drivers[free].crash()
    stage.slices(free, 0)
    stage.pod()
    stage.unschedulable()
    return Truth(
        f"all devices of one node are held, and the driver of {free} is away", "scheduling", f"driver/{free}/{DRIVER}"
    )


def no_driver(stage: Stage) -> Truth:
    stage.class_()
    stage.node()
    time.sleep(35)
    stage.pod()
    stage.unschedulable()
    return Truth("nobody installed the driver", "scheduling", "driver", "install the driver")


def publishes_nothing(stage: Stage) -> Truth:
    stage.class_()
    stage.daemon_set()
    node = stage.node()
    stage.driver_pod("gpu-1")
    stage.drivers["gpu-1"] = node.driver(DRIVER)
    stage.pod()
    stage.unschedulable()
    time.sleep(60)
    return Truth("the driver runs since a minute, and publishes nothing", "scheduling", _FAULT, REPAIR)


def node_lost_and_next_waits(stage: Stage) -> Truth:
    stage.node("other-1")
    node, _ = stage.node_with_driver()
    stage.lifecycle()
    node.fail()
    stage.until(lambda: _ready(stage) == "Unknown", "the node to be lost", 90)
    stage.settle(2)
    stage.pod()
    stage.unschedulable()
    return Truth("the only node with devices is lost", "scheduling", "Node/gpu-1", "bring the node back")


def ended_claim_stays_allocated(stage: Stage) -> Truth:
    node, _ = stage.node_with_driver(devices=1)
    claim = stage.claim()
    stage.pod("before", claim=claim, restartPolicy="Never")
    stage.running("before")
    node.end_containers({f"{NAMESPACE}/before/main": 0})
    stage.phase("Succeeded", "before")
    stage.pod()
    stage.running()
    return Truth("the first pod ended, its device was given to the next, which runs", "running")


STATES: States = {
    "driver-gone-while-running": driver_gone_while_running,
    "slices-wiped-while-running": slices_wiped_while_running,
    "other-names-while-running": other_names_while_running,
    "unhealthy": unhealthy,
    "unhealthy-without-gate": unhealthy_without_gate,
    "tainted-while-running": tainted_while_running,
    "tainted-before": tainted_before,
    "claim-deallocated": claim_deallocated,
    "claim-force-deleted": claim_force_deleted,
    "two-pods-on-one-device": two_pods_on_one_device,
    "runtime-down-while-running": runtime_down_while_running,
    "node-lost-while-running": node_lost_while_running,
    "node-lost-and-pod-evicted": node_lost_and_pod_evicted,
    "node-gone": node_gone,
    "driver-gone-before-end": driver_gone_before_end,
    "slices-wiped-before-end": slices_wiped_before_end,
    "unprepare-error": unprepare_error,
    "unprepare-hangs": unprepare_hangs,
    "waits-for-a-terminating-pod": waits_for_a_terminating_pod,
    "force-deleted-while-prepared": force_deleted_while_prepared,
    "finalizer-keeps": finalizer_keeps,
    "evicted-and-unprepare-hangs": evicted_and_unprepare_hangs,
    "slices-wiped-and-next-waits": slices_wiped_and_next_waits,
    "driver-crash-loops-and-next-waits": driver_crash_loops_and_next_waits,
    "one-of-two-nodes-without-driver": one_of_two_nodes_without_driver,
    "no-driver": no_driver,
    "publishes-nothing": publishes_nothing,
    "node-lost-and-next-waits": node_lost_and_next_waits,
    "ended-and-given-on": ended_claim_stays_allocated,
}
