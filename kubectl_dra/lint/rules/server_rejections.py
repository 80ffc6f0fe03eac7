"""The API server's rejections as findings: one code per kind of violation, with the server's own rule as detail."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final, Unpack

from msgspec.structs import replace

from kubectl_dra.api.schema import FieldPath
from kubectl_dra.lint.analysis.server_verdict import later_violations_of, verdict_of, violations_of
from kubectl_dra.lint.context import Context, once
from kubectl_dra.lint.finding import Fix, LintFinding
from kubectl_dra.lint.locate import token_range
from kubectl_dra.lint.rule import ANY_KIND, Rule, RuleFacts
from kubectl_dra.manifests.changes import Splice, value_at

if TYPE_CHECKING:
    from kubectl_dra.admission.server.model import Violation


class ServerRule(Rule, kinds=ANY_KIND):
    """A rule whose findings are the API server's: all of them share one verdict per object."""

    reasons: ClassVar[tuple[str, ...]]
    """The server's reasons that the rule covers."""
    server_rules: ClassVar[tuple[str, ...]]
    """The server's rules that only this rule covers, whatever their reason."""

    def __init_subclass__(
        cls, reasons: tuple[str, ...] = (), server_rules: tuple[str, ...] = (), **facts: Unpack[RuleFacts]
    ) -> None:
        super().__init_subclass__(**facts)
        cls.reasons, cls.server_rules = reasons, server_rules

    def check(self, context: Context) -> Iterator[LintFinding]:
        return map(partial(self._found, context), _one_for_each_place(_by_code(context).get(self.code, ())))

    def _found(self, context: Context, violation: Violation) -> LintFinding:
        from kubectl_dra.lint.analysis.rejection_fixes import remedy, told

        violation = told(context, violation)
        cel = None
        if violation.cel_offset is not None:
            expression = value_at(context.raw, violation.path)
            if isinstance(expression, str):
                cel = token_range(expression, violation.cel_offset)
        return self.finding(
            violation.path,
            violation.message,
            fix=remedy(context, violation) or _hinted(context, violation),
            cel=cel,
            on_key=violation.rule in ("unknown-field", "quota-key"),
            field=violation.field,
            detail=violation.rule,
        )


_NAME: Final = re.compile(r"[A-Za-z_]\w*")


def _hinted(context: Context, violation: Violation) -> Fix | None:
    """The name in an expression that the compiler suggests in place of the one at its position."""
    expression, near = value_at(context.raw, violation.path), violation.cel_near
    if not near or violation.cel_offset is None or not isinstance(expression, str):
        return None
    offset = violation.cel_offset
    span = None
    if expression[offset : offset + 1] == "(":
        before = list(_NAME.finditer(expression, 0, offset))
        span = before[-1].span() if before and before[-1].end() == offset else None
    else:
        name = _NAME.match(expression, offset + (expression[offset : offset + 1] == "."))
        span = None if name is None else name.span()
    if span is None:
        return Fix(f"Did you mean {near}?")
    return Fix.sure(f"Write {near}", Splice(violation.path, *span, near))


def _one_for_each_place(violations: Sequence[Violation]) -> Iterable[Violation]:
    """The violations, but those of one value by one rule as one."""
    places: dict[tuple[FieldPath, str, str, int | None], Violation] = {}
    for violation in violations:
        place = (violation.path, violation.field, violation.rule, violation.cel_offset)
        known = places.get(place)
        joined = violation if known is None else replace(known, message=_joined(known.message, violation.message))
        places[place] = joined
    return places.values()


def _joined(first: str, second: str) -> str:
    """Two messages about one value, which is told once."""
    value, quote, rest = second.rpartition("' ")
    same = quote and first.startswith(f"{value}{quote}")
    return f"{first}; it {rest}" if same else f"{first}; {second}"


@once
def _by_code(context: Context) -> Mapping[str, list[Violation]]:
    """The server's violations by the code of the rule that represents them."""
    known: dict[str, list[Violation]] = {}
    for violation in (*violations_of(context), *later_violations_of(context)):
        code = _BY_RULE.get(violation.rule) or _BY_REASON.get(violation.reason)
        if code is not None:
            known.setdefault(code, []).append(violation)
    return known


class UnknownField(
    ServerRule,
    code="DRA101",
    name="unknown-field",
    fixable="unsafe",
    some_safe=True,
    server_rules=("unknown-field",),
    fixed_where="it is certain which field is meant, or one is spelled almost so",
    told_by=("DRA505",),
):
    """A field that does not exist."""

    def check(self, context: Context) -> Iterator[LintFinding]:
        """One finding for all fields that one fix corrects together."""
        seen: set[tuple[FieldPath, str]] = set()
        for finding in super().check(context):
            if finding.fix is not None and finding.fix.safety != "none":
                # Fixes with one title in one place are the same, as are those that change the same.
                whole = any(change.path == ("apiVersion",) for change in finding.fix.changes)
                key = (() if whole else finding.path[:-1], finding.fix.title)
                if key in seen:
                    continue
                seen.add(key)
            yield finding


class WrongType(
    ServerRule,
    code="DRA102",
    name="wrong-type",
    fixable="unsafe",
    some_safe=True,
    reasons=("BadRequest",),
    fixed_where="the value can be read only one way (adminAccess: true is never written by plain --fix)",
):
    """A value that cannot be decoded."""


class Required(
    ServerRule,
    code="DRA103",
    name="required-field",
    fixable="unsafe",
    some_safe=True,
    reasons=("Required",),
    fixed_where="it is the selector of a workload, or the limit of a device that is requested",
):
    """A required field is missing."""


class Invalid(
    ServerRule,
    code="DRA104",
    name="invalid-value",
    fixable="unsafe",
    reasons=("Invalid", "TypeInvalid"),
    fixed_where=(
        "the value is one letter or two from a known name, an attribute lacks only its domain, labels have to match "
        "a selector, or it is known what a quota's key means"
    ),
):
    """A value that the server's validation refuses."""


class TooLong(ServerRule, code="DRA105", name="too-long", reasons=("TooLong",)):
    """A text over its limit."""


class TooMany(ServerRule, code="DRA106", name="too-many", reasons=("TooMany",)):
    """A list or map over its limit."""


class Duplicate(ServerRule, code="DRA107", name="duplicate", reasons=("Duplicate",)):
    """Two entries that must differ."""


class NotSupported(
    ServerRule,
    code="DRA108",
    name="unsupported-value",
    fixable="unsafe",
    some_safe=True,
    reasons=("NotSupported",),
    fixed_where="only capitals, hyphens or underscores are wrong, or a letter or two",
):
    """A value outside the allowed set."""


class Forbidden(ServerRule, code="DRA109", name="forbidden", reasons=("Forbidden",)):
    """A field that must not be set here."""


class NotFound(
    ServerRule,
    code="DRA110",
    name="not-found",
    fixable="unsafe",
    reasons=("NotFound",),
    fixed_where="one claim of the pod is spelled almost so, or it has only one",
):
    """A reference that leads nowhere."""


class ServerFails(ServerRule, code="DRA111", name="server-fails", reasons=("InternalError",)):
    """An object that makes the server itself fail."""


class CelCompile(
    ServerRule,
    code="DRA112",
    name="selector-does-not-compile",
    fixable="unsafe",
    some_safe=True,
    told_by=("DRA218",),
    server_rules=("cel-compile", "cel-program"),
):
    """A selector that does not compile."""


class CelCost(ServerRule, code="DRA113", name="selector-too-expensive", server_rules=("cel-cost",)):
    """A selector whose worst case is too expensive."""


class CelTooLong(ServerRule, code="DRA114", name="selector-too-long", server_rules=("cel-too-long",)):
    """A selector over its length limit."""


class ServerWarns(Rule, code="DRA115", name="server-warning", severity="warning", kinds=("ResourceSlice",)):
    """A value accepted with a warning."""

    def check(self, context: Context) -> Iterator[LintFinding]:
        verdict = verdict_of(context)
        for warning in verdict.warnings if verdict is not None and verdict.accepted else ():
            field, _, message = warning.partition(": ")
            # Other warnings are about the version, and DRA504's.
            if _FIELD.match(field):
                yield self.finding(tuple(field.split(".")), message, field=field)


_FIELD: Final = re.compile(r"spec(\.[A-Za-z]+)+\Z")

_REJECTIONS: Final[tuple[type[ServerRule], ...]] = (
    UnknownField,
    WrongType,
    Required,
    Invalid,
    TooLong,
    TooMany,
    Duplicate,
    NotSupported,
    Forbidden,
    NotFound,
    ServerFails,
    CelCompile,
    CelCost,
    CelTooLong,
)

UNDECODED: Final = (UnknownField.code, WrongType.code)
"""The rules about what the server cannot decode. It validates nothing else of such an object."""
RULES: Final[tuple[type[Rule], ...]] = (*_REJECTIONS, ServerWarns)
_BY_RULE: Final = {name: rule.code for rule in _REJECTIONS for name in rule.server_rules}
_BY_REASON: Final = {reason: rule.code for rule in _REJECTIONS for reason in rule.reasons}
