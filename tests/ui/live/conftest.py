from __future__ import annotations

from tests.controlplane.fixtures import (  # noqa: F401
    cluster,
    control_plane,
    control_plane_directory,
    control_plane_program,
)
from tests.taint.live.conftest import team  # noqa: F401
