from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cli.conftest import dra as dra
from tools.api_server import APIServer


@pytest.fixture
def server() -> Iterator[APIServer]:
    """One that is read, and never written to."""
    started = APIServer()
    yield started
    started.close()
    assert {asked.method for asked in started.asked} <= {"GET"}
