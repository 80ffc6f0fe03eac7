"""The whole way on the other releases, each in the API version that it serves. Only those that are built already."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from tests.taint.live.team import KEY, Kubelet, Team
from tools.controlplane.cluster import Cluster
from tools.controlplane.plane import ControlPlane, own_plane
from tools.controlplane.program import VERSION_VARIABLE, Program, find_program, is_built
from tools.live.command import Command

RELEASES = [("1.34", "v1alpha3"), ("1.35", "v1alpha3"), ("1.37", "v1")]
Planes = dict[str, Future[ControlPlane]]


@pytest.fixture(scope="module")
def planes(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Planes]:
    """A control plane of each release that is asked for and built; they start together while the first is used."""
    names = [item.nodeid for item in request.session.items]
    asked = [minor for minor, _ in RELEASES if any(f"test_out_of_service_and_back[{minor}-" in name for name in names)]
    programs: dict[str, Program] = {}
    with pytest.MonkeyPatch.context() as environment:
        environment.delenv("KUBEBUILDER_ASSETS", raising=False)
        for minor in asked:
            environment.setenv(VERSION_VARIABLE, minor)
            if is_built():
                programs[minor] = find_program()
    with ExitStack() as running, ThreadPoolExecutor() as pool:
        yield {minor: pool.submit(_start, running, programs[minor], tmp_path_factory) for minor in programs}


def _start(running: ExitStack, program: Program, directories: pytest.TempPathFactory) -> ControlPlane:
    return running.enter_context(own_plane(program, ["--profile=full"], directories.mktemp("release")))


@pytest.mark.parametrize(("minor", "version"), RELEASES)
def test_out_of_service_and_back(planes: Planes, minor: str, version: str, capsys: pytest.CaptureFixture[str]) -> None:
    if minor not in planes:
        pytest.skip(f"Kubernetes {minor} is not built: python -m tools.controlplane.program --kubernetes {minor}")
    team = Team(Cluster(planes[minor].result(), "team"), Command(capsys))
    kubelet = Kubelet(team.cluster)
    try:
        held = team.running("one")
        made = team.json("taint", team.full(held), f"{KEY}:NoSchedule")["rules"][0]
        assert (made["outcome"], made["deviceTaintRule"]["apiVersion"]) == ("created", f"resource.k8s.io/{version}")
        kubelet.start()
        ended = team.dra("taint", team.full(held), f"{KEY}:NoExecute", "--overwrite", "--wait=60s")
        assert ended.code == 0 and "can be taken offline" in ended.out, ended.text
        # The effect None, and so the server's answer, is known from 1.35 on.
        asked = "the server would delete 1 pod: as predicted" in ended.err
        assert asked is (minor != "1.34"), ended.err
        assert ("the server was not asked" in ended.err) is not asked
        (free,) = {"gpu-0", "gpu-1"} - {held}
        fresh = team.json("taint", team.full(free), f"{KEY}:NoExecute")["rules"][0]
        assert ("ruleStatus" in fresh) is asked
        team.pod("two")
        team.cluster.unschedulable("two")
        back = team.dra("untaint", team.full(held), "--wait=30s")
        # The pod that waits may have got it by then.
        assert back.code == 0 and re.search(r"Allocatable again|is untainted: held by .* \(pod two\)", back.out), (
            back.text
        )
        assert team.cluster.scheduled("two").devices("gpu") == [f"pool/{held}"]
    finally:
        kubelet.stop()
