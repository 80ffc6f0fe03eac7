"""What a selector can come to where not everything is known."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from kubectl_dra.cel import Environment, compile_expression
from kubectl_dra.cel.columns import Column
from kubectl_dra.lint.analysis.possible_results import PossibleResults, outcome

TRUE, FALSE, ERROR = True, False, None


class Known(NamedTuple):
    """A device of d.example.com with kind "a" and an open size, and nothing else."""

    driver: str | None = "d.example.com"

    def values(self, column: Column) -> tuple[Any, ...] | None:
        if column.domain != "d.example.com":
            return ()
        return {"kind": ("a",), "size": None}.get(column.id or "", ())


def states(found: PossibleResults) -> set[object]:
    values = {True, False} if found.values is None else {one for one in found.values if isinstance(one, bool)}
    return values | ({None} if found.error else set())


D = 'device.attributes["d.example.com"]'


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (f'{D}.kind == "a"', {TRUE}),
        (f'{D}.kind == "b"', {FALSE}),
        (f'{D}.kind in ["a", "b"]', {TRUE}),
        (f"{D}.size == 3", {TRUE, FALSE}),
        (f"{D}.none == 3", {ERROR}),
        (f"has({D}.none)", {FALSE}),
        (f"has({D}.size)", {TRUE}),
        (f"has({D}.none) && {D}.none == 3", {FALSE}),
        (f"{D}.none == 3 && has({D}.none)", {FALSE}),
        (f"!has({D}.none) || {D}.none == 3", {TRUE}),
        (f'{D}.kind == "a" || {D}.none == 3', {TRUE}),
        (f'{D}.kind == "a" && {D}.none == 3', {ERROR}),
        (f"{D}.size == 3 && {D}.none == 3", {FALSE, ERROR}),
        (f'{D}.kind == "b" ? {D}.none == 3 : true', {TRUE}),
        (f'{D}.kind == "a" ? {D}.none == 3 : true', {ERROR}),
        (f'"none" in {D} && {D}.none == 3', {FALSE}),
        (f'{D}.?none.orValue("x") == "x"', {TRUE}),
        (f'{D}[?"none"].hasValue()', {FALSE}),
        (f"{D}.?size.orValue(1) == 1", {TRUE, FALSE}),
        (f'cel.bind(d, {D}, d.kind == "a")', {TRUE}),
        (f"cel.bind(d, {D}, has(d.none) && d.none == 1)", {FALSE}),
        ('device.driver == "d.example.com"', {TRUE}),
        ('device.driver == "other"', {FALSE}),
        ('"other" in device.attributes', {FALSE}),
        ('device.attributes[device.driver].kind.startsWith("a")', {TRUE}),
        (f'["a", "b"].exists(x, x == {D}.kind)', {TRUE, FALSE}),
    ],
)
def test_outcomes(expression: str, expected: set[object]) -> None:
    program = compile_expression(Environment.for_release("1.36"), expression)
    assert states(outcome(program.ast.expression, Known())[0]) == expected


def test_it_names_the_readings_that_fail() -> None:
    text = f"{D}.size == 1 && {D}.none == 2"
    failed = outcome(compile_expression(Environment.for_release("1.36"), text).ast.expression, Known())[1]
    assert [(read.column.id, text[read.node.start : read.node.end]) for read in failed] == [("none", f"{D}.none")]


def test_an_unknown_driver_may_be_any() -> None:
    program = compile_expression(Environment.for_release("1.36"), 'device.driver == "d.example.com"')
    assert states(outcome(program.ast.expression, Known(None))[0]) == {TRUE, FALSE}
