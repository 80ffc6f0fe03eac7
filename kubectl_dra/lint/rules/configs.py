"""Opaque configuration that a known driver cannot read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kubectl_dra.data.drivers import ConfigKind, Driver, catalogue
from kubectl_dra.lint.analysis.selector_targets import SELECTOR_KINDS
from kubectl_dra.lint.context import Context
from kubectl_dra.lint.finding import LintFinding
from kubectl_dra.lint.rule import Rule
from kubectl_dra.manifests.changes import Path
from kubectl_dra.names import nearest


class UnknownConfig(Rule):
    """Parameters that the driver cannot read."""

    code = "DRA603"
    name = "unknown-config"
    severity = "error"
    kinds = SELECTOR_KINDS

    def check(self, context: Context) -> Iterator[LintFinding]:
        for path, opaque in opaque_configs(context):
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
            found = self._kind(driver, (*path, "parameters"), parameters)
            if found is not None:
                yield found

    def _kind(self, driver: Driver, path: Path, parameters: Mapping[str, Any]) -> LintFinding | None:
        kind, version = parameters.get("kind"), parameters.get("apiVersion")
        known = {config.kind: config for config in driver.configs or ()}
        choices = ", ".join(f"{config.kind} ({config.api_version})" for config in known.values())
        if not known:
            return self.finding(path, f"{driver.name} knows no configuration", fix="Leave the entry out.")
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
                (*path, "kind"),
                f"{driver.name} knows no configuration {kind}; it knows {choices}",
                fix=_sentence(hint),
            )
        if version != config.api_version:
            return self.finding(
                (*path, "apiVersion"),
                f"{kind} is in {config.api_version}, not in {version or 'an empty apiVersion'}",
                fix=f"Write {config.api_version}.",
            )
        return None


class UnknownConfigField(Rule):
    """A field or value of parameters that the driver does not know."""

    code = "DRA604"
    name = "unknown-config-field"
    severity = "error"
    kinds = SELECTOR_KINDS

    def check(self, context: Context) -> Iterator[LintFinding]:
        for path, opaque in opaque_configs(context):
            driver, parameters = catalogue().driver(str(opaque.get("driver"))), opaque.get("parameters")
            if driver is None or not isinstance(parameters, dict):
                continue
            for config in driver.configs or ():
                if config.kind == parameters.get("kind") and config.api_version == parameters.get("apiVersion"):
                    yield from self._fields(config, (*path, "parameters"), parameters)

    def _fields(self, config: ConfigKind, path: Path, parameters: Mapping[str, Any]) -> Iterator[LintFinding]:
        body = {key: value for key, value in parameters.items() if key not in ("apiVersion", "kind", "metadata")}
        yield from self._below(config.kind, config.fields, path, body)

    def _below(self, kind: str, known: Any, path: Path, value: Any) -> Iterator[LintFinding]:
        if isinstance(known, dict):
            if value is None:
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
                    fix=f"Did you mean {near[0]}?" if near else None,
                    on_key=True,
                )
            return
        wrong = _wrong(known, value)
        if wrong is not None:
            close = nearest(str(value), known, 1) if isinstance(known, list) else []
            yield self.finding(
                path, f"{path[-1]} of {kind} must be {wrong}", fix=f"Did you mean {close[0]}?" if close else None
            )


def opaque_configs(context: Context) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """The opaque configurations of a claim or class with their paths, even if config is wrongly a map."""
    root = context.raw
    spec: Any = root
    for part in context.spec_path:
        spec = spec.get(part) if isinstance(spec, dict) else None
    if not isinstance(spec, dict):
        return
    path = context.spec_path
    if context.item.kind != "DeviceClass":
        spec, path = spec.get("devices"), (*path, "devices")
        if not isinstance(spec, dict):
            return
    config = spec.get("config")
    entries: Any = enumerate(config) if isinstance(config, list) else ()
    for index, entry in entries:
        if isinstance(entry, dict) and isinstance(entry.get("opaque"), dict):
            yield (*path, "config", index, "opaque"), entry["opaque"]
    if isinstance(config, dict) and isinstance(config.get("opaque"), dict):
        yield (*path, "config", "opaque"), config["opaque"]


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


RULES = (UnknownConfig, UnknownConfigField)
