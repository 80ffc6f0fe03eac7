from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_dra.api.slices import Device
from kubectl_dra.cel.columns import ALLOW_MULTIPLE, DRIVER, Column, DeviceTable
from kubectl_dra.cel.environment import Environment
from kubectl_dra.cel.errors import EvaluationError
from kubectl_dra.cel.program import compile_expression
from tools.cel.fast_paths import ENVIRONMENTS, differs, found

ENVIRONMENT = Environment.for_release("1.36")
A = 'device.attributes["d"]'


def columns(text: str) -> frozenset[Column] | None:
    return compile_expression(ENVIRONMENT, text).columns


def attribute(name: str | None, domain: str | None = "d") -> Column:
    return Column("attribute", domain, name)


def capacity(name: str | None, domain: str | None = "d") -> Column:
    return Column("capacity", domain, name)


def device(driver: str = "d", attributes: Any = None, capacity: Any = None, shared: bool = False) -> Any:
    return SimpleNamespace(
        driver=driver,
        attributes=attributes or {},
        capacity=capacity or {},
        allow_multiple_allocations=shared,
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("true", set()),
        ('device.driver == "d"', {DRIVER}),
        ("has(device.driver)", set()),
        ("device.allowMultipleAllocations", {ALLOW_MULTIPLE}),
        (f'{A}.model == "x"', {attribute("model")}),
        (f'{A}["model"] == "x"', {attribute("model")}),
        (f"has({A}.model)", {attribute("model")}),
        (f'"model" in {A}', {attribute("model")}),
        (f'{A}.?model.orValue("x") == "y"', {attribute("model")}),
        ('device.attributes[?"d"].?model.orValue("x") == "y"', {attribute("model")}),
        ("device.attributes.d.model == 1", {attribute("model")}),
        ('device.capacity["d"].memory.compareTo(quantity("1Gi")) > 0', {capacity("memory")}),
        ('"d" in device.attributes', {attribute(None)}),
        (f"{A}.size() == 0", {attribute(None)}),
        (f'{A}.exists(k, k == "x")', {attribute(None)}),
        (f'{A}[device.driver] == "x"', {attribute(None), DRIVER}),
        ('device.attributes[device.driver].model == "x"', {attribute("model", None)}),
        (f'cel.bind(a, {A}, a.model == "x" && a.index == 1)', {attribute("model"), attribute("index")}),
        (
            f'cel.bind(a, {A}, cel.bind(b, device.attributes["e"], a.x == b.y))',
            {attribute("x"), attribute("y", "e")},
        ),
        ('cel.bind(d, device.driver, device.capacity[d].memory.isInteger())', {capacity("memory", None)}),
        (f'cel.bind(a, {A}, true)', set()),
        (f'{A}.x == "1" ? {A}.y == "2" : false', {attribute("x"), attribute("y")}),
        (f'(device.driver == "a" ? {A} : {A}).x == "1"', {DRIVER, attribute("x")}),
        ('["a"].exists(device, device.size() == 1)', set()),
        (f"{A}.?x.optMap(v, v == 1).orValue(false)", {attribute("x")}),
    ],
)  # fmt: skip
def test_columns_of(text: str, expected: set[Column]) -> None:
    found = columns(text)
    assert found is not None
    assert set(found) == expected


@pytest.mark.parametrize(
    "text",
    [
        'device.attributes.exists(d, d == "x")',
        "device.attributes.size() == 1",
        'device.attributes["a" + "b"].x == 1',
        "device.attributes == device.attributes",
        'device.capacity.all(d, m, "x" in m)',
        'cel.bind(m, device.attributes, m.exists(d, d == "x"))',
        "cel.bind(m, device.capacity, has(m.d))",
        "device == device",
    ],
)
def test_dynamic_reads_have_no_columns(text: str) -> None:
    assert columns(text) is None


def test_column_values_follow_the_rule_of_the_default_domain() -> None:
    devices = [
        device(attributes={"m": {"string": "a"}}),
        device(attributes={"d/m": {"string": "a"}}),
        device(driver="e", attributes={"m": {"string": "a"}}),
        device(driver="e", attributes={"d/m": {"string": "a"}}),
    ]
    table = DeviceTable(devices)
    assert table.column(attribute("m")) == ["a", "a", None, "a"]
    assert table.column(attribute("m", None)) == ["a", "a", "a", None]
    assert table.groups([attribute("m")]) == [[0, 1, 3], [2]]


def test_values_of_different_types_are_different() -> None:
    values = [{"bool": True}, {"int": 1}, {"string": "1"}, {"string": "True"}, {"version": "1.0.0"}]
    values += [{"string": "1.0.0"}, {"string": "{'int': 1}"}, {"strings": ["1"]}, {}, {"int": 1, "string": "1"}]
    table = DeviceTable([device(attributes={"m": value}) for value in values])
    assert len(table.groups([attribute("m")])) == len(values)


def test_whole_domain_tells_identifiers_apart() -> None:
    table = DeviceTable(
        [
            device(attributes={"a": {"int": 1}}),
            device(attributes={"b": {"int": 1}}),
            device(attributes={"d/a": {"int": 1}}),
            device(attributes={"e/a": {"int": 1}}),
        ]
    )
    assert table.groups([attribute(None)]) == [[0, 2], [1], [3]]


def test_devices_that_fail_every_expression() -> None:
    good = device(attributes={"v": {"version": "1.0.0"}, "i": {"int": 1}, "b": {"bool": False}})
    table = DeviceTable(
        [
            good,
            device(attributes={"v": {"version": "not a version"}}),
            device(attributes={"l": {"ints": [1]}}),
            device(attributes={"n": {}}),
            device(attributes={"i": {"int": 2**63}}),
            good,
        ]
    )
    assert set(table.broken()) == {1, 2, 3, 4}
    assert set(table.broken(list_attributes=True)) == {1, 3, 4}
    assert str(table.broken()[2]) == "attribute l: unsupported attribute value"


VALUES = st.one_of(
    st.builds(lambda v: {"string": v}, st.sampled_from(["", "a", "1.0.0", "True"])),
    st.builds(lambda v: {"int": v}, st.integers(0, 2)),
    st.builds(lambda v: {"bool": v}, st.booleans()),
    st.builds(lambda v: {"version": v}, st.sampled_from(["1.0.0", "1.0.0+b", "2.0.0-rc.1", "x"])),
    st.just({"strings": ["a"]}),
)
NAMES = st.sampled_from(["m", "n", "d/m", "d/n", "e/m", "e/n"])
DEVICES = st.builds(
    device,
    st.sampled_from(["d", "e"]),
    st.dictionaries(NAMES, VALUES, max_size=4),
    st.dictionaries(NAMES, st.sampled_from([{"value": "1Gi"}, {"value": "1024Mi"}, {"value": "2"}]), max_size=3),
    st.booleans(),
)
EXPRESSIONS = [
    f'{A}.m == "a" || device.driver == "e"',
    f"has({A}.m) && {A}.m == 1",
    'device.attributes[device.driver].n == semver("1.0.0")',
    f'cel.bind(a, {A}, a.?m.orValue("a") == a.?n.orValue("a"))',
    f"{A}.exists(k, v, v == true)",
    '"e" in device.attributes && device.allowMultipleAllocations',
    'device.capacity["d"].m.isGreaterThan(quantity("1Gi")) || device.capacity["e"].n.isInteger()',
    'device.attributes[?"e"].?m.hasValue() || device.attributes.?d.n == optional.of(1)',
    f'{A}["e/m"] == "a" || device.capacity.e["m"] == quantity("2")',
]


@given(st.lists(DEVICES, max_size=6))
def test_grouped_answers_are_the_answers_of_each_device(devices: list[Any]) -> None:
    for text in EXPRESSIONS:
        program = compile_expression(ENVIRONMENT, text)
        assert program.columns is not None
        one_by_one: list[bool | str] = []
        for one in devices:
            try:
                one_by_one.append(program.evaluate(one))
            except EvaluationError as error:
                one_by_one.append(str(error))
        grouped = [answer if isinstance(answer, bool) else str(answer) for answer in program.evaluate_devices(devices)]
        assert grouped == one_by_one, text


# Random selectors: whatever answers without evaluating, or once for many devices, answers as evaluation does.


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
