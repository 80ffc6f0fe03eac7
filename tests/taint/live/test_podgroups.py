"""A claim that Kubernetes itself reserves for a PodGroup: its pods are evicted, and the device stays held."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kubectl_dra.api.releases import parse_release
from tests.taint.live.team import KEY, Kubelet, Team
from tools.controlplane.cluster import Cluster
from tools.controlplane.objects import request
from tools.controlplane.plane import own_plane
from tools.controlplane.program import Program, kubernetes_version
from tools.live.command import Command
from tools.scheduling.gangs import GATES, VERSIONS

GATE = "DRAWorkloadResourceClaims"


@pytest.fixture
def version() -> str:
    """The version of PodGroup that the release serves."""
    release = parse_release(kubernetes_version())
    minor = f"1.{release.minor}"
    if minor not in VERSIONS:
        pytest.skip(f"Kubernetes {release} has no claims of PodGroups")
    return VERSIONS[minor]


@pytest.fixture
def team(
    control_plane_program: Program, version: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Iterator[Team]:
    gates = f"{GATES[f'1.{parse_release(kubernetes_version()).minor}']},{GATE}=true"
    arguments = ["--profile=full", f"--feature-gates={gates}", f"--runtime-config={version}=true"]
    with own_plane(control_plane_program, arguments, tmp_path) as plane:
        if not plane.schedules:
            pytest.skip("no scheduler")
        yield Team(Cluster(plane, "team"), Command(capsys))


def test_a_device_of_a_pod_group(team: Team, version: str) -> None:
    claim = team.cluster.claim([request(team.gpu)], "shared")
    spec = {
        "schedulingPolicy": {"gang": {"minCount": 2}},
        "resourceClaims": [{"name": "gpu", "resourceClaimName": claim}],
    }
    group: dict[str, Any] = {"apiVersion": version, "kind": "PodGroup", "metadata": {"name": "gang"}, "spec": spec}
    team.cluster.create(group)
    members = ["gang-0", "gang-1"]
    for name in members:
        team.cluster.pod(name, claims={"gpu": claim}, schedulingGroup={"podGroupName": "gang"})
    (held,) = {team.cluster.scheduled(name).devices("gpu")[0].removeprefix("pool/") for name in members}
    (reserved,) = team.cluster.get("ResourceClaim", "shared")["status"]["reservedFor"]
    assert reserved["resource"] == "podgroups"

    kubelet = Kubelet(team.cluster)
    kubelet.start()
    command = ["taint", team.full(held), f"{KEY}:NoExecute"]
    answer = team.dra(*command, "--wait=3s")
    assert "2 of 2 pods will be deleted" in answer.out, answer.text
    assert "the server would delete 2 pods: as predicted" in answer.err
    for name in members:
        team.pod_gone(name)
    # Without any pod left the claim stays the group's: that is what Kubernetes does, and what is said.
    assert answer.code == 1 and f"kubectl delete podgroup/gang -n {team.cluster.namespace}" in answer.out
    listed = team.dra("taint", "--list")
    assert f"{team.cluster.namespace}/gang (podgroups)" in listed.out

    def delete() -> None:
        api = team.cluster.plane.api()
        own = {**group, "metadata": {"name": "gang", "namespace": team.cluster.namespace}}
        api.delete(own)
        # The controller that guards PodGroups does not run here.
        api.patch(own, {"metadata": {"finalizers": None}})

    deleting = threading.Timer(2, delete)
    deleting.start()
    again = team.dra(*command, "--wait=60s")
    deleting.join()
    kubelet.stop()
    assert again.code == 0 and "can be taken offline" in again.out, again.text
