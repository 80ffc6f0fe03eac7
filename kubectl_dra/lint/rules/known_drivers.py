"""What devices of a known driver offer: attributes by class, MIG profiles, domains, taints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kubectl_dra.cel.columns import Column
from kubectl_dra.data.drivers import Driver, whole_partition
from kubectl_dra.lint.analysis.cel_terms import comparisons
from kubectl_dra.lint.analysis.claim_requests import RequestAlternative, alternatives
from kubectl_dra.lint.analysis.corrections import parsed
from kubectl_dra.lint.analysis.domain_keys import meant_keys
from kubectl_dra.lint.analysis.published_devices import known_attribute, known_driver
from kubectl_dra.lint.analysis.selector_targets import (
    SELECTOR_KINDS,
    AskedSelector,
    asked,
    class_of,
    columns,
    harmless,
    kinds_of_class,
    selectors,
)
from kubectl_dra.lint.context import Context, items
from kubectl_dra.lint.finding import Fix, LintFinding
from kubectl_dra.lint.rule import Rule
from kubectl_dra.lint.rules.attribute_names import span_of
from kubectl_dra.lint.rules.selector_comparisons import constant_replaced
from kubectl_dra.manifests.changes import Rename, Splice, fields_at
from kubectl_dra.text import nearest


class NotOnClass(
    Rule,
    code="DRA606",
    name="attribute-not-on-class",
    severity="error",
    kinds=("ResourceClaim", "ResourceClaimTemplate"),
    scope="set",
    fixable="unsafe",
    otherwise={
        "warning": "the selector matches all the same: it reads what is absent behind a guard, or needs no answer"
    },
    fixed_where="the name of a requested capacity differs by the driver as its domain only",
):
    """An attribute or capacity that the class's devices do not have."""

    def check(self, context: Context) -> Iterator[LintFinding]:
        for alternative in alternatives(context):
            yield from self._amounts(context, alternative)
        for target in asked(context):
            if target.of_class or not target.sure:
                continue
            for column in columns(target.program):
                driver = known_driver(context, column.domain)
                kinds = [kind for kind in target.kinds if driver is not None and kind.driver == driver.name]
                if driver is None or not kinds or not driver.knows(column) or not driver.complete:
                    continue
                if any(kind.publishes(column) for kind in kinds):
                    continue
                yield self._told(target, driver, column)

    def _amounts(self, context: Context, alternative: RequestAlternative) -> Iterator[LintFinding]:
        """The amounts requested of devices of known drivers, if every capacity of these is known."""
        requested = fields_at(alternative.content, "capacity", "requests")
        kinds = kinds_of_class(context, alternative.device_class) if requested else None
        drivers = {kind.driver: known_driver(context, kind.driver) for kind in kinds or ()}
        known = [driver for driver in drivers.values() if driver is not None and driver.complete and driver.capacities]
        if not kinds or len(known) < len(drivers):
            return
        names = dict.fromkeys(
            driver.written(short)
            for driver in known
            for short in driver.capacities
            for kind in kinds
            if kind.driver == driver.name and kind.publishes(Column("capacity", driver.name, short))
        )
        for key in (key for key in map(str, requested) if key not in names):
            # Names are compared as they are written, whereas CEL and constraints add the driver as domain.
            others = (name for domain in drivers for name in (f"{domain}/{key}", key.removeprefix(f"{domain}/")))
            meant = next((name for name in others if name in names), "")
            path = (*alternative.path, "capacity", "requests", key)
            near = [meant] if meant else nearest(key, names, 1)
            changes = (Rename(path, near[0]),) if near else ()
            yield self.finding(
                path,
                f"devices of class {alternative.device_class} have no capacity {key}"
                + ("; names are compared as they are written" if meant else ""),
                fix=Fix.guess(f"Write {meant}", *changes)
                if meant
                else Fix(f"Did you mean {near[0]}?" if near else f"They have {', '.join(names)}.", changes),
                on_key=True,
            )

    def _told(self, target: AskedSelector, driver: Driver, column: Column) -> LintFinding:
        having = {kind.name for kind in driver.kinds if kind.publishes(column)}
        classes = [name for name, installed in driver.classes.items() if having & set(installed.kinds)]
        behind = harmless(target, column)
        return self.finding(
            target.path,
            f"devices of class {target.device_class} have no {column.kind} {column.id}"
            + (f": only those of class {' and '.join(classes)} do" if classes else "")
            + behind,
            severity="warning" if behind else None,
            fix=f"{'Leave it out, or ask' if behind else 'Ask'} for class {classes[0]}." if classes else None,
            cel=span_of(target.program, column),
        )


class MigProfile(
    Rule,
    code="DRA605",
    name="mig-profile",
    severity="error",
    kinds=SELECTOR_KINDS,
    scope="set",
    otherwise={"warning": "it is written like a profile but is not a known one"},
):
    """A MIG profile that does not exist."""

    def check(self, context: Context) -> Iterator[LintFinding]:
        for target in asked(context):
            for comparison in comparisons(target.program):
                known = known_attribute(context, comparison.column)
                if known is None or known[1].names != "mig" or comparison.operator not in ("==", "in"):
                    continue
                driver = known[0]
                for value in comparison.constants:
                    if value.type != "string":
                        continue
                    problem = profile_problem(driver, value.text)
                    if problem is not None:
                        message, likely, severe = problem
                        advice = f"Did you mean {' or '.join(likely)}?" if likely else None
                        likely_one = likely[0] if len(likely) == 1 else ""
                        there = constant_replaced(target, comparison, value.text, likely_one) if likely_one else ()
                        yield self.part(
                            target.path,
                            comparison.node,
                            message,
                            fix=Fix(advice, there) if advice else None,
                            severity="error" if severe else "warning",
                        )


def profile_problem(driver: Driver, text: str) -> tuple[str, Sequence[str], bool] | None:
    """What is wrong with a MIG profile, those it may mean, and whether that is certain; None for a known one."""
    if driver.mig_pattern is None or text in driver.mig_profiles:
        return None
    if driver.mig_pattern.fullmatch(text):
        base = whole_partition(text)
        if base in driver.mig_profiles:
            return None
        near = nearest(base, driver.mig_profiles, 3)
        return (
            f'no GPU known here (as of {driver.as_of}) has a MIG profile "{text}"',
            near,
            False,
        )
    cleaned = text.lower().removeprefix("mig-").replace(".me", "+me").replace(".gfx", "+gfx").replace(" ", "")
    cleaned = cleaned if cleaned.endswith(("gb", "me", "all", "gfx")) else f"{cleaned}gb"
    whole = driver.mig_pattern.fullmatch(cleaned)
    likely = [cleaned] if whole else nearest(cleaned, driver.mig_profiles, 2)
    return (
        f'"{text}" is not a MIG profile; write one like 1g.10gb, 3g.40gb or 1g.10gb+me',
        likely,
        True,
    )


class DomainAndName(
    Rule,
    code="DRA218",
    name="domain-and-name-in-one-key",
    severity="error",
    kinds=SELECTOR_KINDS,
    scope="set",
    fixable="unsafe",
    fixed_where="one attribute can be meant",
):
    """Domain and name of an attribute in one key."""

    def check(self, context: Context) -> Iterator[LintFinding]:
        for selector in selectors(context):
            if "/" not in selector.expression or (selector.program is None and context.item.v1 is not None):
                continue
            root = parsed(selector.expression)
            for key in meant_keys(root, selector.expression, context, class_of(context, selector.path)) if root else ():
                changes = () if key.edit is None else (Splice(selector.path, *key.edit),)
                fix = Fix.guess(key.advice, *changes, expression=key.expression)
                yield self.part(selector.path, key, key.told, fix=fix)


class UnknownTaint(
    Rule,
    code="DRA607",
    name="unknown-taint",
    severity="info",
    kinds=("ResourceClaim", "ResourceClaimTemplate"),
    scope="set",
):
    """A toleration of a taint that the driver never sets."""

    def check(self, context: Context) -> Iterator[LintFinding]:
        for alternative in alternatives(context):
            for index, toleration in enumerate(items(alternative.content, "tolerations")):
                key = str(toleration.get("key") or "")
                driver = known_driver(context, key.partition("/")[0])
                if driver is None or not driver.taints or key in driver.taints:
                    continue
                yield self.finding(
                    (*alternative.path, "tolerations", index, "key"),
                    f"{driver.name} sets no taint {key}; it sets {', '.join(driver.taints)}",
                )


RULES = (
    NotOnClass,
    MigProfile,
    DomainAndName,
    UnknownTaint,
)
