from tests.cli.conftest import dra as dra
from tests.controlplane.fixtures import cluster as cluster
from tests.controlplane.fixtures import control_plane as control_plane
from tests.controlplane.fixtures import control_plane_directory as control_plane_directory
from tests.controlplane.fixtures import control_plane_program as control_plane_program
