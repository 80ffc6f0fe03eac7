from tests.controlplane.fixtures import control_plane_directory, control_plane_program  # noqa: F401
