"""What is said of a pod on its node with which nothing is wrong."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kubectl_dra.api.slices import ResourceSlice
from kubectl_dra.api.taints import DeviceTaintRule
from kubectl_dra.cli.assumed import assumed
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.explain.pipeline import diagnose
from kubectl_dra.explain.question.resolve import about_pod
from kubectl_dra.report.phrases import written
from tests.explain.test_relations import claim, cluster, entry, pod

TAINT = {"key": "k", "effect": "NoSchedule"}


def tainted(by_rule: bool) -> Snapshot:
    """A pod that runs with a device which has a taint, of its driver or of a rule."""
    device: dict[str, Any] = {"name": "gpu-0", **({} if by_rule else {"taints": [TAINT]})}
    spec = {"driver": "d", "nodeName": "n1", "devices": [device]}
    spec["pool"] = {"name": "n1", "generation": 1, "resourceSliceCount": 1}
    rule = {"metadata": {"name": "maintenance"}, "spec": {"deviceSelector": {"pool": "n1"}, "taint": TAINT}}
    return replace(
        cluster(claim(entry()), pods=(pod(),)),
        slices=(ResourceSlice.from_json({"metadata": {"name": "s"}, "spec": spec}),),
        taint_rules=(DeviceTaintRule.from_json(rule),) if by_rule else (),
    )


@pytest.mark.parametrize(
    ("by_rule", "release", "gates", "told"),
    [
        (False, "1.37.1", (), True),
        (False, "1.37.1", ("DRADeviceTaints=false",), False),
        (True, "1.37.1", (), True),
        (True, "1.37.1", ("DRADeviceTaints=false",), False),
        (True, "1.36.4", (), True),
        # These schedulers do not see the rules, so that other pods get the device.
        (True, "1.36.2", (), False),
    ],
)
def test_a_taint_is_told_where_it_keeps_other_pods_away(
    by_rule: bool, release: str, gates: tuple[str, ...], told: bool
) -> None:
    here = tainted(by_rule)
    settings = assumed(here, release, gates)
    notes = [written(note) for note in diagnose(about_pod(pod(), here, exists=True), here, settings).notes]
    assert any("is tainted: k:NoSchedule" in note for note in notes) is told, notes
