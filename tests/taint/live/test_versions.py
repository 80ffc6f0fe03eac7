"""The whole way on the other releases, each in the API version that it serves. Only those that are built already."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.controlplane.cluster import Cluster
from tests.controlplane.plane import own_plane
from tests.controlplane.program import VERSION_VARIABLE, cache_directory, find_program, source_key
from tests.explain.live.command import Command
from tests.taint.live.team import KEY, Kubelet, Team


@pytest.mark.parametrize(("minor", "version"), [("1.34", "v1alpha3"), ("1.35", "v1alpha3"), ("1.37", "v1")])
def test_out_of_service_and_back(
    minor: str, version: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    monkeypatch.setenv(VERSION_VARIABLE, minor)
    if not (cache_directory() / source_key() / "controlplane").exists():
        pytest.skip(f"Kubernetes {minor} is not built: python -m tests.controlplane.program --kubernetes {minor}")
    with own_plane(find_program(), ["--profile=full"], tmp_path) as plane:
        team = Team(Cluster(plane, "team"), Command(capsys))
        kubelet = Kubelet(team.cluster)
        try:
            held = team.running("one")
            made = team.json("taint", team.full(held), f"{KEY}:NoSchedule")["rules"][0]
            assert (made["outcome"], made["object"]["apiVersion"]) == ("created", f"resource.k8s.io/{version}")
            kubelet.start()
            ended = team.dra("taint", team.full(held), f"{KEY}:NoExecute", "--overwrite", "--wait=60s")
            assert ended.code == 0 and "can be taken offline" in ended.out, ended.text
            (free,) = {"gpu-0", "gpu-1"} - {held}
            fresh = team.json("taint", team.full(free), f"{KEY}:NoExecute")["rules"][0]
            # The effect None, and so the server's answer, is known from 1.35 on.
            assert ("server" in fresh) is (minor != "1.34")
            team.pod("two")
            team.cluster.unschedulable("two")
            back = team.dra("untaint", team.full(held), "--wait=30s")
            assert back.code == 0 and "Allocatable again" in back.out, back.text
            assert team.cluster.scheduled("two").devices("gpu") == [f"pool/{held}"]
        finally:
            kubelet.stop()
