"""The manifest of pods that share, where nobody has written one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from kubectl_dra.drivers.refused_claims import driver_of_whole_nodes


def manifest_of(
    device_class: str, pods: int, containers: int = 1, tolerations: Sequence[Mapping[str, str]] = ()
) -> str:
    """A Deployment of so many pods whose containers use one request of a claim for each pod.

    It asks for a device, or for all of a node where the driver gives a claim no fewer.
    """
    mode = "          allocationMode: All\n" if driver_of_whole_nodes(device_class) else ""
    names = ["app"] if containers == 1 else [f"app-{number}" for number in range(containers)]
    listed = "\n".join(
        f"      - name: {name}\n"
        "        image: registry.example/app:1\n"
        "        resources:\n"
        "          claims:\n"
        "          - {name: device, request: device}"
        for name in names
    )
    entries = "".join(f"      - {json.dumps(toleration)}\n" for toleration in tolerations)
    tolerated = f"      tolerations:\n{entries}" if entries else ""
    return f"""apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata:
  name: shared
spec:
  spec:
    devices:
      requests:
      - name: device
        exactly:
          deviceClassName: {json.dumps(device_class)}
{mode}---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: shared
spec:
  replicas: {pods}
  selector:
    matchLabels: {{app: shared}}
  template:
    metadata:
      labels: {{app: shared}}
    spec:
{tolerated}      containers:
{listed}
      resourceClaims:
      - name: device
        resourceClaimTemplateName: shared
"""
