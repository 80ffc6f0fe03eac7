"""Objects of v1alpha1 and v1alpha2, "classic" DRA: no server ever converted them, so they are written anew.

A ResourceClass becomes a DeviceClass with a selector, a claim for a class becomes a claim with one request.
Only a driver's controller understood parameter objects; people must express them as selectors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kubectl_dra.api.codec import quoted
from kubectl_dra.api.limits import MAX_LABEL
from kubectl_dra.api.releases import GROUP
from kubectl_dra.manifests.changes import Change, Delete, Path, Set, value_at
from kubectl_dra.migrate.model import Note, ObjectPlan, PlanRefusal, Step

VERSIONS: Final = ("v1alpha1", "v1alpha2")
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


def plan(raw: Mapping[str, Any], version: str) -> ObjectPlan:
    """Rewrite one object into ``version``."""
    kind = str(raw["kind"])
    left = gone(kind)
    if left is not None:
        return left
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


def _claim(raw: Mapping[str, Any], path: Path, version: str) -> ObjectPlan:
    spec = value_at(raw, path)
    name = spec.get("resourceClassName") if isinstance(spec, Mapping) else None
    if not isinstance(spec, Mapping) or not isinstance(name, str) or not name:
        return _refused(path, "the claim names no resourceClassName", "say which DeviceClass it asks for")
    for field in ("parametersRef", "parameters"):
        if spec.get(field):
            way_out = (
                f"ask for {name} in devices.requests[].exactly.deviceClassName, with count and selectors for what "
                "the parameters ask for, and devices.config[].opaque for what they set"
            )
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
        notes = (Note(IMMEDIATE, (*path, "allocationMode"), message),)
    return ObjectPlan(steps=(Step(REWRITTEN, ("apiVersion",), reason, tuple(changes), "unsafe"),), notes=tuple(notes))


def _refused(path: Path, message: str, way_out: str) -> ObjectPlan:
    return ObjectPlan(refusals=(PlanRefusal(PARAMETERS, path, message, way_out),))


def _name(reference: Any) -> str:
    if not isinstance(reference, Mapping):
        return "it"
    return " ".join(str(reference[key]) for key in ("kind", "name") if reference.get(key)) or "it"


def _label(name: str) -> str:
    """A request name derived from a class: its first part, which is a DNS label."""
    first = name.partition(".")[0][:MAX_LABEL].strip("-")
    return first if first and first.replace("-", "a").isalnum() and first == first.lower() else "device"
