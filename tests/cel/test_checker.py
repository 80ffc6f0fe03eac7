"""Types, overloads, names; what does not compile and how Kubernetes words it."""

from __future__ import annotations

import pytest

from kubectl_dra.cel import CompileError, Environment
from kubectl_dra.cel.types import INT, STRING, Bindings, CelType, list_of, map_of, optional_of, type_param
from tests.cel.support import WITH_LISTS, checked, compiled


def type_of(text: str, environment: Environment | None = None) -> str:
    found = checked(text) if environment is None else checked(text, environment)
    assert not found.issues, found.issues
    return str(found.node_types[found.expression.id])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("device.driver", "string"),
        ("device.attributes", "map(string, map(string, any))"),
        ("device.capacity", "map(string, map(string, kubernetes.Quantity))"),
        ("device.allowMultipleAllocations", "bool"),
        ("A.model", "any"),
        ("A.?model", "optional_type(any)"),
        ("device.?driver", "optional_type(string)"),
        ("C.memory.add(1)", "kubernetes.Quantity"),
        ("[]", "list(dyn)"),
        ("{}", "map(dyn, dyn)"),
        ("[1, 2]", "list(int)"),
        ("[[], [1]]", "list(list(int))"),
        ("[null, duration('1s')]", "list(duration)"),
        ("[1, dyn('a')]", "list(dyn)"),
        ("{'a': [1u]}", "map(string, list(uint))"),
        ("[1].map(x, string(x))", "list(string)"),
        ("[1].filter(x, x > 0)", "list(int)"),
        ("{'a': 1}.map(k, k)", "list(string)"),
        ("{'a': 1}.transformMap(k, v, string(v))", "map(string, string)"),
        ("{'a': 1}.transformMapEntry(k, v, {v: k})", "map(int, string)"),
        ("[1, 2].transformList(i, v, i + v)", "list(int)"),
        ("cel.bind(x, 1, [x])", "list(int)"),
        ("optional.none().or(optional.of(1))", "optional_type(int)"),
        ("optional.of('a').optMap(x, size(x))", "optional_type(int)"),
        ("[optional.of(1)][0].orValue(2)", "int"),
        ("optional.of({'a': 1}).a", "optional_type(int)"),
        ("[?optional.of(1)]", "list(int)"),
        ("true ? 1 : dyn(2)", "dyn"),
        ("true ? [] : [1]", "list(int)"),
        ("type(1)", "type(int)"),
        ("int", "type(int)"),
        ("dyn(1) + 1", "int"),
        ("dyn(1) + dyn(1)", "dyn"),
        ("A.model + 'x'", "string"),
        ("-dyn(1)", "dyn"),
        ("timestamp('2024-01-01T00:00:00Z') - duration('1s')", "timestamp"),
        ("sets.contains([1], [2])", "bool"),
        ("url('https://a').getQuery()", "map(string, list(string))"),
    ],
)
def test_types(text: str, expected: str) -> None:
    assert type_of(text) == expected


def test_attributes_are_dyn_with_the_list_gate() -> None:
    assert type_of("A.model", WITH_LISTS) == "dyn"
    assert type_of("A.models.exists(m, m == 'x')", WITH_LISTS) == "bool"


@pytest.mark.parametrize(
    ("text", "message", "offset"),
    [
        ("dev.driver == 'x'", "undeclared reference to 'dev' (in container '')", 0),
        ("[1].foo()", "undeclared reference to 'foo' (in container '')", 7),
        ("device.name == 'x'", "undefined field 'name'", 6),
        ("1 == 1.0", "found no matching overload for '_==_' applied to '(int, double)'", 2),
        ("1 + 'a' == 2", "found no matching overload for '_+_' applied to '(int, string)'", 2),
        ("'a'.size(1) == 1", "found no matching overload for 'size' applied to 'string.(int)'", 8),
        ("true && 1", "expected type 'bool' but found 'int'", 8),
        ("[1, 'a'].size() == 2", "expected type 'int' but found 'string'", 4),
        ("{'a': 1, 'b': 'x'}.size() == 2", "expected type 'int' but found 'string'", 14),
        ("{'a': 1, 2: 3}.size() == 2", "expected type 'string' but found 'int'", 9),
        ("[1, dyn(1)].size() == 2", "expected type 'int' but found 'dyn'", 7),
        ("[?dyn(1)].size() == 1", "runtime error: index out of range", 5),
        ("{?'a': A.model}.size() == 1", "runtime error: index out of range", None),
        ("[?1].size() == 1", "expected type 'optional_type(int)' but found 'int'", 2),
        ("device.driver.exists(x, true)", "cannot be range of a comprehension (must be list, map, or dynamic)", 6),
        ("[1].exists(x, x)", "expected type 'bool' but found 'int'", 14),
        ("device.driver.x == 1", "type 'string' does not support field selection", 13),
        ("has(device.nosuch)", "undefined field 'nosuch'", 3),
        ("1", "must evaluate to bool or the unknown type, not int", None),
        ("device", "must evaluate to bool or the unknown type, not kubernetes.DRADevice", None),
        ("dyn(true)", "must evaluate to bool or the unknown type, not dyn", None),
        ("true ? 'a' : false", "found no matching overload for '_?_:_' applied to '(bool, string, bool)'", 5),
        ("'a'.matches('[')", "invalid matches argument", 12),
        ("duration('1x') > duration('1s')", "invalid duration argument", 9),
        ("timestamp('x') > timestamp('y')", "invalid timestamp argument", 10),
        ("'%d'.format(['a']) == ''", "decimal clause can only be used on integers, was given string", 13),
        ("'%s %s'.format(['a']) == ''", "index 1 out of range", 14),
        ("'%s'.format(['a', 'b']) == ''", "too many arguments supplied to string.format (expected 1, got 2)", 11),
        ("'%q'.format(['a']) == ''", 'unrecognized formatting clause "q"', 11),
        # The first byte of its text.
        ("'%é'.format(['a']) == ''", 'unrecognized formatting clause "Ã"', 11),
        ("'%'.format([]) == ''", "unexpected end of string", 10),
        ("'%.9223372036854775808f'.format([1.0]) == ''", "value out of range", 31),
        ("int('x') == 1", "program instantiation failed: type conversion error from 'string' to 'int'", None),
        ("'a'.find('[') == ''", "program instantiation failed", None),
        ("[int].exists(t, t == int)", "program instantiation failed: reference to undefined type: t", None),
        ("dyn({})[null] == 1", "program instantiation failed: invalid qualifier type", None),
        ("C.memory >= quantity('1')", "found no matching overload for '_>=_'", None),
        ("true && []", "expected type 'bool' but found 'list(_var0)'", 8),
        ("'%.s'.format(['a']) == ''", 'converting precision to integer: strconv.Atoi: parsing "": invalid syntax', 12),
        ("foo{}.x", "undeclared reference to 'foo'", 3),
        ("device{}.x", "is not a type", 6),
        ("string{}.x", "'string' is not a message type", 6),
    ],
)
def test_refused(text: str, message: str, offset: int | None) -> None:
    with pytest.raises(CompileError) as caught:
        compiled(text)
    assert message in str(caught.value)
    if offset is not None:
        assert caught.value.issues[0].offset == offset


@pytest.mark.parametrize(
    "text",
    [
        "'%s %d'.format(['a', 1]) == 'a 1'",
        "'%s'.format([[1, 'a']]) == '[1, a]'",
        "1 < 1.5 && 1u < 2 && 2.5 > 1u",
        "A.nosuch == 1 && A.nosuch == 'a'",
        "null == C.memory",
        ".device.driver == ''",
        "[1].exists(device, device == 1)",
        "[1].exists(sets, sets.contains([1], [1]))",
        "google.protobuf.Timestamp != google.protobuf.Duration || true",
        "'a' in A.model",
        "dyn('a') in device.attributes",
    ],
)
def test_accepted(text: str) -> None:
    assert compiled(text)


def test_all_complaints_come_in_order_with_line_and_column() -> None:
    with pytest.raises(CompileError) as caught:
        compiled("foo == 1 &&\n\tbar == 2")
    assert [(issue.line, issue.column) for issue in caught.value.issues] == [(1, 1), (2, 2)]
    assert str(caught.value) == (
        "compilation failed: ERROR: <input>:1:1: undeclared reference to 'foo' (in container '')\n"
        " | foo == 1 &&\n"
        " | ^\n"
        "ERROR: <input>:2:2: undeclared reference to 'bar' (in container '')\n"
        " |  bar == 2\n"
        " | .^"
    )


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("devices.driver == 'x'", "did you mean 'device'?"),
        ("device.attribute == {}", "did you mean 'attributes'?"),
        ("'a'.startWith('a')", "did you mean 'startsWith'?"),
        ("quanttity('1') == null", "did you mean 'quantity'?"),
        ("zzzzzz == 1", ""),
    ],
)
def test_hints(text: str, hint: str) -> None:
    with pytest.raises(CompileError) as caught:
        compiled(text)
    assert caught.value.issues[0].hint == hint


def test_overloads_stay_open_behind_dyn() -> None:
    found = checked("dyn(1) < 2")
    ids = [overload.id for overload in found.overloads[found.expression.id]]
    assert set(ids) == {"less_int64", "less_double_int64", "less_uint64_int64"}


def test_a_failed_assignment_leaves_no_binding() -> None:
    bindings = Bindings()
    a = type_param("A")
    assert not bindings.assign_all([INT, STRING], [a, list_of(a)])
    assert bindings.substitute(a, False) == a
    assert bindings.assign_all([INT, list_of(INT)], [a, list_of(a)])
    assert bindings.substitute(map_of(a, optional_of(a)), True) == map_of(INT, optional_of(INT))


def test_a_parameter_never_contains_itself() -> None:
    bindings = Bindings()
    a = type_param("A")
    assert not bindings.assign(list_of(a), a)


def test_names_as_printed() -> None:
    assert str(CelType("opaque", "function", (INT, STRING))) == "(string) -> int"
    assert optional_of(type_param("T")).declared_name() == "optional_type(<T>)"
