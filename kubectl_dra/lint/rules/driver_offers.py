"""What devices of a known driver offer: attributes by class, MIG profiles, taints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kubectl_dra.cel import ast
from kubectl_dra.cel.columns import Column
from kubectl_dra.data.drivers import Driver, catalogue
from kubectl_dra.lint.analysis.cel_fixes import split_domain
from kubectl_dra.lint.analysis.cel_terms import comparisons
from kubectl_dra.lint.analysis.claim_requests import alternatives, items
from kubectl_dra.lint.analysis.selector_targets import SELECTOR_KINDS, AskedSelector, asked, columns, selectors
from kubectl_dra.lint.context import Context
from kubectl_dra.lint.finding import Fix, LintFinding
from kubectl_dra.lint.rule import Rule
from kubectl_dra.lint.rules.published_names import span_of
from kubectl_dra.manifests.changes import Splice
from kubectl_dra.names import nearest

_VALUE_FIELDS: Final = ("bool", "int", "string", "version", "StringValue", "IntValue", "BoolValue", "VersionValue")


class NotOnClass(Rule):
    """An attribute that the class's devices do not have."""

    code = "DRA606"
    name = "attribute-not-on-class"
    severity = "error"
    kinds = ("ResourceClaim", "ResourceClaimTemplate")
    scope = "set"

    def check(self, context: Context) -> Iterator[LintFinding]:
        for one in asked(context):
            if one.of_class or not one.sure:
                continue
            for column in columns(one.program):
                driver = catalogue().driver(column.domain or "")
                kinds = [kind for kind in one.kinds if driver is not None and kind.driver == driver.name]
                if driver is None or not kinds or not driver.knows(column) or not driver.complete:
                    continue
                if any(kind.publishes(column) for kind in kinds):
                    continue
                yield self._told(one, driver, column)

    def _told(self, one: AskedSelector, driver: Driver, column: Column) -> LintFinding:
        having = {kind.name for kind in driver.kinds if kind.publishes(column)}
        classes = [name for name, each in driver.classes.items() if having & set(each.kinds)]
        return self.finding(
            one.selector.path,
            f"devices of class {one.device_class} have no {column.kind} {column.id}"
            + (f": only those of class {' and '.join(classes)} do" if classes else ""),
            fix=f"Ask for class {classes[0]}." if classes else None,
            cel=span_of(one.program, column),
        )


class MigProfile(Rule):
    """A MIG profile that does not exist."""

    code = "DRA605"
    name = "mig-profile"
    severity = "error"
    kinds = SELECTOR_KINDS

    def check(self, context: Context) -> Iterator[LintFinding]:
        for one in asked(context):
            for comparison in comparisons(one.program):
                driver = catalogue().driver(comparison.column.domain or "")
                if driver is None or driver.mig_pattern is None or comparison.operator not in ("==", "in"):
                    continue
                attribute = driver.attributes.get(comparison.column.id or "")
                if attribute is None or attribute.names != "mig" or comparison.column.kind != "attribute":
                    continue
                for value in comparison.constants:
                    if value.type != "string":
                        continue
                    problem = profile_problem(driver, value.text)
                    if problem is not None:
                        message, advice, severe = problem
                        yield self.finding(
                            one.selector.path,
                            message,
                            fix=advice,
                            severity="error" if severe else "warning",
                            cel=(comparison.node.start, comparison.node.end),
                        )


def profile_problem(driver: Driver, text: str) -> tuple[str, str | None, bool] | None:
    """What is wrong with a MIG profile, how to write it, and whether that is certain; None for a known one."""
    assert driver.mig_pattern is not None
    if driver.mig_pattern.fullmatch(text):
        # Compute instances and media extensions belong to a profile that is in the list.
        base = text.rpartition("c.")[2].partition("+")[0].removesuffix("-me")
        if base in driver.mig_profiles:
            return None
        near = nearest(base, driver.mig_profiles, 3)
        return (
            f'no GPU known here (as of {driver.as_of}) has a MIG profile "{text}"',
            f"Did you mean {' or '.join(near)}?" if near else None,
            False,
        )
    cleaned = text.lower().removeprefix("mig-").replace(".me", "+me").replace(".gfx", "+gfx").replace(" ", "")
    cleaned = cleaned if cleaned.endswith(("gb", "me", "all", "gfx")) else f"{cleaned}gb"
    whole = driver.mig_pattern.fullmatch(cleaned)
    likely = [cleaned] if whole else nearest(cleaned, driver.mig_profiles, 2)
    return (
        f'"{text}" is not a MIG profile; write one like 1g.10gb, 3g.40gb or 1g.10gb+me',
        f"Did you mean {' or '.join(likely)}?" if likely else None,
        True,
    )


class DomainAndName(Rule):
    """Domain and name of an attribute in one key."""

    code = "DRA218"
    name = "domain-and-name-in-one-key"
    severity = "error"
    kinds = SELECTOR_KINDS
    fixable = "unsafe"

    def check(self, context: Context) -> Iterator[LintFinding]:
        from kubectl_dra.cel.environment import Environment
        from kubectl_dra.cel.parser import parse
        from kubectl_dra.cel.token_reader import ParseError

        for selector in selectors(context):
            if "/" not in selector.expression or (selector.program is None and context.item.v1 is not None):
                continue
            try:
                root = parse(selector.expression, Environment.for_release().macros()).expression
            except (ParseError, RecursionError):
                continue
            above = {child.id: node for node in ast.walk(root) for child in ast.children(node)}
            for node in ast.walk(root):
                found = split_domain(node, selector.expression)
                if found is None:
                    continue
                advice, start, end, put = found
                parent = above.get(node.id)
                if isinstance(parent, ast.Select) and parent.field in _VALUE_FIELDS:
                    end = parent.end
                yield self.finding(
                    selector.path,
                    "an attribute is read by its domain and then its name, not by both in one key",
                    fix=Fix(advice, (Splice(selector.path, start, end, put),), "unsafe"),
                    cel=(start, end),
                )


class UnknownTaint(Rule):
    """A toleration of a taint that the driver never sets."""

    code = "DRA607"
    name = "unknown-taint"
    severity = "info"
    kinds = ("ResourceClaim", "ResourceClaimTemplate")

    def check(self, context: Context) -> Iterator[LintFinding]:
        for one in alternatives(context):
            for index, toleration in enumerate(items(one.content, "tolerations")):
                key = str(toleration.get("key") or "")
                driver = catalogue().driver(key.partition("/")[0])
                if driver is None or not driver.taints or key in driver.taints:
                    continue
                yield self.finding(
                    (*one.path, "tolerations", index, "key"),
                    f"{driver.name} sets no taint {key}; it sets {', '.join(driver.taints)}",
                )


RULES = (NotOnClass, MigProfile, DomainAndName, UnknownTaint)
