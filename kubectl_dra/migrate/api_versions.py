"""Converts resource.k8s.io objects to the requested API version, and pods' claims to the form without ``source``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from kubectl_dra.admission.server.decoding import decoding_errors
from kubectl_dra.api.codec import mismatch, quoted
from kubectl_dra.api.dra_fields import KINDS, fields
from kubectl_dra.api.dra_fields import fields_at as known_fields
from kubectl_dra.api.limits import MAX_LABEL
from kubectl_dra.api.releases import GROUP, Release, lifecycle, versions_of
from kubectl_dra.api.schema import FieldPath
from kubectl_dra.lint.analysis.claim_requests import classic_advice
from kubectl_dra.manifests.changes import (
    MISSING,
    Change,
    Delete,
    Enclose,
    Set,
    Unwrap,
    Wrap,
    fields_at,
    found_at,
    items_at,
    value_at,
)
from kubectl_dra.manifests.workloads import CLAIM_SPECS, pod_specs
from kubectl_dra.migrate.model import MigrationSettings, Note, ObjectPlan, PlanRefusal, PlanSurroundings, Step

VERSION: Final = "MIG301"
SOURCE: Final = "MIG302"
DROPPED: Final = "MIG303"
FOREIGN: Final = "MIG305"
UNCLEAR: Final = "MIG309"
RULE: Final = "MIG310"

_CORRECT: Final = "correct it, then run migrate again; kubectl dra lint says more"
_ORDER: Final = ("v1alpha3", "v1beta1", "v1beta2", "v1")


def plan(raw: Mapping[str, Any], surroundings: PlanSurroundings, settings: MigrationSettings) -> ObjectPlan:
    """The migration of one object: a resource.k8s.io object to the version, or a pod's claims out of ``source``."""
    if settings.reverse:
        return ObjectPlan()
    group, _, version = str(raw["apiVersion"]).partition("/")
    if group != GROUP:
        return _pods(raw)
    kind = str(raw["kind"])
    if version in _CLASSIC_VERSIONS:
        return _classic(raw, settings.version)
    target = _target(kind, settings)
    if kind == "PodSchedulingContext":
        return _gone(kind)
    if kind not in KINDS or version not in _ORDER or target == version:
        return ObjectPlan()
    if target is None:
        way_out = f"Kubernetes {settings.release} has no {kind} in a version that migrate writes"
        return _refused(("apiVersion",), f"{version} has no successor", way_out, UNCLEAR)
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
        gone = [key for key in ("deviceClassName", "selectors") if value_at(raw, ("spec", "deviceSelector", key))]
        if gone:
            path = ("spec", "deviceSelector", gone[0])
            message = f"a DeviceTaintRule selects by driver, pool and device only, since 1.35; this has {gone[0]}"
            way_out = "name the driver, pool or device that is meant; one rule for each"
            return _refused(path, message, way_out, RULE)
    try:
        converted = conversion(raw, version, target)
    except Unclear as unclear:
        return _refused(unclear.path, str(unclear), unclear.way_out, UNCLEAR)
    if not converted.foreign and (wrong := mismatch(raw, kind, version)) is not None:
        return _refused(wrong.path, str(wrong), _CORRECT, UNCLEAR)
    # A patch has fields of its own, which say what to do with others.
    read_as = target if converted.foreign else version
    if not surroundings.patch and (unknown := _unknown(raw, read_as, (version, target), settings.release)):
        names = ", ".join(dict.fromkeys(str(path[-1]) for path in unknown))
        message = f"has fields that {read_as} does not know ({names}): strict validation rejects the object"
        return _refused(unknown[0], message, _CORRECT, UNCLEAR)
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
    return [
        path for path in found if all(path[-1] not in known_fields(kind, version, path[:-1]) for version in versions)
    ]


def _reason(conversion: Conversion, version: str, target: str) -> tuple[str, str, bool]:
    if conversion.foreign:
        return FOREIGN, f"It says {version} but is written in the shape of {target}: only apiVersion is wrong.", True
    if conversion.dropped:
        names = ", ".join(str(path[-1]) for path in conversion.dropped)
        return DROPPED, f"{version} to {target}; {names} has no successor and is dropped, as by the server.", True
    return VERSION, f"{version} to {target}, as the API server converts it.", False


def _pods(raw: Mapping[str, Any]) -> ObjectPlan:
    steps: list[Step] = []
    refusals: list[PlanRefusal] = []
    for spec in pod_specs(raw):
        for index, pod_claim in enumerate(items_at(spec.content, "resourceClaims")):
            source = value_at(pod_claim, ("source",))
            if not isinstance(source, Mapping):
                continue
            path = (*spec.path, "resourceClaims", index, "source")
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
    return ObjectPlan(tuple(steps), refusals=tuple(refusals))


# Objects of v1alpha1 and v1alpha2, "classic" DRA: no server ever converted them, so they are written anew.
#
# A ResourceClass becomes a DeviceClass with a selector, a claim for a class becomes a claim with one request.
# Only a driver's controller understood parameter objects; people must express them as selectors.


_CLASSIC_VERSIONS: Final = ("v1alpha1", "v1alpha2")
_REWRITTEN: Final = "MIG304"
PARAMETERS: Final = "MIG306"
GONE: Final = "MIG307"
_IMMEDIATE: Final = "MIG308"

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


def _gone(kind: str) -> ObjectPlan:
    """The refusal of a kind that cannot be rewritten."""
    return _refused(("kind",), f"{kind} has no successor in newer versions", _GONE[kind], GONE)


def _classic(raw: Mapping[str, Any], version: str) -> ObjectPlan:
    """Rewrite one object into ``version``."""
    kind = str(raw["kind"])
    if kind in _GONE:
        return _gone(kind)
    return (
        _class(raw, version)
        if kind == "ResourceClass"
        else _claim(raw, CLAIM_SPECS.get(kind, ("spec", "spec")), version)
    )


def _class(raw: Mapping[str, Any], version: str) -> ObjectPlan:
    driver = raw.get("driverName")
    if not isinstance(driver, str) or not driver:
        return _refused((), "the ResourceClass has no driverName", "say which driver it is for, then run migrate again")
    if reference := raw.get("parametersRef"):
        way_out = (
            "write a DeviceClass: what the parameters select as spec.selectors[].cel.expression, what they set as "
            f"spec.config[].opaque with driver {driver}"
        )
        return _refused(("parametersRef",), f"only the driver knows what {_name(reference)} says", way_out)
    if raw.get("suitableNodes"):
        way_out = "say by selectors which devices are meant, and by nodeSelector of the pods which nodes"
        return _refused(("suitableNodes",), "a DeviceClass has no node selector, the class has one", way_out)
    other = next((key for key in raw if key not in (*_CLASS_FIELDS, "parametersRef", "suitableNodes")), None)
    if other is not None:
        return _refused((other,), f"a ResourceClass has no field {other}", "take it out")
    changes: list[Change] = [
        Set(("apiVersion",), f"{GROUP}/{version}"),
        Set(("kind",), "DeviceClass"),
        *(Delete((key,)) for key in ("driverName", "structuredParameters") if key in raw),
        Set(("spec",), {"selectors": [{"cel": {"expression": f"device.driver == {quoted(driver)}"}}]}),
    ]
    reason = f"A ResourceClass for driver {driver} becomes a DeviceClass that selects the driver's devices."
    return ObjectPlan(steps=(Step(_REWRITTEN, ("apiVersion",), reason, tuple(changes), "unsafe"),))


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
            return _refused((*path, field), message, way_out)
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
        notes = (Note(_IMMEDIATE, (*path, "allocationMode"), message, done=True),)
    return ObjectPlan(steps=(Step(_REWRITTEN, ("apiVersion",), reason, tuple(changes), "unsafe"),), notes=tuple(notes))


def _refused(path: FieldPath, message: str, way_out: str, code: str = PARAMETERS) -> ObjectPlan:
    return ObjectPlan(refusals=(PlanRefusal(code, path, message, way_out),))


def _name(reference: Any) -> str:
    if not isinstance(reference, Mapping):
        return "it"
    return " ".join(str(reference[key]) for key in ("kind", "name") if reference.get(key)) or "it"


def _label(name: str) -> str:
    """A request name derived from a class: its first part, which is a DNS label."""
    first = name.partition(".")[0][:MAX_LABEL].strip("-")
    return first if first and first.replace("-", "a").isalnum() and first == first.lower() else "device"


# Converts objects of resource.k8s.io to another API version with the changes that the API server makes.
#
# v1 and v1beta2 have the same shape. v1beta1 and v1alpha3 have flat requests, and devices inside ``basic``;
# v1alpha3 also has plain quantities as capacities. See ``api.conversion`` for the resulting objects.


FLAT: Final = ("v1beta1", "v1alpha3")
"""The versions with flat requests and wrapped devices."""

_KEPT: Final = ("name", "firstAvailable", "exactly")
_EMPTY: Final = ("", 0, False)


class Unclear(Exception):
    """The object's meaning in another version is unclear; ``path`` is where, ``way_out`` what to do."""

    def __init__(self, path: FieldPath, message: str, way_out: str) -> None:
        super().__init__(message)
        self.path = path
        self.way_out = way_out


class Conversion(NamedTuple):
    """``changes`` as the server makes them. ``dropped`` is what it drops; ``foreign`` is already in the new
    shape.

    The last two are paths; ``changes`` covers them.
    """

    changes: tuple[Change, ...]
    dropped: tuple[FieldPath, ...] = ()
    foreign: tuple[FieldPath, ...] = ()


def conversion(raw: Mapping[str, Any], old: str, new: str) -> Conversion:
    """The changes inside an object, except for its apiVersion.

    Raises:
        Unclear: fields of both shapes in one place, or a value of the wrong kind.
    """
    changes: list[Change] = []
    dropped: list[FieldPath] = []
    foreign: list[FieldPath] = []
    if old == "v1alpha3":
        dropped = [path for path in _REMOVED.get(str(raw.get("kind")), ()) if found_at(raw, path) is not MISSING]
        changes += [Delete(path) for path in dropped]
    if (old in FLAT) == (new in FLAT):
        if raw.get("kind") == "ResourceSlice" and old == "v1alpha3":
            for path, device in _listed(raw, ("spec", "devices")):
                changes += _capacities((*path, "basic"), device.get("basic"))
        return Conversion(tuple(changes), tuple(dropped))
    spec_path = CLAIM_SPECS.get(str(raw.get("kind")))
    if spec_path is not None:
        for path, request in _listed(raw, (*spec_path, "devices", "requests")):
            converted, is_foreign = (_request_up if old in FLAT else _request_down)(path, request)
            changes += converted
            foreign += [path] * is_foreign
    elif raw.get("kind") == "ResourceSlice":
        changes += _slice_nodes(raw)
        for path, device in _listed(raw, ("spec", "devices")):
            converted, is_foreign = _device_up(path, device, old) if old in FLAT else _device_down(path, device)
            changes += converted
            foreign += [path] * is_foreign
    return Conversion(tuple(changes), tuple(dropped), tuple(foreign))


def _listed(raw: Mapping[str, Any], path: FieldPath) -> Iterator[tuple[FieldPath, Mapping[str, Any]]]:
    """The mappings of a list, with their paths. Raises Unclear for other items."""
    items = value_at(raw, path)
    if items is None:
        return
    if not isinstance(items, list):
        raise Unclear(path, "this must be a list", "make it a list")
    for index, item in enumerate(items):
        if not isinstance(item, Mapping):
            raise Unclear((*path, index), "this must be a mapping", "write what is meant, then run migrate again")
        yield (*path, index), item


# --- requests ------------------------------------------------------------------------------------


def _request_up(path: FieldPath, request: Mapping[str, Any]) -> tuple[list[Change], bool]:
    flat = tuple(key for key in request if key not in _KEPT)
    if request.get("exactly") is not None:
        if flat:
            raise Unclear(
                (*path, "exactly"),
                "the request has exactly, and fields of exactly beside it",
                "put all of them under exactly, or none",
            )
        return [], True
    if flat and request.get("firstAvailable"):
        raise Unclear(
            (*path, flat[0]),
            f"the request has firstAvailable and {flat[0]}: the server makes exactly of that, and refuses both",
            "keep one of the two",
        )
    # A flat request counts as one where anything is set; empty texts and zeros are not set.
    if not any(_is_set(key, request[key]) for key in flat):
        return [Delete((*path, key)) for key in flat], False
    stale: list[Change] = [Delete((*path, "exactly"))] if "exactly" in request else []
    return [*stale, Wrap(path, "exactly", flat)], False


def _is_set(key: str, value: Any) -> bool:
    return bool(value) if key in ("deviceClassName", "allocationMode", "count") else value is not None


def _request_down(path: FieldPath, request: Mapping[str, Any]) -> tuple[list[Change], bool]:
    flat = [key for key in request if key not in _KEPT]
    exactly = request.get("exactly")
    if "exactly" not in request:
        return [], bool(flat)
    if flat:
        raise Unclear(
            (*path, "exactly"),
            "the request has exactly, and fields of exactly beside it",
            "put all of them under exactly",
        )
    if not exactly:
        return [Delete((*path, "exactly"))], False
    if not isinstance(exactly, Mapping):
        raise Unclear((*path, "exactly"), "exactly must be a mapping", "write what is meant")
    return [Unwrap((*path, "exactly"))], False


# --- devices -------------------------------------------------------------------------------------


def _slice_nodes(raw: Mapping[str, Any]) -> Iterator[Change]:
    """nodeName and allNodes. Empty ones mean "not set" in one shape and are invalid in the other."""
    spec = raw.get("spec")
    for key in ("nodeName", "allNodes"):
        if isinstance(spec, Mapping) and key in spec and (spec[key] is None or spec[key] in _EMPTY):
            yield Delete(("spec", key))


def _device_up(path: FieldPath, device: Mapping[str, Any], old: str) -> tuple[list[Change], bool]:
    own = fields("BasicDevice", "v1beta1")
    bare = [key for key in device if key in own]
    if "basic" not in device:
        return [], bool(bare)
    if bare:
        raise Unclear(
            (*path, bare[0]), f"the device has basic, and {bare[0]} beside it", "put it inside basic, or take it out"
        )
    basic = device["basic"]
    if not basic:
        return [Delete((*path, "basic"))], False
    if not isinstance(basic, Mapping):
        raise Unclear((*path, "basic"), "basic must be a mapping", "write what is meant")
    out: list[Change] = [Unwrap((*path, "basic"))]
    return [*out, *(_capacities((*path, "basic"), basic) if old == "v1alpha3" else ())], False


def _capacities(path: FieldPath, basic: Any) -> Iterator[Change]:
    """Plain quantities of v1alpha3."""
    for name, value in fields_at(basic, "capacity").items():
        if not isinstance(value, Mapping):
            yield Enclose((*path, "capacity", name), "value")


def _device_down(path: FieldPath, device: Mapping[str, Any]) -> tuple[list[Change], bool]:
    inner = tuple(key for key in device if key not in ("name", "basic"))
    if "basic" in device:
        if inner:
            raise Unclear(
                (*path, inner[0]), f"the device has basic, and {inner[0]} beside it", "take one of the two out"
            )
        return [], True
    if not inner:
        return [Set((*path, "basic"), {})], False
    return [Wrap(path, "basic", inner)], False


# --- what is gone --------------------------------------------------------------------------------

_REMOVED: Final[Mapping[str, tuple[FieldPath, ...]]] = {
    "DeviceClass": (("spec", "suitableNodes"),),
    "ResourceClaim": (
        ("spec", "controller"),
        ("status", "deallocationRequested"),
        ("status", "allocation", "controller"),
    ),
    "ResourceClaimTemplate": (("spec", "spec", "controller"),),
}
"""What existed only in v1alpha3 of 1.31."""
