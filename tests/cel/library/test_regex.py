"""Regular expressions. What is expected here was answered by Kubernetes 1.36."""

from __future__ import annotations

import pytest

from tests.cel.library.support import failure, holds

TRUE = [
    '"abc 123".find("[0-9]+") == "123"',
    '"abc".find("x") == ""',
    '"baac".findAll("a*") == ["", "aa", ""]',
    '"123 abc 456".findAll("[0-9]+", 1) == ["123"]',
    '"1 2".findAll("[0-9]", 0) == []',
    '"1 2".findAll("[0-9]", -1) == ["1", "2"]',
    '"äöü".findAll("[äü]") == ["ä", "ü"]',
    '"A100".matches("(?i)a1")',
    '!"A100".matches("^1")',
    'matches("x", "")',
    '"a\\nb".matches("a.b") == false',
    '"a\\nb".matches("(?s)a.b")',
    '!"a".matches("\\\\Q\\\\C\\\\E") && !"a".matches("\\\\\\\\C")',
]

ERRORS = [
    ('"a".matches("\\\\C" + "")', "error parsing regexp: invalid escape sequence: `\\C`"),
    ('"a".matches("[" + "")', "error parsing regexp: missing closing ]: `[`"),
    ('"a".find("(" + "") == ""', "Illegal regex: error parsing regexp: missing closing ): `(`"),
    ('"a".findAll("a{2,1}" + "") == []', "Illegal regex: error parsing regexp: invalid repeat count: `{2,1}`"),
    ('"a".matches("+" + "")', "error parsing regexp: missing argument to repetition operator: `+`"),
    ('"a".matches("a**" + "")', "error parsing regexp: invalid nested repetition operator: `**`"),
    ('"a".matches("(?<" + "")', "error parsing regexp: invalid or unsupported Perl syntax: `(?<`"),
    ('dyn(1).matches("a")', "no such overload"),
]


@pytest.mark.parametrize("expression", TRUE)
def test_true(expression: str) -> None:
    assert holds(expression)


@pytest.mark.parametrize(("expression", "message"), ERRORS)
def test_errors(expression: str, message: str) -> None:
    assert message in failure(expression)
