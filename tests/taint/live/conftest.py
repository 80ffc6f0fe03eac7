from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.controlplane.fixtures import (  # noqa: F401
    cluster,
    control_plane,
    control_plane_directory,
    control_plane_program,
    defaults_plane,
    machines,
)
from tests.taint.live.team import Kubelet, Team
from tools.controlplane.cluster import Cluster
from tools.live.command import Command


@pytest.fixture
def team(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> Iterator[Team]:  # noqa: F811
    """One test's share of the control plane, and the command on it."""
    made = Team(cluster, Command(capsys))
    yield made
    made.remove_rules()


@pytest.fixture
def kubelet(cluster: Cluster) -> Iterator[Kubelet]:  # noqa: F811
    """Confirms the end of deleted pods, as a kubelet does."""
    playing = Kubelet(cluster)
    yield playing
    playing.stop()
