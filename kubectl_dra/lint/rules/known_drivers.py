"""What a known driver cannot read or does not offer: opaque configuration, MIG profiles, domains, taints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from kubectl_dra.api.schema import FieldPath
from kubectl_dra.cel.columns import Column
from kubectl_dra.data.driver_releases import DriverGate
from kubectl_dra.data.drivers import ConfigKind, Driver, catalogue
from kubectl_dra.drivers.needed_gates import gate_on
from kubectl_dra.lint.analysis.capacity_requests import unknown_capacities
from kubectl_dra.lint.analysis.cel_terms import comparisons
from kubectl_dra.lint.analysis.claim_requests import alternatives
from kubectl_dra.lint.analysis.corrections import parsed
from kubectl_dra.lint.analysis.domain_keys import meant_keys
from kubectl_dra.lint.analysis.published_devices import known_driver
from kubectl_dra.lint.analysis.selector_targets import (
    SELECTOR_KINDS,
    AskedSelector,
    asked,
    class_of,
    columns,
    selectors,
)
from kubectl_dra.lint.context import Context, items
from kubectl_dra.lint.finding import Fix, LintFinding
from kubectl_dra.lint.rule import Rule
from kubectl_dra.lint.rules.attribute_names import span_of
from kubectl_dra.lint.rules.selector_comparisons import constant_replaced
from kubectl_dra.manifests.changes import Rename, Set, Splice, fields_at, items_at, value_at
from kubectl_dra.text import nearest


class UnknownConfig(Rule, code="DRA603", name="unknown-config", severity="error", kinds=SELECTOR_KINDS, scope="set"):
    """Parameters that the driver cannot read."""

    def check(self, context: Context) -> Iterator[LintFinding]:
        yield from self._found(opaque_configs(context))
        for path, name, opaque in configs_of_classes(context):
            yield from _of_class(path, name, self._found([(path, opaque)]))

    def _found(self, configs: Iterable[tuple[FieldPath, Mapping[str, Any]]]) -> Iterator[LintFinding]:
        for path, opaque in configs:
            name, parameters = opaque.get("driver"), opaque.get("parameters")
            if not isinstance(name, str):
                continue
            driver = catalogue().driver(name)
            if driver is None:
                own = catalogue().of_class(name)
                if own is not None:
                    yield self.finding(
                        (*path, "driver"),
                        f"{name} is a class; the driver is {own.name}, and configuration for another is ignored",
                        fix=f"Write {own.name}.",
                    )
                continue
            if driver.configs is None or not isinstance(parameters, dict):
                continue
            finding = self._kind(driver, (*path, "parameters"), parameters)
            if finding is not None:
                yield finding

    def _kind(self, driver: Driver, path: FieldPath, parameters: Mapping[str, Any]) -> LintFinding | None:
        kind, version = parameters.get("kind"), parameters.get("apiVersion")
        known = {config.kind: config for config in driver.configs or ()}
        choices = ", ".join(f"{config.kind} ({config.api_version})" for config in known.values())
        if not known:
            return self.finding(path, f"{driver.name} knows no configuration", fix="Leave the entry out.")
        if "" in known:
            wanted = known[""].api_version
            if wanted and version != wanted:
                text = f"parameters for {driver.name} have apiVersion {wanted}, not {version or 'none'}"
                return self.finding(path, text, fix=f"Write apiVersion: {wanted}.")
            return None
        if not isinstance(kind, str) or not kind:
            hint = next((driver.config_hints[key] for key in parameters if key in driver.config_hints), None)
            return self.finding(
                path,
                f"parameters for {driver.name} have no kind, so the driver cannot read them; it knows {choices}",
                fix=_sentence(hint) or "Add apiVersion and kind.",
            )
        config = known.get(kind)
        if config is None:
            near = nearest(kind, known, 1)
            hint = driver.config_hints.get(kind) or (f"did you mean {near[0]}?" if near else None)
            return self.finding(
                (*path, "kind"), f"{driver.name} knows no configuration {kind}; it knows {choices}", fix=_sentence(hint)
            )
        if version != config.api_version:
            return self.finding(
                (*path, "apiVersion"),
                f"{kind} is in {config.api_version}, not in {version or 'an empty apiVersion'}",
                fix=f"Write {config.api_version}.",
            )
        return None


class UnknownConfigField(
    Rule,
    code="DRA604",
    name="unknown-config-field",
    severity="error",
    kinds=SELECTOR_KINDS,
    fixable="unsafe",
    fixed_where="one is spelled almost so",
    scope="set",
):
    """A field or value of parameters that the driver does not know."""

    def check(self, context: Context) -> Iterator[LintFinding]:
        yield from self._found(opaque_configs(context))
        for path, name, opaque in configs_of_classes(context):
            yield from _of_class(path, name, self._found([(path, opaque)]))

    def _found(self, configs: Iterable[tuple[FieldPath, Mapping[str, Any]]]) -> Iterator[LintFinding]:
        for path, opaque in configs:
            driver, parameters = catalogue().driver(str(opaque.get("driver"))), opaque.get("parameters")
            if driver is None or not isinstance(parameters, dict):
                continue
            for config in driver.configs or ():
                kind, version = parameters.get("kind") or "", parameters.get("apiVersion") or ""
                if not config.kind or (config.kind == kind and config.api_version == version):
                    yield from self._fields(config, (*path, "parameters"), parameters)

    def _fields(self, config: ConfigKind, path: FieldPath, parameters: Mapping[str, Any]) -> Iterator[LintFinding]:
        body = {key: value for key, value in parameters.items() if key not in ("apiVersion", "kind", "metadata")}
        yield from self._below(config.kind or "the configuration", config.fields, path, body)

    def _below(self, kind: str, known: Any, path: FieldPath, value: Any) -> Iterator[LintFinding]:
        if isinstance(known, dict):
            if value is None:
                return
            if "[]" in known:
                if not isinstance(value, list):
                    yield self.finding(path, f"{path[-1]} of {kind} must be a list")
                for index, below in enumerate(items_at(value)):
                    yield from self._below(kind, known["[]"], (*path, index), below)
                return
            if not isinstance(value, dict):
                yield self.finding(path, f"{path[-1]} of {kind} holds fields: {', '.join(known)}")
                return
            for key, below in value.items():
                if key in known:
                    yield from self._below(kind, known[key], (*path, key), below)
                    continue
                near = nearest(str(key), known, 1)
                what = "it has no fields" if not known else f"it has {', '.join(known)}"
                yield self.finding(
                    (*path, key),
                    f"{kind} has no field {key}: {what}",
                    fix=Fix(f"Did you mean {near[0]}?", (Rename((*path, key), near[0]),), "unsafe") if near else None,
                    on_key=True,
                )
            return
        wrong = _wrong(known, value)
        if wrong is not None:
            close = nearest(str(value), known, 1) if isinstance(known, list) else []
            fix = Fix(f"Did you mean {close[0]}?", (Set(path, close[0]),), "unsafe") if close else None
            yield self.finding(path, f"{path[-1]} of {kind} must be {wrong}", fix=fix)


def opaque_configs(context: Context) -> Iterator[tuple[FieldPath, Mapping[str, Any]]]:
    """The opaque configurations of a claim or class with their paths, even if config is wrongly a map."""
    path = context.spec_path if context.item.kind == "DeviceClass" else (*context.spec_path, "devices")
    spec = value_at(context.raw, path)
    if not isinstance(spec, dict):
        return
    config = spec.get("config")
    for index, configuration in enumerate(items(spec, "config")):
        if isinstance(configuration.get("opaque"), dict):
            yield (*path, "config", index, "opaque"), configuration["opaque"]
    if isinstance(config, dict) and isinstance(config.get("opaque"), dict):
        yield (*path, "config", "opaque"), config["opaque"]


def configs_of_classes(context: Context) -> Iterator[tuple[FieldPath, str, Mapping[str, Any]]]:
    """The opaque configurations of classes that only the cluster has: where one is asked for, its name, what it has.

    Such a class is in no file in which that would be found. Of configurations of one kind the claim's own applies.
    """
    known = context.snapshot.classes if context.snapshot is not None else {}
    if not known or context.item.kind == "DeviceClass":
        return
    own = [opaque for _, opaque in opaque_configs(context)]
    for alternative in alternatives(context):
        name = str(alternative.content.get("deviceClassName") or "")
        for config in known[name].config if name in known and not context.given.classes(name) else ():
            opaque = config.get("opaque") or {}
            if not any(_alike(opaque, mine) for mine in own):
                yield (*alternative.path, "deviceClassName"), name, opaque


def _of_class(path: FieldPath, name: str, found: Iterable[LintFinding]) -> Iterator[LintFinding]:
    """The findings in a class of the cluster, told where it is asked for."""
    for finding in found:
        message = f"DeviceClass {name} of the cluster: {finding.message}"
        advice = "Correct the class, or ask for another one."
        yield replace(finding, path=path, message=message, fix=Fix(advice), on_key=False)


def _wrong(known: Any, value: Any) -> str | None:
    if value is None or known == "any":
        return None
    if isinstance(known, list):
        return None if value in known else f"one of {', '.join(known)}"
    if known == "int":
        return None if isinstance(value, int) and not isinstance(value, bool) else "a whole number"
    if known == "bool":
        return None if isinstance(value, bool) else "true or false"
    if known == "quantity":
        from kubectl_dra.api.quantity import Quantity, QuantityError

        try:
            Quantity.from_json(value)
        except QuantityError:
            return "a quantity"
        return None
    return None if isinstance(value, str) else "text"


def _sentence(text: str | None) -> str | None:
    return None if text is None else f"{text[0].upper()}{text[1:].rstrip('.?')}{'?' if text.endswith('?') else '.'}"


# What devices of a known driver offer: attributes by class, MIG profiles, taints.


class DriverGateOff(Rule, code="DRA608", name="driver-gate-off", severity="warning", kinds=SELECTOR_KINDS, scope="set"):
    """A configuration that needs a feature gate of the driver that is off by default."""

    def check(self, context: Context) -> Iterator[LintFinding]:
        for path, opaque in opaque_configs(context):
            for driver, gate, needing in _gates_off(context, opaque):
                yield self._told((*path, "parameters", *needing.split(".")), driver, gate, "does this")
        for path, name, opaque in configs_of_classes(context):
            for driver, gate, _ in _gates_off(context, opaque):
                yield self._told(path, driver, gate, f"does what DeviceClass {name} of the cluster configures")

    def _told(self, path: FieldPath, driver: Driver, gate: DriverGate, does: str) -> LintFinding:
        return self.finding(
            path,
            f"{driver.title} {does} only with its feature gate {gate.name}, which is off by default",
            fix=f"Install the driver with the Helm value featureGates.{gate.name}=true.",
        )


def _gates_off(context: Context, opaque: Mapping[str, Any]) -> Iterator[tuple[Driver, DriverGate, str]]:
    """The gates that a configuration needs and that are off by default, with what needs them; none that the driver's
    pods of the cluster have on.
    """
    driver, parameters = catalogue().driver(str(opaque.get("driver"))), opaque.get("parameters")
    for gate, needing in driver.gates_needed(parameters) if driver is not None else ():
        assert driver is not None
        if not gate.on and not (context.snapshot is not None and gate_on(context.snapshot, driver.name, gate)):
            yield driver, gate, needing


def _alike(opaque: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two configurations are of one kind for one driver."""
    same = (opaque.get("driver"), fields_at(opaque, "parameters").get("kind"))
    return same == (other.get("driver"), fields_at(other, "parameters").get("kind"))


class NotOnClass(
    Rule,
    code="DRA606",
    name="attribute-not-on-class",
    severity="error",
    kinds=("ResourceClaim", "ResourceClaimTemplate"),
    scope="set",
    fixable="unsafe",
    fixed_where="the name of a requested capacity differs by the driver as its domain only",
):
    """An attribute or capacity that the class's devices do not have."""

    def check(self, context: Context) -> Iterator[LintFinding]:
        for unknown in unknown_capacities(context):
            near = [unknown.meant] if unknown.meant else nearest(unknown.name, unknown.names, 1)
            plain = "; names are compared as they are written" if unknown.meant else ""
            changes = (Rename(unknown.path, near[0]),) if near else ()
            yield self.finding(
                unknown.path,
                f"devices of class {unknown.device_class} have no capacity {unknown.name}{plain}",
                fix=Fix(f"Write {near[0]}", changes, "unsafe")
                if unknown.meant
                else Fix(f"Did you mean {near[0]}?" if near else f"They have {', '.join(unknown.names)}.", changes),
                on_key=True,
            )
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

    def _told(self, target: AskedSelector, driver: Driver, column: Column) -> LintFinding:
        having = {kind.name for kind in driver.kinds if kind.publishes(column)}
        classes = [name for name, installed in driver.classes.items() if having & set(installed.kinds)]
        return self.finding(
            target.selector.path,
            f"devices of class {target.device_class} have no {column.kind} {column.id}"
            + (f": only those of class {' and '.join(classes)} do" if classes else ""),
            fix=f"Ask for class {classes[0]}." if classes else None,
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
                driver = known_driver(context, comparison.column.domain)
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
                        message, likely, severe = problem
                        advice = f"Did you mean {' or '.join(likely)}?" if likely else None
                        likely_one = likely[0] if len(likely) == 1 else ""
                        there = constant_replaced(target, comparison, value.text, likely_one) if likely_one else ()
                        yield self.finding(
                            target.selector.path,
                            message,
                            fix=Fix(advice, there) if advice else None,
                            severity="error" if severe else "warning",
                            cel=(comparison.node.start, comparison.node.end),
                        )


def profile_problem(driver: Driver, text: str) -> tuple[str, Sequence[str], bool] | None:
    """What is wrong with a MIG profile, those it may mean, and whether that is certain; None for a known one."""
    assert driver.mig_pattern is not None
    if text in driver.mig_profiles:
        return None
    if driver.mig_pattern.fullmatch(text):
        # Compute instances and media extensions belong to a profile that is in the list.
        base = text.rpartition("c.")[2].partition("+")[0].removesuffix("-me")
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
                change = None if key.edit is None else Splice(selector.path, *key.edit)
                yield self.finding(
                    selector.path,
                    key.told,
                    fix=Fix(key.advice, expression=key.expression)
                    if change is None
                    else Fix(key.advice, (change,), "unsafe", expression=key.expression),
                    cel=(key.start, key.end),
                )


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
    UnknownConfig,
    UnknownConfigField,
    NotOnClass,
    MigProfile,
    DomainAndName,
    UnknownTaint,
    DriverGateOff,
)
