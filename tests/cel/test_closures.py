"""What expressions evaluate to, errors included, exactly (closures) and fast (generated code)."""

from __future__ import annotations

import math
from typing import Any

import pytest

from kubectl_dra.api.quantity import Quantity
from kubectl_dra.cel import CostLimitExceeded, EvaluationError, InternalError
from kubectl_dra.cel.device import device_value
from kubectl_dra.cel.program import Program
from kubectl_dra.cel.values import Duration, Timestamp, TypeValue, Uint, contains, equals, find
from tests.cel.support import DEVICE, WITH_LISTS, Device, compiled


def outcome(program: Program, device: Device = DEVICE) -> bool | str:
    """The result or the error message; the exact and the fast evaluator must agree."""
    results: list[bool | str] = []
    for evaluate in (
        lambda: program.evaluate(device),
        lambda: program.evaluate_devices([device])[0],
        lambda: _exactly(program, device),
    ):
        try:
            found: Any = evaluate()
        except EvaluationError as error:
            found = error
        results.append(str(found) if isinstance(found, EvaluationError) else found)
    assert results[0] == results[1] == results[2]
    return results[0]


def _exactly(program: Program, device: Device) -> Any:
    value = program.evaluate_raw(device_value(device, program.environment.converts_lists()))
    return value if isinstance(value, bool) else program.evaluate(device)


@pytest.mark.parametrize(
    "text",
    [
        "device.driver == 'dra.example.com'",
        "A.healthy",
        "A.model == 'a100' && A['model'] == 'a100'",
        "A.index > 2.5 && A.index == 3.0 && A.index == 3u",
        "!(A.model == 5) && !(A.index == '3')",
        "device.attributes['unknown.example.com'].size() == 0",
        "!('unknown.example.com' in device.attributes) && 'other.example.com' in device.attributes",
        "device.attributes[?'nope'].hasValue() && device.attributes.?nope.hasValue()",
        "has(device.attributes.nope) && !has(device.attributes.nope.x)",
        "A.?nosuch.orValue('z') == 'z' && !A.?nosuch.hasValue()",
        "!(A.nosuch == 'x' && false) && (A.nosuch == 'x' || true)",
        "!(false && A.nosuch == 'x') && (true || A.nosuch == 'x')",
        "!(A.model && false) && (A.model || true)",
        "['a', 'b'].exists(x, x == 'a' || A.nosuch == x)",
        "!['a', 'b'].all(x, x == 'a' && A.nosuch == x)",
        "[1, 2].exists(x, 1 / (x - 1) == 1)",
        "cel.bind(x, A.nosuch, true)",
        "cel.bind(x, A.nosuch, x == 1 || true)",
        "C.memory == quantity('40960Mi')",
        "C.memory.add(quantity('1Gi')) == quantity('41Gi')",
        "A.fw != '1.10.0' && !('1.10.0' == A.fw) && A.fwb == semver('1.10.0')",
        "device.attributes.exists(d, m, d == 'other.example.com' && m.numa == 0)",
        "device.attributes.exists(d, device.attributes[d].exists(k, k == 'numa'))",
        "A[device.driver.substring(0, 0) + 'model'] == 'a100'",
        "(A.healthy ? device.attributes : {}).size() == 2",
        "{'a': {'b': [1, 2]}}.a.b[1] == 2 && [[1], [2]][1][0] == 2",
        "{'a': 1}.?a.orValue(2) == 1 && [1][?5].orValue(7) == 7",
        "optional.of({'a': {'b': 1}}).a.b.value() == 1",
        "(true ? optional.of({'a': 1}) : optional.none()).a.value() == 1",
        "has({'a': 1}.a) && !has({'a': 1}.b) && !has(dyn(1).x)",
        "[1, 2, 3].map(x, x > 1, x * 2) == [4, 6] && [3, 1, 2].filter(x, x != 1) == [3, 2]",
        "[1, 2].map(x, [3, 4].map(y, x * y)) == [[3, 4], [6, 8]]",
        "[1, 2].exists(x, [x].exists(x, x == 2))",
        "[1, 2, 2].exists_one(x, x == 1) && ![1, 2, 2].exists_one(x, x == 2)",
        "['a', 'b'].transformList(i, v, i == 1, v) == ['b']",
        "{'a': 1}.transformMap(k, v, v + 1) == {'a': 2}",
        "[3, 1, 2].sortBy(x, -x) == [3, 2, 1]",
        "[?optional.of(1), ?optional.none(), 3] == [1, 3]",
        "{?'a': optional.of(1), ?'b': optional.none()} == {'a': 1}",
        "dyn(1) == 1.0 && dyn(1u) == 1 && !(dyn(true) == 1) && !(dyn('1') == 1)",
        "dyn([1, 2]) == [1.0, 2.0] && dyn({1: 'a'}) == {1u: 'a'}",
        "1 in [1, 2] && dyn(1.0) in [1, 2] && !(dyn(true) in [1]) && !(dyn('a') in [1])",
        "2 in {2: 'a'} && dyn(2u) in {2: 'a'} && !(3 in {2: 'a'})",
        "null == null && dyn(null) != 1",
        "double('NaN') != double('NaN') && !(double('NaN') in [double('NaN')])",
        "type(A.index) == int && type(C.memory) != type(1) && type(type) == type",
        "cel.bind(x, [], x + [1] == [1] && x.size() == 1)",
        # Kubernetes adds into the receiver when it is held as a big decimal.
        "C.big.add(C.big).compareTo(C.big) == 0 && !C.big.isGreaterThan(C.big.sub(5))",
        "C.memory.add(C.memory).compareTo(C.memory) == 1",
    ],
)
def test_true(text: str) -> None:
    assert outcome(compiled(text)) is True


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("A.model", "CEL result of type string could not be converted to bool"),
        ("A.nosuch == 'x'", "no such key: nosuch"),
        ("A.nosuch == 'x' || false", "no such key: nosuch"),
        ("A.model && true", "no such overload"),
        ("A.model || false", "no such overload"),
        ("A.model ? true : false", "no such overload"),
        ("!A.model", "no such overload"),
        ("device.attributes['unknown.example.com'].x == 1", "no such key: x"),
        ("A.index > '2'", "no such overload"),
        ("A.fw == '1.10.0'", "no such overload"),
        ("A.fw in ['1.10.0']", "internal error: runtime error: hash of unhashable type"),
        ("A.fw in ['1.10.0'] || true", "internal error"),
        ("A.fw in {'a': 1} || true", "internal error"),
        ("quantity('41Gi') == C.memory.add(quantity('1Gi'))", "no such overload"),
        ("C.half.asInteger() > 1", "cannot convert value to integer"),
        ("A.index / 0 == 1", "division by zero"),
        ("A.index + 9223372036854775807 > 0", "integer overflow"),
        ("['a'].exists(x, A.nosuch == x)", "no such key: nosuch"),
        ("[1, 2].exists_one(x, A.nosuch == x)", "no such key: nosuch"),
        ("[1][1] == 1", "index out of bounds: 1"),
        ("[1][dyn(0.5)] == 1", "unsupported index value"),
        ("dyn([1])['a'] == 1", "unsupported index type 'string' in list"),
        ("dyn(1).x == 1", "no such key: x"),
        ("[dyn(1)].exists(x, x.exists(y, true))", "expected iterable type"),
        ("dyn(1).exists(i, v, true)", "unsupported comprehension range type"),
        ("{1: 1, 2: 2}.transformMapEntry(k, v, {'x': v}).size() == 2", "insert failed: key x already exists"),
        ("optional.none().value() == 1", "optional.none() dereference"),
        ("C.?memory.optMap(m, m).orValue(quantity('0')).isGreaterThan(quantity('1'))", "unsupported conversion"),
        ("A.model.startsWith(A.index)", "no such overload"),
        ("A.index.compareTo(semver('1.0.0')) >= 0", "no such overload"),
        ("'a'.matches('a' + '[')", "error parsing regexp"),
        ("[1 / (A.index - 3)].distinct() == [1] || true", "internal error"),
        ("true ? has(device.?capacity.x) : false", "could not be converted to bool"),
    ],
)  # fmt: skip
def test_errors(text: str, message: str) -> None:
    found = outcome(compiled(text))
    assert isinstance(found, str)
    assert message in found


def test_errors_know_their_place() -> None:
    text = "device.driver == 'dra.example.com' && [1].all(x, A.nosuch == 1)"
    program = compiled(text)
    with pytest.raises(EvaluationError) as caught:
        program.evaluate(DEVICE)
    error = caught.value
    assert error.offset is not None
    assert program.ast.source[error.offset :].startswith(".nosuch")
    assert error.start is not None
    assert program.ast.source[error.start : error.end].endswith("A.nosuch".removeprefix("A"))


def test_unconvertible_attributes_fail_every_expression() -> None:
    for broken in ({"ints": [1]}, {"version": "v1"}, {"version": "1.0.99999999999999999999"}, {}):
        device = Device(attributes={"x": broken})
        assert str(outcome(compiled("true"), device)).startswith("attribute x: ")
    assert outcome(compiled("true", WITH_LISTS), Device(attributes={"x": {"ints": [1]}})) is True


def test_list_attributes() -> None:
    device = Device(
        attributes={
            "models": {"strings": ["a", "b"]},
            "vs": {"versions": ["1.0.0"]},
            "bits": {"bools": [True, False]},
            "one": {"int": 1},
        }
    )
    for text, expected in (
        ("A.models.exists(x, x == 'a') && 'b' in A.models && A.models[0] == 'a'", True),
        ("A.models.includes('b') && A.one.includes(1) && !A.one.includes(2)", True),
        ("A.models == 'a'", False),
        ("A.vs.includes(semver('1.0.0')) && A.bits[0]", True),
        ("A.models", "CEL result of type list could not be converted to bool"),
        ("A.one.exists(x, x == 1)", "expected iterable type"),
        ("A.models.sum() == 1", "no such overload"),
    ):
        found = outcome(compiled(text, WITH_LISTS), device)
        assert found is expected if isinstance(expected, bool) else expected in str(found)


def test_the_cost_limit_ends_an_evaluation() -> None:
    text = "[1,2,3,4,5,6,7,8,9,10]" + "".join(f".map(a{i}, [1,2,3,4,5,6,7,8,9,10]" for i in range(6))
    program = compiled(text + ")" * 6 + ".size() == 0 || true")
    assert program.max_cost > 1_000_000
    with pytest.raises(CostLimitExceeded):
        program.evaluate(DEVICE)


@pytest.mark.parametrize(
    "text",
    [
        "(" * 249 + "true" + ")" * 249,
        "1" + "+1" * 249 + " > 0",
        "!(" * 248 + "true" + ")" * 248,
        "[" * 249 + "]" * 249 + " == []",
        "true && (" * 248 + "true" + ")" * 248,
        "[1].exists(x, " * 200 + "true" + ")" * 200,
        "cel.bind(x, 1, " * 240 + "true" + ")" * 240,
        " && ".join(["true"] * 1700),
        "dyn(" * 240 + "true" + ")" * 240 + " == true",
    ],
)
def test_deep_expressions(text: str) -> None:
    program = compiled(text)
    assert outcome(program) in (True, False)
    assert program.trace(DEVICE)
    assert program.terms()


def test_memory_bombs_are_stopped() -> None:
    doubling = "".join(f"cel.bind(a{i + 1}, a{i} + a{i}, " for i in range(40))
    program = compiled(f"cel.bind(a0, [1], {doubling}a40.size() == 1" + ")" * 41)
    with pytest.raises(InternalError):
        program.evaluate(DEVICE)
    with pytest.raises(CostLimitExceeded):
        compiled("lists.range(1000000000).size() == 1").evaluate(DEVICE)


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (1, 1.0, True),
        (1, Uint(1), True),
        (2**53 + 1, 2.0**53, True),
        (2.0**53, Uint(2**53 + 1), True),
        (2**53 + 1, Uint(2**53), False),
        (2**63 - 1, 2.0**63, True),
        (2**62, 2.0**63, False),
        (True, 1, False),
        (False, 0, False),
        ("1", 1, False),
        (None, None, True),
        (None, 0, False),
        (math.nan, math.nan, False),
        ([1, None], [1.0, None], True),
        ([1], [1, 2], False),
        ({"a": 1}, {"a": 1.0}, True),
        ({True: 1}, {1: 1}, False),
        (b"a", "a", False),
        (Timestamp(1, 0), Timestamp(1, 3600), True),
        (Timestamp(1), Duration(1), False),
        (TypeValue("int"), TypeValue("int"), True),
        ([Quantity.parse("1")], ["1"], True),
    ],
)
def test_equality(left: Any, right: Any, expected: bool) -> None:
    assert equals(left, right) is expected


def test_keys_of_maps() -> None:
    numbers = {1: "a", 0: "b"}
    assert find(numbers, Uint(1)) == (True, "a")
    assert find(numbers, 1.0) == (True, "a")
    assert not contains(numbers, True)
    assert contains({True: 1}, True)
    assert not contains({True: 1}, 1)
    assert not contains(numbers, "1")
