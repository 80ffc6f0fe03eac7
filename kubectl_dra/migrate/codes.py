"""The codes of migrate, in the order of the documentation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from msgspec import Struct

from kubectl_dra.data import code_pages
from kubectl_dra.data.code_pages import CodePage

Safety = Literal["safe", "unsafe"]
"""safe: the pod's devices, and where it can run, stay the same. unsafe: they probably do; people must judge."""
MIGRATE: Final = "MIG"
"""Prefix of the codes of migrate."""
FAMILIES: Final[Mapping[str, str]] = {
    "MIG1": "Device plugins",
    "MIG2": "Quotas and queues",
    "MIG3": "API versions",
    "MIG4": "Environment and runtime",
    "MIG5": "Back to device plugins",
    "MIG9": "What is left alone",
}
"""The title of each family of codes, by prefix."""

# Codes of the way back.

RESTORED: Final = "MIG501"
REMOVED: Final = "MIG502"
QUOTA: Final = "MIG503"
TOLERATION: Final = "MIG504"
LOST: Final = "MIG505"
NOT_OURS: Final = "MIG511"
NO_RESOURCE: Final = "MIG512"
NO_TEMPLATE: Final = "MIG513"
STILL_USED: Final = "MIG514"
STILL_COUNTED: Final = "MIG515"

# What changes in charts.

CHART_VALUES: Final = "MIG128"
CHART_TEMPLATE: Final = "MIG129"

# Why a whole file or object is left alone.

TEMPLATE: Final = "MIG901"
UNREADABLE: Final = "MIG902"
NOT_AN_OBJECT: Final = "MIG903"
NO_EDIT: Final = "MIG904"
NO_PLACE: Final = "MIG905"
NAME_TAKEN: Final = "MIG906"
REPEATED: Final = "MIG907"
PATCH: Final = "MIG908"
BUILD: Final = "MIG909"
CHART: Final = "MIG910"
WAY_OUT_BUILD: Final = (
    "change what is in the way in the overlay by hand, or give all that it reads to one run of migrate; compare what "
    "kubectl kustomize builds before and after"
)
WAY_OUT_PATCH: Final = (
    "migrate what it patches, look at what kubectl kustomize DIR | kubectl dra migrate - --diff makes of both "
    "together, then write the patch for that: of the count in the ResourceClaimTemplate, not of the limit"
)


class ChangePage(Struct, frozen=True):
    """A code of migrate; its texts are on its page, ``docs/changes/CODE.md``.

    ``either``: a safe change where migrate can make it, and a note where people have to.
    """

    code: str
    name: str
    safety: Safety | Literal["either", "note", "refusal"]

    @property
    def page(self) -> CodePage:
        """Its page."""
        return code_pages.page("changes", self.code)

    @property
    def title(self) -> str:
        """The change in a few words."""
        return self.page.title

    @property
    def why(self) -> str:
        """What changes, and why."""
        return self.page.head[-1]


CHANGES: Final = (
    ChangePage("MIG101", "claim-for-devices", "safe"),
    ChangePage("MIG102", "zero-devices", "safe"),
    ChangePage("MIG103", "claim-template", "safe"),
    ChangePage("MIG104", "shared-claim", "unsafe"),
    ChangePage("MIG105", "device-class-for-resource", "safe"),
    ChangePage("MIG106", "class-has-the-name", "note"),
    ChangePage("MIG107", "toleration-written-out", "safe"),
    ChangePage("MIG108", "pods-share-devices", "note"),
    ChangePage("MIG109", "patch-without-request", "safe"),
    ChangePage("MIG110", "claim-patched", "safe"),
    ChangePage("MIG111", "unknown-resource", "refusal"),
    ChangePage("MIG112", "needs-an-answer", "refusal"),
    ChangePage("MIG113", "no-device-for-it", "refusal"),
    ChangePage("MIG114", "no-number-of-devices", "refusal"),
    ChangePage("MIG115", "request-and-limit", "refusal"),
    ChangePage("MIG116", "placement-not-translated", "refusal"),
    ChangePage("MIG117", "no-name", "refusal"),
    ChangePage("MIG118", "vendor-in-part", "refusal"),
    ChangePage("MIG119", "not-to-be-shared", "refusal"),
    ChangePage("MIG120", "kind-without-claims", "refusal"),
    ChangePage("MIG121", "unknown-kind", "refusal"),
    ChangePage("MIG122", "no-class-for-resource", "refusal"),
    ChangePage("MIG123", "manifest-in-text", "note"),
    ChangePage("MIG124", "claim-beside-resource", "refusal"),
    ChangePage("MIG125", "not-a-list", "refusal"),
    ChangePage("MIG126", "named-elsewhere", "note"),
    ChangePage("MIG127", "claims-of-an-overlay", "safe"),
    ChangePage("MIG128", "chart-values", "safe"),
    ChangePage("MIG129", "chart-template", "safe"),
    ChangePage("MIG130", "vendor-advice", "note"),
    ChangePage("MIG131", "label-stays", "note"),
    ChangePage("MIG132", "needs-newer-controller", "note"),
    ChangePage("MIG133", "claims-and-plugins", "note"),
    ChangePage("MIG134", "controller-needs-telling", "either"),
    ChangePage("MIG135", "template-in-each-namespace", "note"),
    ChangePage("MIG136", "queue-must-map-classes", "note"),
    ChangePage("MIG137", "generated-name", "note"),
    ChangePage("MIG138", "needs-gate", "note"),
    ChangePage("MIG139", "names-followed", "safe"),
    ChangePage("MIG140", "node-pool-limit", "note"),
    ChangePage("MIG141", "autoscaler", "note"),
    ChangePage("MIG142", "no-preemption-for-devices", "note"),
    ChangePage("MIG143", "device-was-shared", "note"),
    ChangePage("MIG144", "label-goes", "safe"),
    ChangePage("MIG201", "quota-counts-claims", "safe"),
    ChangePage("MIG202", "quota-key-counts-nothing", "note"),
    ChangePage("MIG203", "limit-range", "note"),
    ChangePage("MIG204", "old-quota-stays", "note"),
    ChangePage("MIG205", "kueue-mapping", "note"),
    ChangePage("MIG206", "volcano-queue", "safe"),
    ChangePage("MIG207", "no-quota-for-it", "refusal"),
    ChangePage("MIG208", "quota-waits", "note"),
    ChangePage("MIG301", "api-version", "safe"),
    ChangePage("MIG302", "pod-claim-source", "safe"),
    ChangePage("MIG303", "dropped-field", "unsafe"),
    ChangePage("MIG304", "classic", "unsafe"),
    ChangePage("MIG305", "wrong-version", "unsafe"),
    ChangePage("MIG306", "classic-parameters", "refusal"),
    ChangePage("MIG307", "kind-gone", "refusal"),
    ChangePage("MIG308", "immediate-allocation", "note"),
    ChangePage("MIG309", "unclear", "refusal"),
    ChangePage("MIG310", "taint-rule-selector", "refusal"),
    ChangePage("MIG401", "environment-variable", "either"),
    ChangePage("MIG402", "runtime-class", "either"),
    ChangePage("MIG403", "annotation", "either"),
    ChangePage("MIG404", "devices-past-the-claim", "note"),
    ChangePage("MIG405", "scheduler-name", "either"),
    ChangePage("MIG501", "claims-to-plugin", "safe"),
    ChangePage("MIG502", "claim-object-removed", "safe"),
    ChangePage("MIG503", "quota-key-removed", "safe"),
    ChangePage("MIG504", "toleration-may-go", "unsafe"),
    ChangePage("MIG505", "not-restored", "note"),
    ChangePage("MIG511", "not-made-by-migrate", "refusal"),
    ChangePage("MIG512", "no-resource-for-claim", "refusal"),
    ChangePage("MIG513", "claim-not-read", "refusal"),
    ChangePage("MIG514", "claim-object-stays", "note"),
    ChangePage("MIG515", "quota-still-counts", "note"),
    ChangePage("MIG901", "template", "refusal"),
    ChangePage("MIG902", "unreadable", "refusal"),
    ChangePage("MIG903", "not-an-object", "refusal"),
    ChangePage("MIG904", "no-edit", "refusal"),
    ChangePage("MIG905", "no-place", "refusal"),
    ChangePage("MIG906", "name-taken", "refusal"),
    ChangePage("MIG907", "repeated-key", "refusal"),
    ChangePage("MIG908", "patch", "refusal"),
    ChangePage("MIG909", "kustomization", "refusal"),
    ChangePage("MIG910", "chart", "refusal"),
)
"""All codes, in order."""
PAGES: Final[Mapping[str, ChangePage]] = {page.code: page for page in CHANGES}
