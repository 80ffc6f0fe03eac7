"""Problems of files rather than objects. The engine finds them; this module documents them."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_dra.api.releases import GROUP
from kubectl_dra.lint.analysis.claim_requests import CLAIM_KINDS
from kubectl_dra.lint.analysis.kustomized import CLASS, OldName, field_spec, old_names
from kubectl_dra.lint.context import Context
from kubectl_dra.lint.finding import LintFinding
from kubectl_dra.lint.rule import Rule
from kubectl_dra.manifests.inputs import KUSTOMIZED


class FileRule(Rule):
    """A rule about a whole file."""

    def check(self, context: Context) -> Iterator[LintFinding]:
        return iter(())


class Unreadable(FileRule, code="DRA901", name="unreadable-manifest", severity="error"):
    """Text that is not a manifest."""


class DuplicateKey(FileRule, code="DRA902", name="duplicate-key", severity="warning"):
    """A duplicate key."""


class UnusedSuppression(FileRule, code="DRA903", name="unused-suppression", severity="warning"):
    """A comment that silences nothing."""


class BadSuppression(FileRule, code="DRA904", name="malformed-suppression", severity="warning"):
    """A comment that cannot be understood."""


class TooLarge(FileRule, code="DRA905", name="file-too-large", severity="error"):
    """A file that is too large to check."""


class Unavailable(FileRule, code="DRA906", name="file-not-readable", severity="error"):
    """A file or directory that cannot be read."""


# What kustomize does to references between DRA objects, whose fields it does not know.


class RenamedByBuild(
    Rule,
    code="DRA412",
    name="renamed-by-kustomize",
    severity="error",
    kinds=("Pod", *CLAIM_KINDS),
    scope="set",
    otherwise={"warning": "the files are read without a build (-k)"},
):
    """A name from before kustomize added a prefix or suffix."""

    def check(self, context: Context) -> Iterator[LintFinding]:
        for old in old_names(context):
            yield self.finding(
                old.path,
                f"{old.kind} {old.name} is called {old.renamed.name} after the build, and this still says {old.name}",
                fix=_advice(context, old),
                # Only of a build it is certain that kustomize gave the names.
                severity=None if context.item.place.file.endswith(KUSTOMIZED) else "warning",
            )


def _advice(context: Context, old_name: OldName) -> str:
    if old_name.kind == CLASS and old_name.renamed.namespace != context.item.namespace:
        # Kustomize takes unknown kinds for namespaced ones, and follows names inside one namespace.
        return (
            f"Build {CLASS} {old_name.name} by a kustomization without namePrefix and nameSuffix: kustomize takes a "
            "class for an object of a namespace, and follows no reference from one namespace to another."
        )
    return (
        "Write in kustomization.yaml: configurations: [dra-names.yaml], and in dra-names.yaml: nameReference: "
        f"[{{group: {GROUP}, kind: {old_name.kind}, fieldSpecs: [{field_spec(context.item, old_name.path)}]}}]"
    )


RULES = (Unreadable, DuplicateKey, UnusedSuppression, BadSuppression, TooLarge, Unavailable, RenamedByBuild)
