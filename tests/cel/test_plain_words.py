"""What is wrong with the text of an expression is said without the words of Kubernetes' parser."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_dra.cel import compile_expression
from kubectl_dra.cel.errors import CompileError
from tests.cel.support import ENVIRONMENT

OF_A_PARSER = re.compile(r"EOF|expecting|mismatched|extraneous|token|NUM_|IDENTIFIER|Syntax error")
PIECES = (
    "device.driver",
    "==",
    "=",
    "&&",
    "&",
    "||",
    "|",
    "and",
    '"a"',
    '"',
    "(",
    ")",
    "[",
    "]",
    "{",
    ":",
    ",",
    ".",
    "1",
)


def said(expression: str) -> list[str]:
    try:
        compile_expression(ENVIRONMENT, expression)
    except CompileError as error:
        return [issue.said for issue in error.issues]
    return []


@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=8).map(" ".join))
def test_no_words_of_a_parser(expression: str) -> None:
    assert not [words for words in said(expression) if OF_A_PARSER.search(words)]


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ('device.driver = "a"', "= is no operator: write =="),
        ('device.driver === "a"', "one = too many: write =="),
        ('device.driver == "a" &&', "the expression ends where a value is expected"),
        ('device.driver == "a" and true', "'and' is no operator: write &&"),
        ('(device.driver == "a"', "the expression ends where ')' is expected"),
        ('device.driver == "a")', "')' closes nothing that is open"),
        ('device.driver == "a', 'the text that begins with " is not closed'),
        ("device.driver == \u201ca\u201d", '\u201c is a quotation mark of prose: write "'),
        ("device..driver", "'.' stands where a name is expected"),
        ("if true", "'if' is a word that CEL reserves and does not use"),
    ],
)
def test_what_people_get_wrong(expression: str, words: str) -> None:
    assert said(expression)[0] == words
