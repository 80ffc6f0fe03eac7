"""What a real API server says to a scheduler and to a driver whose roles are from before Kubernetes 1.36."""

from __future__ import annotations

import pytest

from kubectl_dra.data.messages import ANY, Speaker, understood
from tools.controlplane.client import ApiError, Json
from tools.controlplane.cluster import Cluster
from tools.controlplane.objects import device, request, resource_object
from tools.controlplane.plane import gates_of

GATE = "DRAResourceClaimGranularStatusAuthorization"


@pytest.fixture
def placed(cluster: Cluster) -> Cluster:
    """A pod whose claim has a device, and a user who may write the status of claims and no more."""
    if not gates_of(cluster.plane).get(GATE):
        pytest.skip(f"{GATE} is off")
    node = cluster.node()
    cluster.publish([device("gpu-0")], pool=node, node=node)
    cluster.pod("train", claims={"gpu": cluster.claim([request(cluster.device_class())], "gpu")})
    cluster.scheduled("train")
    resources = ["resourceclaims.resource.k8s.io", "resourceclaims/status.resource.k8s.io"]
    cluster.grant(["get", "update", "patch"], resources)
    return cluster


def refused(cluster: Cluster, status: Json) -> str:
    """What the server says to that user who changes the claim's status."""
    claim = resource_object("ResourceClaim", "gpu")
    claim["metadata"]["namespace"] = cluster.namespace
    with pytest.raises(ApiError) as error:
        cluster.plane.api("restricted").patch(claim, {"status": status}, "status")
    return error.value.message


def test_a_scheduler_that_may_not_reserve(placed: Cluster) -> None:
    message = refused(placed, {"reservedFor": None})
    known = understood(message, (Speaker.VOLCANO,))
    assert known is not None and "needs update and patch on resourceclaims/binding" in known.means


def test_a_driver_that_may_not_report(placed: Cluster) -> None:
    (result,) = placed.get("ResourceClaim", "gpu")["status"]["allocation"]["devices"]["results"]
    message = refused(placed, {"devices": [{key: result[key] for key in ("driver", "pool", "device")}]})
    known = understood(message, (ANY,))
    assert known is not None and "arbitrary-node:patch on resourceclaims/driver" in known.means
