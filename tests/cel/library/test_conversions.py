"""Conversions between types. What is expected here was answered by Kubernetes 1.36."""

from __future__ import annotations

import pytest

from tests.cel.library.support import failure, holds

TRUE = [
    'string(1e6) == "1e+06"',
    'string(999999.0) == "999999"',
    'string(0.0001) == "0.0001"',
    'string(0.00001) == "1e-05"',
    'string(1.5) == "1.5"',
    'string(3.0) == "3"',
    'string(double("-Infinity")) == "-Inf"',
    'string(-0.0) == "-0"',
    'string(true) == "true"',
    'string(-5) == "-5"',
    'string(5u) == "5"',
    'string(b"abc") == "abc"',
    'string(duration("1h30m")) == "5400s"',
    'string(duration("2ns")) == "0.000000002s"',
    'string(duration("-1.5s")) == "-1.5s"',
    'string(timestamp("2026-01-01T00:00:00.120Z")) == "2026-01-01T00:00:00.12Z"',
    'string(timestamp("2026-01-01T00:00:00+05:30")) == "2026-01-01T00:00:00+05:30"',
    'int("-42") == -42',
    'int("+7") == 7',
    "int(2.9) == 2",
    "int(-2.9) == -2",
    "int(7u) == 7",
    'int(timestamp("1969-12-31T23:59:58.5Z")) == -2',
    'int(duration("1us")) == 1000',
    'uint("42") == 42u',
    "uint(3.9) == 3u",
    "uint(5) == 5u",
    'double("1_000.5") == 1000.5',
    'double("0x1p-2") == 0.25',
    'double("-inf") == double("-Infinity")',
    'bool("t")',
    'bool("TRUE")',
    '!bool("0")',
    '!bool("False")',
    'bytes("é") == b"\\303\\251"',
    'size(bytes("é")) == 2',
    'size("é") == 1',
    'duration("1h1m1s1ms1us1ns") == duration("3661.001001001s")',
    'duration("-.5s") == duration("-500ms")',
    'timestamp("2026-01-01T5:00:00,5Z") == timestamp("2026-01-01T05:00:00.5Z")',
    'timestamp(253402300799) == timestamp("9999-12-31T23:59:59Z")',
    'size({"a": 1}) == 1',
    'b"ab".size() == 2',
    "size([]) == 0",
    "type(dyn(1)) == int",
    "type(null) == null_type",
    "type(int) == type",
]

ERRORS = [
    ('int(dyn("x")) == 1', "type conversion error from 'string' to 'int'"),
    ("int(9223372036854775807.0) > 0", "integer overflow"),
    ("int(18446744073709551615u) > 0", "integer overflow"),
    ('int(double("NaN")) > 0', "integer overflow"),
    ("uint(-1) > 0u", "unsigned integer overflow"),
    ("uint(-1.0) > 0u", "unsigned integer overflow"),
    ('int("9223372036854775808" + "") > 0', "type conversion error from 'string' to 'int'"),
    ('double("1e400" + "") > 0.0', "type conversion error from 'string' to 'double'"),
    ('bool("yes" + "")', "type conversion error from 'string' to 'bool'"),
    ('string(b"\\xff") == ""', "invalid UTF-8 in bytes, cannot convert to string"),
    ('duration("1d" + "") > duration("0")', "type conversion error from 'string' to 'google.protobuf.Duration'"),
    ('duration("" + "1") > duration("0")', "type conversion error from 'string' to 'google.protobuf.Duration'"),
    (
        'timestamp("2026-02-30T00:00:00Z" + "") > timestamp(0)',
        "type conversion error from 'string' to 'google.protobuf.Timestamp'",
    ),
    ("timestamp(253402300799 + 1) > timestamp(0)", "timestamp overflow"),
    ('timestamp("0000-01-01T00:00:00Z" + "") > timestamp(0)', "timestamp overflow"),
    ('duration(dyn(1)) > duration("0")', "no such overload: duration(int)"),
    ("size(dyn(1)) == 1", "no such overload: size"),
    ('size(dyn(ip("1.2.3.4"))) == 4', "no such overload: size"),
]


@pytest.mark.parametrize("expression", TRUE)
def test_true(expression: str) -> None:
    assert holds(expression)


@pytest.mark.parametrize(("expression", "message"), ERRORS)
def test_errors(expression: str, message: str) -> None:
    assert message in failure(expression)
