"""Why a whole file or object is left alone."""

from __future__ import annotations

from typing import Final

from kubectl_dra.migrate.model import ChangePage

TEMPLATE: Final = "MIG901"
UNREADABLE: Final = "MIG902"
NOT_AN_OBJECT: Final = "MIG903"
NO_EDIT: Final = "MIG904"
NO_PLACE: Final = "MIG905"
NAME_TAKEN: Final = "MIG906"
REPEATED: Final = "MIG907"
PATCH: Final = "MIG908"
BUILD: Final = "MIG909"

WAY_OUT_BUILD: Final = (
    "change what is in the way in the overlay by hand, or give all that it reads to one run of migrate; compare what "
    "kubectl kustomize builds before and after"
)

WAY_OUT_PATCH: Final = (
    "migrate what it patches, look at what kubectl kustomize DIR | kubectl dra migrate - --diff makes of both "
    "together, then write the patch for that: of the count in the ResourceClaimTemplate, not of the limit"
)

ABOUT: Final = (
    ChangePage(TEMPLATE, "template", "refusal"),
    ChangePage(UNREADABLE, "unreadable", "refusal"),
    ChangePage(NOT_AN_OBJECT, "not-an-object", "refusal"),
    ChangePage(NO_EDIT, "no-edit", "refusal"),
    ChangePage(NO_PLACE, "no-place", "refusal"),
    ChangePage(NAME_TAKEN, "name-taken", "refusal"),
    ChangePage(REPEATED, "repeated-key", "refusal"),
    ChangePage(PATCH, "patch", "refusal"),
    ChangePage(BUILD, "kustomization", "refusal"),
)
