"""What the devices of bound pods take from the node's own resources, as their status says."""

from __future__ import annotations

import msgspec
import pytest

from kubectl_dra.api.pods import Pod
from kubectl_dra.scheduling.amounts import Rules, pod_amounts

MAPPED = {
    "resourceClaimName": "cpus",
    "containers": ["a", "b"],
    "mapping": [{"name": "cpu", "quantity": "4"}],
    "overhead": [{"name": "memory", "perPod": "1Gi", "perContainer": "512Mi"}],
}
OF_136 = {"resourceClaimName": "cpus", "containers": ["a"], "resources": {"cpu": "3"}}


@pytest.mark.parametrize(
    ("status", "on", "expected"),
    [
        (MAPPED, True, {"cpu": 4500, "memory": 2 * 2**30}),
        (OF_136, True, {"cpu": 3500}),
        (MAPPED, False, {"cpu": 500}),
    ],
)
def test_they_count_with_the_gate(status: dict[str, object], on: bool, expected: dict[str, int]) -> None:
    pod = msgspec.convert(
        {
            "metadata": {"name": "p"},
            "spec": {"containers": [{"name": "a", "resources": {"requests": {"cpu": "500m"}}}]},
            "status": {"nodeAllocatableResourceClaimStatuses": [status]},
        },
        Pod,
    )
    assert pod_amounts(pod, Rules.of({"DRANodeAllocatableResources"} if on else set())) == expected
