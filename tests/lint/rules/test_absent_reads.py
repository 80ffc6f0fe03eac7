"""A name that no device has is an error only where it keeps the selector from matching."""

from __future__ import annotations

import pytest

from tests.lint.support import findings, selecting

NUMA = 'device.attributes["gpu.nvidia.com"].numa'
SPEED = 'device.attributes["mlnx.com"].speed'
TYPE = 'device.attributes["gpu.nvidia.com"].type'


@pytest.mark.parametrize(
    ("expression", "code"),
    [
        (f"!has({NUMA}) || {NUMA} == 0", "DRA606"),
        (f"{NUMA.replace('.numa', '.?numa')}.orValue(0) == 0", "DRA606"),
        (f'{TYPE} == "gpu" || {NUMA} == 0', "DRA606"),
        (f"!has({SPEED})", "DRA216"),
        (f"!has({SPEED}) || {SPEED} > 1", "DRA216"),
        ("!has(device.attributes.uuid)", "DRA216"),
        ("!has(device.attributes.uuid) || device.attributes.uuid.x == 1", "DRA216"),
        (f'{TYPE} == "GPU" || {TYPE} == "gpu"', "DRA213"),
        (f'{TYPE} == 1 || {TYPE} == "gpu"', "DRA213"),
    ],
)
def test_a_selector_that_matches_all_the_same_is_a_warning(expression: str, code: str) -> None:
    found = findings(selecting(expression), code)
    assert found and {finding.severity for finding in found} == {"warning"}


@pytest.mark.parametrize(
    ("expression", "code"),
    [
        (f"{NUMA} == 0", "DRA606"),
        (f"has({NUMA}) && {NUMA} == 0", "DRA606"),
        (f"{SPEED} > 1", "DRA216"),
        (f"has({SPEED})", "DRA216"),
        ("has(device.attributes.uuid)", "DRA216"),
        (f'{TYPE} == "GPU" || {NUMA} == 0', "DRA606"),
        (f'{TYPE} == "GPU" || {NUMA} == 0', "DRA213"),
        (f"{TYPE} == 1", "DRA213"),
    ],
)
def test_one_that_matches_nothing_is_an_error(expression: str, code: str) -> None:
    found = findings(selecting(expression), code)
    assert found and {finding.severity for finding in found} == {"error"}


def test_no_domain_is_proposed_that_lacks_the_name() -> None:
    (unknown,) = findings(selecting(f"{SPEED} > 1"), "DRA216")
    assert not unknown.changes and not unknown.advice
    (known,) = findings(selecting('device.attributes["mlnx.com"].uuid == "x"'), "DRA216")
    assert known.safety == "unsafe" and known.advice == "Write gpu.nvidia.com as the domain"
