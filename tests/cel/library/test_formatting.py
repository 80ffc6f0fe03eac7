"""The clauses of format. What is expected here was answered by Kubernetes 1.36."""

from __future__ import annotations

import pytest

from tests.cel.library.support import failure, holds

TRUE = [
    '"%s|%s|%s|%s".format(["a", 1, 2u, 1.5]) == "a|1|2|1.5"',
    '"%s %s %s".format([true, null, b"xyz"]) == "true null xyz"',
    '"%s".format([[1.5, "a", null, b"x", [1u]]]) == "[1.500000, \\"a\\", null, b\\"x\\", [1]]"',
    '"%s".format([{"b": 1, "a": [true]}]) == "{\\"a\\":[true], \\"b\\":1}"',
    '"%s".format([{2: "x", 10: "y"}]) == "{10:\\"y\\", 2:\\"x\\"}"',
    '"%s".format([[duration("90s"), duration("1s")]]) == "[duration(\\"90s\\"), duration(\\"1s\\")]"',
    '"%s".format([[timestamp("2026-01-01T00:00:00Z")]]) == "[timestamp(\\"2026-01-01T00:00:00Z\\")]"',
    '"%d %b %o %x %X".format([-5, 5, 8, 255, 255]) == "-5 101 10 ff FF"',
    '"%b %b %x %X %x".format([true, -5, "Hi", b"\\xff", -30]) == "1 -101 4869 FF -1e"',
    '"%f %.2f %.0f".format([1234567.891, 2.675, 2.5]) == "1,234,567.891000 2.67 2"',
    '"%.3f %.3f".format([-0.0001, 1.0005]) == "-0.000 1.000"',
    '"%e %.14e".format([1052.032911275, -0.000123]) == "1.052033×10⁰³ -1.230000×10⁻⁰⁴"',
    '"%f %f %f".format(["NaN", "Infinity", "-Infinity"]) == "NaN ∞ -∞"',
    '"%s %s".format([double("NaN"), double("Infinity")]) == "NaN +Inf"',
    '"100%% %s".format(["x"]) == "100% x"',
    '"é %s ü".format(["ß"]) == "é ß ü"',
]

ERRORS = [
    (
        '("%d" + "").format(["a"]) == ""',
        "error during formatting: decimal clause can only be used on integers, was given string",
    ),
    ('("%s" + "").format([]) == ""', "index 0 out of range"),
    ('("%" + "").format([1]) == ""', "unexpected end of string"),
    ('("%" + "").format([]) == ""', "index 0 out of range"),
    ('("%a" + "").format([1]) == ""', 'could not parse formatting clause: unrecognized formatting clause "a"'),
    (
        '("%.3" + "").format([1.0]) == ""',
        "could not parse formatting clause: error while parsing precision: could not find end of precision specifier",
    ),
    (
        '("%.f" + "").format([1.0]) == ""',
        "could not parse formatting clause: error while parsing precision: error while "
        'converting precision to integer: strconv.Atoi: parsing "": invalid syntax',
    ),
    (
        '("%s" + "").format([quantity("1")]) == ""',
        "error during formatting: string clause can only be used on strings, bools, bytes, ints, "
        "doubles, maps, lists, types, durations, and timestamps, was given kubernetes.Quantity",
    ),
    (
        '("%s" + "").format([[quantity("1")]]) == ""',
        "error during formatting: no formatting function for kubernetes.Quantity",
    ),
    (
        '("%f" + "").format([1]) == ""',
        "error during formatting: fixed-point clause can only be used on doubles, was given int",
    ),
    (
        '("%x" + "").format([1.5]) == ""',
        "error during formatting: only integers, byte buffers, and strings can be formatted as hex, was given double",
    ),
    (
        '("%s" + "").format([{1.5: 1}]) == ""',
        "error during formatting: no formatting function for map key of type double",
    ),
    (
        '("%s" + "").format([b"\\xff"]) == ""',
        'error during formatting: could not convert argument "invalid UTF-8 in bytes, cannot '
        'convert to string" to string',
    ),
]


@pytest.mark.parametrize("expression", TRUE)
def test_true(expression: str) -> None:
    assert holds(expression)


@pytest.mark.parametrize(("expression", "message"), ERRORS)
def test_errors(expression: str, message: str) -> None:
    assert message in failure(expression)
