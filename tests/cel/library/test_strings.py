"""Functions on strings. What is expected here was answered by Kubernetes 1.36."""

from __future__ import annotations

import pytest

from tests.cel.library.support import failure, holds

TRUE = [
    '"héllo".charAt(1) == "é"',
    '"abc".charAt(3) == ""',
    '"hello".indexOf("l", 3) == 3',
    '"hello".indexOf("") == 0',
    '"hello".indexOf("l", 99) == -1',
    '"hello".lastIndexOf("l") == 3',
    '"hello".lastIndexOf("l", 2) == 2',
    '"hello".lastIndexOf("") == 5',
    '"hello".lastIndexOf("hellos", 4) == -1',
    '"TÉST".lowerAscii() == "tÉst"',
    '"tést".upperAscii() == "TéST"',
    '"aaa".replace("a", "b", 2) == "bba"',
    '"ab".replace("", "-") == "-a-b-"',
    '"ab".replace("a", "x", 0) == "ab"',
    '"ab".replace("a", "x", -5) == "xb"',
    '"a,b,c".split(",", 2) == ["a", "b,c"]',
    '"abc".split("") == ["a", "b", "c"]',
    '"abc".split("", 2) == ["a", "bc"]',
    '"".split("") == []',
    '"a,b".split(",", 0) == []',
    '"a,b".split(",", -1) == ["a", "b"]',
    '"".split(",") == [""]',
    '"ab".split("", 9) == ["a", "b"]',
    '"héllo".substring(1, 3) == "él"',
    '"abc".substring(3) == ""',
    '"abc".substring(1, 1) == ""',
    '"\\u00a0 \\ta\\u2003".trim() == "a"',
    '"\\u001ca".trim() == "\\u001ca"',
    '["a", "b"].join("-") == "a-b"',
    '[].join() == ""',
    'strings.quote("a\\n\\"\\\\") == "\\"a\\\\n\\\\\\"\\\\\\\\\\""',
    '"abc".contains("")',
    '"abc".startsWith("ab")',
    '"abc".endsWith("bc")',
    '!"abc".contains("ac")',
]

ERRORS = [
    ('"abc".charAt(4) == ""', "index out of range: 4"),
    ('"abc".charAt(-1) == ""', "index out of range: -1"),
    ('"abc".indexOf("a", -1) == 0', "index out of range: -1"),
    ('"abc".lastIndexOf("a", -1) == 0', "index out of range: -1"),
    ('"abc".substring(2, 1) == ""', "invalid substring range. start: 2, end: 1"),
    ('"abc".substring(4) == ""', "index out of range: 4"),
    ('"abc".substring(0, 4) == ""', "index out of range: 4"),
    ('"abc".substring(-1) == ""', "index out of range: -1"),
    ('[dyn("a"), dyn(1)].join() == ""', "join: invalid input: 1"),
    ('dyn(1).contains("a")', "no such overload"),
    ('"a".startsWith(dyn(1))', "no such overload"),
    ('dyn(1).substring(1) == ""', "no such overload: substring(int, int)"),
]


@pytest.mark.parametrize("expression", TRUE)
def test_true(expression: str) -> None:
    assert holds(expression)


@pytest.mark.parametrize(("expression", "message"), ERRORS)
def test_errors(expression: str, message: str) -> None:
    assert message in failure(expression)
