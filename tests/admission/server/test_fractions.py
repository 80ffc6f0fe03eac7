"""Request policies with fractions, as 1.37.1 judges them with the gate for them on and off."""

from __future__ import annotations

from typing import Any

import pytest

from kubectl_dra.admission.server.devices import FRACTIONS
from kubectl_dra.admission.server.verdict import check
from kubectl_dra.api.releases import Release, default_features

RANGE = "validRange"


def wrong(policy: dict[str, Any], *, on: bool) -> set[str]:
    """The fields below requestPolicy that are wrong in a slice with this policy on a capacity of 8."""
    device = {"name": "a", "allowMultipleAllocations": True, "capacity": {"m": {"value": "8", "requestPolicy": policy}}}
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "d.example.com", "nodeName": "n1", "pool": pool, "devices": [device]}
    manifest = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "s"}, "spec": spec}
    features = default_features(Release(1, 37)) | ({FRACTIONS} if on else set())
    verdict = check(manifest, release=Release(1, 37), features=features, namespaces={})
    assert verdict is not None
    return {one.field.rpartition("requestPolicy.")[2] for one in verdict.violations}


@pytest.mark.parametrize(
    ("policy", "with_gate", "without"),
    [
        ({"default": "500m", RANGE: {"min": "500m", "max": "1500m", "step": "250m"}}, set(), set()),
        ({"default": "600m", RANGE: {"min": "500m", "step": "250m"}}, {f"{RANGE}.step"}, set()),
        ({"default": "1", RANGE: {"min": "0", "step": "1500u"}}, {f"{RANGE}.step"}, set()),
        ({"default": "1", RANGE: {"min": "1", "step": "-1"}}, {f"{RANGE}.step"}, {f"{RANGE}.step"}),
        ({"default": "1e19", RANGE: {"min": "1", "step": "1"}}, {f"{RANGE}.default"}, {f"{RANGE}.default"}),
        ({"default": "1", "validValues": ["1", "1200m", "1500m"]}, set(), {"validValues[2]"}),
        ({"default": "1", "validValues": ["1", "1000m"]}, set(), {"validValues[1]"}),
    ],
)
def test_policies(policy: dict[str, Any], with_gate: set[str], without: set[str]) -> None:
    assert wrong(policy, on=True) == with_gate
    assert wrong(policy, on=False) == without
