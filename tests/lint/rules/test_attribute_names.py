"""The names that advice about a constraint gives: in full, as they are written there."""

from __future__ import annotations

import pytest

from kubectl_dra.lint.finding import LocatedFinding
from tests.lint.support import findings

CLAIM = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: gpu}
spec:
  devices:
    requests: [{name: gpu, exactly: {deviceClassName: CLASS, count: 2}}]
    constraints: [{matchAttribute: NAME}]
"""


def of(name: str, device_class: str = "gpu.nvidia.com") -> LocatedFinding:
    found = findings(CLAIM.replace("NAME", name).replace("CLASS", device_class), "DRA104,DRA601")
    return found[0]


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("resource.kubernetes.io/pcieroot", "Did you mean resource.kubernetes.io/pcieRoot?"),
        ("gpu.nvidia.com/arhitecture", "Did you mean gpu.nvidia.com/architecture?"),
        ("pcieRoot", "Write resource.kubernetes.io/pcieRoot"),
        ("architecture", "Write gpu.nvidia.com/architecture"),
        ("archtecture", "Did you mean gpu.nvidia.com/architecture?"),
    ],
)
def test_a_proposed_name_is_what_the_fix_writes(name: str, advice: str) -> None:
    found = of(name)
    assert found.advice == advice
    assert [getattr(change, "value", "") for change in found.changes] == [advice.split()[-1].rstrip("?")]


def test_a_name_that_nobody_knows_gets_no_invented_domain() -> None:
    found = of("colour", "accelerator")
    assert found.advice.startswith("Put a domain before it: the driver's, or resource.kubernetes.io for pcieRoot")
    assert not found.changes
