"""Of objects of one name in several environments, a pod means the nearest."""

from __future__ import annotations

import pytest

from kubectl_dra.lint.engine import lint
from kubectl_dra.manifests.inputs import Input
from tests.lint.support import job

CLAIM = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: device, namespace: ml}
spec:
  devices:
    requests:
    - name: device
      exactly: {deviceClassName: CLASS}
"""
GPU, NIC = CLAIM.replace("CLASS", "gpu.nvidia.com"), CLAIM.replace("CLASS", "dranet")
DEPLOYMENT = """\
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: w, namespace: ml}
spec:
  replicas: 2
  selector: {matchLabels: {app: w}}
  template:
    metadata: {labels: {app: w}}
    spec:
      resourceClaims: [{name: device, resourceClaimName: device}]
      containers:
      - {name: c, image: busybox, resources: {claims: [{name: device}]}}
"""


def severities(files: dict[str, str]) -> list[str]:
    inputs = [Input(name, True, text.encode()) for name, text in files.items()]
    return [finding.severity for finding in lint(inputs, job("DRA404"), 1).findings]


@pytest.mark.parametrize(
    "files",
    [
        {"dev/claim.yaml": NIC, "prod/all.yaml": GPU + DEPLOYMENT},
        {"dev/claim.yaml": NIC, "prod/claim.yaml": GPU, "prod/pods.yaml": DEPLOYMENT},
        {"a/dev/claim.yaml": NIC, "claim.yaml": NIC, "a/prod/x/claim.yaml": GPU, "a/prod/pods.yaml": DEPLOYMENT},
        {"a.yaml": NIC, "b.yaml": GPU + DEPLOYMENT},
    ],
)
def test_the_nearest_claim_counts(files: dict[str, str]) -> None:
    assert severities(files) == ["warning"]
    swapped = {name: text.replace("dranet", "X").replace("gpu.nvidia.com", "dranet") for name, text in files.items()}
    assert severities({name: text.replace("X", "gpu.nvidia.com") for name, text in swapped.items()}) == ["error"]
