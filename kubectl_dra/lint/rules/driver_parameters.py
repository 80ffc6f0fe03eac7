"""Opaque parameters of known drivers: what they cannot read, refuse, or need a gate of their own for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from kubectl_dra.api.schema import FieldPath
from kubectl_dra.data.driver_releases import DriverGate
from kubectl_dra.data.drivers import ConfigKind, Driver, Kind, catalogue
from kubectl_dra.drivers.refused_claims import gate_on
from kubectl_dra.lint.analysis.claim_requests import alternatives
from kubectl_dra.lint.analysis.selector_targets import SELECTOR_KINDS, kinds_of_class
from kubectl_dra.lint.context import Context, items
from kubectl_dra.lint.finding import Fix, LintFinding
from kubectl_dra.lint.rule import Rule
from kubectl_dra.manifests.changes import Rename, fields_at, items_at, value_at
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
    otherwise={"warning": "the driver ignores it"},
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
                    yield from self._beside(config, (*path, "parameters"), parameters)

    def _beside(self, config: ConfigKind, path: FieldPath, parameters: Mapping[str, Any]) -> Iterator[LintFinding]:
        """The fields that go only with a value that another one does not have."""
        for field, others in config.beside.items():
            keys = tuple(field.split("."))
            if value_at(parameters, keys) is None:
                continue
            for other, wanted in others.items():
                given = value_at(parameters, tuple(other.split(".")))
                if isinstance(given, str) and given != wanted:
                    name, does = other.rpartition(".")[2], "refuses" if config.strict else "ignores"
                    yield self.finding(
                        (*path, *keys),
                        f"the driver {does} {keys[-1]} of {config.kind} beside {name} {given}: it goes with {wanted}",
                        fix=f"Leave it out, or write {name}: {wanted}.",
                        severity=None if config.strict else "warning",
                        on_key=True,
                    )

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
                    fix=Fix.guess(f"Did you mean {near[0]}?", Rename((*path, key), near[0])) if near else None,
                    on_key=True,
                )
            return
        wrong = _wrong(known, value)
        if wrong is not None:
            close = nearest(str(value), known, 1) if isinstance(known, list) else ()
            yield self.finding(path, f"{path[-1]} of {kind} must be {wrong}", fix=Fix.named(path, close))


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
    for each in alternatives(context):
        name = each.device_class
        for config in known[name].config if name in known and not context.given.classes(name) else ():
            opaque = config.get("opaque") or {}
            if not any(_alike(opaque, mine) for mine in own):
                yield each.class_path, name, opaque


def _of_class(path: FieldPath, name: str, found: Iterable[LintFinding]) -> Iterator[LintFinding]:
    """The findings in a class of the cluster, told where it is asked for."""
    for each in found:
        message = f"DeviceClass {name} of the cluster: {each.message}"
        advice = "Correct the class, or ask for another one."
        yield replace(each, path=path, message=message, fix=Fix(advice), on_key=False)


def _wrong(known: Any, value: Any) -> str | None:
    if value is None or known == "any":
        return None
    if isinstance(known, list):
        return None if value in known else f"one of {', '.join(known)}"
    if known == "int":
        return None if isinstance(value, int) and not isinstance(value, bool) else "a whole number"
    if known == "percent":
        return None if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 100 else "from 0 to 100"
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


class ConfigOfOthers(
    Rule, code="DRA610", name="config-of-other-devices", severity="error", kinds=SELECTOR_KINDS, scope="set"
):
    """Parameters for another kind of device."""

    def check(self, context: Context) -> Iterator[LintFinding]:
        for path, opaque in opaque_configs(context):
            driver = catalogue().driver(str(opaque.get("driver")))
            config = _config(driver, opaque) if driver is not None else None
            if driver is None or config is None or not config.devices:
                continue
            for told, kinds in _targets(context, path):
                own = [kind.name for kind in kinds if kind.driver == driver.name]
                if own and not set(own) & set(config.devices):
                    right = [each.kind for each in driver.configs or () if set(own) & set(each.devices)]
                    yield self.finding(
                        (*path, "parameters", "kind"),
                        f"{config.kind} is for devices of type {_or(config.devices)}, and {told} {_or(own)}: "
                        f"{driver.title} refuses it",
                        fix=f"Write {_or(right)}, or leave the entry out." if right else "Leave the entry out.",
                    )
                    break


def _config(driver: Driver, opaque: Mapping[str, Any]) -> ConfigKind | None:
    kind = value_at(opaque, ("parameters", "kind"))
    return next((config for config in driver.configs or () if config.kind and config.kind == kind), None)


def _targets(context: Context, path: FieldPath) -> Iterator[tuple[str, tuple[Kind, ...]]]:
    """The devices that a configuration is for, each with what asks for them.

    One for all requests is none: of those the driver takes what suits it.
    """
    if context.item.kind == "DeviceClass":
        yield f"class {context.item.name} admits", kinds_of_class(context, context.item.name) or ()
        return
    named = [str(name) for name in items_at(value_at(context.raw, path[:-1]), "requests")]
    for each in alternatives(context):
        if named and each.is_named(named):
            yield f"request {each.name} asks for", kinds_of_class(context, each.device_class) or ()


def _or(names: Iterable[str]) -> str:
    return " or ".join(dict.fromkeys(names))


RULES = (UnknownConfig, UnknownConfigField, DriverGateOff, ConfigOfOthers)
