"""A guard belongs into a selector that can be true, and not where the devices of the cluster need none."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubectl_dra.api.releases import NEWEST_MODELLED, default_features
from kubectl_dra.cluster.files import read_snapshot
from kubectl_dra.lint.check_file import Job
from kubectl_dra.lint.config import Selection
from kubectl_dra.lint.context import AssumedCluster
from kubectl_dra.lint.engine import lint
from kubectl_dra.manifests.inputs import Input
from tests.lint.support import findings

CLAIM = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: gpu, namespace: serving}
spec:
  devices:
    requests:
    - name: gpu
      exactly: {deviceClassName: CLASS, selectors: [{cel: {expression: 'TEXT'}}]}
"""
AMD = Path(__file__).resolve().parents[3] / "examples" / "explain" / "amd-partitions-in-use" / "cluster.yaml"


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        ('device.attributes["nvidia.com"].productName == "x"', {"DRA216"}),
        ('device.attributes["gpu.nvida.com"].productName == "x"', {"DRA216"}),
        (
            'device.attributes["gpu.nvidia.com"].profile == "1g.10gb" && '
            'device.attributes["gpu.nvidia.com"].architecture == "hopper"',
            {"DRA213"},
        ),
    ],
)
def test_no_guard_hides_that_a_selector_is_never_true(expression: str, told: set[str]) -> None:
    for device_class in ("gpu.nvidia.com", "accelerator"):
        found = findings(CLAIM.replace("CLASS", device_class).replace("TEXT", expression), "DRA2")
        assert {finding.code for finding in found} <= told
        assert "safe" not in {finding.safety for finding in found}


@pytest.mark.parametrize("lacking", [False, True])
def test_the_devices_of_the_cluster_say_whether_a_guard_is_needed(lacking: bool) -> None:
    read = 'device.attributes["gpu.amd.com"].computePartition == "spx"'
    text = CLAIM.replace("CLASS", "gpu.amd.com").replace("TEXT", read)
    assert [finding.code for finding in findings(text, "DRA211")] == ["DRA211"]
    cluster = AMD.read_text()
    if lacking:
        cluster = cluster.replace("        computePartition:\n          string: spx\n", "", 1)
    snapshot = read_snapshot(["-"], stdin=cluster.encode())
    target = AssumedCluster(NEWEST_MODELLED, default_features(NEWEST_MODELLED), snapshot)
    found = lint([Input("f.yaml", True, text.encode())], Job(target, Selection(("DRA211",))), 1).findings
    assert bool(found) is lacking


def test_kinds_of_devices_are_called_as_they_are_published() -> None:
    text = CLAIM.replace("CLASS", "gpu.amd.com").replace("TEXT", 'device.attributes["gpu.amd.com"].cardIndex == 0')
    (found,) = findings(text, "DRA211")
    assert "devices of type amdgpu, amdgpu-partition and vfio of the AMD GPU driver do not have it" in found.message


def test_a_measured_size_is_no_example_against_itself() -> None:
    read = 'device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("AMOUNT")) == 0'
    text = CLAIM.replace("CLASS", "gpu.nvidia.com").replace("TEXT", read)
    (round_size,) = findings(text.replace("AMOUNT", "80Gi"), "DRA214")
    assert round_size.message.endswith("devices publish a measured size, for example 81559Mi")
    (measured,) = findings(text.replace("AMOUNT", "81559Mi"), "DRA214")
    assert "for example" not in measured.message and "on some devices only" in measured.message
