"""Converts resource.k8s.io objects to the requested API version, and pods' claims to the form without ``source``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kubectl_dra.api.codec import mismatch
from kubectl_dra.api.fields import KINDS
from kubectl_dra.api.releases import GROUP, lifecycle, versions_of
from kubectl_dra.manifests.changes import Path, Set, Unwrap, value_at
from kubectl_dra.manifests.workloads import pod_specs
from kubectl_dra.migrate.model import (
    ChangePage,
    Migration,
    MigrationSettings,
    Note,
    ObjectPlan,
    PlanRefusal,
    PlanSurroundings,
    Step,
)
from kubectl_dra.migrate.versions import classic
from kubectl_dra.migrate.versions.shapes import FLAT, Conversion, Unclear, conversion

VERSION: Final = "MIG301"
SOURCE: Final = "MIG302"
DROPPED: Final = "MIG303"
FOREIGN: Final = "MIG305"
UNCLEAR: Final = "MIG309"
RULE: Final = "MIG310"

_ORDER: Final = ("v1alpha3", "v1beta1", "v1beta2", "v1")
_RULE_FIELDS: Final = ("deviceClassName", "selectors")


def plan(raw: Mapping[str, Any], surroundings: PlanSurroundings, settings: MigrationSettings) -> ObjectPlan:
    """The migration of one object: a resource.k8s.io object to the version, or a pod's claims out of ``source``."""
    if settings.reverse:
        return ObjectPlan()
    group, _, version = str(raw["apiVersion"]).partition("/")
    if group != GROUP:
        return _pods(raw)
    kind = str(raw["kind"])
    if version in classic.VERSIONS:
        return classic.plan(raw, settings.version)
    target = _target(kind, settings)
    if kind == "PodSchedulingContext":
        return classic.gone(kind) or ObjectPlan()
    if kind not in KINDS or version not in _ORDER or target == version:
        return ObjectPlan()
    if target is None:
        way_out = f"Kubernetes {settings.release} has no {kind} in a version that migrate writes"
        return ObjectPlan(refusals=(PlanRefusal(UNCLEAR, ("apiVersion",), f"{version} has no successor", way_out),))
    if target not in FLAT and _ORDER.index(version) > _ORDER.index(target) and not _older_wanted(settings):
        return ObjectPlan()
    return _converted(raw, kind, version, target)


def _older_wanted(settings: MigrationSettings) -> bool:
    return settings.version != "v1"


def _target(kind: str, settings: MigrationSettings) -> str | None:
    """The requested version, or the release's newest for kinds that lack it."""
    entry = lifecycle(settings.version, kind)
    if entry is not None and entry.exists(settings.release):
        return settings.version
    return next(iter(versions_of(kind, settings.release)), None)


def _converted(raw: Mapping[str, Any], kind: str, version: str, target: str) -> ObjectPlan:
    if kind == "DeviceTaintRule":
        gone = [key for key in _RULE_FIELDS if value_at(raw, ("spec", "deviceSelector", key))]
        if gone:
            path = ("spec", "deviceSelector", gone[0])
            message = f"a DeviceTaintRule selects by driver, pool and device only, since 1.35; this has {gone[0]}"
            way_out = "name the driver, pool or device that is meant; one rule for each"
            return ObjectPlan(refusals=(PlanRefusal(RULE, path, message, way_out),))
    try:
        made = conversion(raw, version, target)
    except Unclear as unclear:
        return ObjectPlan(refusals=(PlanRefusal(UNCLEAR, unclear.path, str(unclear), unclear.way_out),))
    if not made.foreign and (wrong := mismatch(raw, kind, version)) is not None:
        way_out = "correct it, then run migrate again; kubectl dra lint says more"
        return ObjectPlan(refusals=(PlanRefusal(UNCLEAR, wrong.path, str(wrong), way_out),))
    changes = (Set(("apiVersion",), f"{GROUP}/{target}"), *made.changes)
    code, reason, unsafe = _reason(made, version, target)
    step = Step(code, ("apiVersion",), reason, changes, "unsafe" if unsafe else "safe")
    return ObjectPlan(steps=(step,))


def _reason(made: Conversion, version: str, target: str) -> tuple[str, str, bool]:
    if made.foreign:
        return FOREIGN, f"It says {version} but is written in the shape of {target}: only apiVersion is wrong.", True
    if made.dropped:
        names = ", ".join(str(path[-1]) for path in made.dropped)
        return DROPPED, f"{version} to {target}; {names} has no successor and is dropped, as by the server.", True
    return VERSION, f"{version} to {target}, as the API server converts it.", False


# --- pods ----------------------------------------------------------------------------------------


def _pods(raw: Mapping[str, Any]) -> ObjectPlan:
    steps: list[Step] = []
    refusals: list[PlanRefusal] = []
    notes: list[Note] = []
    for path, source, entry in _sources(raw):
        both = [key for key in source if key in entry]
        if both:
            message = f"{both[0]} stands in source and beside it"
            refusals.append(PlanRefusal(UNCLEAR, path, message, "keep one of the two"))
        elif source:
            names = " and ".join(str(key) for key in source)
            reason = f"{names} stands in the entry itself since 1.31; source is unknown and is refused or dropped."
            steps.append(Step(SOURCE, path, reason, (Unwrap(path),)))
        else:
            way_out = "write resourceClaimName or resourceClaimTemplateName in the entry"
            refusals.append(PlanRefusal(UNCLEAR, path, "source is empty: the entry names no claim", way_out))
    return ObjectPlan(tuple(steps), (), tuple(notes), tuple(refusals))


def _sources(raw: Mapping[str, Any]) -> Iterator[tuple[Path, Mapping[str, Any], Mapping[str, Any]]]:
    for found in pod_specs(raw):
        claims = found.content.get("resourceClaims")
        for index, entry in enumerate(claims if isinstance(claims, list) else ()):
            if isinstance(entry, Mapping) and isinstance(entry.get("source"), Mapping):
                yield (*found.path, "resourceClaims", index, "source"), entry["source"], entry


MIGRATION: Final = Migration(
    "versions",
    plan,
    (
        ChangePage(VERSION, "api-version", "safe"),
        ChangePage(SOURCE, "pod-claim-source", "safe"),
        ChangePage(DROPPED, "dropped-field", "unsafe"),
        ChangePage(classic.REWRITTEN, "classic", "unsafe"),
        ChangePage(FOREIGN, "wrong-version", "unsafe"),
        ChangePage(classic.PARAMETERS, "classic-parameters", "refusal"),
        ChangePage(classic.GONE, "kind-gone", "refusal"),
        ChangePage(classic.IMMEDIATE, "immediate-allocation", "note"),
        ChangePage(UNCLEAR, "unclear", "refusal"),
        ChangePage(RULE, "taint-rule-selector", "refusal"),
    ),
)
