"""Attributes that are read although a device may lack them, and selectors without a comparison."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from kubectl_dra.api.schema import FieldPath
from kubectl_dra.cel import ast
from kubectl_dra.cel.columns import Column, columns_of
from kubectl_dra.data.drivers import Kind, catalogue
from kubectl_dra.lint.analysis.cluster_devices import reads_without_error
from kubectl_dra.lint.analysis.corrections import STRINGS, spliced
from kubectl_dra.lint.analysis.possible_results import Read, outcome
from kubectl_dra.lint.analysis.published_devices import known_attribute, known_driver
from kubectl_dra.lint.analysis.selector_targets import (
    SELECTOR_KINDS,
    AskedSelector,
    Lacking,
    OtherDriver,
    asked,
    columns,
    drivers_of,
    read_text,
)
from kubectl_dra.lint.context import Context
from kubectl_dra.lint.finding import Fix, LintFinding
from kubectl_dra.lint.rule import Rule
from kubectl_dra.manifests.changes import Splice
from kubectl_dra.text import join


class UnguardedAttribute(
    Rule,
    code="DRA211",
    name="unguarded-attribute",
    severity="warning",
    kinds=SELECTOR_KINDS,
    scope="set",
    fixable="safe",
    otherwise={"info": "it is not known whether there are such devices"},
    # No guard belongs into an expression that is never true: it would only hide that. Where a class reads devices of
    # all drivers, what those of its own lack is the smaller part.
    told_by=("DRA217", "DRA213", "DRA215", "DRA216", "DRA218", "DRA219", "DRA601", "DRA605", "DRA606"),
):
    """An attribute is read that a device may not have."""

    def check(self, context: Context) -> Iterator[LintFinding]:
        for target in asked(context):
            if reads_without_error(context, target):
                continue
            for column, reads, reason, proven in _unguarded(context, target):
                if catalogue().driver(column.domain or "") is None and drivers_of(context, column.domain or ""):
                    # It is the name of a class, so no device has it, and a guard would hide that.
                    continue
                first = min(reads, key=lambda read: read.node.start).node
                yield self.part(
                    target.path,
                    first,
                    f"{read_text(column)} is read without a guard, {reason}",
                    fix=_guard(target, reads),
                    # It may well be that no such device is in the cluster that the author has in mind.
                    severity=None if proven else "info",
                )


class ForeignDevices(
    Rule,
    code="DRA217",
    name="class-reads-foreign-devices",
    severity="warning",
    kinds=("DeviceClass",),
    fixable="unsafe",
):
    """A class reads attributes on devices of all drivers."""

    def check(self, context: Context) -> Iterator[LintFinding]:
        for target in asked(context):
            if not target.of_class or not target.reaches(OtherDriver()):
                continue
            possible_results, failed = outcome(target.program.ast.expression, OtherDriver())
            if not possible_results.error or not failed:
                continue
            first = min(failed, key=lambda read: read.node.start)
            domain = first.column.domain or ""
            text = target.selector.expression
            own = domain in catalogue().names or not domain.startswith("resource.kubernetes.io")
            check = f'device.driver == "{domain}"'
            yield self.part(
                target.path,
                first.node,
                f"{read_text(first.column)} is read on devices of all drivers: the selector does not check "
                "device.driver first",
                fix=Fix.guess(
                    f"Put {check} before it", _put_before(target.path, f"{check} && ", text), expression=check
                )
                if own
                else 'Put device.driver == "…" && before it.',
            )


class BareAttribute(
    Rule,
    code="DRA212",
    name="bare-attribute",
    severity="warning",
    kinds=SELECTOR_KINDS,
    scope="set",
    otherwise={"error": "the attribute is known not to be a bool"},
):
    """A selector that is an attribute, not a comparison."""

    def check(self, context: Context) -> Iterator[LintFinding]:
        for target in asked(context):
            if target.program.output_type.kind == "bool":
                continue
            root = _result(target.program.ast.expression)
            known = known_attribute(context, _column_of(root))
            type = known[1].type if known is not None else ""
            if type == "bool":
                continue
            what = f", and this one is a {type}" if type else ""
            yield self.part(
                target.path,
                root,
                f"the selector is the value itself, not a comparison: it fails unless the attribute is a bool{what}",
                fix='Compare it: … == true, or … == "VALUE".',
                severity="error" if what else None,
            )


def _unguarded(context: Context, target: AskedSelector) -> Iterator[tuple[Column, list[Read], str, bool]]:
    """Columns that some device may lack although the expression needs them, where they are read, and who
    lacks them.

    The last is whether the driver has devices that never have the column.
    """
    for column in columns(target.program):
        lacking, foreign = _lacking(context, target, column), _foreign(target, column)
        if lacking is None and not foreign:
            continue
        reads = _reads(target, Lacking(column), column)
        if not reads:
            continue
        shapes = [
            kind for kind in (*(lacking or ()), *foreign) if target.reaches(kind) and _reads(target, kind, column)
        ]
        if shapes:
            never = any(kind in foreign or not kind.publishes(column) for kind in shapes)
            yield column, reads, _who(shapes, column), never
        elif lacking == [] and target.reaches(Lacking(column)):
            yield column, reads, "and a device without it aborts the allocation", False


def _lacking(context: Context, target: AskedSelector, column: Column) -> list[Kind] | None:
    """The kinds of device that may lack the column: empty if nothing is known, None if it is always there.

    Also None if the driver does not know the name at all, which other rules report.
    """
    driver = known_driver(context, column.domain)
    if driver is not None and not driver.knows(column) and (driver.complete or column.id in driver.instead):
        return None
    if "/" in (column.domain or ""):
        return None
    kinds = [kind for kind in target.kinds if driver is None or kind.driver == driver.name]
    if not kinds or (driver is None and not target.sure):
        return []
    having = [kind for kind in kinds if kind.publishes(column)]
    if not having:
        return None
    if not target.of_class and not target.sure:
        # Which of the driver's classes it is, is not known: one that always has it, if there is one.
        kinds = [] if any(kind.values(column) != () for kind in having) else having
    return [kind for kind in kinds if kind.values(column) == ()] or None


def _foreign(target: AskedSelector, column: Column) -> list[Kind]:
    """The kinds of other drivers that the class admits, which have nothing in the domain of a driver."""
    if not target.sure or catalogue().driver(column.domain or "") is None:
        return []
    return [kind for kind in target.kinds if kind.driver != column.domain]


def _who(kinds: list[Kind], column: Column) -> str:
    own = [kind for kind in kinds if kind.driver == column.domain or catalogue().driver(column.domain or "") is None]
    others = dict.fromkeys(kind.driver for kind in kinds if kind not in own)
    if not others and all(kind.publishes(column) for kind in own):
        return f"and not every device of {_title(own[0].driver)} has it"
    names = [str(name) for name in dict.fromkeys(kind.given.get("type") or kind.name for kind in own)]
    groups = [f"devices of type {_all(names)} of {_title(own[0].driver)}"] if own else []
    groups += [f"{'those' if groups else 'devices'} of {_title(driver)}" for driver in others]
    return f"and {_all(groups)} do not have it"


def _title(driver: str) -> str:
    known = catalogue().driver(driver)
    return driver if known is None else known.title


def _all(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (join(names[:-1]), names[-1])))


def _reads(target: AskedSelector, shape: Any, column: Column) -> list[Read]:
    """Where the expression reads the column without a guard, if that can cause an error on the shape."""
    possible_results, failed = outcome(target.program.ast.expression, shape)
    return [read for read in failed if read.column == column] if possible_results.error else []


def _guard(target: AskedSelector, reads: list[Read]) -> Fix | None:
    """Put ``has(…) &&`` before the operands that read the column."""
    text = target.selector.expression
    spots: dict[tuple[int, int], str] = {}
    for read in reads:
        operand = _operand(target.program.ast.expression, read.node)
        if operand is None:
            return None
        end = _closed(text, operand.start, operand.end)
        spots[operand.start, end] = f"has({read_text(read.column)}) && "
    ordered = sorted(spots)
    if any(left[1] > right[0] for left, right in pairwise(ordered)):
        return None
    path: FieldPath = target.path
    if all(_between_ands(text, start, end) for start, end in ordered):
        # One guard among terms that must all be true is enough.
        ordered = ordered[:1]
    edits = []
    for start, end in ordered:
        inner = text[start:end]
        plain = (start, end) == (0, len(text.rstrip())) or _between_ands(text, start, end)
        edits.append((start, end, f"{spots[start, end]}{inner}" if plain else f"({spots[start, end]}{inner})"))
    guard = spots[ordered[0]].removesuffix(" && ")
    return Fix.sure(f"Guard it with {guard}", spliced(path, text, edits), expression=guard)


def _closed(text: str, start: int, end: int) -> int:
    """The end of an operand including the parentheses that it opens, which node positions leave out."""
    plain = STRINGS.sub(lambda match: "_" * len(match.group()), text)
    missing = plain.count("(", start, end) - plain.count(")", start, end)
    while missing > 0 and end < len(plain):
        missing -= plain[end] == ")"
        end += 1
    return end


def _between_ands(text: str, start: int, end: int) -> bool:
    """Whether the operand is surrounded only by ``&&`` or the ends of the expression, so that it needs no
    parentheses.
    """
    before, after = text[:start].rstrip(), text[end:].lstrip()
    return (
        "||" not in text
        and "?" not in text
        and (not before or before.endswith("&&"))
        and (not after or after.startswith("&&"))
    )


def _operand(root: ast.Expression, node: ast.Expression) -> ast.Expression | None:
    """The operand of a logical operator, or the whole expression, that contains the node; None inside a macro."""
    current, best = root, root
    while current is not node:
        if isinstance(current, ast.Comprehension):
            return None
        below = next((child for child in ast.children(current) if any(part is node for part in ast.walk(child))), None)
        if below is None:
            return None
        if isinstance(current, ast.Call) and current.function in ("_&&_", "_||_", "_?_:_"):
            best = below
        current = below
    return best


def _result(node: ast.Expression) -> ast.Expression:
    while isinstance(node, ast.Comprehension) and node.iter_var == "#unused":
        node = node.result
    return node


def _column_of(node: ast.Expression) -> Column | None:
    columns = [column for column in columns_of(node) or () if column.kind == "attribute"]
    return columns[0] if len(columns) == 1 and isinstance(node, ast.Select | ast.Call) else None


def _put_before(path: FieldPath, check: str, text: str) -> Splice:
    """The change that makes ``check`` a condition of the whole expression."""
    if "||" not in text and "?" not in text:
        return Splice(path, 0, 0, check)
    return Splice(path, 0, len(text.rstrip()), f"{check}({text.strip()})")


RULES = (UnguardedAttribute, BareAttribute, ForeignDevices)
