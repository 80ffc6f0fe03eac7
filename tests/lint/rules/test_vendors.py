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
