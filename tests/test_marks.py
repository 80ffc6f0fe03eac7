"""The lists of slow tests and others name what is there."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from tests.conftest import HERE, SAMPLED, SLOW, SOURCE


def is_there(name: str) -> bool:
    """Whether there is a file or folder, and a test in it whose name begins so."""
    path, _, test = name.partition("::")
    return (HERE / path).exists() and (not test or f"def {test.partition('[')[0]}" in (HERE / path).read_text())


@pytest.mark.parametrize("names", [SLOW, SAMPLED, SOURCE], ids=["slow", "sampled", "source"])
def test_tests_that_are_named_exist(names: Iterable[str]) -> None:
    assert [name for name in names if not is_there(name)] == []


@pytest.mark.xdist_group("together")
def test_the_name_of_a_test_says_its_group(request: pytest.FixtureRequest) -> None:
    """By it, tests of a group run in one process."""
    together = request.config.getoption("loadgroup", default=False)
    assert request.node.nodeid.endswith("@together") == together
