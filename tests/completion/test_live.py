"""Names from a real API server, and through kubectl."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest

from tools.controlplane.cluster import Cluster
from tools.controlplane.objects import device, request, resource_object


def answer(environment: dict[str, str], *command: str) -> list[str]:
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return done.stdout.splitlines()


@pytest.fixture
def filled(api_cluster: Cluster, environment: dict[str, str]) -> Cluster:
    """A namespace with an allocated and a pending claim, a device and a class; variables that lead to it."""
    api_cluster.device_class()
    api_cluster.publish([device("gpu-0")], pool=api_cluster.name("pool"))
    for name in ("later", "done"):
        api_cluster.claim([request(device_class=api_cluster.name("gpu"))], name=name)
    claim = api_cluster.get("ResourceClaim", "done")
    result = {"request": claim["spec"]["devices"]["requests"][0]["name"], "driver": api_cluster.driver}
    result |= {"pool": api_cluster.name("pool"), "device": "gpu-0"}
    patch = {"status": {"allocation": {"devices": {"results": [result]}}}}
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("there is no kubectl on this machine")
    environment["KUBECONFIG"] = str(api_cluster.plane.kubeconfig)
    flags = ["--context", "admin", "-n", api_cluster.namespace, "--subresource=status", "--type=merge"]
    answer(environment, kubectl, "patch", "resourceclaims", "done", *flags, "-p", json.dumps(patch))
    environment["KUBECTL_DRA_COMPLETION_TIMEOUT"] = "10"
    return api_cluster


def test_through_kubectl(filled: Cluster, environment: dict[str, str]) -> None:
    connection = ["--context", "admin", "-n", filled.namespace]

    def kubectl(*words: str) -> list[str]:
        return answer(environment, "kubectl", "__complete", "dra", *words)

    assert kubectl("explain", *connection, "claim/") == ["claim/later\tpending", "claim/done\tallocated", ":36"]
    key = f"{filled.namespace}.example.com/broken"
    spec = {"deviceSelector": {"driver": filled.driver}, "taint": {"key": key, "effect": "NoSchedule"}}
    rule = resource_object("DeviceTaintRule", filled.name("rule"), spec)
    filled.create({**rule, "apiVersion": "resource.k8s.io/v1beta2"})
    offered = kubectl("untaint", *connection, f"{filled.driver}/x/y", key)
    assert offered == [f"{key}:NoSchedule-\trule {filled.name('rule')}", ":36"]
    name = filled.name("gpu")
    assert kubectl("devices", *connection, "--class", name) == [name, ":36"]
    pool = f"{filled.driver}/{filled.name('pool')}"
    assert kubectl("explain", *connection, "--trace", f"{pool}/") == [f"{pool}/gpu-0", ":36"]
    assert kubectl("ex") == [
        "explain\tSay why a pod or claim gets no devices, and what would help",
        ":4",
    ]


def test_the_server_of_version(filled: Cluster, environment: dict[str, str]) -> None:
    command = ["kubectl", "dra", "version", "--context", "admin", "-o", "json"]
    server = json.loads("\n".join(answer(environment, *command)))["server"]
    said = json.loads("\n".join(answer(environment, "kubectl", "version", "--context", "admin", "-o", "json")))
    assert server["version"] == said["serverVersion"]["gitVersion"]
    assert server["versions"]["ResourceClaim"] == "v1"
    assert "error" not in server
