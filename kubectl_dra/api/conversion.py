"""Conversion of resource.k8s.io objects between API versions, as the API server does it.

v1 and v1beta2 have the same shape. v1beta1 and v1alpha3 have flat requests, and devices inside ``basic``;
v1alpha3 also has plain quantities as capacities. v1alpha1 and v1alpha2 were never converted to anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, Final

from kubectl_dra.api.codec import canonical, mismatch
from kubectl_dra.api.dra_fields import CREATION, KINDS, depends_on_gates, fields, gated
from kubectl_dra.api.releases import GROUP, UNTOLD, Release
from kubectl_dra.api.schema import Field, change_items

VERSIONS: Final = ("v1", "v1beta2", "v1beta1", "v1alpha3")
"""The versions that convert to v1, in the order in which discovery prefers them."""
CLUSTER_SCOPED: Final = frozenset(("DeviceClass", "DeviceTaintRule", "ResourceSlice"))


class ConversionError(ValueError):
    """The object's apiVersion or kind, or the type of a field, prevents the conversion."""


def to_v1(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The v1 form of an object in any of ``VERSIONS``, printed as the API server prints it.

    Defaults are not added (see ``defaulted``). The input is not changed.

    Raises:
        ConversionError: another group, version or kind, or a field of the wrong type.
    """
    version = _version(raw)
    wrong = mismatch(raw, raw["kind"], version)
    if wrong is not None:
        raise ConversionError(str(wrong))
    out = canonical(reshaped(raw))
    metadata = out.get("metadata")
    if raw["kind"] in CLUSTER_SCOPED and metadata and "namespace" in metadata:
        out["metadata"] = {key: metadata[key] for key in metadata if key != "namespace"}
    return out


def from_v1(raw: Mapping[str, Any], version: str) -> dict[str, Any]:
    """A v1 object in ``v1beta2`` or ``v1beta1``, or a DeviceTaintRule in ``v1alpha3``, as the API server prints it.

    Raises ConversionError: not a v1 object of a known kind, or an unknown target version.
    """
    if _version(raw) != "v1":
        raise ConversionError(f"{raw.get('apiVersion')} is not {GROUP}/v1")
    if version not in ("v1", "v1beta2", "v1beta1") and (version, raw["kind"]) != ("v1alpha3", "DeviceTaintRule"):
        raise ConversionError(f"no conversion to {version}")
    wrong = mismatch(raw, raw["kind"])
    if wrong is not None:
        raise ConversionError(str(wrong))
    out = canonical(raw)
    out["apiVersion"] = f"{GROUP}/{version}"
    if version == "v1beta1":
        _spec_of(out, _request_to_v1beta1, _device_to_v1beta1)
    return out


def claim_spec_from_v1(spec: Mapping[str, Any], version: str) -> Mapping[str, Any]:
    """A v1 spec of a claim in the shape of another version, with nothing normalised."""
    if version not in ("v1beta1", "v1alpha3") or not spec.get("devices"):
        return spec
    out = _claim(spec, _request_to_v1beta1)
    for request in out["devices"].get("requests") or ():
        if not request["deviceClassName"]:
            del request["deviceClassName"]
    return out


def reshaped(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The v1 shape of an object, with nothing normalised. Shares structure with the input, which is not
    changed.

    A v1 object is returned unchanged. The object must have the right types.

    Raises:
        ConversionError: another group, version or kind.
    """
    version = _version(raw)
    if version == "v1" and isinstance(raw, dict):
        return raw
    out = {**raw, "apiVersion": f"{GROUP}/v1"}
    if version == "v1beta2":
        return out
    if version == "v1alpha3":
        _drop_removed(out)
    _spec_of(out, _request_to_v1, _device_to_v1)
    return out


def _version(raw: Mapping[str, Any]) -> str:
    api_version, kind = raw.get("apiVersion"), raw.get("kind")
    if not isinstance(api_version, str) or not isinstance(kind, str):
        raise ConversionError("apiVersion and kind must be strings")
    group, _, version = api_version.partition("/")
    if group != GROUP or version not in VERSIONS or kind not in KINDS:
        raise ConversionError(f"{api_version} {kind} does not convert to {GROUP}/v1")
    return version


_Convert = Callable[[Mapping[str, Any]], dict[str, Any]]


def _spec_of(out: dict[str, Any], request: _Convert, device: _Convert) -> None:
    """Convert the requests or devices inside ``out``."""
    spec = out.get("spec")
    if not spec:
        return
    if out["kind"] == "ResourceClaim":
        out["spec"] = _claim(spec, request)
    elif out["kind"] == "ResourceClaimTemplate" and spec.get("spec"):
        out["spec"] = {**spec, "spec": _claim(spec["spec"], request)}
    elif out["kind"] == "ResourceSlice":
        # Not pointers in the old versions, so empty means not set.
        out["spec"] = {key: value for key, value in spec.items() if value or key not in ("nodeName", "allNodes")}
        if spec.get("devices"):
            out["spec"]["devices"] = [device(published or {}) for published in spec["devices"]]


def _claim(spec: Mapping[str, Any], request: _Convert) -> dict[str, Any]:
    devices = spec.get("devices")
    if not devices or not devices.get("requests"):
        return dict(spec)
    return {**spec, "devices": {**devices, "requests": [request(asked or {}) for asked in devices["requests"]]}}


def _request_to_v1(flat: Mapping[str, Any]) -> dict[str, Any]:
    own = {key: flat[key] for key in ("name", "firstAvailable") if key in flat}
    exact = {key: value for key, value in flat.items() if key not in own and key != "exactly"}
    if any(_is_set(key, value) for key, value in exact.items()):
        own["exactly"] = exact
    return own


def _is_set(key: str, value: Any) -> bool:
    # A list or pointer that is set counts even when it is empty; a string or number does not.
    if key in ("deviceClassName", "allocationMode", "count"):
        return bool(value)
    return value is not None


def _device_to_v1(wrapped: Mapping[str, Any]) -> dict[str, Any]:
    # A field that only newer shapes have at this place is unknown to the old version: the server drops it.
    misplaced = fields("BasicDevice", "v1beta1")
    out = {key: value for key, value in wrapped.items() if key != "basic" and key not in misplaced}
    basic = wrapped.get("basic") or {}
    out.update(basic)
    if basic.get("capacity"):
        out["capacity"] = {
            name: value if isinstance(value, dict) else {"value": value} for name, value in basic["capacity"].items()
        }
    return out


def _request_to_v1beta1(request: Mapping[str, Any]) -> dict[str, Any]:
    rest = {key: value for key, value in request.items() if key not in ("name", "exactly")}
    return {"name": request["name"], "deviceClassName": "", **(request.get("exactly") or {}), **rest}


def _device_to_v1beta1(device: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": device["name"], "basic": {key: device[key] for key in device if key != "name"}}


def _drop_removed(out: dict[str, Any]) -> None:
    """Remove what existed only in v1alpha3 of 1.31: classic DRA's controllers, and node filters of classes."""
    spec, status = out.get("spec") or {}, out.get("status") or {}
    if out["kind"] == "DeviceClass":
        out["spec"] = {key: spec[key] for key in spec if key != "suitableNodes"}
    elif out["kind"] == "ResourceClaim":
        out["spec"] = {key: spec[key] for key in spec if key != "controller"}
        if status:
            status = {key: status[key] for key in status if key != "deallocationRequested"}
            allocation = status.get("allocation")
            if allocation:
                status["allocation"] = {key: allocation[key] for key in allocation if key != "controller"}
            out["status"] = status


# Defaults and dropped fields.

EXACT_COUNT = "ExactCount"


def defaulted(raw: Mapping[str, Any], now: str | None = None) -> dict[str, Any]:
    """A copy of the object with the API server's defaults. The input is not changed.

    Works on the object's own version, because a v1beta1 request without a class gets no defaults although the
    same request in v1 does. ``now`` (RFC 3339) becomes the missing ``timeAdded`` of taints; without it they
    stay missing. Objects of other groups and kinds are returned unchanged.
    """
    group, _, version = str(raw.get("apiVersion")).partition("/")
    kind = raw.get("kind")
    out = dict(raw)
    for part in ("spec", "status"):
        if group == GROUP and kind in KINDS and raw.get(part):
            out[part] = _filled(raw[part], fields(kind)[part].type, version, now)
    return out


def without_disabled(
    raw: Mapping[str, Any], features: Iterable[str], release: Release = UNTOLD, part: str = "spec"
) -> dict[str, Any]:
    """A copy of a v1 object without the fields below ``part`` whose feature gates are not in ``features``.

    The server drops them silently before validation unless the stored object already used them.
    """
    kind, contents = raw.get("kind"), raw.get(part)
    if kind not in KINDS or not contents:
        return dict(raw)
    return {**raw, part: _reduced(contents, fields(kind)[part].type, frozenset(features), release.without_patch)}


def gates_in_use(raw: Mapping[str, Any]) -> frozenset[str]:
    """The gates of fields that a stored v1 object has: the server keeps such fields in new versions of it."""
    return frozenset(gate for _, field, _ in gated(raw, raw["kind"]) for gate in field.gates)


def _filled(raw: Mapping[str, Any] | None, struct: str, version: str, now: str | None) -> dict[str, Any]:
    own, below = _defaults(struct, version)
    out = dict(raw or {})
    if struct != "DeviceRequest" or out.get("deviceClassName"):
        for name, default in own:
            if not out.get(name) and (name != "count" or out.get("allocationMode") == EXACT_COUNT):
                value = now if default == CREATION else default
                if value is not None:
                    out[name] = value
    for name, field in below:
        if out.get(name) is not None:
            out[name] = change_items(out[name], field, _filled, field.type, version, now)
    return out


@cache
def _defaults(struct: str, version: str) -> tuple[list[tuple[str, str | int]], list[tuple[str, Field]]]:
    """The defaults of a struct's own fields, and the fields with further defaults below them."""
    own: list[tuple[str, str | int]] = []
    below: list[tuple[str, Field]] = []
    for name, field in fields(struct, version).items():
        if field.default is not None:
            own.append((name, field.default))
        if not field.scalar and any(_defaults(field.type, version)):
            below.append((name, field))
    return own, below


def _reduced(raw: Mapping[str, Any] | None, struct: str, on: frozenset[str], release: Release) -> dict[str, Any]:
    gone, below = _disabled(struct, on, release)
    out = {name: value for name, value in (raw or {}).items() if name not in gone}
    for name, field in below:
        if out.get(name) is not None:
            out[name] = change_items(out[name], field, _reduced, field.type, on, release)
    return out


@cache
def _disabled(struct: str, on: frozenset[str], release: Release) -> tuple[frozenset[str], list[tuple[str, Field]]]:
    """The fields of a v1 struct that are dropped with these gates on, and the fields that may contain more."""
    table = fields(struct)
    gone = frozenset(name for name, field in table.items() if field.is_dropped(release, on))
    below = [
        (name, field)
        for name, field in table.items()
        if name not in gone and not field.scalar and depends_on_gates(field.type)
    ]
    return gone, below
