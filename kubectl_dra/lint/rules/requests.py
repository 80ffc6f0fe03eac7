"""Requests, constraints, policies and quotas that the API server accepts and that do not do what they say."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

from kubectl_dra.api.behaviour import STEP_ABOVE_ZERO
from kubectl_dra.api.dra_fields import fields
from kubectl_dra.api.limits import MAX_RESULTS
from kubectl_dra.api.schema import FieldPath
from kubectl_dra.cel import ast
from kubectl_dra.cel.columns import Column
from kubectl_dra.data.drivers import catalogue, name_in
from kubectl_dra.lint.analysis.claim_requests import (
    CLAIM_KINDS,
    RequestAlternative,
    alternatives,
    alternatives_of,
    constraints,
    references_of,
)
from kubectl_dra.lint.analysis.selector_targets import SELECTOR_KINDS, selectors
from kubectl_dra.lint.context import Context, Item, items
from kubectl_dra.lint.finding import Fix, LintFinding
from kubectl_dra.lint.rule import Rule
from kubectl_dra.manifests.changes import Delete, Set, fields_at, value_at
from kubectl_dra.text import whole_number


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


# Quantities that are valid but too expensive to compute.

_ENDLESS: Final = 10_000_000
"""The exponent from which one such quantity takes a second of CPU time or more."""
_MINUTES: Final = 50_000_000
_POWER: Final = re.compile(r"\s*[+-]?([0-9]*)(?:\.([0-9]*))?[eE]([+-]?[0-9]{8,19})\s*")
_LARGE: Final = re.compile(r"[eE][+-]?[0-9]{8}")
_HOLDERS: Final = frozenset(("capacity", "counters", "hard", "limits", "overhead", "requests"))


class _Power(Struct, frozen=True):
    """``worked_out``: even reading the text takes long, not only comparing the quantity."""

    exponent: int
    worked_out: bool


class EndlessQuantity(
    Rule,
    code="DRA311",
    name="endless-quantity",
    severity="error",
    kinds=(*CLAIM_KINDS, "DeviceClass", "ResourceSlice", "Pod", "ResourceQuota"),
    otherwise={"warning": "only an exact comparison of it is slow"},
):
    """A quantity with an enormous exponent."""

    def check(self, context: Context) -> Iterator[LintFinding]:
        # Only where they are compared at once do large numbers take as long as small ones.
        compared = context.item.kind in ("Pod", "ResourceQuota")
        for path, text, power in _written(context.raw.get("spec"), ("spec",), False):
            yield self._found(path, text, power, compared or "requestPolicy" in path, None)
        if context.item.kind not in SELECTOR_KINDS:
            return
        for selector in selectors(context):
            if selector.program is None or not _LARGE.search(selector.expression):
                continue
            for literal in _literals(selector.program.ast.expression):
                if exponent := _power(literal.value):
                    span = (literal.start, literal.end)
                    yield self._found(selector.path, literal.value, exponent, False, span)

    def _found(
        self, path: FieldPath, text: str, power: _Power, compared: bool, cel: tuple[int, int] | None
    ) -> LintFinding:
        short = text if len(text) <= 40 else f"{text[:20]}…{text[-15:]}"
        slow = power.worked_out or compared
        who = "the scheduler" if cel else "the API server" if slow else "whoever compares it exactly"
        message = f"{short} takes {who} {'minutes' if abs(power.exponent) >= _MINUTES else 'seconds'} to work out"
        fix = "Write the amount that is meant, such as 40Gi."
        return self.finding(path, message, fix=fix, severity=None if slow else "warning", cel=cel)


def _literals(root: ast.Expression) -> Iterator[ast.Literal]:
    """The texts from which a selector makes quantities."""
    for node in ast.walk(root):
        if isinstance(node, ast.Call) and node.function in ("quantity", "isQuantity") and node.arguments:
            first = node.arguments[0]
            if isinstance(first, ast.Literal) and isinstance(first.value, str):
                yield first


def _written(value: Any, path: FieldPath, held: bool) -> Iterator[tuple[FieldPath, str, _Power]]:
    """The quantities with such an exponent below a path, except in configuration that is opaque to Kubernetes."""
    if isinstance(value, str):
        power = _power(value) if held else None
        if power is not None:
            yield path, value, power
    elif isinstance(value, dict):
        for key, below in value.items():
            if key != "opaque" and isinstance(below, (dict, list, str) if held else (dict, list)):
                yield from _written(below, (*path, key), held or (key in _HOLDERS and isinstance(below, dict)))
    elif isinstance(value, list):
        for index, below in enumerate(value):
            yield from _written(below, (*path, index), held)


def _power(text: str) -> _Power | None:
    match = _POWER.fullmatch(text) if "e" in text or "E" in text else None
    if match is None:
        return None
    whole, fraction = match[1].lstrip("0"), match[2] or ""
    if not (whole + fraction).strip("0"):
        return None
    # Kubernetes keeps 32 bits of the exponent.
    exponent = (int(match[3]) + 2**31) % 2**32 - 2**31
    if abs(exponent) < _ENDLESS:
        return None
    return _Power(exponent, exponent < 0 or len(whole or "0") + len(fraction) > 18)


# Quotas compared with what the workloads linted with them ask for.

DEVICES: Final = ".deviceclass.resource.k8s.io/devices"
CLAIMS: Final = "count/resourceclaims.resource.k8s.io"
# Where kinds say how many pods run at a time; one where they do not.
_REPLICAS: Final[Mapping[str, str]] = {
    "Deployment": "replicas",
    "ReplicaSet": "replicas",
    "ReplicationController": "replicas",
    "StatefulSet": "replicas",
    "Job": "parallelism",
}


class QuotaTooSmall(
    Rule, code="DRA411", name="quota-too-small", severity="warning", kinds=("ResourceQuota",), scope="set"
):
    """A quota that its own workloads exceed."""

    def check(self, context: Context) -> Iterator[LintFinding]:
        limits = {
            str(key): whole_number(str(value), 11) for key, value in fields_at(context.item.raw, "spec", "hard").items()
        }
        # A quota with a scope counts only some of the pods, and no claims at all.
        if context.item.spec_field("scopes") or context.item.spec_field("scopeSelector"):
            return
        if not any(key == CLAIMS or key.endswith(DEVICES) for key in limits):
            return
        objects = list(_asked(context))
        for key, limit in limits.items():
            wanting = [(title, counted[key]) for title, counted in objects if counted[key]]
            total = sum(number for _, number in wanting)
            if limit is None or not wanting or total <= limit:
                continue
            most_title, most = max(wanting, key=lambda pair: pair[1])
            what = "claims" if key == CLAIMS else f"devices of class {key.removesuffix(DEVICES)}"
            whose = most_title if most > limit or len(wanting) == 1 else f"the {len(wanting)} objects here together"
            yield self.finding(
                ("spec", "hard", key),
                f"the quota allows {limit} {what}, and {whose} "
                f"{'asks' if whose == most_title else 'ask'} for {most if whose == most_title else total}",
                fix=f"Raise it to {total}, or ask for less.",
            )


def _asked(context: Context) -> Iterator[tuple[str, Counter[str]]]:
    """What each claim and workload of the quota's namespace counts, by quota key."""
    namespace = context.item.namespace
    for item in context.given.items:
        if item.namespace != namespace:
            continue
        if item.kind == "ResourceClaim" and item.owner is None:
            yield item.title, _counted(item, 1)
        elif item.kind == "Pod":
            number = _pods(item)
            counted: Counter[str] = Counter()
            for reference in references_of(item.raw) if number else ():
                given = context.given.find("ResourceClaimTemplate", reference.target, namespace)
                if reference.kind == "ResourceClaimTemplate" and len(given) == 1:
                    counted.update(_counted(given[0], number))
            yield item.title, counted


def _pods(item: Item) -> int:
    """Number of pods that an item runs at a time; 0 if unknown."""
    owner = item.owner
    if owner is None:
        return 1
    field = _REPLICAS.get(owner.kind)
    if field is None:
        return 0
    number = owner.spec_field(field)
    return 1 if number is None else number if isinstance(number, int) else 0


def _counted(item: Item, times: int) -> Counter[str]:
    """What a claim, or that many claims of a template, count. firstAvailable counts, per class, the most of
    any alternative.
    """
    out: Counter[str] = Counter({CLAIMS: times})
    for request in item.requests if item.v1 else ():
        most: Counter[str] = Counter()
        for alternative in alternatives_of(request):
            if isinstance(name := alternative.get("deviceClassName"), str):
                most[f"{name}{DEVICES}"] = max(most[f"{name}{DEVICES}"], _devices(alternative))
        for key, number in most.items():
            out[key] += number * times
    return out


def _devices(request: Mapping[str, Any]) -> int:
    if request.get("allocationMode") == "All":
        return MAX_RESULTS
    count = request.get("count")
    return count if isinstance(count, int) and not isinstance(count, bool) and count > 0 else 1


RULES = (
    CountZero,
    TooManyDevices,
    VacuousConstraint,
    MatchAndDistinct,
    MatchUnique,
    StepZero,
    NothingOfCapacity,
    EndlessQuantity,
    QuotaTooSmall,
)
