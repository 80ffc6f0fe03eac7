from tests.controlplane.fixtures import (  # noqa: F401
    api_cluster,
    cluster,
    control_plane,
    control_plane_directory,
    control_plane_program,
    defaults_plane,
    machines,
    pytest_terminal_summary,
)
