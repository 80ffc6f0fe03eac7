"""What drivers are known to refuse of a claim on a node."""

from __future__ import annotations

import pytest

from kubectl_dra.drivers.refused_claims import OfSeveralPods, refusals
from tests.cluster.test_anonymize import built

CLAIM = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaim",
    "metadata": {"name": "shared", "namespace": "ml", "uid": "c"},
    "spec": {"devices": {"requests": [{"name": "cpu", "exactly": {"deviceClassName": "dra.cpu"}}]}},
    "status": {
        "allocation": {"devices": {"results": [{"request": "cpu", "driver": "dra.cpu", "pool": "n1", "device": "c0"}]}},
        "reservedFor": [{"resource": "pods", "name": "a", "uid": "u-a"}],
    },
}


@pytest.mark.parametrize(("name", "uid", "refused"), [("a", "u-a", False), ("a", "", False), ("b", "u-b", True)])
def test_another_pod_is_one_of_another_name_or_uid(name: str, uid: str, refused: bool) -> None:
    """One that was saved without its UID is the consumer of its name."""
    pod = {"metadata": {"name": name, "namespace": "ml", "uid": uid}, "spec": {"containers": []}}
    snapshot = built([CLAIM, {"apiVersion": "v1", "kind": "Pod", **pod}])
    told = refusals(snapshot.claims.values(), "n1", snapshot, (), snapshot.pods["ml", name])
    found = [refusal for refusal in told if isinstance(refusal, OfSeveralPods)]
    assert bool(found) == refused
