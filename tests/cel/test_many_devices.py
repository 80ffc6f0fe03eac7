"""Devices evaluated together get the answers that each of them gets alone."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kubectl_dra.cel import Environment, EvaluationError, Program, compile_expression
from kubectl_dra.cel.columns import DeviceTable

DATA = Path(__file__).parents[1] / "conformance" / "data"
ENVIRONMENT = Environment.for_release("1.36")
A = 'device.attributes["d"]'
C = 'device.capacity["d"]'


def alone(program: Program, device: Any) -> bool | str:
    try:
        return program.evaluate(device)
    except EvaluationError as error:
        return str(error)


def together(program: Program, devices: list[Any]) -> list[bool | str]:
    return [answer if isinstance(answer, bool) else str(answer) for answer in program.evaluate_devices(devices)]


@cache
def recorded() -> list[str]:
    with gzip.open(DATA / "cel.jsonl.gz", "rt") as lines:
        cases = [json.loads(line) for line in lines]
    return [case["expression"] for case in cases if "compileError" not in case["expect"]]


def device_of(device: dict[str, Any]) -> Any:
    return SimpleNamespace(
        driver=device["driver"],
        attributes=device.get("attributes", {}),
        capacity=device.get("capacity", {}),
        allow_multiple_allocations=device.get("allowMultipleAllocations", False),
    )


@cache
def recorded_devices() -> list[Any]:
    return [device_of(device) for device in json.loads((DATA / "cel-devices.json").read_text())]


def test_recorded_expressions() -> None:
    devices = recorded_devices()
    for text in recorded():
        program = compile_expression(ENVIRONMENT, text)
        assert together(program, devices) == [alone(program, device) for device in devices], text


def test_recorded_expressions_joined() -> None:
    devices, texts = recorded_devices(), recorded()
    for first, second in zip(texts[::7], texts[3::7], strict=False):
        program = compile_expression(ENVIRONMENT, f"({first}) == true && ({second}) == true")
        assert together(program, devices) == [alone(program, device) for device in devices], (first, second)


def with_attributes(**attributes: Any) -> Any:
    return device_of({"driver": "d", "attributes": attributes})


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        # One for each value of "m"; "n", which differs everywhere, is not looked at where "m" decides.
        (f'"x" == {A}.m && {A}.n > 50', 2),
        (f'"b" == {A}.m && {A}.n > 50', 2 + 50),
        # The column itself tells what is equal to a constant.
        (f'{A}.m == "x" && {A}.n > 50', 0),
        (f'{A}.m == "b" && {A}.n > 50', 50),
        # Which term fails first matters only where none is false.
        (f'{A}.nosuch == "x" && "x" == {A}.m', 1 + 2),
        (f"{A}.m.startsWith({A}.m) && {A}.n >= 0", 2 + 100),
        # A disjunction has no terms.
        (f'{A}.m == "x" || {A}.n > 50', 100),
    ],
)
def test_a_false_term_decides_for_all_devices_that_are_alike_to_it(
    text: str, calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    devices = [with_attributes(m={"string": "ab"[i % 2]}, n={"int": i}) for i in range(100)]
    program = compile_expression(ENVIRONMENT, text)
    expected = [alone(program, device) for device in devices]
    count = 0
    evaluate = Program.evaluate_value

    def counted(self: Program, value: Any) -> bool:
        nonlocal count
        count += 1
        return evaluate(self, value)

    monkeypatch.setattr(Program, "evaluate_value", counted)
    assert together(program, devices) == expected
    assert count == calls


@pytest.mark.parametrize("order", ["==", "!=", "<", "<=", ">", ">="])
def test_comparisons_told_by_a_column_are_those_of_evaluation(order: str) -> None:
    capacities = [{"value": text} for text in ("40Gi", "41943040Ki", "41Gi", "0", "-1", " 40Gi ", "1e3", "40")]
    amounts = (*capacities, {"value": 5}, {})
    devices = [device_of({"driver": "d", "capacity": {"memory": amount}}) for amount in amounts]
    devices += [with_attributes(), with_attributes(m={"string": "40Gi"})]
    devices += [
        with_attributes(m=value) for value in ({"string": ""}, {"version": "1.0.0"}, {"int": 1}, {"bool": True})
    ]
    texts = [f'device.capacity["d"].memory.compareTo(quantity("40Gi")) {order} 0']
    texts += [f'{A}.m {order} "40Gi"'] if order in ("==", "!=") else []
    for text in texts:
        program = compile_expression(ENVIRONMENT, text)
        assert together(program, devices) == [alone(program, device) for device in devices], text


def test_quantities_that_change_in_place_are_evaluated_whole() -> None:
    # The first term doubles the quantity that the second one reads.
    text = f'{C}.m.add({C}.m).isGreaterThan(quantity("0")) && {C}.m == quantity("2Gi")'
    device = device_of({"driver": "d", "capacity": {"m": {"value": "1Gi"}}})
    program = compile_expression(ENVIRONMENT, text)
    assert together(program, [device]) == [alone(program, device)]


def test_devices_without_a_value_keep_their_error() -> None:
    devices = [with_attributes(m={"string": "a"}), with_attributes(m={"string": "a"}, broken={})]
    program = compile_expression(ENVIRONMENT, f'{A}.m == "b" && {A}.n == 1')
    answers = together(program, devices)
    assert answers[0] is False and isinstance(answers[1], str)
    assert answers == [alone(program, device) if index == 0 else answers[1] for index, device in enumerate(devices)]


def test_equal_objects_are_evaluated_once() -> None:
    device = with_attributes(m={"string": "a"})
    table = DeviceTable([device, with_attributes(m={"string": "b"}), device])
    assert compile_expression(ENVIRONMENT, f'{A}.m == "a" && {A}.?n.orValue(1) == 1').evaluate_devices(table) == [
        True,
        False,
        True,
    ]


def test_long_and_deep_expressions() -> None:
    long = " || ".join(f'{A}.m == "{i}"' for i in range(2000))
    deep = "!(" * 120 + f'{A}.m == "a"' + ")" * 120
    for text in (long, deep):
        program = compile_expression(ENVIRONMENT, text)
        assert together(program, recorded_devices()) == [alone(program, device) for device in recorded_devices()]
