"""Parts of selectors that fail on every device: what a function is given as text is none of what it takes."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_dra.cel.constants import FailingConstant, failing_constants
from kubectl_dra.lint.analysis.corrections import spliced
from kubectl_dra.lint.analysis.selector_targets import SELECTOR_KINDS, AskedSelector, asked
from kubectl_dra.lint.context import Context
from kubectl_dra.lint.finding import Fix, LintFinding
from kubectl_dra.lint.rule import Rule


class ConstantFails(Rule):
    """A part of a selector fails on every device."""

    code = "DRA219"
    name = "constant-fails"
    severity = "error"
    kinds = SELECTOR_KINDS
    fixable = "unsafe"

    def check(self, context: Context) -> Iterator[LintFinding]:
        for one in asked(context):
            for found in failing_constants(one.program):
                yield self.finding(
                    one.selector.path,
                    f"{found.reason}: evaluating this fails, whatever the device has",
                    fix=_fix(one, found),
                    cel=(found.start, found.end),
                )


def _fix(one: AskedSelector, found: FailingConstant) -> Fix | str:
    if len(found.instead) != 1:
        return found.advice
    change = spliced(one.selector.path, one.selector.expression, [(found.start, found.end, found.instead[0])])
    return Fix(found.advice, (change,), "unsafe")


RULES = (ConstantFails,)
