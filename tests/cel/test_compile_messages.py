"""Protobuf messages in expressions. What is expected here was answered by Kubernetes 1.36."""

from __future__ import annotations

import pytest

from kubectl_dra.cel import CompileError
from kubectl_dra.cel.types import INT, wrapper_of
from tests.cel.library.support import compiled, failure, holds

P = "google.protobuf."


def _full(text: str) -> str:
    """The expression with ``P.`` short for the package."""
    return text.replace("P.", P)


@pytest.mark.parametrize(
    ("text", "cost"),
    [
        ("P.Int64Value{value: 1} == 1", 41),
        ("P.Int64Value{} == 0", 41),
        (".P.Int64Value{value: 1} == 1", 41),
        ("P.Int32Value{value: -2147483648} == -2147483648", 41),
        ("P.UInt32Value{value: 1u} == 1u", 41),
        ('P.StringValue{value: "a"} == "a"', 41),
        ('P.BytesValue{value: b"a"} == b"a"', 41),
        ("P.BoolValue{value: true} && true", 40),
        ("P.FloatValue{value: 1.5} == 1.5 && P.FloatValue{value: 1.1} != 1.1", 82),
        ('P.FloatValue{value: -1e39} == double("-inf")', 42),
        ("P.Int64Value{?value: optional.of(1)} == 1", 42),
        ("P.Int64Value{?value: optional.none()} == 0", 42),
        ("P.Int64Value{value: 1, value: 2} == 2", 41),
        ("P.Int64Value{} != null", 41),
        ("P.Int64Value{value: dyn(optional.of(1))} == 1", 43),
        ("(true ? P.Int64Value{} : null) == 0", 41),
        ("[P.Int64Value{}, 1] == [0, 1]", 61),
        ("[1, 2].exists(x, P.Int64Value{value: x} == 2)", 103),
        ('P.Duration{seconds: 10, nanos: 5} == duration("10.000000005s")', 42),
        ("P.Duration{seconds: -1000000000000}.getHours() == -2562047", 42),
        ("P.Timestamp{seconds: 10} == timestamp(10)", 42),
        ("P.Timestamp{seconds: 1000000000000}.getFullYear() == 33658", 42),
        ('P.Struct{fields: {"a": 1}}.a == 1.0', 72),
        ('P.Struct{fields: {"a": 9007199254740992}}.a == "9007199254740992"', 73),
        ('P.Struct{fields: {"a": b"ab"}}.a == "YWI="', 72),
        ('P.Struct{fields: {"a": duration("1m")}}.a == "60s"', 73),
        ('P.Struct{fields: {"a": timestamp(0)}}.a == "1970-01-01T00:00:00Z"', 74),
        ('P.Struct{fields: {"a": {"b": [1u, 2u]}}}.a.b == [1.0, 2.0]', 122),
        ('P.Struct{fields: {"a": P.Empty{}}}.a == {}', 141),
        ("P.ListValue{values: [1]} + [2] == [1, 2]", 72),
        ("P.ListValue{values: [null]} == [null]", 61),
        ("P.Value{} == null && P.Value{null_value: 7} == null", 82),
        ('P.Value{struct_value: {"a": 1}} == {"a": 1}', 101),
        ("P.Value{list_value: [1]} == [1] && P.Value{list_value: dyn({})} == []", 142),
        ('P.Any{type_url: "x/google.protobuf.Int64Value"} == 0', 41),
        ("P.NullValue.NULL_VALUE == 0", 2),
        ("P.Empty{} in [P.Empty{}]", 91),
        ("!optional.ofNonZeroValue(P.Empty{}).hasValue()", 43),
        ('P.Struct.FieldsEntry{key: "a", value: 1.0}.key == "a"', 42),
        ('has(P.Struct.FieldsEntry{key: "a"}.key) && !has(P.Struct.FieldsEntry{}.key)', 81),
        ('"%s %d".format([P.StringValue{value: "a"}, P.Int64Value{value: 3}]) == "a 3"', 92),
    ],
)
def test_true(text: str, cost: int) -> None:
    assert holds(_full(text))
    assert compiled(_full(text)).max_cost == cost


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            'P.Int64Value{value: dyn("1")} == 1',
            "Int64Value.value value type: unsupported native conversion from string",
        ),
        ("P.Int64Value{value: dyn(1u)} == 1", "unsupported type conversion from 'uint' to int64"),
        ("P.Int64Value{value: dyn(null)} == 1", "type conversion error from 'null_type' to 'int64'"),
        ('P.Int64Value{value: dyn(semver("1.0.0"))} == 1', "type conversion error from 'Semver' to 'int64'"),
        ("P.Int64Value{value: dyn(P.Empty{})} == 1", "type conversion error from '*dynamicpb.Message' to 'int64'"),
        ("P.Int64Value{?value: dyn(1)} == 1", "cannot initialize optional entry 'value' from non-optional value 1"),
        ("P.Int32Value{value: 2147483648} == 1", "P.Int32Value.value value type: integer overflow"),
        ("P.UInt32Value{value: 4294967296u} == 1u", "unsigned integer overflow"),
        ("P.Value{null_value: 5000000000} == null", "integer overflow"),
        ("P.BytesValue{value: dyn([1])} == b''", "unsupported type conversion from 'int' to uint8"),
        ("P.ListValue{values: dyn(1)} == []", "unsupported field type for P.ListValue.values: int"),
        ("P.ListValue{values: dyn({})} == []", "unsupported field type for P.ListValue.values: map(dyn, dyn)"),
        ("P.ListValue{values: [optional.none()]} == []", "optional.none() dereference"),
        ("P.Struct{fields: dyn({1: 2})} == {}", "unsupported type conversion from 'int' to string"),
        ('P.Struct{fields: {"a": int}} == {}', "type conversion not supported for 'type'"),
        ("dyn(P.Empty{}).x == 1", "no such field 'x'"),
        ("kubernetes.DRADevice{}.driver == ''", "unknown type 'kubernetes.DRADevice'"),
        ("null_type{} == null", "unknown type 'null_type'"),
        ("P.Any{type_url: 'x'} == 1", "unsupported conversion to ref.Val: (*dynamicpb.Message)"),
    ],
)
def test_errors(text: str, message: str) -> None:
    assert _full(message) in failure(_full(text))


@pytest.mark.parametrize(
    ("text", "message", "offset"),
    [
        ("P.BoolValue{value: true}", "must evaluate to bool or the unknown type, not wrapper(bool)", None),
        ("P.Int64Value{valu: 1} == 1", "undefined field 'valu'", 31),
        ("P.Int64Value{value: null} == 0", "expected type of field 'value' is 'int' but provided type is 'null'", 32),
        ("P.Int64Value{?value: 1} == 0", "expected type 'optional_type(int)' but found 'int'", 35),
        ("P.Int64Value{}.value == 1", "type 'wrapper(int)' does not support field selection", 28),
        ("P.Int64Value{} == 3u", "found no matching overload for '_==_' applied to '(wrapper(int), uint)'", 29),
        ("[null, P.Int64Value{}] == []", "expected type 'null' but found 'wrapper(int)'", 33),
        ("(true ? null : P.Int64Value{}) == 0", "found no matching overload for '_==_' applied to '(null, int)'", 45),
        ("P.Duration{foo: 1} == duration('1s')", "undefined field 'foo'", 28),
        ("P.FieldMask{} == 1", "undeclared reference to 'google.protobuf.FieldMask'", 25),
        ("P.NullValue == null", "undeclared reference to 'google'", 0),
        ("type(1) == P.Int64Value", "reference to undefined type: google.protobuf.Int64Value", None),
        ("list{} == []", "'list' is not a message type", 4),
        ("null_type{a: 1} == null", "unexpected failed resolution of 'google.protobuf.NullValue'", 11),
        ("cel.bind(q, quantity('1'), q.a) == 1", "unexpected failed resolution of 'kubernetes.Quantity'", 28),
        ("cel.bind(q, [1], q{}) == 1", "'list' is not a type", 18),
    ],
)
def test_refused(text: str, message: str, offset: int | None) -> None:
    with pytest.raises(CompileError) as caught:
        compiled(_full(text))
    assert _full(message) in str(caught.value)
    if offset is not None:
        assert caught.value.issues[0].offset == offset


def test_a_wrapper_type_equals_what_it_wraps() -> None:
    assert wrapper_of(INT) == INT
    assert str(wrapper_of(INT)) == wrapper_of(INT).declared_name() == "wrapper(int)"
