"""Random selectors: whatever answers without evaluating, or once for many devices, answers as evaluation does."""

from __future__ import annotations

import pytest

from kubectl_dra.api.slices import Device
from tools.cel.fast_paths import ENVIRONMENTS, differs, found


def test_fast_paths_answer_as_evaluation_does() -> None:
    assert list(found(2_000)) == []


@pytest.mark.exhaustive
def test_fast_paths_of_many_more_selectors() -> None:
    """Eleven minutes of a processor, a third of what all other tests take."""
    assert next(found(100_000, seed=1), None) is None


@pytest.mark.parametrize("step", [".string", ".value", "[0]", "['string']", ".?string.orValue('x')", ".size()"])
def test_a_step_after_an_attribute_is_not_the_attribute(step: str) -> None:
    one = Device("d", "gpu", {"model": {"string": "a"}}, {"memory": {"value": "1Gi"}})
    for text in (
        f'device.attributes["d"].model{step} == "a"',
        f'dyn(device.capacity["d"].memory){step}.compareTo(quantity("1Gi")) == 0',
    ):
        assert not differs(ENVIRONMENTS[1][0], text, [one])
