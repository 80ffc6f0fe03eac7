from __future__ import annotations

import pytest

from tests.controlplane.fixtures import (  # noqa: F401
    api_cluster,
    cluster,
    control_plane,
    control_plane_directory,
    control_plane_program,
)
from tools.live.command import Command


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    """`kubectl dra` in this process, with any connection."""
    return Command(capsys)
