"""A manifest compared with a snapshot of a cluster: missing names, selectors that match nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kubectl_dra.allocation.extended_resources import IMPLICIT_PREFIX
from kubectl_dra.cel.columns import Column
from kubectl_dra.cel.errors import EvaluationError
from kubectl_dra.command import kubectl
from kubectl_dra.lint.analysis.claim_requests import (
    CLAIM_KINDS,
    alternatives,
    extended_requests,
    is_given,
    made_by_compute_domain,
    references,
)
from kubectl_dra.lint.analysis.cluster_devices import evaluated, hidden, of_class
from kubectl_dra.lint.analysis.kustomized import has_old_name
from kubectl_dra.lint.analysis.selector_targets import class_programs, columns, read_text
from kubectl_dra.lint.context import Context, items
from kubectl_dra.lint.finding import Fix, LintFinding
from kubectl_dra.lint.rule import Rule
from kubectl_dra.lint.rules.attribute_names import span_of
from kubectl_dra.lint.rules.pod_references import replicas_of
from kubectl_dra.manifests.inputs import arguments, is_file
from kubectl_dra.text import nearest

if TYPE_CHECKING:
    from kubectl_dra.api.slices import Device
    from kubectl_dra.cel.program import Program
    from kubectl_dra.cluster.snapshot import Snapshot


class MissingClass(
    Rule,
    code="DRA421",
    name="class-not-in-cluster",
    severity="error",
    kinds=(*CLAIM_KINDS, "Pod"),
    scope="set",
    fixable="unsafe",
):
    """A class that the cluster does not have."""

    def check(self, context: Context) -> Iterator[LintFinding]:
        snapshot = context.snapshot
        if snapshot is None:
            return
        for alternative in alternatives(context):
            name, path = alternative.device_class, alternative.class_path
            if name and self._lacks(context, snapshot, name):
                fix = Fix.named(path, nearest(name, snapshot.classes, 1))
                yield self.finding(path, _no_class(snapshot, name), fix=fix)
        for request in extended_requests(context.raw.get("spec")) if context.item.kind == "Pod" else ():
            name = request.device_class
            if name and self._lacks(context, snapshot, name):
                near = tuple(f"{IMPLICIT_PREFIX}{each}" for each in nearest(name, snapshot.classes, 1))
                fix = request.renamed(f"Did you mean {near[0]}?", near[0]) if near else None
                yield self.finding(request.path, _no_class(snapshot, name), fix=fix, on_key=True)

    def _lacks(self, context: Context, snapshot: Snapshot, name: str) -> bool:
        if name in snapshot.classes or context.given.classes(name):
            return False
        return not has_old_name(context, "DeviceClass", name) and not hidden(context, "DeviceClass")


def _no_class(snapshot: Snapshot, name: str) -> str:
    return f"the cluster has no DeviceClass {name}; it has {', '.join(sorted(snapshot.classes)) or 'none'}"


class ReferenceMissing(
    Rule,
    code="DRA422",
    name="claim-not-in-cluster",
    severity="warning",
    kinds=("Pod",),
    scope="set",
    fixable="unsafe",
    fixed_where="there is one with almost that name",
):
    """A claim or template that the cluster does not have."""

    def check(self, context: Context) -> Iterator[LintFinding]:
        snapshot = context.snapshot
        if snapshot is None:
            return
        namespace = context.item.namespace or "default"
        for reference in references(context):
            kind, name = reference.kind, reference.target
            if is_given(context, kind, name, context.item.namespace) or made_by_compute_domain(context, reference):
                continue
            if has_old_name(context, kind, name) or hidden(context, kind, namespace):
                continue
            known = snapshot.claims if kind == "ResourceClaim" else snapshot.templates
            near = nearest(name, [other for place, other in known if place == namespace], 1)
            path = (*reference.path, reference.field)
            yield self.finding(
                path,
                f"namespace {namespace} has no {kind} {name}",
                fix=Fix.named(path, near),
            )


class MatchesNothing(
    Rule,
    code="DRA221",
    name="selector-matches-no-device",
    severity="error",
    kinds=CLAIM_KINDS,
    scope="set",
    told_by=("DRA212", "DRA213", "DRA215", "DRA216", "DRA218", "DRA219", "DRA601", "DRA605", "DRA606"),
):
    """A selector that no device satisfies."""

    def check(self, context: Context) -> Iterator[LintFinding]:
        for target, devices, outcomes in evaluated(context):
            if any(outcome is True for outcome in outcomes):
                continue
            errors = Counter(str(outcome) for outcome in outcomes if isinstance(outcome, EvaluationError))
            term = _first_false(target.program, devices)
            why = ""
            if errors:
                text, number = errors.most_common(1)[0]
                why = f"; {f'on {number} it' if len(devices) > 1 else 'it'} ends in an error: {text}"
            elif term is not None:
                where = "all of them" if len(devices) > 1 else "it"
                why = f"; {term.expression.strip()} is false on {where}{_seen(term, devices)}"
            yield self.finding(
                target.path,
                f"none of the {len(devices)} devices of class {target.device_class} matches{why}"
                if len(devices) > 1
                else f"the only device of class {target.device_class} does not match{why}",
                fix=_comparison(context),
                cel=(term.start, term.end) if term is not None and (term.start, term.end) != (0, 0) else None,
            )


def _comparison(context: Context) -> Fix:
    """To look at the devices, by a command where it can be asked about the same file and cluster."""
    file, snapshot = context.item.place.file, context.snapshot
    saved = () if snapshot is None or snapshot.server else snapshot.sources
    told = "Compare the values with those of the devices"
    if snapshot is None or not is_file(file) or not all(map(is_file, saved)) or "-" in saved:
        return Fix(f"{told}; explain -f FILE shows which term fails where.")
    flags = tuple(word for source in saved for word in ("--snapshot", *arguments(source)))
    command = kubectl("dra", "explain", more=("-f", *arguments(file), *flags))
    return Fix(f"{told}. Which term fails where:", command=str(command))


class AbsentOnSome(
    Rule, code="DRA222", name="attribute-absent-on-some", severity="error", kinds=CLAIM_KINDS, scope="set"
):
    """An attribute that some devices do not have."""

    def check(self, context: Context) -> Iterator[LintFinding]:
        for target, devices, outcomes in evaluated(context):
            failing = [
                device
                for device, outcome in zip(devices, outcomes, strict=True)
                if isinstance(outcome, EvaluationError)
            ]
            if not failing or not any(outcome is True for outcome in outcomes):
                continue
            for column in columns(target.program):
                lacking = sum(1 for device in failing if _value(device, column) is None)
                if not lacking:
                    continue
                absent = sum(1 for device in devices if _value(device, column) is None)
                yield self.finding(
                    target.path,
                    f"{column.id} is absent on {absent} of the {len(devices)} devices of class {target.device_class}, "
                    "and reading it there ends the allocation",
                    fix=Fix(f"Guard it: has({read_text(column)}) && …", expression=f"has({read_text(column)}) && …"),
                    cel=span_of(target.program, column),
                )


class MorePodsThanDevices(
    Rule, code="DRA423", name="more-pods-than-devices", severity="info", kinds=("Pod",), scope="set"
):
    """A template makes a claim for each pod, and there are more pods than devices."""

    def check(self, context: Context) -> Iterator[LintFinding]:
        snapshot, owner = context.snapshot, context.item.owner
        if snapshot is None or owner is None or (pods := replicas_of(owner)) < 2:
            return
        for reference in references(context):
            if reference.kind != "ResourceClaimTemplate" or hidden(context, "ResourceSlice"):
                continue
            for request in _requests_of(context, reference.target):
                exactly = request.get("exactly")
                if not isinstance(exactly, dict) or exactly.get("adminAccess"):
                    continue
                name, count = str(exactly.get("deviceClassName") or ""), exactly.get("count", 1)
                programs = class_programs(context, name)
                if programs is None or not isinstance(count, int) or exactly.get("allocationMode") == "All":
                    continue
                devices = of_class(snapshot, tuple(programs))
                if not devices or any(device.allow_multiple_allocations for device in devices):
                    continue
                if pods * count > len(devices):
                    yield self.finding(
                        (*reference.path, reference.field),
                        f"each of {pods} pods gets a claim of its own for {count} of class {name}, and the cluster has "
                        f"{len(devices)}: at most {len(devices) // count} run at a time",
                        fix="To share a device, let all pods name one ResourceClaim (resourceClaimName): "
                        "share -f FILE writes it, and tries other ways.",
                    )


def _requests_of(context: Context, template: str) -> Sequence[Mapping[str, Any]]:
    """The requests of a template, in the manifests or the cluster."""
    if given := context.nearest("ResourceClaimTemplate", template):
        return given[0].requests
    known = context.snapshot.templates if context.snapshot is not None else {}
    target = known.get((context.item.namespace or "default", template))
    return items(target.spec, "devices", "requests") if target is not None else ()


def _first_false(program: Program, devices: Sequence[Device]) -> Program | None:
    """The first term of the top-level && that is true on no device; None if each is true on some."""
    for term in program.terms():
        if not any(outcome is True for outcome in term.evaluate_devices(devices)):
            return term
    return None


def _seen(term: Program, devices: Sequence[Device]) -> str:
    """The devices' values of what a term reads."""
    read = columns(term)
    if len(read) != 1:
        return ""
    values = Counter(str(_value(device, read[0])) for device in devices)
    if len(values) > 6:
        return ""
    shown = ", ".join(f"{value} on {number}" for value, number in values.most_common(4))
    return f" ({read[0].id}: {shown})"


def _value(device: Device, column: Column) -> Any:
    """The published value of a device's attribute or capacity, or None."""
    from kubectl_dra.cel.device import split_name

    table = device.capacity if column.kind == "capacity" else device.attributes
    for name, value in table.items():
        if split_name(name, device.driver) == (column.domain, column.id):
            return value.get("value") if column.kind == "capacity" else next(iter(value.values()), None)
    return None


RULES = (MatchesNothing, AbsentOnSome, MissingClass, ReferenceMissing, MorePodsThanDevices)
