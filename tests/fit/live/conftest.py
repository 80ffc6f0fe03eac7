from __future__ import annotations

from tests.controlplane.fixtures import control_plane_program  # noqa: F401
