"""Requests, constraints and request policies that the API server accepts but that do not do what they say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kubectl_dra.api.behaviour import STEP_ABOVE_ZERO
from kubectl_dra.api.dra_fields import fields
from kubectl_dra.api.limits import MAX_RESULTS
from kubectl_dra.api.schema import FieldPath
from kubectl_dra.cel.columns import Column
from kubectl_dra.data.drivers import catalogue, name_in
from kubectl_dra.lint.analysis.claim_requests import CLAIM_KINDS, RequestAlternative, alternatives, constraints
from kubectl_dra.lint.context import Context, items
from kubectl_dra.lint.finding import Fix, LintFinding
from kubectl_dra.lint.rule import Rule
from kubectl_dra.manifests.changes import Delete, Set, fields_at, value_at


class CountZero(Rule, code="DRA301", name="count-zero", severity="warning", kinds=CLAIM_KINDS, fixable="unsafe"):
    """count: 0, which becomes 1."""

    def check(self, context: Context) -> Iterator[LintFinding]:
        for alternative in alternatives(context):
            if (
                alternative.content.get("count") == 0
                and alternative.content.get("count") is not False
                and not alternative.all_devices
            ):
                path = (*alternative.path, "count")
                yield self.finding(
                    path,
                    f"count: 0 of request {alternative.name} becomes 1",
                    fix=Fix.guess("Say count: 1, or remove the request", Set(path, 1)),
                )


class TooManyDevices(Rule, code="DRA302", name="too-many-devices", severity="error", kinds=CLAIM_KINDS):
    """More devices than one claim can have."""

    def check(self, context: Context) -> Iterator[LintFinding]:
        by_request: dict[str, list[RequestAlternative]] = {}
        for alternative in alternatives(context):
            by_request.setdefault(alternative.request, []).append(alternative)
        total = 0
        for options in by_request.values():
            for option in options:
                if option.number > MAX_RESULTS:
                    yield self.finding(
                        (*option.path, "count"),
                        f"request {option.name} asks for {option.number} devices; a claim can have {MAX_RESULTS}",
                        fix="Split them into several claims, or ask for fewer.",
                    )
            total += min(option.number for option in options)
        if total > MAX_RESULTS and all(alternative.number <= MAX_RESULTS for alternative in alternatives(context)):
            yield self.finding(
                (*context.spec_path, "devices", "requests"),
                f"the requests ask for {total} devices together; a claim can have {MAX_RESULTS}",
                fix="Split them into several claims.",
            )


class VacuousConstraint(Rule, code="DRA303", name="constraint-over-one-device", severity="warning", kinds=CLAIM_KINDS):
    """A constraint over a single device."""

    def check(self, context: Context) -> Iterator[LintFinding]:
        options = list(alternatives(context))
        known = {name for alternative in options for name in (alternative.request, alternative.name)}
        for path, constraint, names in constraints(context):
            if not known.issuperset(names):
                # What it covers with the right name is not known.
                continue
            covered = [alternative for alternative in options if alternative.is_named(names)]
            if not covered or any(alternative.all_devices for alternative in covered):
                continue
            most: dict[str, int] = {}
            for alternative in covered:
                most[alternative.request] = max(most.get(alternative.request, 0), alternative.number)
            if sum(most.values()) > 1:
                continue
            kind = "matchAttribute" if constraint.get("matchAttribute") else "distinctAttribute"
            yield self.finding(
                path,
                f"{kind} covers one device only, so it does nothing",
                fix="Ask for more devices in this claim, name more requests, or remove the constraint.",
            )


class MatchAndDistinct(
    Rule,
    code="DRA304",
    name="match-and-distinct",
    severity="warning",
    kinds=CLAIM_KINDS,
    releases=fields("DeviceConstraint")["distinctAttribute"].releases,
):
    """matchAttribute and distinctAttribute in one constraint."""

    def check(self, context: Context) -> Iterator[LintFinding]:
        for path, constraint, _ in constraints(context):
            if constraint.get("matchAttribute") and constraint.get("distinctAttribute"):
                yield self.finding(
                    (*path, "distinctAttribute"),
                    "distinctAttribute is ignored beside matchAttribute",
                    fix="Make two constraints of it.",
                )


class MatchUnique(Rule, code="DRA305", name="match-of-unique-attribute", severity="error", kinds=CLAIM_KINDS):
    """matchAttribute on an attribute that differs on every device."""

    def check(self, context: Context) -> Iterator[LintFinding]:
        options = list(alternatives(context))
        for path, constraint, names in constraints(context):
            domain, _, name = str(constraint.get("matchAttribute") or "").partition("/")
            driver = catalogue().driver(domain)
            attribute = (
                None if driver is None else driver.attributes.get(name_in(domain, Column("attribute", domain, name)))
            )
            if attribute is None or not attribute.unique:
                continue
            least: dict[str, int] = {}
            for alternative in options:
                if alternative.is_named(names):
                    least[alternative.request] = min(least.get(alternative.request, 99), alternative.number)
            if sum(least.values()) > 1:
                yield self.finding(
                    (*path, "matchAttribute"),
                    f"{name} is different on every device of {domain}: no two devices have the same",
                    fix="Match something that devices share, such as resource.kubernetes.io/pcieRoot.",
                )


class StepZero(
    Rule,
    code="DRA310",
    name="request-policy-step-zero",
    severity="error",
    kinds=("ResourceSlice",),
    releases=fields("DeviceCapacity")["requestPolicy"].releases,
    fixable="unsafe",
):
    """A request policy with a step of 0."""

    def check(self, context: Context) -> Iterator[LintFinding]:
        for index, device in enumerate(items(context.spec, "devices")):
            for name, capacity in fields_at(device, "capacity").items():
                path: FieldPath = ("spec", "devices", index, "capacity", name, "requestPolicy", "validRange", "step")
                step = value_at(capacity, path[5:])
                if step is None or _sign(step) != 0:
                    continue
                yield self.finding(
                    path,
                    f"a step of 0 for capacity {name} "
                    + ("is rejected" if context.release in STEP_ABOVE_ZERO else "crashes the API server's handler"),
                    fix=Fix.guess("Remove the step: every value from min to max is then valid", Delete(path)),
                )


class NothingOfCapacity(
    Rule,
    code="DRA312",
    name="capacity-not-positive",
    severity="warning",
    kinds=CLAIM_KINDS,
    releases=fields("ExactDeviceRequest")["capacity"].releases,
):
    """A request for no capacity at all, or for less than none."""

    def check(self, context: Context) -> Iterator[LintFinding]:
        for alternative in alternatives(context):
            for name, amount in fields_at(alternative.content, "capacity", "requests").items():
                sign = _sign(amount)
                if sign is None or sign > 0:
                    continue
                yield self.finding(
                    (*alternative.path, "capacity", "requests", name),
                    f"{amount or 0} of {name} is no amount that a device can give; the API server accepts it",
                    fix="Write how much is needed, or leave the entry out.",
                )


def _sign(value: Any) -> int | None:
    """-1, 0 or 1 for a quantity as it is written; None if it is none."""
    from kubectl_dra.api.quantity import Quantity, QuantityError

    try:
        return Quantity.from_json(value).sign()
    except QuantityError:
        return None


RULES = (CountZero, TooManyDevices, VacuousConstraint, MatchAndDistinct, MatchUnique, StepZero, NothingOfCapacity)
