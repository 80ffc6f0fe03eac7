"""Pods, their claims, and the names by which objects that are linted together refer to each other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kubectl_dra.allocation.extended_resources import IMPLICIT_PREFIX
from kubectl_dra.api.schema import FieldPath
from kubectl_dra.data.drivers import catalogue
from kubectl_dra.drivers.refused_claims import for_one_pod
from kubectl_dra.lint.analysis.claim_requests import (
    CLAIM_KINDS,
    REFERENCES,
    ExtendedRequest,
    alternatives,
    drivers_of_claim,
    extended_requests,
    is_given,
    meant_resource,
    misread_uses,
    offered,
    references,
    speaks_of_network,
    uses,
)
from kubectl_dra.lint.analysis.kustomized import has_old_name, replaced_list
from kubectl_dra.lint.context import Context, Item, items
from kubectl_dra.lint.finding import Fix, LintFinding, Severity
from kubectl_dra.lint.rule import Rule
from kubectl_dra.manifests.changes import Delete, Rename, Set
from kubectl_dra.text import nearest, slip_of


class UnusedClaim(Rule, code="DRA401", name="unused-claim", severity="warning", kinds=("Pod",), scope="set"):
    """A claim that no container uses."""

    def check(self, context: Context) -> Iterator[LintFinding]:
        if context.item.is_patch:
            # What it is laid over may use it.
            return
        if misread_uses(context.raw):
            # Which claims the containers use, is not written where it is read.
            return
        used = {name for _, name, _ in uses(context.raw)}
        entries = items(context.raw, "spec", "resourceClaims")
        if context.item.complete and not used <= {str(pod_claim.get("name") or "") for pod_claim in entries}:
            # A container uses a name that is not there: which of these it means is to be found out first.
            return
        for index, pod_claim in enumerate(entries):
            name = pod_claim.get("name")
            if isinstance(name, str) and name and name not in used and not self._reaches_pod(context, name):
                yield self.finding(
                    ("spec", "resourceClaims", index, "name"),
                    f"no container uses claim {name}",
                    fix=f"Add resources.claims: [{{name: {name}}}] to the container that needs it, or remove it here.",
                )

    def _reaches_pod(self, context: Context, name: str) -> bool:
        """Whether a driver gives the devices to the whole pod, as network drivers do."""
        for reference in references(context):
            if reference.name == name:
                drivers = drivers_of_claim(context, reference)
                if drivers is None:
                    return speaks_of_network(context, reference)
                return any(driver.pod_level for driver in drivers)
        return False


class UnknownRequest(
    Rule, code="DRA402", name="unknown-request", severity="error", kinds=("Pod",), scope="set", fixable="unsafe"
):
    """A container uses a request that the claim does not have."""

    def check(self, context: Context) -> Iterator[LintFinding]:
        entries = {reference.name: reference for reference in references(context)}
        for path, name, request in uses(context.raw):
            reference = entries.get(name)
            if not request or reference is None:
                continue
            given = context.given.find(reference.kind, reference.target, context.item.namespace)
            if not given or any(request in _requests_of(item) for item in given):
                continue
            given = context.nearest(reference.kind, reference.target)
            known = [_requests_of(item) for item in given]
            near = known[0] if len(known[0]) == 1 and known[0][0] else nearest(request, known[0], 1)
            at = (*path, "request")
            lost = replaced_list(given[0], "requests", request)
            spelling = Fix.guess(f"Write request: {near[0]}", Set(at, near[0])) if near else None
            yield self.finding(
                at,
                f"{reference.kind} {reference.target} has no request {request}; it has {', '.join(known[0]) or 'none'}",
                fix=spelling if lost is None else Fix(lost.advice),
            )


def _requests_of(item: Item) -> list[str]:
    return [str(entry.get("name") or "") for entry in item.requests]


class ClaimOrTemplate(
    Rule,
    code="DRA403",
    name="claim-or-template",
    severity="error",
    kinds=("Pod",),
    scope="set",
    fixable="unsafe",
    fixed_where="it does not make several pods share a claim",
):
    """A template named as a claim, or the reverse."""

    def check(self, context: Context) -> Iterator[LintFinding]:
        for reference in references(context):
            other_field = next(field for field in REFERENCES if field != reference.field)
            other = REFERENCES[other_field]
            namespace = context.item.namespace
            if is_given(context, reference.kind, reference.target, namespace):
                continue
            if not is_given(context, other, reference.target, namespace):
                continue
            path = (*reference.path, reference.field)
            fix = Fix.guess(f"Write {other_field}", Rename(path, other_field))
            if other_field == "resourceClaimName" and (who := _several(context.item.owner)):
                fix = Fix(f"{_made_a_template(reference.target)}; write {other_field} only if {who} are to share it.")
            yield self.finding(path, f"{reference.target} is a {other}, not a {reference.kind}", fix=fix, on_key=True)


class SharedClaim(
    Rule,
    code="DRA404",
    name="shared-claim",
    severity="warning",
    kinds=("Pod",),
    scope="set",
    otherwise={"error": "the driver gives the devices of a claim to one pod"},
    told_by=("DRA403",),
):
    """One claim shared by all pods of a workload."""

    def check(self, context: Context) -> Iterator[LintFinding]:
        who = _several(context.item.owner)
        if not who:
            return
        for reference in references(context):
            drivers = drivers_of_claim(context, reference) or ()
            if reference.field != "resourceClaimName" or any(driver.shareable for driver in drivers):
                continue
            refuses = for_one_pod(driver.name for driver in drivers)
            fix = (
                f"{_made_a_template(reference.target)}, and name that as resourceClaimTemplateName: each pod gets a "
                "claim of its own"
            )
            why = f", and driver {refuses} gives its devices to one pod: the others do not start" if refuses else ""
            yield self.finding(
                (*reference.path, reference.field),
                f"{who} share the one claim {reference.target}{why}",
                fix=f"{fix}." if refuses else f"{fix}; keep it if sharing is meant.",
                severity="error" if refuses else None,
            )


class FixedNodeName(
    Rule, code="DRA405", name="node-name-with-claims", severity="error", kinds=("Pod",), fixable="unsafe"
):
    """A pod with nodeName and claims."""

    def check(self, context: Context) -> Iterator[LintFinding]:
        spec = context.raw.get("spec")
        name = context.item.spec_field("nodeName")
        # A pod that has run has its node, and the time it was made.
        if not name or not items(spec, "resourceClaims") or context.item.metadata.get("creationTimestamp"):
            return
        changes: tuple[Any, ...] = (Delete(("spec", "nodeName")),)
        if isinstance(context.item.spec_field("nodeSelector"), dict):
            changes += (Set(("spec", "nodeSelector", "kubernetes.io/hostname"), name),)
        else:
            changes += (Set(("spec", "nodeSelector"), {"kubernetes.io/hostname": name}),)
        yield self.finding(
            ("spec", "nodeName"),
            "a pod with nodeName is not scheduled, so its claims are never allocated",
            fix=Fix.guess(f"Select the node by kubernetes.io/hostname: {name} instead", *changes),
        )


class SameClaimTwice(Rule, code="DRA407", name="claim-listed-twice", severity="error", kinds=("Pod",)):
    """One claim listed twice in a pod."""

    def check(self, context: Context) -> Iterator[LintFinding]:
        seen: dict[str, str] = {}
        for reference in references(context):
            if reference.field != "resourceClaimName":
                continue
            first = seen.setdefault(reference.target, reference.name)
            if first != reference.name:
                yield self.finding(
                    (*reference.path, reference.field),
                    f"claim {reference.target} is listed twice: as {first} and as {reference.name}",
                    fix=f"Keep one entry, and let all containers use {first}.",
                )


def _several(owner: Item | None) -> str:
    """The pods of a workload, in words, if there can be several at a time; empty otherwise."""
    if owner is None:
        return ""
    number = replicas_of(owner)
    return "all pods of the DaemonSet" if owner.kind == "DaemonSet" else f"{number} pods" if number > 1 else ""


def _made_a_template(claim: str) -> str:
    return f"Turn ResourceClaim {claim} into a ResourceClaimTemplate, with its spec under spec.spec"


def replicas_of(owner: Item) -> int:
    """Number of pods of one template that a workload runs at a time, where a field says so."""
    counts = [owner.spec_field(key) for key in ("replicas", "parallelism")]
    return max((count for count in counts if isinstance(count, int) and not isinstance(count, bool)), default=1)


# Names of objects that are nearly right, or right in another namespace.


class MissingName(
    Rule,
    code="DRA406",
    name="misspelt-name",
    severity="warning",
    kinds=("Pod", *CLAIM_KINDS),
    scope="set",
    fixable="unsafe",
    told_by=("DRA403",),
):
    """A name that nearly matches another object."""

    def check(self, context: Context) -> Iterator[LintFinding]:
        if context.item.kind == "Pod":
            for reference in references(context):
                if is_given(context, reference.kind, reference.target, context.item.namespace):
                    continue
                if has_old_name(context, reference.kind, reference.target):
                    continue
                names = context.given.names(reference.kind)
                yield from self._near((*reference.path, reference.field), reference.kind, reference.target, names)
            for request in extended_requests(context.raw.get("spec")):
                yield from self._resource(context, request)
            return
        if context.snapshot is not None and not context.snapshot.is_gap("DeviceClass"):
            return
        for alternative in alternatives(context):
            if (name := alternative.device_class) and not is_known_class(context, name):
                yield from self._near(alternative.class_path, "DeviceClass", name, _classes(context))

    def _resource(self, context: Context, request: ExtendedRequest) -> Iterator[LintFinding]:
        """An extended resource that no class offers."""
        name = request.device_class
        if not name:
            if near := meant_resource(context, request):
                yield self.finding(
                    request.path,
                    f'no class offers "{request.name}", but DeviceClass {offered(context)[near]} offers "{near}"'
                    if near in offered(context)
                    else f'"{request.name}" names no class: its domain must be {IMPLICIT_PREFIX.removesuffix("/")}',
                    fix=request.renamed(f'Write "{near}"', near),
                    on_key=True,
                )
            return
        if context.snapshot is not None and not context.snapshot.is_gap("DeviceClass"):
            return
        near = slip_of(name, _classes(context)) if not is_known_class(context, name) else ""
        if near:
            yield self.finding(
                request.path,
                f'DeviceClass "{name}" is not known; "{near}" is',
                fix=request.renamed(f'Write "{IMPLICIT_PREFIX}{near}"', f"{IMPLICIT_PREFIX}{near}"),
                on_key=True,
            )

    def _near(self, path: FieldPath, kind: str, name: str, names: tuple[str, ...]) -> Iterator[LintFinding]:
        near = slip_of(name, names)
        if near:
            yield self.finding(
                path,
                f'{kind} "{name}" is not known; "{near}" is',
                fix=Fix.guess(f'Write "{near}"', Set(path, near)),
            )


def _classes(context: Context) -> tuple[str, ...]:
    return (*context.given.names("DeviceClass"), *catalogue().classes)


def is_known_class(context: Context, name: str) -> bool:
    """Whether the manifests have a class, or a known driver installs it."""
    given = context.given.classes(name) or has_old_name(context, "DeviceClass", name)
    return bool(given) or catalogue().of_class(name) is not None


class OtherNamespace(
    Rule,
    code="DRA409",
    name="claim-in-another-namespace",
    severity="warning",
    kinds=("Pod",),
    scope="set",
    otherwise={"error": "the pod names its namespace", "info": "the other namespace is called default"},
):
    """A claim or template in another namespace than the pod."""

    def check(self, context: Context) -> Iterator[LintFinding]:
        own = context.item.namespace
        for reference in references(context):
            given = context.given.find(reference.kind, reference.target)
            places = {item.namespace for item in given}
            if not given or own in places or (own and "" in places):
                continue
            near = {item.namespace for item in given if item.place.file == context.item.place.file} or places
            near -= {""}
            first, *others = sorted(near)
            where = (
                first if not others else f"{first} and {len(others)} others" if others[1:] else f"{first}, {others[0]}"
            )
            holder = "workload" if context.item.is_template else "pod"
            own_text = f"namespace {own}" if own else "whatever namespace kubectl is set to"
            # Mostly that is the namespace called default.
            unset: Severity | None = "info" if first == "default" and not others else None
            yield self.finding(
                (*reference.path, reference.field),
                f"{reference.kind} {reference.target} is in namespace {where}, and the pod is in {own_text}",
                fix=f"Change metadata.namespace of the {holder} to {first}."
                if own
                else f"Put metadata.namespace: {first} on the {holder}.",
                severity="error" if own else unset,
            )


RULES = (
    UnusedClaim,
    UnknownRequest,
    ClaimOrTemplate,
    SharedClaim,
    FixedNodeName,
    SameClaimTwice,
    MissingName,
    OtherNamespace,
)
