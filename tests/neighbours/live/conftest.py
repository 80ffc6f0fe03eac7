from __future__ import annotations

from tests.controlplane.fixtures import cluster as cluster
from tests.controlplane.fixtures import control_plane as control_plane
from tests.controlplane.fixtures import control_plane_directory as control_plane_directory
from tests.controlplane.fixtures import control_plane_program as control_plane_program
from tests.controlplane.fixtures import machines as machines
from tests.explain.live.conftest import command as command
from tests.explain.live.conftest import referee as referee
