"""The list of slow tests names what is there."""

from __future__ import annotations

import pytest

from tests.conftest import HERE, SLOW


def test_slow_files_exist() -> None:
    assert [each for each in SLOW if not (HERE / each.partition("::")[0]).exists()] == []


@pytest.mark.xdist_group("together")
def test_the_name_of_a_test_says_its_group(request: pytest.FixtureRequest) -> None:
    """By it, tests of a group run in one process."""
    together = request.config.getoption("loadgroup", default=False)
    assert request.node.nodeid.endswith("@together") == together
