"""A whole GitOps repository: what it builds is placed by a real scheduler after migrate as it was before."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.migrate.live import gitops
from tests.migrate.live.fleet import DRIVER, GROUP, RESOURCE, driver_class
from tools.controlplane.client import Json
from tools.controlplane.cluster import Cluster, wait
from tools.controlplane.objects import device
from tools.live.command import Command

pytestmark = pytest.mark.xdist_group(GROUP)

POST_RENDERER = (sys.executable, "-m", "kubectl_dra", "migrate", "-", "-o", "yaml")
NODES = {"dev-trainer": "dev", "trainer-staging": "staging", "trainer": "prod", "llm": "llm"}
"""The Deployments that the repository builds, and the part of the name of the node that each is meant for."""


def test_a_repository_is_placed_as_before(cluster: Cluster, command: Command, tmp_path: Path) -> None:
    repository = gitops.repository(tmp_path / "repository", cluster.namespace)
    nodes = {
        part: cluster.node(
            part, labels={"nvidia.com/gpu.product": product}, allocatable={RESOURCE: str(gitops.COUNTS[part])}
        )
        for part, product in gitops.PRODUCTS.items()
    }
    spare = cluster.node("spare", labels={"nvidia.com/gpu.product": "NVIDIA-A10"}, allocatable={RESOURCE: "8"})
    expected = {name: nodes[part] for name, part in NODES.items()}

    apply(cluster, gitops.builds(repository) + gitops.chart(repository))
    assert placed(cluster) == expected
    clear(cluster)

    # The nodes change over: the plugin goes, the driver comes.
    driver_class(cluster)
    cluster.driver = DRIVER
    for node, product, count in [
        *((nodes[part], gitops.PRODUCTS[part], gitops.COUNTS[part]) for part in nodes),
        (spare, "NVIDIA-A10", 8),
    ]:
        without = {"status": {"allocatable": {RESOURCE: "0"}, "capacity": {RESOURCE: "0"}}}
        cluster.api.patch({"apiVersion": "v1", "kind": "Node", "metadata": {"name": node}}, without, "status")
        gpus = [
            device(f"gpu-{index}", {"type": "gpu", "productName": product.replace("-", " ", 1)})
            for index in range(count)
        ]
        cluster.publish(gpus, pool=node, node=node)

    answer = command("migrate", "--write", str(repository))
    # The Application sets a chart's values, which only people can change.
    assert answer.code == 1 and answer.text.count("refused MIG") == 1 and "argocd/llm.yaml" in answer.text, answer.text
    built = gitops.builds(repository)
    apply(cluster, built + gitops.chart(repository, *POST_RENDERER))
    assert placed(cluster) == expected
    assert devices(cluster) == {name: gitops.COUNTS[part] for name, part in NODES.items()}
    assert command("migrate", "--check", str(repository / "apps")).code == 0


def apply(cluster: Cluster, objects: list[Json]) -> None:
    for raw in sorted(objects, key=lambda raw: raw["kind"] == "Deployment"):
        cluster.create(raw)


def placed(cluster: Cluster) -> Mapping[str, str]:
    """The node of each Deployment's pod."""

    def bound() -> dict[str, str] | None:
        found = {workload(pod): pod["spec"]["nodeName"] for pod in pods(cluster) if pod["spec"].get("nodeName")}
        return found if len(found) == len(NODES) else None

    return wait(bound, "all pods to be scheduled", 40, lambda: [pod.get("status") for pod in pods(cluster)])


def devices(cluster: Cluster) -> dict[str, int]:
    """How many devices each Deployment's pod has, all of the pool of its node."""
    found: dict[str, int] = {}
    for pod in pods(cluster):
        (status,) = pod["status"]["resourceClaimStatuses"]
        claim = cluster.get("ResourceClaim", status["resourceClaimName"])
        results = claim["status"]["allocation"]["devices"]["results"]
        assert {result["pool"] for result in results} == {pod["spec"]["nodeName"]}
        found[workload(pod)] = len({result["device"] for result in results})
    return found


def workload(pod: Json) -> str:
    return str(pod["metadata"]["name"]).rsplit("-", 2)[0]


def pods(cluster: Cluster) -> list[Json]:
    return cluster.api.list("v1", "Pod", cluster.namespace)


def clear(cluster: Cluster) -> None:
    """Remove the workloads; no kubelet confirms the end of their pods."""

    def gone() -> bool | None:
        left = 0
        for api, kind in (("apps/v1", "Deployment"), ("apps/v1", "ReplicaSet"), ("v1", "Pod"), ("v1", "ConfigMap")):
            for raw in cluster.api.list(api, kind, cluster.namespace):
                if raw["metadata"]["name"] != "kube-root-ca.crt":
                    left += 1
                    cluster.api.delete({"apiVersion": api, "kind": kind, **raw}, grace_seconds=0)
        return True if not left else None

    wait(gone, "the workloads to be gone", 30)
