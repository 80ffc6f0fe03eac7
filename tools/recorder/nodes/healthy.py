"""States in which nothing is wrong."""

from __future__ import annotations

import time
from collections.abc import Callable

from tools.controlplane.objects import RESOURCE_API
from tools.recorder.nodes.stage import DRIVER, NAMESPACE, Stage, Truth, names

States = dict[str, Callable[[Stage], Truth]]


def running(stage: Stage) -> Truth:
    stage.node_with_driver()
    stage.pod()
    stage.running()
    return Truth("the pod runs", "running")


def shared(stage: Stage) -> Truth:
    stage.node_with_driver()
    claim = stage.claim()
    stage.pod("train", claim=claim)
    stage.pod("other", claim=claim)
    stage.running("train", "other")
    return Truth("two pods share a claim and run", "running")


def started_a_second_ago(stage: Stage) -> Truth:
    _, driver = stage.node_with_driver()
    driver.prepare(seconds=20)
    stage.pod()
    stage.bound()
    time.sleep(1.5)
    return Truth("the driver prepares the devices, which takes it 20 s", "preparation")


def rolling_update(stage: Stage) -> Truth:
    node, driver = stage.node_with_driver(instance="11111111-aaaa")
    stage.pod()
    stage.running()
    newer = node.driver(DRIVER, instance="22222222-bbbb")
    newer.publish(names(["gpu-0", "gpu-1"]))
    time.sleep(3)
    driver.stop()
    stage.pod("next")
    stage.running("next")
    return Truth("a newer instance of the driver has taken over without a gap; both pods run", "running")


def kubelet_restarted(stage: Stage) -> Truth:
    node, _ = stage.node_with_driver()
    stage.pod()
    stage.running()
    node.restart()
    stage.slices("gpu-1", 0)
    return Truth("the kubelet has just restarted and has deleted the slices; they come back by themselves", "running")


def kubelet_restarted_and_back(stage: Stage) -> Truth:
    node, _ = stage.node_with_driver()
    stage.pod()
    stage.running()
    node.restart()
    stage.slices("gpu-1", 0)
    stage.slices("gpu-1", 1, 120)
    return Truth("the kubelet restarted and the slices are back", "running")


def kubelet_restarted_without_checkpoint(stage: Stage) -> Truth:
    node, _ = stage.node_with_driver()
    stage.pod()
    stage.running()
    node.restart(forget=True)
    stage.slices("gpu-1", 0)
    stage.slices("gpu-1", 1, 120)
    return Truth("the kubelet restarted without its checkpoint of prepared claims; the pod runs on", "running")


def driver_restarted(stage: Stage) -> Truth:
    _, driver = stage.node_with_driver()
    stage.pod()
    stage.running()
    driver.crash()
    driver.start()
    stage.pod("next")
    stage.running("next")
    return Truth("the driver crashed and was started again at once; both pods run", "running")


def registered_late(stage: Stage) -> Truth:
    _, driver = stage.node_with_driver(elsewhere=True)
    stage.pod()
    stage.event("FailedPrepareDynamicResources", "not registered")
    driver.stop()
    driver.start()
    stage.running()
    return Truth("the driver registered later than it published; the pod waited for it, and runs", "running")


def node_boots(stage: Stage) -> Truth:
    stage.class_()
    stage.daemon_set()
    stage.node()
    stage.driver_pod("gpu-1")
    stage.pod()
    stage.unschedulable()
    return Truth("the node is up since seconds, its driver has not published yet", "scheduling")


def ends_in_order(stage: Stage) -> Truth:
    _, driver = stage.node_with_driver()
    stage.pod()
    stage.running()
    driver.unprepare(seconds=15)
    stage.delete()
    # Until the driver has answered, the API shows the containers as running.
    time.sleep(6)
    return Truth("the pod was deleted seconds ago, and the driver gives its devices back", "ending")


def finished(stage: Stage) -> Truth:
    node, _ = stage.node_with_driver()
    stage.pod(restartPolicy="Never")
    stage.running()
    node.end_containers({f"{NAMESPACE}/train/main": 0})
    stage.phase("Succeeded")
    time.sleep(4)
    return Truth("the pod has done its work", "")


def prepare_recovered(stage: Stage) -> Truth:
    _, driver = stage.node_with_driver()
    driver.prepare(error="failed to generate CDI specification")
    stage.pod()
    stage.event("FailedPrepareDynamicResources")
    driver.prepare()
    stage.running()
    return Truth("prepare failed before, and the pod runs now", "running")


def no_health_service(stage: Stage) -> Truth:
    stage.node_with_driver(health=False)
    stage.pod()
    stage.running()
    stage.settle(2)
    return Truth("the pod runs; the driver reports no health, so the kubelet calls it Unknown", "running")


def bound_by_hand(stage: Stage) -> Truth:
    stage.node_with_driver()
    claim = stage.claim()
    stage.pod("first", claim=claim)
    stage.running("first")
    stage.pod("train", claim=claim, node="gpu-1")
    stage.running()
    return Truth("somebody set nodeName, the claim was allocated already, and the pod runs", "running")


def claim_deleted_while_used(stage: Stage) -> Truth:
    stage.node_with_driver()
    claim = stage.claim()
    stage.pod(claim=claim)
    stage.running()
    stage.api.delete({"apiVersion": RESOURCE_API, "kind": "ResourceClaim", **stage.get_claim(claim)})
    time.sleep(1)
    return Truth("somebody deleted the claim; it stays until the pod has ended, which runs on", "running")


def image_is_pulled(stage: Stage) -> Truth:
    stage.node_with_driver()
    container = {"name": "main", "image": "example.com/train:1", "resources": {"claims": [{"name": "gpu"}]}}
    first = {"name": "load", "image": "example.com/load:1"}
    stage.pod(initContainers=[first], containers=[container])
    stage.until(lambda: stage.get_pod()["status"].get("initContainerStatuses"), "the init container")
    return Truth("the pod's init container runs", "preparation")


STATES: States = {
    "running": running,
    "shared-claim": shared,
    "started-a-second-ago": started_a_second_ago,
    "rolling-update": rolling_update,
    "kubelet-restarted": kubelet_restarted,
    "kubelet-restarted-and-back": kubelet_restarted_and_back,
    "kubelet-restarted-without-checkpoint": kubelet_restarted_without_checkpoint,
    "driver-restarted": driver_restarted,
    "registered-late": registered_late,
    "node-boots": node_boots,
    "ends-in-order": ends_in_order,
    "finished": finished,
    "prepare-recovered": prepare_recovered,
    "no-health-service": no_health_service,
    "bound-by-hand": bound_by_hand,
    "claim-deleted-while-used": claim_deleted_while_used,
    "init-container-runs": image_is_pulled,
}
