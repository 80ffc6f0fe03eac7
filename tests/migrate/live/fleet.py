"""A few nodes with GPUs as NVIDIA's driver publishes them, and a workload of the days of the device plugin."""

from __future__ import annotations

from pathlib import Path

import yaml

from tools.controlplane.client import ApiError, Json
from tools.controlplane.cluster import OWNER_LABEL, Cluster, wait
from tools.controlplane.objects import device

DRIVER = "gpu.nvidia.com"
RESOURCE = "nvidia.com/gpu"

# All clusters of a test run are one, and the class of the driver has one name.
GROUP = "nvidia-class"


def gpu(name: str) -> Json:
    """A whole GPU with the attributes that the driver always publishes."""
    return device(
        name,
        {
            "type": "gpu",
            "productName": "NVIDIA A100-SXM4-80GB",
            "brand": "Nvidia",
            "architecture": "Ampere",
            "cudaComputeCapability": {"version": "8.0.0"},
            "driverVersion": {"version": "570.133.20"},
            "cudaDriverVersion": {"version": "12.8.0"},
        },
        {"memory": "80Gi"},
    )


def driver_class(cluster: Cluster) -> None:
    """The DeviceClass as the driver's chart installs it."""
    expression = f"device.driver == '{DRIVER}' && device.attributes['{DRIVER}'].type == 'gpu'"
    spec = {"selectors": [{"cel": {"expression": expression}}]}
    raw = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": DRIVER}, "spec": spec}

    def made() -> bool | None:
        try:
            cluster.create(raw)
        except ApiError as error:
            if error.status != 409:
                raise
            return None
        return True

    # Another test may have one of that name, which it will take with it.
    wait(made, f"the DeviceClass {DRIVER} of other tests to go", 60)


def gpu_node(cluster: Cluster, part: str, count: int, *, plugin: int = 0, driver: bool = True) -> str:
    """A node with GPUs, of which a device plugin offers ``plugin``, and the driver all if it runs there."""
    allocatable = {RESOURCE: str(plugin)} if plugin else None
    labels = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}
    node = cluster.node(part, labels=labels, allocatable=allocatable)
    if driver:
        cluster.driver = DRIVER
        cluster.publish([gpu(f"gpu-{index}") for index in range(count)], pool=node, node=node)
    return node


def legacy(cluster: Cluster, *, replicas: int = 2, count: int = 2) -> str:
    """A Deployment that asks for GPUs by the device plugin's resource, as a manifest."""
    return f"""\
# The way it was: {count} GPUs for each pod
apiVersion: apps/v1
kind: Deployment
metadata:
  name: tuner
  namespace: {cluster.namespace}
spec:
  replicas: {replicas}
  selector:
    matchLabels: {{app: tuner}}
  template:
    metadata:
      labels: {{app: tuner}}
    spec:
      nodeSelector: {{{OWNER_LABEL}: {cluster.namespace}}}
      containers:
        - name: tuner
          image: registry.example.com/tuner:3 # pinned
          resources:
            limits:
              {RESOURCE}: {count}
"""


def connection(cluster: Cluster) -> list[str]:
    """The flags that lead to the control plane."""
    return ["--kubeconfig", str(cluster.plane.kubeconfig), "--context", "admin"]


def documents(path: Path) -> list[Json]:
    """The objects in a file."""
    return [raw for raw in yaml.safe_load_all(path.read_text()) if raw]


def apply(cluster: Cluster, path: Path) -> list[Json]:
    """Creates all objects of a file, those without owner first."""
    found = sorted(documents(path), key=lambda raw: raw["kind"] == "Deployment")
    for raw in found:
        cluster.create(raw)
    return found
