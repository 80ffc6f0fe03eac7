"""Names of attributes, capacities and domains that no known driver publishes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from kubectl_dra.api.schema import FieldPath
from kubectl_dra.cel import ast
from kubectl_dra.cel.columns import Column
from kubectl_dra.data.drivers import STANDARD, Attribute, Driver, catalogue
from kubectl_dra.lint.analysis.cel_terms import column_of
from kubectl_dra.lint.analysis.constraint_attributes import STANDARD_NAMES, named_attributes
from kubectl_dra.lint.analysis.corrections import spliced
from kubectl_dra.lint.analysis.domain_keys import MisreadDomain, misread_domains
from kubectl_dra.lint.analysis.driver_values import memory_fix
from kubectl_dra.lint.analysis.possible_results import FAILS, FALSE
from kubectl_dra.lint.analysis.published_devices import known_driver, published_domains, shared_domains
from kubectl_dra.lint.analysis.selector_targets import (
    SELECTOR_KINDS,
    AskedSelector,
    asked,
    columns,
    drivers_of,
    harmless,
    matches_where,
    selectors,
    without_harm,
)
from kubectl_dra.lint.context import Context, once
from kubectl_dra.lint.finding import Fix, LintFinding, Severity
from kubectl_dra.lint.rule import Rule
from kubectl_dra.manifests.changes import Change, Set, Splice
from kubectl_dra.text import edit_distance, is_slip, nearest

if TYPE_CHECKING:
    from kubectl_dra.cel.program import Program


_NAME: Final = re.compile("[A-Za-z_][A-Za-z0-9_]{0,31}")


class Mention(Struct, frozen=True):
    """A name of an attribute or capacity in a manifest. ``cel`` is None if it is a field's value."""

    path: FieldPath
    column: Column
    cel: tuple[int, int] | None
    device_class: str = ""
    program: Program | None = None


@once
def mentions(context: Context) -> tuple[Mention, ...]:
    """Every attribute and capacity named in the selectors and constraints of an object, each once per place."""
    return tuple(_mentions(context))


def _mentions(context: Context) -> Iterator[Mention]:
    classes = {target.path: target.device_class for target in asked(context)}
    for selector in selectors(context):
        program = selector.program
        if program is None:
            continue
        for column in columns(program):
            yield Mention(selector.path, column, span_of(program, column), classes.get(selector.path, ""), program)
    for path, text in named_attributes(context.raw):
        domain, slash, name = text.partition("/")
        if slash and name:
            yield Mention(path, Column("attribute", domain, name), None)


@lru_cache(1024)
def span_of(program: Program, column: Column) -> tuple[int, int] | None:
    """Where an expression first reads a column."""
    for node in ast.walk(program.ast.expression):
        if column_of(node, {}, tested=True) == column:
            return node.start, node.end
    return None


class UnknownAttribute(
    Rule,
    code="DRA601",
    name="unknown-attribute",
    severity="warning",
    kinds=SELECTOR_KINDS,
    fixable="unsafe",
    scope="set",
    otherwise={"error": "it is known what does this instead, or that nothing does"},
    fixed_where="it is known what to write instead",
):
    """An attribute or capacity that the driver does not publish."""

    def check(self, context: Context) -> Iterator[LintFinding]:
        for mention in mentions(context):
            column = mention.column
            if mention.program is None and not _NAME.fullmatch(column.id or ""):
                # What no attribute can be called is refused by the API server.
                continue
            if column.domain == STANDARD:
                yield from self._standard(mention)
                continue
            driver = known_driver(context, column.domain)
            if driver is None or driver.knows(column):
                continue
            name, what = column.id or "", column.kind
            message = f"{driver.name} has no {what} {name}"
            target = _target(context, mention)
            behind = without_harm(target, column) if target is not None else ""
            surely: Severity = "warning" if behind else "error"
            hint = driver.no_equal.get(name)
            if what == "attribute" and name in driver.removed:
                yield self.finding(mention.path, f"{message}: {driver.removed[name]}{behind}", cel=mention.cel)
            elif hint is not None:
                yield self._told(mention, f"{message}: {hint}{behind}", "Leave it out.", surely)
            elif (instead := _instead(driver, column)) is not None:
                since = f", from release {later.since} of the driver on" if (later := _later(driver, instead)) else ""
                yield self.finding(
                    mention.path,
                    f"{message}; {instead} does this{since}{behind}",
                    fix=_fix(driver, instead, mention),
                    cel=mention.cel,
                    severity=surely if driver.complete else "warning",
                )
            elif not driver.complete and (slip := _misspelled(driver, column)):
                text = f"{message} that is known{behind}"
                yield self._told(mention, text, _meaning(mention, slip), "warning", f"{what} {slip}")
            elif driver.complete:
                names = driver.capacities if what == "capacity" else driver.attributes
                near = nearest(name, names, 1)
                yield self._told(
                    mention,
                    f"{message} (as of {driver.as_of}){behind}",
                    _meaning(mention, near[0]) if near else f"It has {', '.join(names)}." if names else "",
                    "warning",
                    f"{what} {near[0]}" if near else "",
                )

    def _told(self, mention: Mention, message: str, advice: str, severity: Severity, instead: str = "") -> LintFinding:
        fix = Fix.guess(advice, *_renamed(mention, instead)) if instead else Fix(advice)
        if instead and not _one_for_other(mention.column.id or "", instead.partition(" ")[2]):
            # Another word, though like it: for people to decide.
            fix = Fix(advice, fix.changes)
        return self.finding(mention.path, message, fix=fix, cel=mention.cel, severity=severity)

    def _standard(self, mention: Mention) -> Iterator[LintFinding]:
        name = mention.column.id or ""
        if name in STANDARD_NAMES or mention.column.kind == "capacity":
            return
        near = nearest(name, STANDARD_NAMES, 1)
        changes = _renamed(mention, f"attribute {STANDARD}/{near[0]}") if near else ()
        yield self.finding(
            mention.path,
            f"Kubernetes defines no attribute {STANDARD}/{name}, and drivers may not invent any there",
            fix=Fix.guess(f"Did you mean {STANDARD}/{near[0]}?", *changes) if near else None,
            cel=mention.cel,
        )


_DECIDED: Final = "; the rest of the expression decides"


class ClassAsDomain(
    Rule,
    code="DRA216",
    name="class-as-domain",
    severity="error",
    kinds=SELECTOR_KINDS,
    scope="set",
    fixable="unsafe",
    otherwise={"warning": "the name only resembles that of a driver, or the selector matches all the same"},
):
    """A class name where the driver's name belongs."""

    def check(self, context: Context) -> Iterator[LintFinding]:
        done: set[tuple[FieldPath, str]] = set()
        for target in asked(context):
            misread = tuple(self._misread(context, target))
            matches = matches_where(target, {read.node.id: FALSE if read.tested else FAILS for read in misread})
            for read in misread:
                done.add((target.path, read.domain))
                change = Splice(target.path, read.start, read.end, read.expression)
                fix = Fix.guess(f"Write {read.expression}", change, expression=read.expression)
                message = f"{read.told}{_DECIDED if matches else ''}"
                yield self.part(target.path, read, message, fix=fix, severity="warning" if matches else None)
        for mention in mentions(context):
            domain = mention.column.domain or ""
            # Of a domain with a name behind it DRA218 says what is meant.
            joined = mention.program is not None and "/" in domain
            if joined or catalogue().driver(domain) is not None or (mention.path, domain) in done:
                continue
            done.add((mention.path, domain))
            finding = self._of_class(context, mention, domain)
            if finding is not None:
                yield finding

    def _misread(self, context: Context, target: AskedSelector) -> Iterator[MisreadDomain]:
        drivers = drivers_of(context, target.device_class)
        return misread_domains(target.program.ast.expression, target.program.ast.source, drivers)

    def _of_class(self, context: Context, mention: Mention, domain: str) -> LintFinding | None:
        severity: Severity = "error"
        drivers = drivers_of(context, domain)
        if drivers:
            names = " or ".join(driver.name for driver in drivers)
            message = f"{domain} is a class, and the domain of attributes is the driver: {names}"
            right = drivers[0].name if len(drivers) == 1 else ""
        else:
            expected = drivers_of(context, mention.device_class)
            if not expected or domain in shared_domains(expected) or not all(driver.complete for driver in expected):
                near = nearest(domain, catalogue().names, 1)
                if (
                    not near
                    or context.given.classes(domain)
                    or domain in shared_domains(catalogue().drivers.values())
                    or domain in published_domains(context)
                    or not _typo(domain, near[0])
                ):
                    return None
                severity = "warning"
                message, right = f"no driver is called {domain}: did you mean {near[0]}?", near[0]
            else:
                right = expected[0].name if len(expected) == 1 else ""
                names = " or ".join(driver.name for driver in expected)
                message = f"devices of class {mention.device_class} have nothing in the domain {domain}: it is {names}"
        target = _target(context, mention)
        behind = harmless(target, mention.column) if target is not None else ""
        spots = () if mention.program is None else _domain_literals(mention.program, domain)
        changes: tuple[Change, ...] = ()
        has_them = right and _has_all(context, right, mention)
        if mention.program is not None and has_them and spots:
            text = mention.program.ast.source
            changes = (spliced(mention.path, text, [(node.start + 1, node.end - 1, right) for node in spots]),)
        if mention.program is None and has_them:
            changes = (Set(mention.path, f"{right}/{mention.column.id}"),)
        return self.finding(
            mention.path,
            f"{message}{behind}",
            fix=Fix.guess(f"Write {right} as the domain", *changes) if has_them else None,
            severity="warning" if behind else severity,
            cel=(spots[0].start, spots[0].end) if spots else mention.cel,
        )


def _target(context: Context, mention: Mention) -> AskedSelector | None:
    return next((each for each in asked(context) if each.selector.path == mention.path), None)


def _has_all(context: Context, name: str, mention: Mention) -> bool:
    """Whether a driver has what is read in the domain, or it is known what does this instead."""
    driver = known_driver(context, name)
    if driver is None or not driver.complete:
        return True
    read = columns(mention.program) if mention.program is not None else (mention.column,)
    own = [column._replace(domain=name) for column in read if column.domain == mention.column.domain]
    return all(driver.knows(column) or column.id in {*driver.instead, *driver.removed} for column in own)


def _domain_literals(program: Program, domain: str) -> tuple[ast.Expression, ...]:
    """Where an expression looks up a domain."""
    literals = [
        node.arguments[1]
        for node in ast.walk(program.ast.expression)
        if isinstance(node, ast.Call)
        and node.function in ("_[_]", "_[?_]")
        and isinstance(node.arguments[1], ast.Literal)
        and node.arguments[1].value == domain
    ]
    return tuple(sorted(literals, key=lambda node: node.start))


def _meaning(mention: Mention, name: str) -> str:
    """The question whether another name is meant; in a constraint that is the full name."""
    full = name if mention.program is not None or "/" in name else f"{mention.column.domain}/{name}"
    return f"Did you mean {full}?"


def _one_for_other(name: str, other: str) -> bool:
    """Whether two names of attributes differ by a letter or two, by capitals, or by the order of letters."""
    left, right = (text.lower().replace("_", "").replace("-", "") for text in (name, other))
    return left == right or is_slip(left, right) or sorted(left) == sorted(right)


def _misspelled(driver: Driver, column: Column) -> str:
    """The known name of which this one is a slip; empty for any other, which the driver may publish."""
    name = column.id or ""
    names = driver.capacities if column.kind == "capacity" else driver.attributes
    return next((other for other in names if is_slip(name, other) or sorted(name) == sorted(other)), "")


def _instead(driver: Driver, column: Column) -> str | None:
    name = column.id or ""
    if column.kind == "capacity":
        return f"attribute {name}" if name in driver.attributes else driver.instead.get(name)
    return driver.instead.get(name) or (f"capacity {name}" if name in driver.capacities else None)


def _later(driver: Driver, instead: str) -> Attribute | None:
    """The attribute, if only later releases of the driver publish it."""
    attribute = driver.attributes.get(instead.removeprefix("attribute "))
    return attribute if attribute is not None and attribute.since else None


def _fix(driver: Driver, instead: str, mention: Mention) -> Fix:
    kind, _, name = instead.partition(" ")
    if later := _later(driver, instead):
        return Fix(f"Write {later.before}, the nearest that earlier releases publish, or {name} from {later.since} on.")
    if kind == "capacity" and mention.program is not None:
        fix = memory_fix(driver, mention.column, name, mention.path, mention.program)
        if fix is not None:
            return fix
    advice, expression = _advice(driver, instead, mention)
    return Fix.guess(advice, *_renamed(mention, instead), expression=expression)


def _advice(driver: Driver, instead: str, mention: Mention) -> tuple[str, str]:
    """What to write, as a sentence, and the expression in it."""
    kind, _, name = instead.partition(" ")
    if mention.program is None:
        whole = name if "/" in name else f"{driver.name}/{name}"
        told = f"Write {whole}" if kind == "attribute" else "A constraint compares attributes only; use a selector."
        return told, ""
    domain, slash, short = name.rpartition("/")
    expression = f'device.attributes["{domain if slash else driver.name}"].{short}'
    if kind == "capacity":
        expression = f'device.capacity["{driver.name}"].{name}.compareTo(quantity("…")) >= 0'
    return f"Write {expression}", expression


def _renamed(mention: Mention, instead: str) -> tuple[Change, ...]:
    """The change from one attribute to another; none if the comparison would have to change, too."""
    kind, _, name = instead.partition(" ")
    domain, slash, short = name.rpartition("/")
    domain = domain if slash else mention.column.domain or ""
    if kind != mention.column.kind and not (kind == "attribute" and slash):
        return ()
    if mention.program is None:
        return (Set(mention.path, f"{domain}/{short}"),)
    if mention.cel is None:
        return ()
    start, end = mention.cel
    text = mention.program.ast.source[start:end]
    # The name is the last thing that is written; the domain can have it as a part.
    before, written, behind = text.rpartition(mention.column.id or "")
    if not written:
        return ()
    if domain != mention.column.domain:
        before = before.replace(mention.column.domain or "", domain)
    changed = f"{before}{short}{behind}"
    return (Splice(mention.path, start, end, changed),) if changed != text else ()


def _typo(domain: str, driver: str) -> bool:
    return edit_distance(domain, driver, 2) is not None or (
        driver.endswith(f".{domain}") and "." in domain and domain != "example.com"
    )


RULES = (UnknownAttribute, ClassAsDomain)
