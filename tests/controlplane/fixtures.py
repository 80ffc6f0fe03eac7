"""Pytest fixtures for a real control plane. A folder whose tests use one imports them in its conftest.py:

    from tests.controlplane.fixtures import api_cluster, cluster, control_plane  # noqa: F401

and `pytest_terminal_summary` too, in one conftest.py, to say in one line why tests were skipped.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from tools.controlplane.cluster import Cluster
from tools.controlplane.node import Nodes, nodes
from tools.controlplane.plane import ControlPlane, gates_asked, own_plane, shared_plane
from tools.controlplane.program import Program, Unavailable, find_node, find_program

NONE_HERE = "no control plane"
REQUIRE_VARIABLE = "REQUIRE_CONTROL_PLANE"

_told = pytest.StashKey[bool]()


@pytest.fixture(scope="session")
def control_plane_program(request: pytest.FixtureRequest) -> Program:
    """The program that starts control planes, built on first use. Skips when there is none."""
    try:
        return find_program(_announcing(request))
    except Unavailable as reason:
        _give_up(str(reason))


@pytest.fixture(scope="module")
def machines(
    request: pytest.FixtureRequest, control_plane_program: Program, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Nodes]:
    """Real nodes, to be started by tests, on a control plane that a module has for itself: nodes see each other's."""
    try:
        binary = find_node(_announcing(request))
    except Unavailable as reason:
        pytest.skip(f"no nodes: {reason}")
    directory = tmp_path_factory.mktemp("nodes")
    with (
        own_plane(control_plane_program, ["--profile=full", *gates_asked()], directory) as plane,
        nodes(plane, binary) as made,
    ):
        yield made


def _announcing(request: pytest.FixtureRequest) -> Callable[[str], None]:
    def announce(text: str) -> None:
        capture = request.config.pluginmanager.getplugin("capturemanager")
        if capture is None:
            print(text, flush=True)
            return
        with capture.global_and_fixture_disabled():
            print(f"\n{text}", flush=True)

    return announce


@pytest.fixture(scope="session")
def control_plane_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory that all processes of this test run have in common."""
    base = tmp_path_factory.getbasetemp()
    common = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    directory = common / "controlplane"
    directory.mkdir(exist_ok=True)
    return directory


@pytest.fixture(scope="session")
def control_plane(control_plane_program: Program, control_plane_directory: Path) -> Iterator[ControlPlane]:
    """The control plane with every DRA API version and DeviceTaintRules, one for the whole test run."""
    with shared_plane(control_plane_program, "full", control_plane_directory, *gates_asked()) as plane:
        yield plane


@pytest.fixture(scope="session")
def defaults_plane(control_plane_program: Program, control_plane_directory: Path) -> Iterator[ControlPlane]:
    """A control plane with Kubernetes' defaults: resource.k8s.io/v1 only, no DeviceTaintRules."""
    with shared_plane(control_plane_program, "defaults", control_plane_directory) as plane:
        yield plane


@pytest.fixture
def api_cluster(control_plane: ControlPlane) -> Iterator[Cluster]:
    """A fresh namespace and driver name, for a test that needs no scheduler and no controllers."""
    share = Cluster(control_plane, f"dra-{secrets.token_hex(4)}")
    yield share
    share.remove()


@pytest.fixture
def cluster(control_plane: ControlPlane) -> Iterator[Cluster]:
    """A fresh namespace and driver name, where pods get scheduled and controllers run."""
    if not control_plane.schedules:
        _give_up("KUBEBUILDER_ASSETS has no kube-scheduler and kube-controller-manager; unset it to build them")
    share = Cluster(control_plane, f"dra-{secrets.token_hex(4)}")
    yield share
    share.remove()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say once why control plane tests did not run."""
    reasons = [
        report.longrepr[2]
        for report in terminalreporter.stats.get("skipped", [])
        if isinstance(report.longrepr, tuple) and NONE_HERE in report.longrepr[2]
    ]
    if reasons and not terminalreporter.config.stash.get(_told, False):
        terminalreporter.config.stash[_told] = True
        reason = reasons[0].removeprefix("Skipped: ")
        terminalreporter.write_line(f"{len(reasons)} tests skipped: {reason}", yellow=True)


def _give_up(reason: str) -> NoReturn:
    text = f"{NONE_HERE}: {reason}"
    if os.environ.get(REQUIRE_VARIABLE) == "1":
        pytest.fail(text, pytrace=False)
    pytest.skip(text)
