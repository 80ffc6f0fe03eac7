from tests.controlplane.fixtures import pytest_terminal_summary  # noqa: F401
