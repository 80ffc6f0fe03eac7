from tests.controlplane.fixtures import (  # noqa: F401
    cluster,
    control_plane,
    control_plane_directory,
    control_plane_program,
)
