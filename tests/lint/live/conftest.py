from __future__ import annotations

from tests.controlplane.fixtures import (  # noqa: F401
    api_cluster,
    cluster,
    control_plane,
    control_plane_directory,
    control_plane_program,
)
from tests.explain.live.conftest import command  # noqa: F401
