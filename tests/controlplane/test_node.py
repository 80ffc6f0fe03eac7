"""The real nodes of tests: a kubelet, and a driver that does what it is told."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import pytest

from tools.controlplane.client import ApiError, Json
from tools.controlplane.cluster import Cluster, wait
from tools.controlplane.node import Driver, Node, Nodes
from tools.controlplane.objects import RESOURCE_API, device, request
from tools.controlplane.processes import alive

pytestmark = pytest.mark.xdist_group("nodes")


@pytest.fixture(scope="module")
def node(machines: Nodes) -> Node:
    return machines.node("node-a")


@pytest.fixture
def cluster(machines: Nodes) -> Iterator[Cluster]:
    share = Cluster(machines.plane, f"dra-{secrets.token_hex(4)}")
    yield share
    share.remove()


@pytest.fixture
def driver(node: Node, cluster: Cluster) -> Iterator[Driver]:
    made = node.driver(cluster.driver)
    made.publish([device("gpu-0")])
    gpu = cluster.device_class()
    cluster.template([request(gpu)])
    yield made
    made.crash()


def test_driver_prepares_and_unprepares_what_a_pod_gets(cluster: Cluster, driver: Driver) -> None:
    pod = cluster.pod(templates={"gpu": "template"}, own_nodes=False)
    running(cluster, pod)
    cluster.api.delete(cluster.get("Pod", pod, "v1"))
    gone(cluster, pod)
    asked = [call["call"].split()[0] for call in driver.calls()]
    assert asked == ["started", "prepare", "unprepare"]


def test_error_of_prepare_is_an_event_until_the_driver_is_told_otherwise(cluster: Cluster, driver: Driver) -> None:
    driver.prepare(error="no CDI specification")
    pod = cluster.pod(templates={"gpu": "template"}, own_nodes=False)
    message = event(cluster, "FailedPrepareDynamicResources")
    assert message.endswith("no CDI specification")
    assert "NodePrepareResources failed for ResourceClaim pod-gpu-" in message
    driver.prepare()
    running(cluster, pod)


def test_pod_stays_terminating_while_its_driver_hangs(cluster: Cluster, driver: Driver) -> None:
    pod = cluster.pod(templates={"gpu": "template"}, own_nodes=False)
    running(cluster, pod)
    driver.unprepare(hang=True)
    cluster.api.delete(cluster.get("Pod", pod, "v1"), grace_seconds=1)
    wait(lambda: _terminated(cluster.get("Pod", pod, "v1")), "the end of its containers")
    driver.unprepare()
    gone(cluster, pod)


def test_driver_of_another_age_is_not_registered(cluster: Cluster, node: Node) -> None:
    driver = node.driver(cluster.driver, services=["v1alpha4.Node"])
    refused = wait(lambda: next((c for c in driver.calls() if c["call"] == "registered"), None), "the kubelet's answer")
    assert "none of services supported by the plugin" in refused["error"]
    driver.crash()


def test_health_that_the_driver_reports_is_in_the_status_of_the_pod(cluster: Cluster, driver: Driver) -> None:
    pod = cluster.pod(templates={"gpu": "template"}, own_nodes=False)
    running(cluster, pod)
    if not health(cluster, pod):
        pytest.skip("this release's kubelet does not report health by default")
    driver.health("gpu-0", "Unhealthy", "Xid 79")
    wait(lambda: True if health(cluster, pod) == ["Unhealthy"] else None, "the health of gpu-0")


def test_containers_end_as_told(cluster: Cluster, node: Node, driver: Driver) -> None:
    pod = cluster.pod(templates={"gpu": "template"}, own_nodes=False, restartPolicy="Never")
    running(cluster, pod)
    node.end_containers({f"{cluster.namespace}/{pod}/main": 3})
    wait(lambda: True if cluster.get("Pod", pod, "v1")["status"]["phase"] == "Failed" else None, "the pod's end")


def test_two_nodes_and_a_kubelet_that_comes_back(cluster: Cluster, machines: Nodes) -> None:
    second = machines.node("node-b")
    driver = second.driver(cluster.driver)
    driver.publish([device("gpu-0")])
    gpu = cluster.device_class()
    cluster.template([request(gpu)])
    pod = cluster.pod(templates={"gpu": "template"}, own_nodes=False)
    running(cluster, pod)
    assert cluster.get("Pod", pod, "v1")["spec"]["nodeName"] == "node-b"
    before = second.pids()
    second.restart()
    second.wait_ready()
    wait(lambda: True if cluster.api.list(RESOURCE_API, "ResourceSlice") else None, "the slices")
    assert cluster.get("Pod", pod, "v1")["status"]["phase"] == "Running"
    second.fail()
    assert not any(map(alive, [*before, *second.pids()]))


def running(cluster: Cluster, pod: str) -> None:
    def check() -> bool | None:
        return True if cluster.get("Pod", pod, "v1")["status"]["phase"] == "Running" else None

    wait(check, f"pod {pod} to run", 60, lambda: cluster.get("Pod", pod, "v1")["status"])


def gone(cluster: Cluster, pod: str) -> None:
    def check() -> bool | None:
        try:
            cluster.get("Pod", pod, "v1")
        except ApiError as error:
            return True if error.status == 404 else None
        return None

    wait(check, f"the end of pod {pod}", 90)


def event(cluster: Cluster, reason: str) -> str:
    def check() -> str | None:
        found = cluster.api.list("v1", "Event", cluster.namespace)
        return next((each["message"] for each in found if each["reason"] == reason), None)

    return wait(check, f"an event {reason}")


def health(cluster: Cluster, pod: str) -> list[str]:
    statuses = cluster.get("Pod", pod, "v1")["status"].get("containerStatuses", [])
    return [
        resource["health"]
        for status in statuses
        for entry in status.get("allocatedResourcesStatus", [])
        for resource in entry["resources"]
    ]


def _terminated(pod: Json) -> bool | None:
    statuses = pod["status"].get("containerStatuses", [])
    return True if statuses and all("terminated" in status["state"] for status in statuses) else None
