"""Devices as drivers of vendors publish them, and what selectors say of them."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from functools import cache
from typing import Any

from kubectl_dra.cel import Environment, compile_expression
from tests.conformance.cel import DATA, RecordedDevice, of_vendor

RELEASES = ("1.34", "1.36")
_RECORDED: dict[str, Any] = json.loads((DATA / "vendor-cel-cases.json").read_text())["devices"]
NAMES = tuple(_RECORDED)


@cache
def device(name: str) -> RecordedDevice:
    """A device of the recording."""
    return of_vendor(_RECORDED[name])


def matches(selectors: Sequence[str], device: RecordedDevice) -> bool:
    """Whether all selectors are true of a device, in all releases alike. Raises what a selector raises."""
    answers = set()
    for release in RELEASES:
        environment = Environment.for_release(release)
        answers.add(all(compile_expression(environment, selector).evaluate(device) for selector in selectors))
    assert len(answers) == 1
    return answers.pop()


def chosen(selectors: Sequence[str], among: Collection[str]) -> set[str]:
    """Which of some devices the selectors are true of."""
    return {name for name in among if matches(selectors, device(name))}


def of_driver(driver: str) -> tuple[str, ...]:
    """The devices of a driver."""
    return tuple(name for name in NAMES if _RECORDED[name]["driver"] == driver)
