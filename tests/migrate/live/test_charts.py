"""Charts that are installed with helm, migrated and installed anew: their pods get devices of a driver."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.helm import helm as helm
from tests.migrate.live.fleet import DRIVER, GROUP, RESOURCE, driver_class, gpu_node
from tests.migrate.live.test_gitops import clear
from tools.controlplane.client import Json
from tools.controlplane.cluster import OWNER_LABEL, Cluster, wait
from tools.live.command import Command

pytestmark = pytest.mark.xdist_group(GROUP)

CHARTS = Path(__file__).parents[1] / "charts"


@pytest.mark.parametrize(("name", "count"), [("milvus", {"querynode": 1, "indexnode": 2}), ("comfyui", {"comfyui": 1})])
def test_a_chart_is_migrated_and_installed_anew(
    helm: Path, cluster: Cluster, command: Command, tmp_path: Path, name: str, count: dict[str, int]
) -> None:
    chart = tmp_path / name
    shutil.copytree(CHARTS / name, chart)
    old = gpu_node(cluster, "old", 3, plugin=3, driver=False)
    held_to_the_test(chart, cluster)
    release(cluster, "install", chart)
    assert set(placed(cluster, len(count)).values()) == {old}
    release(cluster, "uninstall", None)
    clear(cluster)

    # The node changes over: the plugin goes, the driver comes.
    without = {"status": {"allocatable": {RESOURCE: "0"}, "capacity": {RESOURCE: "0"}}}
    cluster.api.patch({"apiVersion": "v1", "kind": "Node", "metadata": {"name": old}}, without, "status")
    driver_class(cluster)
    new = gpu_node(cluster, "new", 3)
    answer = command("migrate", "--write", str(chart))
    assert answer.code == 0, answer.text
    release(cluster, "install", chart)
    assert set(placed(cluster, len(count)).values()) == {new}
    assert devices(cluster) == {f"llm-{name}-{part}" if name != part else f"llm-{name}": n for part, n in count.items()}
    # An upgrade with the same chart leaves all of it as it is.
    release(cluster, "upgrade", chart)
    assert command("migrate", "--check", str(chart)).code == 0


def held_to_the_test(chart: Path, cluster: Cluster) -> None:
    """Has the chart's pods go to the nodes of the test, as an administrator of the cluster would have them."""
    for template in (chart / "templates").glob("*.yaml"):
        text = template.read_text()
        own = f"      nodeSelector: {{{OWNER_LABEL}: {cluster.namespace}}}\n      containers:\n"
        text = text.replace("      containers:\n", own)
        template.write_text(text)


def release(cluster: Cluster, verb: str, chart: Path | None) -> None:
    words = [verb, "llm", *([str(chart)] if chart else []), "--namespace", cluster.namespace]
    words += ["--kubeconfig", str(cluster.plane.kubeconfig), "--kube-context", "admin"]
    done = subprocess.run(["helm", *words], capture_output=True, text=True, env=dict(os.environ), timeout=120)
    assert done.returncode == 0, done.stderr


def placed(cluster: Cluster, number: int) -> dict[str, str]:
    """The node of each pod, as soon as so many are scheduled."""

    def bound() -> dict[str, str] | None:
        found = {pod["metadata"]["name"]: pod["spec"].get("nodeName") for pod in pods(cluster)}
        return found if len(found) == number and all(found.values()) else None

    return wait(bound, "all pods to be scheduled", 60, lambda: [pod.get("status") for pod in pods(cluster)])


def devices(cluster: Cluster) -> dict[str, int]:
    """How many devices of the driver each Deployment's pod has."""
    found: dict[str, int] = {}
    for pod in pods(cluster):
        (status,) = pod["status"]["resourceClaimStatuses"]
        claim = cluster.get("ResourceClaim", status["resourceClaimName"])
        results = claim["status"]["allocation"]["devices"]["results"]
        assert {result["driver"] for result in results} == {DRIVER}
        found[str(pod["metadata"]["name"]).rsplit("-", 2)[0]] = len({result["device"] for result in results})
    return found


def pods(cluster: Cluster) -> list[Json]:
    return cluster.api.list("v1", "Pod", cluster.namespace)
