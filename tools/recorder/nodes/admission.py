"""States of pods that the kubelet refuses, or admits without their devices."""

from __future__ import annotations

from tools.controlplane.objects import cel_selectors, resource_object
from tools.recorder.nodes.healthy import States
from tools.recorder.nodes.stage import DRIVER, Stage, Truth

IMPLICIT = f"deviceclass.resource.kubernetes.io/{DRIVER}"
EXTENDED = "example.com/gpu"
PLUGIN = "example.com/nic"


def rejected_for_cpu(stage: Stage) -> Truth:
    stage.node_with_driver()
    resources = {"claims": [{"name": "gpu"}], "requests": {"cpu": "64"}}
    container = {"name": "main", "image": "example.com/train:1", "resources": resources}
    stage.pod(node="gpu-1", containers=[container])
    stage.phase("Failed")
    stage.settle(3)
    return Truth("the kubelet refused the pod: too little cpu", "node admission", "Pod/train", "make the pod again")


def rejected_for_its_node(stage: Stage) -> Truth:
    stage.node_with_driver()
    stage.pod(node="gpu-1", nodeSelector={"zone": "a"})
    stage.phase("Failed")
    stage.settle(3)
    return Truth(
        "the kubelet refused the pod: the node has not its labels", "node admission", "Pod/train", "make the pod again"
    )


def rejected_for_implicit_resource(stage: Stage) -> Truth:
    stage.node_with_driver()
    container = {"name": "main", "image": "example.com/train:1", "resources": {"limits": {IMPLICIT: "1"}}}
    stage.pod(node="gpu-1", containers=[container], resourceClaims=None)
    stage.phase("Failed")
    stage.settle(3)
    return Truth(
        "somebody set nodeName, so nobody allocates the devices of the pod's extended resource, and the kubelet has "
        "no such resource",
        "node admission",
        "Pod/train",
        "make the pod again without nodeName",
    )


def admitted_without_its_implicit_device(stage: Stage) -> Truth:
    stage.node_with_driver()
    container = {"name": "main", "image": "example.com/train:1", "resources": {"limits": {IMPLICIT: "1"}}}
    stage.pod(node="gpu-1", containers=[container], resourceClaims=None)
    stage.running()
    stage.settle(2)
    return Truth(
        "somebody set nodeName, so nobody allocates the devices of the pod's extended resource, and this release's "
        "kubelet does not count it: the pod runs without",
        "running",
        "Pod/train",
        "make the pod again without nodeName",
    )


def implicit_resource(stage: Stage) -> Truth:
    stage.node_with_driver()
    container = {"name": "main", "image": "example.com/train:1", "resources": {"limits": {IMPLICIT: "1"}}}
    stage.pod(containers=[container], resourceClaims=None)
    stage.until(lambda: stage.get_pod()["status"]["phase"] in ("Running", "Failed"), "the kubelet's answer")
    stage.settle(2)
    if "extendedResourceClaimStatus" not in stage.get_pod()["status"]:
        return Truth(
            "this release's scheduler places the pod as if it did not ask for the implicit extended resource: it runs "
            "without",
            "running",
            "Pod/train",
            "use a ResourceClaim instead",
        )
    if stage.get_pod()["status"]["phase"] == "Running":
        return Truth("the pod runs with a device of its implicit extended resource", "running")
    return Truth(
        "this release's kubelet refuses pods with an implicit extended resource that the scheduler has allocated",
        "node admission",
        "Pod/train",
        "use a ResourceClaim instead",
    )


def admitted_without_its_device(stage: Stage) -> Truth:
    stage.node_with_driver()
    spec = {"selectors": cel_selectors([f'device.driver == "{DRIVER}"']), "extendedResourceName": EXTENDED}
    stage.api.create(resource_object("DeviceClass", "extended", spec))
    container = {"name": "main", "image": "example.com/train:1", "resources": {"limits": {EXTENDED: "1"}}}
    stage.pod(node="gpu-1", containers=[container], resourceClaims=None)
    stage.running()
    stage.settle(2)
    return Truth(
        "somebody set nodeName, so nobody allocated the device of the pod's extended resource: it runs without",
        "running",
        "Pod/train",
        "make the pod again without nodeName",
    )


def rejected_by_device_plugin(stage: Stage) -> Truth:
    node, _ = stage.node_with_driver()
    node.plugin(PLUGIN, error="the card is in use by process 4711")
    stage.until(
        lambda: stage.api.get("v1", "Node", "gpu-1")["status"]["allocatable"].get(PLUGIN) == "1", "the plugin's device"
    )
    resources = {"claims": [{"name": "gpu"}], "limits": {PLUGIN: "1"}}
    stage.pod(containers=[{"name": "main", "image": "example.com/train:1", "resources": resources}])
    stage.phase("Failed")
    stage.settle(3)
    return Truth(
        f"the device plugin of {PLUGIN}, which the pod asks for beside its claim, gave an error: "
        "UnexpectedAdmissionError",
        "node admission",
        f"plugin/{PLUGIN}",
        "repair the device plugin, and make the pod again",
    )


def static_managers(stage: Stage) -> Truth:
    reserved = {"cpu": "1", "memory": "99Mi"}
    config = {
        "cpuManagerPolicy": "static",
        "memoryManagerPolicy": "Static",
        "topologyManagerPolicy": "restricted",
        "kubeReserved": reserved,
        "reservedMemory": [{"numaNode": 0, "limits": {"memory": "100Mi"}}],
    }
    stage.node_with_driver(config=config)
    resources = {"claims": [{"name": "gpu"}], "limits": {"cpu": "1", "memory": "64Mi"}}
    stage.pod(containers=[{"name": "main", "image": "example.com/train:1", "resources": resources}])
    stage.running()
    stage.settle(2)
    return Truth("the kubelet gives the pod a CPU and memory of its own, and the driver a device; it runs", "running")


STATES: States = {
    "rejected-for-cpu": rejected_for_cpu,
    "rejected-for-its-node": rejected_for_its_node,
    "rejected-for-implicit-resource": rejected_for_implicit_resource,
    "admitted-without-its-implicit-device": admitted_without_its_implicit_device,
    "implicit-resource": implicit_resource,
    "admitted-without-its-device": admitted_without_its_device,
    "rejected-by-device-plugin": rejected_by_device_plugin,
    "static-managers": static_managers,
}
