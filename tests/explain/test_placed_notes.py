"""What is said of a pod on its node with which nothing is wrong."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.pods import Pod
from kubectl_dra.api.slices import ResourceSlice
from kubectl_dra.api.taints import DeviceTaintRule
from kubectl_dra.cli.release import assumed
from kubectl_dra.cluster.claim_relation import claims_of
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.explain.pipeline import diagnose
from kubectl_dra.explain.question.resolve import about_pod
from kubectl_dra.report.phrases import written
from tests.explain.test_relations import claim, cluster, entry, pod

TAINT = {"key": "k", "effect": "NoSchedule"}


def tainted(by_rule: bool) -> Snapshot:
    """A pod that runs with a device which has a taint, of its driver or of a rule."""
    device: dict[str, Any] = {"name": "gpu-0", **({} if by_rule else {"taints": [TAINT]})}
    spec: dict[str, Any] = {"driver": "d", "nodeName": "n1", "devices": [device]}
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


def given(name: str, device: str) -> Pod:
    """A pod that runs on the node, of which the kubelet says which device it was given."""
    resource = {"name": "claim:gpu/gpu", "resources": [{"resourceID": f"d/gpu={device}"}]}
    container = {"name": "c", "allocatedResourcesStatus": [resource]}
    return Pod.from_json(
        {
            "metadata": {"name": name, "namespace": "ml", "uid": f"uid-{name}"},
            "spec": {"nodeName": "n1"},
            "status": {"phase": "Running", "containerStatuses": [container]},
        }
    )


def test_claims_are_searched_for_pods_that_share_a_name_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def counted(other: Pod, snapshot: Snapshot) -> list[ResourceClaim]:
        asked.append(other.metadata.name)
        return claims_of(other, snapshot)

    monkeypatch.setattr("kubectl_dra.explain.answer_notes.claims_of", counted)
    others = [given(f"other-{number}", f"gpu-{number}") for number in range(1, 20)]
    here = cluster(claim(entry()), pods=(pod(), given("lost", "gpu-0"), *others))
    notes = [written(note) for note in diagnose(about_pod(pod(), here, exists=True), here, assumed(here)).notes]
    assert any("pod ml/lost runs on node n1 with d/n1/gpu-0, too" in note for note in notes), notes
    assert asked == ["lost"]
