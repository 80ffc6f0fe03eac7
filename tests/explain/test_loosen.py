"""To what value a term may be loosened, and devices that a selector would take."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kubectl_dra.allocation.selectors import Selectors
from kubectl_dra.api.claims import DeviceRequest
from kubectl_dra.api.slices import Device, ResourceSlice
from kubectl_dra.cel import Environment
from kubectl_dra.explain.funnel.device_view import PublishedDevice
from kubectl_dra.explain.remedies.change import ReplaceTerm
from kubectl_dra.explain.remedies.claim_edits import RequestPlace
from kubectl_dra.explain.remedies.selector_values import loosened

Attributes = dict[str, dict[str, Any]]
SELECTORS = Selectors(Environment.for_release("1.36"))
OLD: Attributes = {
    "model": {"string": "A100"},
    "index": {"int": 0},
    "driver": {"version": "1.5.0"},
    "sick": {"bool": True},
}
NEW: Attributes = {
    "model": {"string": "H100"},
    "index": {"int": 3},
    "driver": {"version": "2.0.0"},
    "sick": {"bool": True},
}
DEVICES = [
    Device("d", "old", OLD, {"memory": {"value": "40Gi"}}),
    Device("d", "older", OLD, {"memory": {"value": "40Gi"}}),
    Device("d", "new", NEW, {"memory": {"value": "80Gi"}}),
]
A = 'device.attributes["d"]'
MEMORY = 'device.capacity["d"].memory'

TERMS = [
    (f'{A}.model == "B200"', '"A100"'),
    (f"{A}.model == 'B200'", "'A100'"),
    (f'"B200" == {A}.model', '"A100"'),
    (f'{A}.model in ["B200", "T4"]', '["B200", "T4", "A100"]'),
    (f"{A}.index in [7]", "[7, 0]"),
    (f'{A}.model.startsWith("B")', '"A100"'),
    (f'{A}.model.lowerAscii() == "b200"', '"a100"'),
    (f'{A}.model.replace("1", "-") == "B2-0"', '"A-00"'),
    (f'"B2-0" == {A}.model.replace("1", "-")', '"A-00"'),
    (f'{A}.model.replace("1", "-") in ["B2-0"]', '["B2-0", "A-00"]'),
    (f'{A}.model.lowerAscii().startsWith("h2")', '"h100"'),
    (f"{A}.driver.major() == 7", "2"),
    (f"{A}.index == 7", "3"),
    (f"{A}.index >= 7", "3"),
    (f"{A}.index > 7", ">= 3"),
    (f"{A}.index < -5", "<= 0"),
    (f"{A}.sick == false", "true"),
    (f'{MEMORY}.compareTo(quantity("141Gi")) >= 0', '"80Gi"'),
    (f'{MEMORY}.compareTo(quantity("141Gi")) == 1', 'compareTo(quantity("80Gi")) >= 0'),
    (f'{MEMORY}.isGreaterThan(quantity("80Gi"))', 'compareTo(quantity("80Gi")) >= 0'),
    (f'{MEMORY}.isLessThan(quantity("16Gi"))', 'compareTo(quantity("40Gi")) <= 0'),
    (f'{MEMORY} == quantity("48Gi")', '"40Gi"'),
    (f'{A}.driver.isGreaterThan(semver("2.0.0"))', 'compareTo(semver("2.0.0")) >= 0'),
    (f'{A}.driver.compareTo(semver("3.1.0")) >= 0', '"2.0.0"'),
    (f'{A}.driver.isLessThan(semver("1.2.0"))', 'compareTo(semver("1.5.0")) <= 0'),
]


def replaced(index: int, old: str, new: str, spec: DeviceRequest) -> DeviceRequest:
    """The request with another term in a selector."""
    return ReplaceTerm(RequestPlace(0, 0, 0, "r", False), SELECTORS, index, 0, old, new).edited(spec)


def published(devices: list[Device]) -> list[PublishedDevice]:
    raw = {"metadata": {"name": "s"}, "spec": {"driver": "d", "nodeName": "n", "pool": {"name": "n"}}}
    entry = replace(ResourceSlice.from_json(raw), devices=tuple(devices))
    return [PublishedDevice(device, entry, position) for position, device in enumerate(devices)]


def offers(expression: str, devices: list[Device] | None = None, term: int = 0) -> list[str]:
    items = published(DEVICES if devices is None else devices)
    return [offer.new for offer in loosened(SELECTORS, expression, term, items)]


@pytest.mark.parametrize(("expression", "nearest"), TERMS)
def test_nearest_value(expression: str, nearest: str) -> None:
    assert offers(expression)[0] == nearest


@pytest.mark.parametrize(("expression", "_nearest"), TERMS)
def test_every_offer_is_a_selector_that_some_device_fulfils(expression: str, _nearest: str) -> None:
    for offer in loosened(SELECTORS, expression, 0, published(DEVICES)):
        spec = DeviceRequest("r", "c", selectors=(expression,))
        (text,) = replaced(0, offer.old_term, offer.new_term, spec).selectors
        assert text is not None
        verdicts = [SELECTORS.verdict(text, device) for device in DEVICES]
        assert True in verdicts
        assert True not in [SELECTORS.verdict(expression, device) for device in DEVICES]


@pytest.mark.parametrize(
    "expression",
    [
        f"!has({A}.model)",
        f'{A}.?nothing.orValue("x") == {A}.model',
        f"{A}.model.matches('^B')",
        f'{MEMORY}.compareTo(quantity("141Gi")) >= 0 || false',
    ],
)
def test_nothing_or_something_true_is_offered(expression: str) -> None:
    """Expressions without a constant to replace offer nothing, and none offers the 0 of compareTo."""
    assert all(text == '"80Gi"' or text == '"40Gi"' or text.startswith('"79') for text in offers(expression))


def test_an_amount_that_the_driver_does_not_know_is_no_offer() -> None:
    unknown = Device("d", "unknown", {}, {"memory": {"value": "0"}})
    assert offers(f'{MEMORY}.compareTo(quantity("8Gi")) >= 0', [unknown]) == []


def test_a_term_of_several_is_replaced_alone() -> None:
    expression = f'{A}.index < 2 && {A}.model == "B200" && {A}.sick'
    (offer, *_) = loosened(SELECTORS, expression, 1, published(DEVICES))
    spec = DeviceRequest("r", "c", selectors=("true", expression))
    changed = replaced(1, offer.old_term, offer.new_term, spec)
    assert changed.selectors == ("true", f'{A}.index < 2 && {A}.model == "A100" && {A}.sick')
    dropped = replaced(1, f"{A}.sick", "true", changed)
    assert dropped.selectors[1] == f'{A}.index < 2 && {A}.model == "A100"'
    assert replaced(1, f"{A}.sick", "true", dropped) == dropped, "what is gone is not dropped twice"


def test_quotes_in_values_are_escaped() -> None:
    odd = Device("d", "odd", {"model": {"string": 'an "odd" \\ one'}})
    assert offers(f'{A}.model == "B200"', [odd])[0] == '"an \\"odd\\" \\\\ one"'
