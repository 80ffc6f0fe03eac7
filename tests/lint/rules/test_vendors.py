"""Which vendor a resource's name stands for in a pod: HAMi shares GPUs under NVIDIA's."""

from __future__ import annotations

import pytest

from tests.lint.support import findings

POD = """\
apiVersion: v1
kind: Pod
metadata: {name: trainer, annotations: {ANNOTATIONS}}
spec:
  schedulerName: SCHEDULER
  containers:
  - name: trainer
    image: registry.example.com/trainer:1
    resources: {limits: {nvidia.com/gpu: 1BESIDE}}
"""


@pytest.mark.parametrize(
    ("annotations", "scheduler", "beside", "driver"),
    [
        ("", "default-scheduler", "", "gpu.nvidia.com"),
        ("", "default-scheduler", ", nvidia.com/gpumem: 8000", "hami-core-gpu.project-hami.io"),
        ("nvidia.com/use-gputype: A100", "default-scheduler", "", "hami-core-gpu.project-hami.io"),
        ("", "hami-scheduler", "", "hami-core-gpu.project-hami.io"),
    ],
)
def test_signs_of_a_vendor_are_read(annotations: str, scheduler: str, beside: str, driver: str) -> None:
    text = POD.replace("ANNOTATIONS", annotations).replace("SCHEDULER", scheduler).replace("BESIDE", beside)
    (finding,) = findings(text, "DRA703")
    assert f"not from the DRA driver {driver}" in finding.message


def test_an_attribute_of_a_later_release_is_proposed_with_that_release() -> None:
    claim = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: gpus}
spec:
  devices:
    requests:
    - name: gpu
      exactly: {deviceClassName: gpu.nvidia.com, count: 2}
    constraints:
    - {requests: [gpu], matchAttribute: gpu.nvidia.com/NAME}
"""
    (finding,) = findings(claim.replace("NAME", "numaNode"), "DRA601")
    assert "from release 0.5 of the driver on" in finding.message
    assert "resource.kubernetes.io/pcieRoot" in finding.advice and not finding.changes
    (finding,) = findings(claim.replace("NAME", "pcieRoot"), "DRA601")
    assert finding.changes
