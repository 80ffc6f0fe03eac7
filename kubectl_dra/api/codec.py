"""Decoding of a raw object by the API server: the values it rejects for their type, and the rest as it reads it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from kubectl_dra.api.dra_fields import KINDS, fields
from kubectl_dra.api.quantity import BLANKS, Quantity, QuantityError
from kubectl_dra.api.releases import GROUP
from kubectl_dra.api.schema import Field, FieldPath, change_items, items, path_text


class Mismatch(Struct, frozen=True):
    """A value of the wrong type: where it is, what the API wants there, and what was found."""

    path: FieldPath
    expected: str
    found: str

    def __str__(self) -> str:
        return f"{path_text(self.path)} must be {self.expected}, not {self.found}"


def mismatch(raw: Any, kind: str, version: str = "v1") -> Mismatch | None:
    """The first value of a wrong type in a Pod, a Node or an object of one of ``KINDS``; else None.

    As in the API server, null is allowed everywhere. Quantities must parse.
    """
    if not isinstance(raw, dict):
        return Mismatch((), "an object", _type_name(raw))
    mismatch = struct_mismatch(raw.get("metadata"), "ObjectMeta", "v1", ("metadata",))
    return mismatch or struct_mismatch(raw, kind, version, ())


def struct_mismatch(raw: Any, struct: str, version: str = "v1", path: FieldPath = ()) -> Mismatch | None:
    """Like ``mismatch``, for the struct at ``path`` inside an object."""
    if raw is None:
        return None
    if not isinstance(raw, dict):
        return Mismatch(path, "an object", _type_name(raw))
    table = fields(struct, version)
    for name, value in raw.items():
        field = table.get(name)
        if field is None or value is None:
            continue
        mismatch = _value_mismatch(value, field, version, (*path, name))
        if mismatch is not None:
            return mismatch
    return None


def decoded(raw: Mapping[str, Any], struct: str, version: str = "v1") -> dict[str, Any]:
    """A struct without mismatch as the API server holds it, in the shape of JSON.

    A null field is absent, a null in a list or map is the empty value of its type, a quantity has no blanks around it.
    """
    table = fields(struct, version)
    out: dict[str, Any] = {}
    for name, value in raw.items():
        field = table.get(name)
        if field is None:
            out[name] = value
        elif value is not None:
            out[name] = change_items(value, field, _decoded_item, field, version)
    return out


def _decoded_item(value: Any, field: Field, version: str) -> Any:
    if not field.scalar:
        return decoded(value or {}, field.type, version)
    if value is None:
        return _EMPTY.get(field.type)
    if field.type == "quantity" and isinstance(value, str):
        return value.strip(BLANKS)
    return int(value) if field.type == "int" else value


_EMPTY: Final = {"string": "", "int": 0, "bool": False, "quantity": "0", "object": {}}


def _value_mismatch(value: Any, field: Field, version: str, path: FieldPath) -> Mismatch | None:
    if field.container:
        kind, wanted = (list, "a list") if field.container == "list" else (dict, "an object")
        if not isinstance(value, kind):
            return Mismatch(path, wanted, _type_name(value))
    else:
        return _item_mismatch(value, field, version, path)
    for key, item in items(value, field):
        mismatch = _item_mismatch(item, field, version, (*path, *key))
        if mismatch is not None:
            return mismatch
    return None


def _item_mismatch(value: Any, field: Field, version: str, path: FieldPath) -> Mismatch | None:
    if not field.scalar:
        return struct_mismatch(value, field.type, version, path)
    if value is None:
        return None
    wanted = _wanted(value, field.type)
    return None if wanted is None else Mismatch(path, wanted, _type_name(value))


def _wanted(value: Any, kind: str) -> str | None:
    """The type wanted in place of the value, or None if the value is fine."""
    if kind in ("string", "time"):
        return None if isinstance(value, str) else "a string"
    if kind == "bool":
        return None if isinstance(value, bool) else "true or false"
    if kind == "int":
        whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
        return None if whole and not isinstance(value, bool) else "a whole number"
    if kind == "object":
        return None if isinstance(value, dict) else "an object"
    if kind == "quantity":
        try:
            Quantity.from_json(value)
        except QuantityError:
            return "a quantity"
    return None


def _type_name(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'"{value}"' if len(value) <= 40 else f'"{value[:37]}..."'
    if isinstance(value, int | float):
        return f"the number {value}"
    return "a list" if isinstance(value, list) else "an object"


# A raw object as the API server prints it: which empty fields stay, and how quantities and times are written.


def canonical(raw: Mapping[str, Any], version: str = "v1") -> dict[str, Any]:
    """The object as the API server prints it: empty fields left out, quantities and times normalised.

    ``metadata`` is unchanged, an empty ``status`` is left out, unknown fields are kept. The object must have
    the right types (see ``mismatch``) and one of ``KINDS``. The input is not changed.
    """
    head = {key: raw[key] for key in ("apiVersion", "kind", "metadata") if key in raw}
    body = _printed_struct({key: raw[key] for key in raw if key not in head}, raw["kind"], version)
    if not body.get("status"):
        body.pop("status", None)
    return {**head, **body}


def canonical_time(text: str) -> str:
    """An RFC 3339 time in UTC with whole seconds, as the API prints it; other text is returned unchanged."""
    if len(text) == 20 and text[19] == "Z":
        return text
    from datetime import UTC, datetime

    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return text
    if moment.tzinfo is None:
        return text
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _printed_struct(raw: Mapping[str, Any], struct: str, version: str) -> dict[str, Any]:
    out: dict[str, Any] = {}
    table = fields(struct, version)
    for name, field in table.items():
        value = raw.get(name)
        if value is None or (field.container and not value):
            if not field.omit_empty:
                out[name] = None if field.pointer or field.container else _zero(field, version)
        elif field.pointer or field.container or not field.omit_empty or value not in ("", 0, False):
            out[name] = change_items(value, field, _printed, field, version)
            if field.container == "map":
                # The server prints maps with sorted keys.
                out[name] = dict(sorted(out[name].items()))
    for name in raw:
        if name not in table:
            out[name] = raw[name]
    return out


def _printed(value: Any, field: Field, version: str) -> Any:
    if value is None:
        return _zero(field, version)
    if not field.scalar:
        return _printed_struct(value, field.type, version)
    if field.type == "quantity":
        return str(Quantity.from_json(value))
    if field.type == "time":
        return canonical_time(value)
    if field.type == "int":
        return int(value)
    return value


def _zero(field: Field, version: str) -> Any:
    if not field.scalar:
        return _printed_struct({}, field.type, version)
    return _EMPTY.get(field.type)


# Conversion of resource.k8s.io objects between API versions, as the API server does it.
#
# v1 and v1beta2 have the same shape. v1beta1 and v1alpha3 have flat requests, and devices inside ``basic``;
# v1alpha3 also has plain quantities as capacities. v1alpha1 and v1alpha2 were never converted to anything.

VERSIONS: Final = ("v1", "v1beta2", "v1beta1", "v1alpha3")
"""The versions that convert to v1, in the order in which discovery prefers them."""
_CLUSTER_SCOPED: Final = frozenset(("DeviceClass", "DeviceTaintRule", "ResourceSlice"))


class ConversionError(ValueError):
    """The object's apiVersion or kind, or the type of a field, prevents the conversion."""


def to_v1(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The v1 form of an object in any of ``VERSIONS``, printed as the API server prints it.

    Defaults are not added (see ``defaults.defaulted``). The input is not changed.

    Raises:
        ConversionError: another group, version or kind, or a field of the wrong type.
    """
    version = _version(raw)
    wrong = mismatch(raw, raw["kind"], version)
    if wrong is not None:
        raise ConversionError(str(wrong))
    out = canonical(reshaped(raw))
    metadata = out.get("metadata")
    if raw["kind"] in _CLUSTER_SCOPED and metadata and "namespace" in metadata:
        out["metadata"] = {key: metadata[key] for key in metadata if key != "namespace"}
    return out


def from_v1(raw: Mapping[str, Any], version: str) -> dict[str, Any]:
    """A v1 object in ``v1beta2`` or ``v1beta1``, or a DeviceTaintRule in ``v1alpha3``, as the API server prints it.

    Raises:
        ConversionError: not a v1 object of a known kind, or an unknown target version.
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
        _spec_of(out, _claim_to_v1beta1, _slice_to_v1beta1)
    return out


def claim_spec_from_v1(spec: Mapping[str, Any], version: str) -> Mapping[str, Any]:
    """A v1 spec of a claim in the shape of another version, with nothing normalised."""
    if version not in ("v1beta1", "v1alpha3") or not spec.get("devices"):
        return spec
    out = _claim_to_v1beta1(spec)
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
    _spec_of(out, _claim_to_v1, _slice_to_v1)
    return out


def _version(raw: Mapping[str, Any]) -> str:
    api_version, kind = raw.get("apiVersion"), raw.get("kind")
    if not isinstance(api_version, str) or not isinstance(kind, str):
        raise ConversionError("apiVersion and kind must be strings")
    group, _, version = api_version.partition("/")
    if group != GROUP or version not in VERSIONS or kind not in KINDS:
        raise ConversionError(f"{api_version} {kind} does not convert to {GROUP}/v1")
    return version


def _spec_of(out: dict[str, Any], claim: Any, resource_slice: Any) -> None:
    """Replace the claim spec or slice spec inside ``out`` by its converted form."""
    spec = out.get("spec")
    if not spec:
        return
    if out["kind"] == "ResourceClaim":
        out["spec"] = claim(spec)
    elif out["kind"] == "ResourceClaimTemplate" and spec.get("spec"):
        out["spec"] = {**spec, "spec": claim(spec["spec"])}
    elif out["kind"] == "ResourceSlice":
        out["spec"] = resource_slice(spec)


def _claim_to_v1(spec: Mapping[str, Any]) -> dict[str, Any]:
    devices = spec.get("devices")
    if not devices or not devices.get("requests"):
        return dict(spec)
    requests = [_request_to_v1(request or {}) for request in devices["requests"]]
    return {**spec, "devices": {**devices, "requests": requests}}


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


def _slice_to_v1(spec: Mapping[str, Any]) -> dict[str, Any]:
    out = dict(spec)
    # Not pointers in the old versions, so empty means not set.
    for key in ("nodeName", "allNodes"):
        if key in out and not out[key]:
            del out[key]
    if out.get("devices"):
        out["devices"] = [_device_to_v1(device or {}) for device in out["devices"]]
    return out


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


def _claim_to_v1beta1(spec: Mapping[str, Any]) -> dict[str, Any]:
    devices = spec["devices"]
    requests = devices.get("requests")
    if not requests:
        return dict(spec)
    return {**spec, "devices": {**devices, "requests": [_request_to_v1beta1(request) for request in requests]}}


def _request_to_v1beta1(request: Mapping[str, Any]) -> dict[str, Any]:
    rest = {key: value for key, value in request.items() if key not in ("name", "exactly")}
    return {"name": request["name"], "deviceClassName": "", **(request.get("exactly") or {}), **rest}


def _slice_to_v1beta1(spec: Mapping[str, Any]) -> dict[str, Any]:
    out = dict(spec)
    for key in ("nodeName", "allNodes"):
        if key in out and not out[key]:
            del out[key]
    if out.get("devices"):
        out["devices"] = [
            {"name": device["name"], "basic": {key: device[key] for key in device if key != "name"}}
            for device in out["devices"]
        ]
    return out


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


# Text forms shared by Kubernetes' error messages.

_ESCAPES = {
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
    "\\": "\\\\",
    '"': '\\"',
}


def quoted(text: str) -> str:
    """`text` in double quotes with Go's escapes, as `%q` prints it in messages of the API server."""
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(character: str) -> str:
    simple = _ESCAPES.get(character)
    if simple is not None:
        return simple
    if character.isprintable():
        return character
    code = ord(character)
    if code < 0x80:
        return f"\\x{code:02x}"
    if code < 0x10000:
        return f"\\u{code:04x}"
    return f"\\U{code:08x}"
