"""Comparisons that can never be true, and terms that exclude each other."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_dra.api.quantity import Quantity
from kubectl_dra.cel.columns import Column
from kubectl_dra.cel.constants import FailingConstant, failing_constants
from kubectl_dra.data.drivers import Attribute, Driver, catalogue
from kubectl_dra.data.product_names import alike, meant
from kubectl_dra.lint.analysis.cel_terms import Constant, ConstantComparison, comparisons, demands
from kubectl_dra.lint.analysis.corrections import semver_text
from kubectl_dra.lint.analysis.driver_values import (
    WORDS,
    MiscasedPart,
    MistypedCall,
    Published,
    common_part,
    compared_with,
    is_measured,
    miscased_parts,
    mistyped_calls,
    published,
    size_in,
    wrong_constants,
)
from kubectl_dra.lint.analysis.possible_results import FAILS, FALSE
from kubectl_dra.lint.analysis.published_devices import known_attribute, known_driver, published_amounts
from kubectl_dra.lint.analysis.selector_targets import (
    SELECTOR_KINDS,
    AskedSelector,
    ExcludedTerm,
    Whose,
    asked,
    clash,
    classes_for,
    matches_where,
)
from kubectl_dra.lint.context import Context
from kubectl_dra.lint.finding import Fix, LintFinding
from kubectl_dra.lint.rule import Rule
from kubectl_dra.manifests.changes import Splice
from kubectl_dra.text import either, nearest, some, whole_number

_Unknown = tuple[str, Fix | None, tuple[str, ...]]
"""What is said of a value that no device has, and the values that may be meant."""


class NeverTrue(
    Rule,
    code="DRA213",
    name="comparison-never-true",
    severity="error",
    kinds=SELECTOR_KINDS,
    fixable="unsafe",
    scope="set",
    otherwise={
        "warning": "no known product has this name, a list has other values that are right, "
        "or the rest of the expression can be true"
    },
    fixed_where="one value of the right type, or one known name, can be meant",
):
    """A comparison that can never be true."""

    def check(self, context: Context) -> Iterator[LintFinding]:
        for target in asked(context):
            for comparison in comparisons(target.program):
                known = known_attribute(context, comparison.column)
                if known is None:
                    continue
                driver, attribute = known
                finding = self._types(target, comparison, driver, attribute)
                if finding is not None:
                    yield finding
                elif attribute.type == "string" and comparison.operator in ("==", "in"):
                    yield from self._values(target, comparison, driver, attribute)
            for part in miscased_parts(context, target.program):
                yield self._part(target, part)

    def _part(self, target: AskedSelector, part: MiscasedPart) -> LintFinding:
        spelled = either([f'"{text}"' for text in part.spelled[:3]])
        there = (part.argument.start + 1, part.argument.end - 1)
        change = Splice(target.path, *there, part.spelled[0])
        written = target.selector.expression[slice(*there)] == part.text
        return self.part(
            target.path,
            part.call,
            f'{part.call.function}() minds capitals: a known {part.column.id} has {spelled}, none has "{part.text}"',
            fix=Fix.guess(f"Write {spelled}", change) if written and len(part.spelled) == 1 else f"Write {spelled}.",
            severity="warning",
        )

    def _types(
        self, target: AskedSelector, comparison: ConstantComparison, driver: Driver, attribute: Attribute
    ) -> LintFinding | None:
        if not wrong_constants(comparison, attribute):
            return None
        value = comparison.constants[0]
        name = comparison.column.id
        if attribute.type == "version" and value.type == "string":
            outcome = (
                f'is always false; write semver("{semver_text(value.text)}")'
                if comparison.turned and comparison.operator == "=="
                else f'ends in an error; compare with semver("{semver_text(value.text)}")'
            )
        else:
            outcome = "is never true" if comparison.operator in ("==", "in") else "says nothing: they are never equal"
            if comparison.operator in ("<", "<=", ">", ">="):
                outcome = "ends in an error"
        matches = matches_where(target, {comparison.node.id: FAILS if "ends in an error" in outcome else FALSE})
        return self.part(
            target.path,
            comparison.node,
            f"{name} of {driver.name} is {WORDS[attribute.type]}, so comparing it with "
            f"{WORDS.get(value.type, 'a ' + value.type)} {outcome}",
            fix=_typed(target, comparison, attribute, value),
            severity="warning" if matches else None,
        )

    def _values(
        self, target: AskedSelector, comparison: ConstantComparison, driver: Driver, attribute: Attribute
    ) -> Iterator[LintFinding]:
        """One finding for each value that no device has, unless what it means is in the list, too."""
        wanted = [value.text for value in comparison.constants]
        known = attribute.values or (driver.product_names if attribute.names == "products" else ())
        odd = [text for text in dict.fromkeys(wanted) if known and text not in known]
        for text in odd:
            said = (
                self._listed(target, comparison, driver, attribute, text)
                if attribute.values
                else self._product(target, comparison, driver, text)
            )
            message, fix, names = said or ("", None, wanted)
            if set(wanted).isdisjoint(names):
                sure = attribute.values and len(odd) == len(set(wanted))
                never = sure and not matches_where(target, {comparison.node.id: FALSE})
                place = _place(target, comparison, text)
                yield self.finding(target.path, message, fix=fix, severity=None if never else "warning", cel=place)

    def _listed(
        self, target: AskedSelector, comparison: ConstantComparison, driver: Driver, attribute: Attribute, text: str
    ) -> _Unknown:
        """A value of an attribute all of whose values are known."""
        name = comparison.column.id
        near = nearest(text, attribute.values, 1)
        changes = constant_replaced(target, comparison, text, near[0]) if near else ()
        advice = None
        if near:
            one = f"Compare with {changes[0].text}" if changes and len(comparison.constants) == 1 else ""
            advice = Fix.guess(one or f'Did you mean "{near[0]}"?', *changes)
        message = f'{name} of {driver.name} is never "{text}": it is one of {", ".join(attribute.values)}'
        return message, advice, near

    def _product(
        self, target: AskedSelector, comparison: ConstantComparison, driver: Driver, text: str
    ) -> _Unknown | None:
        """A part of the name of a product, or another spelling."""
        name = comparison.column.id
        full = alike(text, driver.product_names)
        if not full:
            return None
        advice = f"Write the whole name: {' or '.join(chr(34) + product + chr(34) for product in full[:3])}"
        part = common_part(text, full)
        if part:
            others = [product for product in driver.product_names if part in product and product not in full]
            too = f", which {some(others, 2)} {'contains' if len(others) == 1 else 'contain'}, too" if others else ""
            advice += f'; or match a part of it: {name}.contains("{part}"){too}'
        only = constant_replaced(target, comparison, text, full[0]) if len(full) == 1 else ()
        message = f'no product is called "{text}": {name} is the whole name, such as "{full[0]}"'
        return message, Fix.guess(advice, *only), full


class QuantityEquality(
    Rule,
    code="DRA214",
    name="quantity-equality",
    severity="warning",
    kinds=SELECTOR_KINDS,
    fixable="unsafe",
    scope="set",
    # A size without its unit is not what is compared.
    told_by=("DRA223",),
):
    """A measured capacity that must equal a round quantity."""

    def check(self, context: Context) -> Iterator[LintFinding]:
        for target in asked(context):
            for comparison in comparisons(target.program):
                column, value = comparison.column, comparison.constants[0]
                if column.kind != "capacity" or comparison.operator not in ("==", "in") or value.type != "quantity":
                    continue
                driver = known_driver(context, column.domain)
                facts = driver.capacities.get(column.id or "") if driver is not None else None
                decimal = value.text[-1:] in ("k", "M", "G", "T", "P", "E")
                if not (facts or {}).get("measured") and not (facts is None and decimal):
                    continue
                amounts = published_amounts(context, column)
                if any(each == value.value for each in amounts):
                    continue
                example = (facts or {}).get("example")
                shown = f", for example {example}" if example else ""
                told = f"{column.id} hardly ever equals {value.text} exactly: devices publish a measured size{shown}"
                if example and value.value == Quantity.parse(str(example)):
                    told = f"{column.id} equals {value.text} exactly on some devices only: what is measured differs"
                least = published(value.text) if facts is not None else Published(value.text)
                fix = compared_with(target.path, comparison, least, ">=", column, "Ask for at least that much:")
                written_so = comparison.operator == "==" and not comparison.called
                yield self.part(target.path, comparison.node, told, fix=fix if written_so else fix.advice)
            yield from self._more_than_sold(context, target)

    def _more_than_sold(self, context: Context, target: AskedSelector) -> Iterator[LintFinding]:
        """A product whose name has a size, beside as much memory as only the size itself would be."""
        terms = demands(target.program)
        sizes = {
            (term.column.domain, size_in(term.constants[0].text), term.constants[0].text)
            for program in (*target.before, target.program)
            for term in demands(program)
            if term.operator == "==" and _names_products(term.column)
        }
        for term in terms:
            value, seen = term.constants[0], published_amounts(context, term.column)
            if term.operator not in (">=", ">") or not is_measured(term.column) or value.type != "quantity":
                continue
            for domain, size, product in sizes:
                least = published(size)
                if domain != term.column.domain or not least.why or value.value < Quantity.parse(size):
                    continue
                if any(amount >= value.value for amount in (*seen, *_known_amounts(product, term.column))):
                    continue
                yield self.part(
                    target.path,
                    term.node,
                    f"{term.column.id} of such a product is hardly ever {value.text}: devices publish a measured size, "
                    "which is smaller",
                    fix=compared_with(target.path, term, least, term.operator, term.column),
                )


def _known_amounts(product: str, column: Column) -> list[Quantity]:
    """What the products that a text means are known to publish of a capacity."""
    driver = catalogue().driver(column.domain or "")
    if driver is None or column.id is None:
        return []
    facts = (driver.products[name] for name in meant(product, driver.product_names))
    return [Quantity.parse(known[column.id]) for known in facts if column.id in known]


def _names_products(column: Column) -> bool:
    driver = catalogue().driver(column.domain or "") if column.kind == "attribute" else None
    attribute = driver.attributes.get(column.id or "") if driver is not None else None
    return attribute is not None and attribute.names == "products"


class Contradiction(
    Rule,
    code="DRA215",
    name="contradictory-terms",
    severity="error",
    kinds=SELECTOR_KINDS,
    scope="set",
    otherwise={"warning": "the class is not given, and a driver installs one of its name"},
    # A value that no device has contradicts everything.
    told_by=("DRA213",),
):
    """Terms that no single device can satisfy."""

    def check(self, context: Context) -> Iterator[LintFinding]:
        for target in asked(context):
            found = clash(context, target)
            if found is not None:
                yield self.part(
                    target.path,
                    found.term.node,
                    f"no device can match: {_told(found.term)}, and {_whose(found, target)} wants {_told(found.other)}",
                    fix=_reconciled(context, found),
                    severity="warning" if found.whose is Whose.INSTALLED_CLASS else None,
                )


def _whose(found: ExcludedTerm, target: AskedSelector) -> str:
    return {
        Whose.CLASS: f"class {target.device_class}",
        Whose.INSTALLED_CLASS: f"class {target.device_class}, as its driver installs it,",
        Whose.SELECTOR: "another selector of the list",
        Whose.TERM: "another term",
    }[found.whose]


def _reconciled(context: Context, found: ExcludedTerm) -> str:
    if found.whose is Whose.TERM:
        return "Drop one of the two, or join them with ||."
    if found.whose is Whose.SELECTOR:
        return "Drop one of the two; to take either, write one selector with both, joined with ||."
    others = classes_for(context, found.term)
    if not others:
        where = "cluster" if context.snapshot is not None else "manifest"
        return f"Drop this term: no class of the {where} is for such devices."
    return f"Ask for class {either(others[:3])}, or drop this term."


def _typed(target: AskedSelector, comparison: ConstantComparison, attribute: Attribute, value: Constant) -> Fix | None:
    """The constant converted to the attribute's type."""
    if len(comparison.constants) > 1 or comparison.operator not in ("==", "!="):
        if attribute.type == "version" and value.type == "string":
            return Fix(f'Use compareTo(semver("{semver_text(value.text)}")), isGreaterThan or isLessThan')
        return None
    if attribute.type == "version" and value.type == "string":
        new = f'semver("{semver_text(value.text)}")'
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
    return Fix.guess(f"Compare with {changes[0].text}", *changes) if changes else None


def _place(target: AskedSelector, comparison: ConstantComparison, text: str) -> tuple[int, int]:
    """The comparison, or the one value of a list that is meant."""
    there = constant_replaced(target, comparison, text, text) if len(comparison.constants) > 1 else ()
    return (there[0].start, there[0].end) if there else (comparison.node.start, comparison.node.end)


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
            return (Splice(target.path, at, at + len(written), put),)
    return ()


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
    scope="set",
    fixable="unsafe",
    fixed_where="one other text can be meant",
):
    """A part of a selector fails on every device."""

    def check(self, context: Context) -> Iterator[LintFinding]:
        for target in asked(context):
            for constant in failing_constants(target.program):
                message = f"{constant.reason}: evaluating this fails, whatever the device has"
                yield self.part(target.path, constant, message, fix=_fix(target, constant))
            for call in mistyped_calls(context, target.program):
                message = f"{call.reason}: this is an error on every device that has the attribute"
                yield self.part(target.path, call, message, fix=_written_so(target, call))


def _fix(target: AskedSelector, constant: FailingConstant) -> Fix | str:
    if len(constant.instead) != 1:
        return constant.advice
    return Fix.guess(constant.advice, Splice(target.path, constant.start, constant.end, constant.instead[0]))


def _written_so(target: AskedSelector, call: MistypedCall) -> Fix | str:
    if not call.instead:
        return call.advice
    return Fix.guess(call.advice, Splice(target.path, call.start, call.end, call.instead), expression=call.instead)


RULES = (NeverTrue, QuantityEquality, Contradiction, ConstantFails)
