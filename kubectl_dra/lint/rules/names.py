"""Names of objects that are nearly right, or right in another namespace."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from kubectl_dra.data.drivers import catalogue
from kubectl_dra.lint.analysis.claim_requests import CLAIM_KINDS, alternatives
from kubectl_dra.lint.analysis.kustomize_names import has_old_name
from kubectl_dra.lint.analysis.pod_claims import is_given, references
from kubectl_dra.lint.context import Context
from kubectl_dra.lint.finding import Fix, LintFinding, Severity
from kubectl_dra.lint.rule import Rule
from kubectl_dra.manifests.changes import Path, Set
from kubectl_dra.names import nearest


class MissingName(Rule):
    """A name that nearly matches another object."""

    code = "DRA406"
    name = "misspelt-name"
    severity = "warning"
    kinds = ("Pod", *CLAIM_KINDS)
    scope = "set"
    fixable = "unsafe"

    def check(self, context: Context) -> Iterator[LintFinding]:
        if context.item.kind == "Pod":
            for reference in references(context):
                if is_given(context, reference.kind, reference.target, context.item.namespace):
                    continue
                if has_old_name(context, reference.kind, reference.target):
                    continue
                names = context.world.names(reference.kind)
                yield from self._near((*reference.path, reference.field), reference.kind, reference.target, names)
            return
        for one in alternatives(context):
            name = one.content.get("deviceClassName")
            if (
                not isinstance(name, str)
                or not name
                or catalogue().of_class(name) is not None
                or context.world.classes(name)
                or has_old_name(context, "DeviceClass", name)
            ):
                continue
            if context.snapshot is not None and not context.snapshot.is_gap("DeviceClass"):
                continue
            names = (*context.world.names("DeviceClass"), *catalogue().classes)
            yield from self._near((*one.path, "deviceClassName"), "DeviceClass", name, names)

    def _near(self, path: Path, kind: str, name: str, names: tuple[str, ...]) -> Iterator[LintFinding]:
        near = _meant(name, names)
        if near:
            yield self.finding(
                path,
                f'{kind} "{name}" is not known; "{near}" is',
                fix=Fix(f'Write "{near}"', (Set(path, near),), "unsafe"),
            )


@lru_cache(maxsize=4096)
def _meant(name: str, names: tuple[str, ...]) -> str:
    """The name that was probably meant by a misspelled one; empty if there is none."""
    bound = _bound(name)
    near = [other for other in names if abs(len(other) - len(name)) <= bound and _slip(name, other)]
    return next(iter(nearest(name, near)), "")


class OtherNamespace(Rule):
    """A claim or template in another namespace than the pod."""

    code = "DRA409"
    name = "claim-in-another-namespace"
    severity = "warning"
    kinds = ("Pod",)
    scope = "set"

    def check(self, context: Context) -> Iterator[LintFinding]:
        own = context.item.namespace
        for reference in references(context):
            given = context.world.find(reference.kind, reference.target)
            places = {item.namespace for item in given}
            if not given or own in places or (own and "" in places):
                continue
            near = {item.namespace for item in given if item.place.file == context.item.place.file} or places
            near -= {""}
            first, *others = sorted(near)
            where = (
                first if not others else f"{first} and {len(others)} others" if others[1:] else f"{first}, {others[0]}"
            )
            own_text = f"namespace {own}" if own else "whatever namespace kubectl is set to"
            # Mostly that is the namespace called default.
            unset: Severity | None = "info" if first == "default" and not others else None
            yield self.finding(
                (*reference.path, reference.field),
                f"{reference.kind} {reference.target} is in namespace {where}, and the pod is in {own_text}",
                fix=f"Put metadata.namespace: {first} on the {'workload' if context.item.is_template else 'pod'}.",
                severity="error" if own else unset,
            )


def _slip(name: str, other: str) -> bool:
    """Whether two names differ only by a slip: a letter or two, not another word."""
    from kubectl_dra.names import edit_distance

    if len(name) < 4 > len(other):
        # c is no slip of j, and cpu none of gpu.
        return False
    first, second = name.partition(".")[0], other.partition(".")[0]
    if "." in name and first != second and len(first) == len(second) and sorted(first) != sorted(second):
        # cpu.example.com is no slip of gpu.example.com.
        return False
    if any(char.isdigit() for char in name + other) and _digits(name) != _digits(other):
        return False
    return name != other and edit_distance(name, other, _bound(name)) is not None


def _bound(name: str) -> int:
    return 1 if len(name) < 8 else 2


def _digits(text: str) -> str:
    return "".join(char for char in text if char.isdigit())


RULES = (MissingName, OtherNamespace)
