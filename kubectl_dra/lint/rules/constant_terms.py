"""Selectors and amounts that a constant decides: false, a letter that cannot be there, a size without its unit."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_dra.api.quantity import Quantity, QuantityError
from kubectl_dra.cel import ast
from kubectl_dra.cel.columns import Column
from kubectl_dra.lint.analysis.cel_terms import ConstantComparison, comparisons, constant, scoped
from kubectl_dra.lint.analysis.claim_requests import alternatives
from kubectl_dra.lint.analysis.driver_values import Published, compared_with, is_measured, published, size_of
from kubectl_dra.lint.analysis.possible_results import outcome
from kubectl_dra.lint.analysis.selector_targets import (
    SELECTOR_KINDS,
    AskedSelector,
    OtherDriver,
    asked,
    drivers_of,
)
from kubectl_dra.lint.context import Context
from kubectl_dra.lint.finding import Fix, LintFinding
from kubectl_dra.lint.rule import Rule
from kubectl_dra.manifests.changes import Set, Splice, fields_at
from kubectl_dra.text import whole_number

_LEAST = Quantity.parse("1Mi")
"""No device has less memory."""
_CASES = {"lowerAscii": ("no capitals", str.lower), "upperAscii": ("no small letters", str.upper)}
_TESTS = ("contains", "startsWith", "endsWith", "_==_")


class ConstantDecides(
    Rule,
    code="DRA223",
    name="constant-decides",
    severity="warning",
    kinds=SELECTOR_KINDS,
    fixable="unsafe",
    fixed_where="the letters or the unit that can be meant are known",
):
    """A constant decides, whatever the device has."""

    def check(self, context: Context) -> Iterator[LintFinding]:
        for target in asked(context):
            root = target.program.ast.expression
            if target.program.columns == frozenset() and not outcome(root, OtherDriver())[0].can_be(True):
                yield self.finding(
                    target.path,
                    "the selector is true for no device: it looks at none",
                    fix="Write what the device must have, or remove the selector.",
                )
            yield from self._deciding(target)
            yield from self._letters(target)
            for comparison in comparisons(target.program):
                if finding := self._size(target, comparison):
                    yield finding
        if context.item.kind != "DeviceClass":
            yield from self._requested(context)

    def _deciding(self, target: AskedSelector) -> Iterator[LintFinding]:
        """Of a constant beside ``||`` or ``&&`` that makes the other terms say nothing."""
        for node in ast.walk(target.program.ast.expression):
            if not isinstance(node, ast.Call) or node.function not in ("_||_", "_&&_"):
                continue
            decides = node.function == "_||_"
            for term in node.arguments:
                of_device = any(isinstance(part, ast.Identifier) for part in ast.walk(term))
                if of_device or outcome(term, OtherDriver())[0].values != (decides,):
                    continue
                written = target.selector.expression[term.start : term.end]
                yield self.part(
                    target.path,
                    term,
                    f"{written} makes this always {str(decides).lower()}: the other terms of "
                    f"{'||' if decides else '&&'} say nothing",
                    fix=f"Leave out {written}, or the other terms.",
                )

    def _letters(self, target: AskedSelector) -> Iterator[LintFinding]:
        for node, _ in scoped(target.program.ast.expression):
            if not isinstance(node, ast.Call) or node.function not in _TESTS:
                continue
            subject, other = (node.target, *node.arguments) if node.target is not None else node.arguments
            text = constant(other)
            if not isinstance(subject, ast.Call) or subject.function not in _CASES or text is None:
                continue
            left, changed = _CASES[subject.function]
            if text.type != "string" or (right := changed(text.text)) == text.text:
                continue
            start, end = other.start + 1, other.end - 1
            written = target.selector.expression[start:end] == text.text
            called = "==" if node.function == "_==_" else f"{node.function}()"
            change = (Splice(target.path, start, end, right),) if written else ()
            yield self.part(
                target.path,
                node,
                f'{subject.function}() leaves {left}, so {called} is never true of "{text.text}"',
                fix=Fix.guess(f'Write "{right}"', *change),
            )

    def _size(self, target: AskedSelector, comparison: ConstantComparison) -> LintFinding | None:
        value, column = comparison.constants[0], comparison.column
        if not is_measured(column) or value.type != "quantity" or value.value >= _LEAST or not value.value > _NOTHING:
            return None
        more = comparison.operator in (">", ">=", "!=")
        operator = comparison.operator
        number = whole_number(value.text, 9)
        size = size_of(column, number) if number is not None else value.text
        least = published(size) if operator in (">", ">=") else Published(size)
        fixed = size != value.text and operator not in ("in", "==", "!=")
        return self.part(
            target.path,
            comparison.node,
            f"{column.id} {operator} {value.text} bytes is true of {'every' if more else 'no'} device: "
            "its unit is missing",
            fix=compared_with(target.path, comparison, least, operator, column)
            if fixed
            else "Write the unit, as in 40Gi.",
        )

    def _requested(self, context: Context) -> Iterator[LintFinding]:
        """Of what a request wants of a capacity."""
        for alternative in alternatives(context):
            names = drivers_of(context, alternative.device_class)
            for key, written in fields_at(alternative.content, "capacity", "requests").items():
                domain, _, name = str(key).rpartition("/")
                columns = [Column("capacity", driver.name, name) for driver in names if domain in ("", driver.name)]
                try:
                    amount = Quantity.from_json(written)
                except QuantityError:
                    continue
                if not any(map(is_measured, columns)) or amount >= _LEAST or not amount > _NOTHING:
                    continue
                path = (*alternative.path, "capacity", "requests", key)
                number = whole_number(str(written), 9)
                size = size_of(columns[0], number) if number is not None else str(written)
                yield self.finding(
                    path,
                    f"{name} of {written} bytes is less than any device has: its unit is missing",
                    fix=Fix.guess(f"Write {size}", Set(path, size))
                    if size != str(written)
                    else "Write the unit, as in 40Gi.",
                )


_NOTHING = Quantity.parse("0")

RULES = (ConstantDecides,)
