"""Names of objects that are nearly right, or right in another namespace."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_dra.allocation.extended_resources import IMPLICIT_PREFIX
from kubectl_dra.api.schema import FieldPath
from kubectl_dra.data.drivers import catalogue
from kubectl_dra.lint.analysis.claim_requests import CLAIM_KINDS, alternatives, is_given, references
from kubectl_dra.lint.analysis.extended_requests import ExtendedRequest, extended_requests, meant_resource, offered
from kubectl_dra.lint.analysis.kustomized import has_old_name
from kubectl_dra.lint.analysis.slips import meant
from kubectl_dra.lint.context import Context
from kubectl_dra.lint.finding import Fix, LintFinding, Severity
from kubectl_dra.lint.rule import Rule
from kubectl_dra.manifests.changes import Set


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
        for alternative in alternatives(context):
            name = alternative.content.get("deviceClassName")
            if not isinstance(name, str) or not name or is_known_class(context, name):
                continue
            if context.snapshot is not None and not context.snapshot.is_gap("DeviceClass"):
                continue
            yield from self._near((*alternative.path, "deviceClassName"), "DeviceClass", name, _classes(context))

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
        near = meant(name, _classes(context)) if not is_known_class(context, name) else ""
        if near:
            yield self.finding(
                request.path,
                f'DeviceClass "{name}" is not known; "{near}" is',
                fix=request.renamed(f'Write "{IMPLICIT_PREFIX}{near}"', f"{IMPLICIT_PREFIX}{near}"),
                on_key=True,
            )

    def _near(self, path: FieldPath, kind: str, name: str, names: tuple[str, ...]) -> Iterator[LintFinding]:
        near = meant(name, names)
        if near:
            yield self.finding(
                path,
                f'{kind} "{name}" is not known; "{near}" is',
                fix=Fix(f'Write "{near}"', (Set(path, near),), "unsafe"),
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


RULES = (MissingName, OtherNamespace)
