"""Converts resource.k8s.io objects to the requested API version, and pods' claims to the form without ``source``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from kubectl_dra.admission.server.decoding import decoding_errors
from kubectl_dra.api.codec import mismatch, quoted
from kubectl_dra.api.dra_fields import KINDS, fields_at
from kubectl_dra.api.limits import MAX_LABEL
from kubectl_dra.api.releases import GROUP, Release, lifecycle, versions_of
from kubectl_dra.api.schema import FieldPath
from kubectl_dra.lint.analysis.claim_requests import classic_advice
from kubectl_dra.manifests.changes import Change, Delete, Set, Unwrap, items_at, value_at
from kubectl_dra.manifests.workloads import pod_specs
from kubectl_dra.migrate.model import MigrationSettings, Note, ObjectPlan, PlanRefusal, PlanSurroundings, Step
from kubectl_dra.migrate.version_shapes import FLAT, Conversion, Unclear, conversion

VERSION: Final = "MIG301"
SOURCE: Final = "MIG302"
DROPPED: Final = "MIG303"
FOREIGN: Final = "MIG305"
UNCLEAR: Final = "MIG309"
RULE: Final = "MIG310"

_CORRECT: Final = "correct it, then run migrate again; kubectl dra lint says more"
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
    if version in CLASSIC_VERSIONS:
        return classic_plan(raw, settings.version)
    target = _target(kind, settings)
    if kind == "PodSchedulingContext":
        return gone(kind) or ObjectPlan()
    if kind not in KINDS or version not in _ORDER or target == version:
        return ObjectPlan()
    if target is None:
        way_out = f"Kubernetes {settings.release} has no {kind} in a version that migrate writes"
        return ObjectPlan(refusals=(PlanRefusal(UNCLEAR, ("apiVersion",), f"{version} has no successor", way_out),))
    if target not in FLAT and _ORDER.index(version) > _ORDER.index(target) and settings.version == "v1":
        return ObjectPlan()
    return _converted(raw, version, target, surroundings, settings)


def _target(kind: str, settings: MigrationSettings) -> str | None:
    """The requested version, or the release's newest for kinds that lack it."""
    life = lifecycle(settings.version, kind)
    if life is not None and life.exists(settings.release):
        return settings.version
    return next(iter(versions_of(kind, settings.release)), None)


def _converted(
    raw: Mapping[str, Any], version: str, target: str, surroundings: PlanSurroundings, settings: MigrationSettings
) -> ObjectPlan:
    kind = str(raw["kind"])
    if kind == "DeviceTaintRule":
        gone = [key for key in _RULE_FIELDS if value_at(raw, ("spec", "deviceSelector", key))]
        if gone:
            path = ("spec", "deviceSelector", gone[0])
            message = f"a DeviceTaintRule selects by driver, pool and device only, since 1.35; this has {gone[0]}"
            way_out = "name the driver, pool or device that is meant; one rule for each"
            return ObjectPlan(refusals=(PlanRefusal(RULE, path, message, way_out),))
    try:
        converted = conversion(raw, version, target)
    except Unclear as unclear:
        return ObjectPlan(refusals=(PlanRefusal(UNCLEAR, unclear.path, str(unclear), unclear.way_out),))
    if not converted.foreign and (wrong := mismatch(raw, kind, version)) is not None:
        return ObjectPlan(refusals=(PlanRefusal(UNCLEAR, wrong.path, str(wrong), _CORRECT),))
    # A patch has fields of its own, which say what to do with others.
    read_as = target if converted.foreign else version
    if not surroundings.patch and (unknown := _unknown(raw, read_as, (version, target), settings.release)):
        names = ", ".join(dict.fromkeys(str(path[-1]) for path in unknown))
        message = f"has fields that {read_as} does not know ({names}): strict validation rejects the object"
        return ObjectPlan(refusals=(PlanRefusal(UNCLEAR, unknown[0], message, _CORRECT),))
    changes = (Set(("apiVersion",), f"{GROUP}/{target}"), *converted.changes)
    code, reason, unsafe = _reason(converted, version, target)
    step = Step(code, ("apiVersion",), reason, changes, "unsafe" if unsafe else "safe")
    return ObjectPlan(steps=(step,))


def _unknown(raw: Mapping[str, Any], read_as: str, versions: Sequence[str], release: Release) -> list[FieldPath]:
    """The fields that no release of the versions has, in an object of one of them."""
    kind = str(raw["kind"])
    found = [
        violation.path
        for violation in decoding_errors(raw, GROUP, read_as, release)
        if violation.rule == "unknown-field"
    ]
    return [path for path in found if all(path[-1] not in fields_at(kind, version, path[:-1]) for version in versions)]


def _reason(conversion: Conversion, version: str, target: str) -> tuple[str, str, bool]:
    if conversion.foreign:
        return FOREIGN, f"It says {version} but is written in the shape of {target}: only apiVersion is wrong.", True
    if conversion.dropped:
        names = ", ".join(str(path[-1]) for path in conversion.dropped)
        return DROPPED, f"{version} to {target}; {names} has no successor and is dropped, as by the server.", True
    return VERSION, f"{version} to {target}, as the API server converts it.", False


# --- pods ----------------------------------------------------------------------------------------


def _pods(raw: Mapping[str, Any]) -> ObjectPlan:
    steps: list[Step] = []
    refusals: list[PlanRefusal] = []
    notes: list[Note] = []
    for path, source, pod_claim in _sources(raw):
        both = [key for key in source if key in pod_claim]
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


def _sources(raw: Mapping[str, Any]) -> Iterator[tuple[FieldPath, Mapping[str, Any], Mapping[str, Any]]]:
    for spec in pod_specs(raw):
        for index, pod_claim in enumerate(items_at(spec.content, "resourceClaims")):
            if isinstance(pod_claim, Mapping) and isinstance(pod_claim.get("source"), Mapping):
                yield (*spec.path, "resourceClaims", index, "source"), pod_claim["source"], pod_claim


# Objects of v1alpha1 and v1alpha2, "classic" DRA: no server ever converted them, so they are written anew.
#
# A ResourceClass becomes a DeviceClass with a selector, a claim for a class becomes a claim with one request.
# Only a driver's controller understood parameter objects; people must express them as selectors.


CLASSIC_VERSIONS: Final = ("v1alpha1", "v1alpha2")
REWRITTEN: Final = "MIG304"
PARAMETERS: Final = "MIG306"
GONE: Final = "MIG307"
IMMEDIATE: Final = "MIG308"

_GONE: Final[Mapping[str, str]] = {
    "PodSchedulingContext": "delete the object: the scheduler allocates by itself since 1.32",
    "PodScheduling": "delete the object: the scheduler allocates by itself since 1.32",
    "ResourceSlice": "leave it out: drivers publish their ResourceSlices themselves, with their new version",
    "ResourceClaimParameters": "write what it asks for as requests and selectors of the claims that refer to it; the "
    'new form of attributes.string["model"] is device.attributes["DRIVER"].model',
    "ResourceClassParameters": "write its filters as selectors, and its parameters as config[].opaque.parameters, of "
    "the DeviceClass",
}
_CLASS_FIELDS: Final = ("apiVersion", "kind", "metadata", "driverName", "structuredParameters")
_CLAIM_FIELDS: Final = ("resourceClassName", "allocationMode")
_META: Final = ("labels", "annotations")


def gone(kind: str) -> ObjectPlan | None:
    """The refusal of a kind that cannot be rewritten; None for other kinds."""
    if kind not in _GONE:
        return None
    return ObjectPlan(
        refusals=(PlanRefusal(GONE, ("kind",), f"{kind} has no successor in newer versions", _GONE[kind]),)
    )


def classic_plan(raw: Mapping[str, Any], version: str) -> ObjectPlan:
    """Rewrite one object into ``version``."""
    kind = str(raw["kind"])
    plan = gone(kind)
    if plan is not None:
        return plan
    if kind == "ResourceClass":
        return _class(raw, version)
    if kind == "ResourceClaim":
        return _claim(raw, ("spec",), version)
    return _claim(raw, ("spec", "spec"), version)


def _class(raw: Mapping[str, Any], version: str) -> ObjectPlan:
    driver = raw.get("driverName")
    if not isinstance(driver, str) or not driver:
        way_out = "say which driver it is for, then run migrate again"
        return _refused((), "the ResourceClass has no driverName", way_out)
    refusal = _class_parameters(raw, driver)
    if refusal is not None:
        return ObjectPlan(refusals=(refusal,))
    changes: list[Change] = [
        Set(("apiVersion",), f"{GROUP}/{version}"),
        Set(("kind",), "DeviceClass"),
        *(Delete((key,)) for key in ("driverName", "structuredParameters") if key in raw),
        Set(("spec",), {"selectors": [{"cel": {"expression": f"device.driver == {quoted(driver)}"}}]}),
    ]
    reason = f"A ResourceClass for driver {driver} becomes a DeviceClass that selects the driver's devices."
    return ObjectPlan(steps=(Step(REWRITTEN, ("apiVersion",), reason, tuple(changes), "unsafe"),))


def _class_parameters(raw: Mapping[str, Any], driver: str) -> PlanRefusal | None:
    reference = raw.get("parametersRef")
    if reference:
        way_out = (
            "write a DeviceClass: what the parameters select as spec.selectors[].cel.expression, what they set as "
            f"spec.config[].opaque with driver {driver}"
        )
        return PlanRefusal(
            PARAMETERS, ("parametersRef",), f"only the driver knows what {_name(reference)} says", way_out
        )
    if raw.get("suitableNodes"):
        way_out = "say by selectors which devices are meant, and by nodeSelector of the pods which nodes"
        return PlanRefusal(
            PARAMETERS, ("suitableNodes",), "a DeviceClass has no node selector, the class has one", way_out
        )
    other = next((key for key in raw if key not in (*_CLASS_FIELDS, "parametersRef", "suitableNodes")), None)
    if other is not None:
        return PlanRefusal(PARAMETERS, (other,), f"a ResourceClass has no field {other}", "take it out")
    return None


def _claim(raw: Mapping[str, Any], path: FieldPath, version: str) -> ObjectPlan:
    spec = value_at(raw, path)
    name = spec.get("resourceClassName") if isinstance(spec, Mapping) else None
    if not isinstance(spec, Mapping) or not isinstance(name, str) or not name:
        return _refused(path, "the claim names no resourceClassName", "say which DeviceClass it asks for")
    for field in ("parametersRef", "parameters"):
        if spec.get(field):
            advice = classic_advice(spec, version)
            way_out = f"{advice[:1].lower()}{advice[1:]}".removesuffix(".")
            message = f"only the driver knows what {_name(spec[field])} asks for"
            return ObjectPlan(refusals=(PlanRefusal(PARAMETERS, (*path, field), message, way_out),))
    other = next((key for key in spec if key not in (*_CLAIM_FIELDS, "parametersRef", "parameters")), None)
    if other is not None:
        return _refused((*path, other), f"a claim of this version has no field {other}", "take it out")
    request = {"name": _label(name), "exactly": {"deviceClassName": name}}
    if version in ("v1beta1", "v1alpha3"):
        request = {"name": _label(name), "deviceClassName": name}
    changes: list[Change] = [
        Set(("apiVersion",), f"{GROUP}/{version}"),
        *(Delete((*path, key)) for key in spec),
        Set((*path, "devices"), {"requests": [request]}),
        *([Delete(("status",))] if "status" in raw else []),
    ]
    reason = f"A claim for resource class {name} becomes a claim with one request for the device class of that name."
    notes: Sequence[Note] = ()
    if spec.get("allocationMode") == "Immediate":
        message = "devices were allocated as soon as the claim was there; now they are when the first pod needs them"
        notes = (Note(IMMEDIATE, (*path, "allocationMode"), message, done=True),)
    return ObjectPlan(steps=(Step(REWRITTEN, ("apiVersion",), reason, tuple(changes), "unsafe"),), notes=tuple(notes))


def _refused(path: FieldPath, message: str, way_out: str) -> ObjectPlan:
    return ObjectPlan(refusals=(PlanRefusal(PARAMETERS, path, message, way_out),))


def _name(reference: Any) -> str:
    if not isinstance(reference, Mapping):
        return "it"
    return " ".join(str(reference[key]) for key in ("kind", "name") if reference.get(key)) or "it"


def _label(name: str) -> str:
    """A request name derived from a class: its first part, which is a DNS label."""
    first = name.partition(".")[0][:MAX_LABEL].strip("-")
    return first if first and first.replace("-", "a").isalnum() and first == first.lower() else "device"
