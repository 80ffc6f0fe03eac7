"""Devices evaluated together get the answers that each of them gets alone."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubectl_dra.cel import CompileError, Environment, EvaluationError, Program, compile_expression
from kubectl_dra.cel.columns import DeviceTable

DATA = Path(__file__).parents[1] / "conformance" / "data"
ENVIRONMENT = Environment.for_release("1.36")
LISTS = Environment.for_release("1.36", {"DRAConsumableCapacity", "DRAListTypeAttributes"})
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


TEXTS = ["", "a", "A100", "1.0.0", "dra.example.com", "x-1"]
VALUES = st.one_of(
    st.sampled_from(TEXTS).map(lambda v: {"string": v}),
    st.integers(-2, 3).map(lambda v: {"int": v}),
    st.sampled_from([2**63 - 1, -(2**63)]).map(lambda v: {"int": v}),
    st.booleans().map(lambda v: {"bool": v}),
    st.sampled_from(["1.0.0", "1.0.0+b", "1.0.0-rc.1", "10.2.0"]).map(lambda v: {"version": v}),
)
LIST_VALUES = st.one_of(
    VALUES,
    st.lists(st.sampled_from(TEXTS), max_size=3).map(lambda v: {"strings": v}),
    st.lists(st.integers(0, 2), max_size=3).map(lambda v: {"ints": v}),
)
AMOUNTS = st.sampled_from(["0", "1", "1500m", "1Gi", "1024Mi", "40Gi", "-1"]).map(lambda v: {"value": v})
NAMES = st.sampled_from(["m", "n", "d/m", "e/m"])


def devices(values: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {
            "driver": st.sampled_from(["d", "e"]),
            "attributes": st.dictionaries(NAMES, values, max_size=4),
            "capacity": st.dictionaries(NAMES, AMOUNTS, max_size=3),
            "allowMultipleAllocations": st.booleans(),
        }
    )


# Expressions from a small grammar in which types go wrong at run time all the time.

PLACES = st.sampled_from([f"{A}.m", f"{A}.n", 'device.attributes["e"].m', "device.attributes[device.driver].m"])
AMOUNT = st.sampled_from(
    [f"{C}.m", f"{C}.n", 'quantity("1Gi")', 'quantity("1")', f"{C}.m.add({C}.n)", f'{C}.?m.orValue(quantity("2"))']
)
CONSTANTS = st.sampled_from(
    ['"a"', '"1.0.0"', "1", "-2", "true", "1u", "1.0", 'semver("1.0.0")', "device.driver", '"A100"', "null"]
)
OPERANDS = st.one_of(PLACES, CONSTANTS.map(lambda text: f"dyn({text})"), PLACES.map(lambda p: f"{p}"))
RELATIONS = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
ATOMS = st.one_of(
    st.builds("{} {} {}".format, OPERANDS, RELATIONS, OPERANDS),
    st.builds("{} {} {}".format, PLACES, RELATIONS, st.sampled_from(['"a"', "1", "0", '"1.0.0"'])),
    st.builds("{} == {}".format, PLACES, CONSTANTS),
    st.builds("{} != {}".format, PLACES, CONSTANTS),
    st.builds("{} == {}".format, CONSTANTS, PLACES),
    st.builds("{} == {}".format, AMOUNT, AMOUNT),
    st.builds("{} != {}".format, AMOUNT, AMOUNT),
    st.builds("{}.{}({})".format, AMOUNT, st.sampled_from(["isLessThan", "isGreaterThan"]), AMOUNT),
    st.builds("{}.compareTo({}) {} 0".format, AMOUNT, AMOUNT, RELATIONS),
    st.builds("{}.{}(semver('1.0.0'))".format, PLACES, st.sampled_from(["isLessThan", "isGreaterThan"])),
    st.builds("{}.compareTo(semver('1.0.0')) {} 0".format, PLACES, RELATIONS),
    st.builds("{}.{}('a')".format, PLACES, st.sampled_from(["startsWith", "endsWith", "contains", "matches"])),
    st.builds("{} in {}".format, OPERANDS, st.sampled_from(['["a", "A100"]', "[0, 1]", f"[{A}.m]", A, "[1.0]"])),
    st.builds("has({})".format, PLACES),
    st.builds("{} % 2 == 1".format, PLACES),
    st.builds("{} + 1 > 1".format, PLACES),
    st.builds("{}.lowerAscii() == 'a100'".format, PLACES),
    st.builds("{}.size() > 1".format, st.sampled_from([A, C, "device.attributes", f"{A}.m"])),
    st.builds("{}.exists(k, k == 'm')".format, st.sampled_from([A, C, "device.attributes"])),
    st.builds("{}.all(k, v, v == {})".format, st.just(A), PLACES),
    st.builds("{}.exists_one(k, {}[k] == 1)".format, st.just(A), st.just(A)),
    st.builds("['a', 'b'].{}(x, x == {})".format, st.sampled_from(["all", "exists", "exists_one"]), PLACES),
    st.builds("[1, 2].filter(x, x == {}).size() == 1".format, PLACES),
    st.builds("['a'].map(x, x == 'a', x + {}).size() == 1".format, PLACES),
    st.builds("{}.?m.orValue('a') == 'a'".format, st.just(A)),
    st.builds("{}[?'n'].hasValue()".format, st.just(A)),
    PLACES,
    st.sampled_from(["device.allowMultipleAllocations", "true", "false", "device.driver == 'd'"]),
)
EXPRESSIONS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.builds("({} && {})".format, inner, inner),
        st.builds("({} || {})".format, inner, inner),
        st.builds("!({})".format, inner),
        st.builds("({} ? {} : {})".format, inner, inner, inner),
        st.builds("cel.bind(b, {}, b == 'a' || {})".format, PLACES, inner),
        st.builds("cel.bind(b, {}, {})".format, inner, inner),
    ),
    max_leaves=4,
)


def check_random(text: str, environment: Environment, some: list[dict[str, Any]]) -> None:
    devices = [device_of(device) for device in some]
    try:
        program = compile_expression(environment, text)
    except CompileError:
        return
    assert together(program, devices) == [alone(program, device) for device in devices]


@settings(max_examples=400)
@given(st.lists(EXPRESSIONS, min_size=1, max_size=3), st.lists(devices(VALUES), min_size=1, max_size=6))
def test_random_conjunctions(texts: list[str], some: list[dict[str, Any]]) -> None:
    check_random(" && ".join(texts), ENVIRONMENT, some)


@settings(max_examples=200)
@given(st.lists(EXPRESSIONS, min_size=1, max_size=3), st.lists(devices(LIST_VALUES), min_size=1, max_size=6))
def test_random_conjunctions_over_lists(texts: list[str], some: list[dict[str, Any]]) -> None:
    check_random(" && ".join(texts), LISTS, some)


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
