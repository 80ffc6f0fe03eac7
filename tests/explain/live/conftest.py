from __future__ import annotations

from pathlib import Path

import pytest

from tests.controlplane.fixtures import (  # noqa: F401
    api_cluster,
    cluster,
    control_plane,
    control_plane_directory,
    control_plane_program,
    defaults_plane,
    machines,
)
from tools.controlplane.cluster import Cluster
from tools.live.command import Command
from tools.live.referee import Referee


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    """`kubectl dra` in this process, with any connection."""
    return Command(capsys)


@pytest.fixture
def referee(cluster: Cluster, command: Command, tmp_path: Path) -> Referee:  # noqa: F811
    """One test's share of the control plane, and explain and the scheduler to be asked the same."""
    return Referee(cluster, command, tmp_path)
