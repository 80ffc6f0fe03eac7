"""A real API server with Karpenter's NodeClaims, cluster-autoscaler's status, and a pod that the scheduler refuses."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from kubectl_dra.cluster.time_read import stamp
from tools.controlplane.client import ApiError
from tools.controlplane.cluster import Cluster, wait
from tools.controlplane.objects import device, request
from tools.live.referee import Referee
from tools.recorder.definitions import definitions

Json = dict[str, Any]
DEFINITION = next(one for one in definitions() if one["spec"]["names"]["kind"] == "NodeClaim")
STATUS = """
nodeGroups:
  - name: gpu-group
    health: {nodeCounts: {registered: {total: 1, unready: {total: 1, resourceUnready: 1}}}, maxSize: 5}
    scaleUp: {status: Backoff, backoffInfo: {errorCode: OUT_OF_RESOURCES, errorMessage: no such machine}}
"""


@pytest.fixture
def waiting(referee: Referee) -> Iterator[Referee]:
    """A pod "train" that waits for the only device of its kind, which pod "first" has."""
    cluster = referee.cluster
    node = cluster.node()
    cluster.publish([device("gpu-0")], pool=node, node=node)
    gpu = cluster.device_class()
    cluster.pod("first", claims={"gpu": cluster.claim([request(gpu)], "first")})
    wait(lambda: cluster.get("Pod", "first", "v1")["spec"].get("nodeName"), "first to be bound")
    cluster.pod("train", claims={"gpu": cluster.claim([request(gpu)], "train")})
    wait(lambda: cluster.get("Pod", "train", "v1")["status"].get("conditions"), "train to be tried")
    yield referee


def said(cluster: Cluster, component: str, reason: str, message: str) -> None:
    """An event about the pod, as the autoscaler writes it."""
    pod, now = cluster.get("Pod", "train", "v1"), stamp(datetime.now(UTC))
    about = {"apiVersion": "v1", "kind": "Pod", "name": "train", "namespace": cluster.namespace}
    event: Json = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": f"train.{reason.lower()}"}}
    event |= {"involvedObject": {**about, "uid": pod["metadata"]["uid"]}, "reason": reason, "message": message}
    event |= {"type": "Normal", "source": {"component": component}, "reportingComponent": component}
    cluster.create({**event, "firstTimestamp": now, "lastTimestamp": now, "count": 1})


def test_karpenter_waits_for_the_driver_of_a_new_node(waiting: Referee) -> None:
    cluster = waiting.cluster
    cluster.create(DEFINITION)
    name, node = cluster.name("claim"), cluster.node("new")
    spec: Json = {
        "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "gpu"},
        "requirements": [],
    }
    made: Json = {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": {"name": name}, "spec": spec}

    def create() -> bool:
        try:
            return bool(cluster.create(made))
        except (ApiError, KeyError):
            return False

    wait(lambda: create() or None, "NodeClaims to be served")
    step: Json = {"type": "Initialized", "status": "Unknown", "lastTransitionTime": stamp(datetime.now(UTC))}
    step |= {"reason": "DRADriverPoolsNotPublished"}
    step |= {"message": f'DRA driver "{cluster.driver}" has not published a complete resource pool'}
    cluster.api.patch(made, {"status": {"nodeName": node, "conditions": [step]}}, "status")
    said(cluster, "karpenter", "Nominated", f"Pod should schedule on: nodeclaim/{name}, node/{node}")
    found = waiting.explain("pod/train")
    assert found.causes[:2] == ["new-node-without-devices", "devices-held"]
    assert f"node {node} has come since Karpenter asked for one" in found.report["answer"]


def test_cluster_autoscaler_says_why_a_group_does_not_grow(waiting: Referee) -> None:
    cluster = waiting.cluster
    status: Json = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cluster-autoscaler-status"}}
    status["metadata"]["namespace"] = "kube-system"
    cluster.api.create({**status, "data": {"status": STATUS}})
    try:
        message = "pod didn't trigger scale-up: 1 in backoff after failed scale-up"
        said(cluster, "cluster-autoscaler", "NotTriggerScaleUp", message)
        found = waiting.explain("pod/train")
    finally:
        cluster.api.delete(status)
    assert found.causes == ["devices-held", "no-scale-up"]
    assert "in backoff (OUT_OF_RESOURCES: no such machine)" in found.text
