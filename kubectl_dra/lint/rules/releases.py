"""API versions, fields and functions by Kubernetes release, and what a disabled feature gate drops."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from kubectl_dra.api.behaviour import RULES_WITHOUT_GATE
from kubectl_dra.api.dra_fields import fields_at as struct_fields
from kubectl_dra.api.releases import (
    GROUP,
    LIFECYCLES,
    MODELLED,
    Lifecycle,
    Release,
    default_version,
    gate_default,
    known_gates,
    lifecycle,
    versions_of,
)
from kubectl_dra.lint.analysis.claim_requests import classic_advice, migrate
from kubectl_dra.lint.analysis.selector_targets import SELECTOR_KINDS
from kubectl_dra.lint.analysis.server_verdict import gated_fields, real_version
from kubectl_dra.lint.context import Context, Item
from kubectl_dra.lint.finding import Fix, LintFinding
from kubectl_dra.lint.locate import path_text
from kubectl_dra.lint.rule import ANY_KIND, Rule
from kubectl_dra.manifests.changes import Set, fields_at
from kubectl_dra.manifests.objects import right_group

_OLD_KINDS: Final[Mapping[str, str]] = {
    "ResourceClass": 'DeviceClass, with a selector device.driver == "DRIVER"',
    "ResourceClaimParameters": "selectors and config in the ResourceClaim itself",
    "ResourceClassParameters": "selectors and config in the DeviceClass itself",
    "PodSchedulingContext": "nothing: the scheduler needs no such object any more; delete it",
    "PodScheduling": "nothing: the scheduler needs no such object any more; delete it",
}
_EASY: Final = ("v1beta2", "v1")
_SAME_SHAPE: Final = "only apiVersion has to change"


class UnknownVersion(
    Rule,
    code="DRA501",
    name="unknown-version",
    severity="error",
    kinds=ANY_KIND,
    fixable="unsafe",
    fixed_where="only the kind or the group is wrong",
):
    """A group, kind or version that has never existed."""

    def check(self, context: Context) -> Iterator[LintFinding]:
        item = context.item
        group = right_group(item.group, item.kind)
        if group is not None:
            wanted = _api_version(group, item, context.release)
            yield self.finding(
                ("apiVersion",),
                f"{item.kind} is in {wanted}, not in {item.api_version}",
                fix=Fix.guess(f"Write {wanted}", Set(("apiVersion",), wanted)),
            )
            return
        if not item.is_dra or lifecycle(item.version, item.kind) is not None or item.kind.endswith("List"):
            return
        kinds = {life.kind for life in LIFECYCLES}
        if item.kind not in kinds:
            from kubectl_dra.text import nearest

            near = nearest(item.kind, sorted(kinds), 1)
            yield self.finding(
                ("kind",),
                f"{GROUP} has no kind {item.kind}",
                fix=Fix.named(("kind",), near),
            )
            return
        versions = [life.version for life in LIFECYCLES if life.kind == item.kind]
        yield self.finding(
            ("apiVersion",),
            f"{item.kind} has never been in {item.api_version}; it is in {', '.join(versions)}",
            fix=f"Write {GROUP}/{versions[0]}, in its shape.",
        )


def _api_version(group: str, item: Item, release: Release) -> str:
    """The apiVersion of an object whose group is wrong: its own version, if the release has the kind in it."""
    if group != GROUP:
        return f"{group}/v1" if group else "v1"
    served = versions_of(item.kind, release) or tuple(life.version for life in LIFECYCLES if life.kind == item.kind)
    return f"{group}/{item.version if item.version in served else served[0]}"


class VersionMissing(
    Rule,
    code="DRA502",
    name="version-not-in-release",
    severity="error",
    kinds=ANY_KIND,
    fixable="safe",
    fixed_where=_SAME_SHAPE,
):
    """A version that the target release does not have."""

    def check(self, context: Context) -> Iterator[LintFinding]:
        item, release = context.item, context.release
        life = lifecycle(item.version, item.kind) if item.is_dra else None
        if life is None or life.exists(release):
            return
        served = versions_of(item.kind, release)
        removed = life.was_removed(release)
        change = f"was removed in 1.{life.removed}" if removed else f"came in 1.{life.introduced}"
        if item.kind in _OLD_KINDS and not served:
            told = f"It is replaced by {_old_kind(item)}. To see what migrate can take over"
            advice: Fix | None = migrate(item, told)
        elif served:
            advice = _move(context, served[0])
        else:
            advice = None
        yield self.finding(
            ("apiVersion",), f"{item.api_version} {item.kind} {change}; the target is {release}", fix=advice
        )


class NotServed(
    Rule,
    code="DRA503",
    name="version-not-served-by-default",
    severity="error",
    kinds=ANY_KIND,
    fixable="safe",
    otherwise={"info": "the release serves no version of it by default"},
    fixed_where=_SAME_SHAPE,
):
    """A version that the target release does not serve by default."""

    def check(self, context: Context) -> Iterator[LintFinding]:
        item, release = context.item, context.release
        life = lifecycle(item.version, item.kind) if item.is_dra else None
        if life is None or not life.exists(release) or life.served_by_default(release):
            return
        better = default_version(item.kind, release)
        if not better and life.is_deprecated(release):
            # Where every version has to be asked for, that it goes away is the news: DRA504.
            return
        going = f"; it is {_going(life)}" if life.is_deprecated(release) else ""
        yield self.finding(
            ("apiVersion",),
            f"{release} does not serve {item.api_version} by default"
            + (f", only {better}{going}" if better else f": it needs --runtime-config={item.api_version}=true"),
            fix=_move(context, better) if better else None,
            severity=None if better else "info",
        )


def _going(life: Lifecycle) -> str:
    """Since when a version is deprecated, and when it is gone."""
    return f"deprecated since 1.{life.deprecated}" + (f" and gone in 1.{life.removed}" if life.removed else "")


class Deprecated(
    Rule,
    code="DRA504",
    name="version-deprecated",
    severity="warning",
    kinds=ANY_KIND,
    fixable="safe",
    fixed_where=_SAME_SHAPE,
):
    """A version that is going away."""

    def check(self, context: Context) -> Iterator[LintFinding]:
        item, release = context.item, context.release
        life = lifecycle(item.version, item.kind) if item.is_dra else None
        if life is None or not life.exists(release) or not life.is_deprecated(release):
            return
        if default_version(item.kind, release) and not life.served_by_default(release):
            # That it is not there at all matters more: DRA503.
            return
        better = next(iter(versions_of(item.kind, release)))
        needs = f"; {release} serves it only with --runtime-config={item.api_version}=true"
        yield self.finding(
            ("apiVersion",),
            f"{item.api_version} {item.kind} is {_going(life)}{'' if life.served_by_default(release) else needs}",
            fix=_move(context, better) if better != item.version else None,
        )


class FieldTooNew(
    Rule,
    code="DRA505",
    name="field-too-new",
    severity="error",
    kinds=("DeviceClass", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice"),
):
    """A field that the target release does not have."""

    def check(self, context: Context) -> Iterator[LintFinding]:
        for path, field in gated_fields(context):
            if field.is_newer(context.release):
                yield self.finding(
                    path, f"{path[-1]} came in 1.{field.since}; the target is {context.release}", on_key=True
                )


class GateOff(
    Rule,
    code="DRA506",
    name="gate-off",
    severity="warning",
    kinds=("DeviceClass", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice", "DeviceTaintRule"),
):
    """A field that is dropped because its gate is off."""

    def check(self, context: Context) -> Iterator[LintFinding]:
        for path, field in gated_fields(context):
            if field.is_newer(context.release):
                continue
            for gate in field.gates:
                if _off(gate, context):
                    yield self.finding(
                        path,
                        f"{path[-1]} is dropped where the gate {gate} is off, {_default(gate, context.release)}",
                        fix=f"Turn the gate {gate} on, or leave {path[-1]} out.",
                        on_key=True,
                    )
                    break
        if context.item.kind == "DeviceTaintRule" and context.v1 and context.release not in RULES_WITHOUT_GATE:
            gate = "DRADeviceTaintRules"
            if _off(gate, context):
                yield self.finding(
                    ("spec",),
                    f"the rule is stored and ignored where the gate {gate} is off, {_default(gate, context.release)}",
                    on_key=True,
                )


class FunctionTooNew(Rule, code="DRA507", name="cel-too-new", severity="error", kinds=SELECTOR_KINDS):
    """An expression for a later release, or another gate."""

    def check(self, context: Context) -> Iterator[LintFinding]:
        for selector in context.selectors:
            if selector.program is not None:
                continue
            needed = _compiles_from(selector.expression, context)
            if needed is not None:
                yield self.finding(selector.path, f"this needs {needed}; the target is {context.release}")


def _compiles_from(expression: str, context: Context) -> str | None:
    """The first release or gate with which the expression compiles, or None."""
    from kubectl_dra.cel.environment import CONSUMABLE_CAPACITY, Environment
    from kubectl_dra.cel.errors import CompileError
    from kubectl_dra.cel.libraries import LIST_ATTRIBUTES
    from kubectl_dra.cel.program import compile_expression

    tries = [
        (context.release, context.features | {gate}, f"the gate {gate}")
        for gate in (CONSUMABLE_CAPACITY, LIST_ATTRIBUTES)
        if gate not in context.features
    ]
    tries += [(release, context.features, f"Kubernetes {release}") for release in MODELLED.after(context.release)]
    for release, features, name in tries:
        try:
            compile_expression(Environment.for_release(release, features), expression)
        except CompileError:
            continue
        return name
    return None


def _old_kind(item: Item) -> str:
    """The successor of an old kind, with this object's names."""
    driver = item.raw.get("driverName")
    successor = _OLD_KINDS[item.kind]
    return successor.replace("DRIVER", driver) if isinstance(driver, str) and driver else successor


def _off(gate: str, context: Context) -> bool:
    return gate in known_gates() and gate not in context.features


def _default(gate: str, release: Release) -> str:
    default = gate_default(gate, release)
    if default is None:
        return f"and {release} does not have it"
    return f"as {release} has it by default" if not default else "as was asked for"


def _move(context: Context, better: str) -> Fix:
    """Fix that moves to another version: a change if the shapes are equal, else advice."""
    item = context.item
    if item.version in ("v1alpha1", "v1alpha2"):
        spec = fields_at(item.raw, *item.spec_path)
        advice = f"No release converts it. {classic_advice(spec, better)}"
        if spec.get("parameters") or spec.get("parametersRef"):
            # Only who wrote it knows what these mean: migrate refuses it, with the same advice.
            return Fix(advice)
        return migrate(item, f"{advice} To see what migrate can take over")
    title = f"Write apiVersion: {GROUP}/{better}"
    if item.version in _EASY and better in _EASY:
        return Fix.sure(title, Set(("apiVersion",), f"{GROUP}/{better}"))
    if real_version(context) == better:
        return Fix(f"{title}, in whose shape the fields are already.")
    unclear = _unclear(context, better)
    if unclear is None and better in _EASY and _is_alike(item):
        return Fix.sure(title, Set(("apiVersion",), f"{GROUP}/{better}"))
    title += ", and the fields as that version has them"
    if unclear is not None:
        # A conversion would have to guess what is meant there, which migrate does not do.
        return migrate(item, f"First correct {unclear}. Then {title[0].lower()}{title[1:]}. To see the result")
    return migrate(item, f"{title}. To see the result")


def _is_alike(item: Item) -> bool:
    """Whether v1beta2 and v1 have all that is written in the same place."""
    return item.v1 is not None and {**item.v1, "apiVersion": item.api_version} == item.raw


def _unclear(context: Context, better: str) -> str | None:
    """The first field that a conversion cannot take over: neither version knows it, or its type is wrong."""
    from kubectl_dra.admission.server.decoding import decoding_errors

    item = context.item
    try:
        for violation in decoding_errors(item.raw, item.group, item.version, context.release):
            above = violation.path[:-1]
            known = (
                violation.path[-1] in struct_fields(item.kind, version, above) for version in (item.version, better)
            )
            if violation.rule != "unknown-field" or not any(known):
                return path_text(tuple(str(part) if isinstance(part, str) else part for part in violation.path))
    except KeyError:
        # No schema says what such an object has.
        pass
    return None


RULES = (UnknownVersion, VersionMissing, NotServed, Deprecated, FieldTooNew, GateOff, FunctionTooNew)
