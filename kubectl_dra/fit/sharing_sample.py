"""The manifest of pods that share, where nobody has written one."""

from __future__ import annotations

import json


def manifest_of(device_class: str, pods: int, containers: int = 1) -> str:
    """A Deployment of so many pods whose containers use one request of a claim for each pod."""
    names = ["app"] if containers == 1 else [f"app-{number}" for number in range(containers)]
    listed = "\n".join(
        f"      - name: {name}\n"
        "        image: registry.example/app:1\n"
        "        resources:\n"
        "          claims:\n"
        "          - {name: device, request: device}"
        for name in names
    )
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
---
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
      containers:
{listed}
      resourceClaims:
      - name: device
        resourceClaimTemplateName: shared
"""
