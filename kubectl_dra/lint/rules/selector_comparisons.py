"""Comparisons that can never be true, and terms that exclude each other."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from kubectl_dra.cel.columns import Column
from kubectl_dra.cel.constants import FailingConstant, failing_constants
from kubectl_dra.data.drivers import Attribute, Driver, catalogue
from kubectl_dra.lint.analysis.cel_terms import Constant, ConstantComparison, comparisons, contradiction, demands
from kubectl_dra.lint.analysis.corrections import spliced
from kubectl_dra.lint.analysis.selector_targets import SELECTOR_KINDS, AskedSelector, asked, class_programs, read_text
from kubectl_dra.lint.context import Context
from kubectl_dra.lint.finding import Fix, LintFinding
from kubectl_dra.lint.rule import Rule
from kubectl_dra.manifests.changes import Splice
from kubectl_dra.text import nearest, whole_number

_WORDS: Final = {"int": "an int", "string": "a string", "bool": "a bool", "version": "a version", "double": "a number"}


class NeverTrue(
    Rule,
    code="DRA213",
    name="comparison-never-true",
    severity="error",
    kinds=SELECTOR_KINDS,
    fixable="unsafe",
    otherwise={"warning": "no known product has this name"},
    fixed_where="one value of the right type, or one known name, can be meant",
):
    """A comparison that can never be true."""

    def check(self, context: Context) -> Iterator[LintFinding]:
        for target in asked(context):
            for comparison in comparisons(target.program):
                known = _known(comparison.column)
                if known is None:
                    continue
                driver, attribute = known
                finding = self._types(target, comparison, driver, attribute)
                if finding is None and attribute.type == "string" and comparison.operator in ("==", "in"):
                    finding = self._values(target, comparison, driver, attribute)
                if finding is not None:
                    yield finding

    def _types(
        self, target: AskedSelector, comparison: ConstantComparison, driver: Driver, attribute: Attribute
    ) -> LintFinding | None:
        fitting = ("int", "double") if attribute.type == "int" else (attribute.type,)
        wrong = [value for value in comparison.constants if attribute.type and value.type not in fitting]
        if not wrong or len(wrong) < len(comparison.constants):
            return None
        value = wrong[0]
        name = comparison.column.id
        if attribute.type == "version" and value.type == "string":
            outcome = (
                f'is always false; write semver("{_semver(value.text)}")'
                if comparison.turned and comparison.operator == "=="
                else f'ends in an error; compare with semver("{_semver(value.text)}")'
            )
        else:
            outcome = "is never true" if comparison.operator in ("==", "in") else "says nothing: they are never equal"
            if comparison.operator in ("<", "<=", ">", ">="):
                outcome = "ends in an error"
        return self.finding(
            target.selector.path,
            f"{name} of {driver.name} is {_WORDS[attribute.type]}, so comparing it with "
            f"{_WORDS.get(value.type, 'a ' + value.type)} {outcome}",
            fix=_typed(target, comparison, attribute, value),
            cel=(comparison.node.start, comparison.node.end),
        )

    def _values(
        self, target: AskedSelector, comparison: ConstantComparison, driver: Driver, attribute: Attribute
    ) -> LintFinding | None:
        wanted = [value.text for value in comparison.constants]
        name = comparison.column.id
        at = (comparison.node.start, comparison.node.end)
        if attribute.values:
            if any(text in attribute.values for text in wanted):
                return None
            near = nearest(wanted[0], attribute.values, 1)
            fix = _replaced(target, comparison, wanted[0], near[0]) if near and len(wanted) == 1 else None
            changes = constant_replaced(target, comparison, wanted[0], near[0]) if near else ()
            return self.finding(
                target.selector.path,
                f'{name} of {driver.name} is never "{wanted[0]}": it is one of {", ".join(attribute.values)}',
                fix=fix
                or (Fix(f'Did you mean "{near[0]}"?', changes, "unsafe" if changes else "none") if near else None),
                cel=at,
            )
        if attribute.names != "products":
            return None
        odd = [text for text in wanted if text not in driver.products and _alike(text, driver.products)]
        if not odd or len(odd) < len(wanted):
            return None
        full = _alike(odd[0], driver.products)
        advice = (
            f"Write the whole name: {' or '.join(chr(34) + text + chr(34) for text in full[:3])}; "
            f'or match a part of it: {name}.contains("{_core(odd[0])}").'
        )
        only = constant_replaced(target, comparison, odd[0], full[0]) if len(full) == len(wanted) == 1 else ()
        return self.finding(
            target.selector.path,
            f'no product is called "{odd[0]}": {name} is the whole name, such as "{full[0]}"',
            fix=Fix(advice, only),
            severity="warning",
            cel=at,
        )


class QuantityEquality(
    Rule, code="DRA214", name="quantity-equality", severity="warning", kinds=SELECTOR_KINDS, fixable="unsafe"
):
    """A measured capacity that must equal a round quantity."""

    def check(self, context: Context) -> Iterator[LintFinding]:
        for target in asked(context):
            for comparison in comparisons(target.program):
                column, value = comparison.column, comparison.constants[0]
                if column.kind != "capacity" or comparison.operator not in ("==", "in") or value.type != "quantity":
                    continue
                driver = catalogue().driver(column.domain or "")
                facts = driver.capacities.get(column.id or "") if driver is not None else None
                decimal = value.text[-1:] in ("k", "M", "G", "T", "P", "E")
                if not (facts or {}).get("measured") and not (facts is None and decimal):
                    continue
                example = (facts or {}).get("example")
                shown = f", for example {example}" if example else ""
                text = read_text(column)
                changes: tuple[Splice, ...] = ()
                if comparison.operator == "==" and not comparison.called:
                    new = f'{text}.compareTo(quantity("{value.text}")) >= 0'
                    changes = (Splice(target.selector.path, comparison.node.start, comparison.node.end, new),)
                yield self.finding(
                    target.selector.path,
                    f"{column.id} hardly ever equals {value.text} exactly: devices publish a measured size{shown}",
                    fix=Fix(
                        f'Ask for at least that much, and mind the unit: compareTo(quantity("{value.text}")) >= 0',
                        changes,
                        "unsafe" if changes else "none",
                    ),
                    cel=(comparison.node.start, comparison.node.end),
                )


class Contradiction(
    Rule, code="DRA215", name="contradictory-terms", severity="error", kinds=SELECTOR_KINDS, scope="set"
):
    """Terms that no single device can satisfy."""

    def check(self, context: Context) -> Iterator[LintFinding]:
        for target in asked(context):
            of_class = class_programs(context, target.device_class) or () if target.device_class else ()
            earlier = [(demand, "the class's selector") for program in of_class for demand in demands(program)]
            earlier += [(demand, "another selector") for program in target.before for demand in demands(program)]
            own: list[ConstantComparison] = []
            for demand in demands(target.program):
                rivals = [*earlier, *((other, "another term") for other in own)]
                clash = next(((other, whose) for other, whose in rivals if contradiction(other, demand)), None)
                own.append(demand)
                if clash is None:
                    continue
                other, whose = clash
                yield self.finding(
                    target.selector.path,
                    f"no device can match: {_told(demand)}, and {whose} wants {_told(other)}",
                    fix="Drop one of the two, or join them with ||.",
                    cel=(demand.node.start, demand.node.end),
                )
                break


def _known(column: Column) -> tuple[Driver, Attribute] | None:
    driver = catalogue().driver(column.domain or "")
    if driver is None or column.kind != "attribute":
        return None
    attribute = driver.attributes.get(column.id or "")
    return None if attribute is None else (driver, attribute)


def _semver(text: str) -> str:
    parts = [part.lstrip("0") or "0" for part in text.lstrip("v").split(".")]
    if any(whole_number(part, 20) is None for part in parts) or len(parts) > 3:
        return text
    return ".".join([*parts, "0", "0"][:3])


def _typed(target: AskedSelector, comparison: ConstantComparison, attribute: Attribute, value: Constant) -> Fix | None:
    """The constant converted to the attribute's type."""
    if len(comparison.constants) > 1 or comparison.operator not in ("==", "!="):
        if attribute.type == "version" and value.type == "string":
            return Fix(f'Use compareTo(semver("{_semver(value.text)}")), isGreaterThan or isLessThan')
        return None
    if attribute.type == "version" and value.type == "string":
        new = f'semver("{_semver(value.text)}")'
    elif attribute.type == "string":
        new = f'"{value.text}"'
    elif (
        attribute.type == "int"
        and value.type == "string"
        and whole_number(value.text.removeprefix("-"), 19) is not None
    ):
        new = value.text
    elif attribute.type == "bool" and value.text.lower() in ("true", "false"):
        new = value.text.lower()
    else:
        return None
    return _replaced(target, comparison, value.text, new, quoted=False)


def _replaced(
    target: AskedSelector, comparison: ConstantComparison, old: str, new: str, quoted: bool = True
) -> Fix | None:
    """A fix that replaces the constant in the comparison."""
    changes = constant_replaced(target, comparison, old, new, quoted)
    return Fix(f"Compare with {changes[0].text}", changes, "unsafe") if changes else None


def constant_replaced(
    target: AskedSelector, comparison: ConstantComparison, old: str, new: str, quoted: bool = True
) -> tuple[Splice, ...]:
    """The change of a constant in the comparison; none if it is not there exactly once."""
    text = target.selector.expression
    start, end = comparison.node.start, comparison.node.end
    for written in (f'"{old}"', f"'{old}'", old):
        at = text.rfind(written, start, end)
        if at >= 0 and text.count(written, start, end) == 1:
            put = f"{written[0]}{new}{written[0]}" if quoted and written[0] in "\"'" else new
            return (Splice(target.selector.path, at, at + len(written), put),)
    return ()


@lru_cache(1024)
def _alike(text: str, products: tuple[str, ...]) -> tuple[str, ...]:
    """Complete product names that contain the text or differ from it in spelling."""
    wanted = text.lower().replace("-", " ").replace("_", " ").removeprefix("nvidia ")
    if len(wanted) < 2:
        return ()
    # "h100" is a part of "nvidia h100 pcie", and "a100 80gb" of "nvidia a100 sxm4 80gb", word by word.
    words = wanted.split()
    names = []
    for product in products:
        parts = product.lower().replace("-", " ").split()
        if all(word in parts for word in words):
            names.append(product)
    return tuple(names)


def _core(text: str) -> str:
    words = text.replace("-", " ").replace("_", " ").split()
    return next((word for word in words if any(char.isdigit() for char in word)), text)


def _told(demand: ConstantComparison) -> str:
    values = ", ".join(f'"{value.text}"' if value.type == "string" else value.text for value in demand.constants)
    shown = f"[{values}]" if demand.operator == "in" else values
    name = "driver" if demand.column.kind == "driver" else demand.column.id
    return f"{name} {demand.operator} {shown}"


# Parts of selectors that fail on every device, such as a text that a function cannot parse.


class ConstantFails(
    Rule,
    code="DRA219",
    name="constant-fails",
    severity="error",
    kinds=SELECTOR_KINDS,
    fixable="unsafe",
    fixed_where="one other text can be meant",
):
    """A part of a selector fails on every device."""

    def check(self, context: Context) -> Iterator[LintFinding]:
        for target in asked(context):
            for constant in failing_constants(target.program):
                yield self.finding(
                    target.selector.path,
                    f"{constant.reason}: evaluating this fails, whatever the device has",
                    fix=_fix(target, constant),
                    cel=(constant.start, constant.end),
                )


def _fix(target: AskedSelector, constant: FailingConstant) -> Fix | str:
    if len(constant.instead) != 1:
        return constant.advice
    change = spliced(
        target.selector.path, target.selector.expression, [(constant.start, constant.end, constant.instead[0])]
    )
    return Fix(constant.advice, (change,), "unsafe")


RULES = (NeverTrue, QuantityEquality, Contradiction, ConstantFails)
