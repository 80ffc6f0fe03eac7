"""What the API server refuses says nothing of the devices that there are."""

from __future__ import annotations

import pytest

from tests.lint.support import findings

BOTH = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: gpu}
spec:
  devices:
    requests:
    - name: gpu
      exactly:
        deviceClassName: gpu.nvidia.com
        selectors:
        - cel: {expression: 'device.attributes["gpu.nvidia.com"].NAME == "x"'}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: node-1}
spec:
  driver: gpu.nvidia.com
  nodeName: node-1
  pool: {name: node-1, generation: 1, resourceSliceCount: COUNT}
  devices:
  - name: gpu-0
    attributes:
      PUBLISHED: {string: x}
"""


def told(name: str, published: str, count: int = 1) -> list[str]:
    text = BOTH.replace("NAME", name).replace("PUBLISHED", published).replace("COUNT", str(count))
    return [f"{finding.code} {finding.severity}" for finding in findings(text, "DRA216,DRA601")]


def test_an_attribute_that_cannot_be_called_so_is_not_believed() -> None:
    assert told("productName", "gpu.nvidia.com") == []


@pytest.mark.parametrize(("count", "learned"), [(1, True), (0, False)])
def test_only_an_accepted_slice_is_believed(count: int, learned: bool) -> None:
    assert told("tier", "tier", count) == ([] if learned else ["DRA601 warning"])


@pytest.mark.parametrize(("operator", "told"), [("==", []), ("!=", ["DRA211"]), ("=", [])])
def test_of_a_class_that_does_not_compile_nothing_is_known(operator: str, told: list[str]) -> None:
    """Without its wrong selector it would admit devices that it is not meant to admit."""
    text = (
        "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: any}\nspec:\n  selectors:\n"
        "  - cel: {expression: 'device.driver == \"gpu.nvidia.com\"'}\n"
        f'  - cel: {{expression: \'device.attributes["gpu.nvidia.com"].type {operator} "gpu"\'}}\n---\n'
    )
    claim = BOTH.partition("---")[0].replace("gpu.nvidia.com\n", "any\n").replace("NAME", "architecture")
    found = findings(text + claim, "DRA211")
    assert [finding.code for finding in found] == told
