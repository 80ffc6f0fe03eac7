"""The list of slow tests names what is there."""

from __future__ import annotations

from tests.conftest import HERE, SLOW


def test_slow_files_exist() -> None:
    assert [each for each in SLOW if not (HERE / each.partition("::")[0]).exists()] == []
