"""Who holds a device, where the consuming pod is not to be seen."""

from __future__ import annotations

import pytest

from kubectl_dra.allocation.features import Features
from kubectl_dra.allocation.state import allocated_state
from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.cluster.cluster import Cluster
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.explain.holders import HolderIndex, HolderState
from kubectl_dra.report.phrases import written

CLAIM = ResourceClaim.from_json(
    {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "old", "namespace": "ml", "deletionTimestamp": "2026-03-01T10:00:00Z"},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}},
        "status": {
            "allocation": {
                "devices": {"results": [{"request": "gpu", "driver": "d", "pool": "n1", "device": "gpu-0"}]}
            },
            "reservedFor": [{"resource": "pods", "name": "gone", "uid": "u"}],
        },
    }
)


@pytest.mark.parametrize(
    ("complete", "said"),
    [(True, "pod gone, which does not exist any more"), (False, "pod gone")],
    ids=["all pods are known", "some pods are not known"],
)
def test_a_pod_that_is_not_seen(complete: bool, said: str) -> None:
    """It is gone only where all pods of its namespace are known; then nobody releases the claim by itself."""
    here = Snapshot(claims={("ml", "old"): CLAIM}, release_source="server" if complete else "file")
    holders = HolderIndex(allocated_state([CLAIM], Features.from_gates(frozenset())), Cluster(here))
    assert holders.holder(CLAIM).standing is (HolderState.ENDED if complete else HolderState.RUNNING)
    text = f"claim ml/old ({said}; the claim is being deleted since 2026-03-01T10:00:00Z)"
    assert written(holders.describe_claim(CLAIM)) == text
