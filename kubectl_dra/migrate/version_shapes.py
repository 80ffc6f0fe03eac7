"""Converts objects of resource.k8s.io to another API version with the changes that the API server makes.

v1 and v1beta2 have the same shape. v1beta1 and v1alpha3 have flat requests, and devices inside ``basic``;
v1alpha3 also has plain quantities as capacities. See ``api.conversion`` for the resulting objects.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from kubectl_dra.api.dra_fields import fields
from kubectl_dra.api.schema import FieldPath
from kubectl_dra.manifests.changes import Change, Delete, Enclose, Set, Unwrap, Wrap, fields_at, value_at

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
    spec_path, spec = _claim_spec(raw)
    changes: list[Change] = []
    dropped: list[FieldPath] = []
    foreign: list[FieldPath] = []
    if old == "v1alpha3":
        dropped = [path for path in _REMOVED.get(str(raw.get("kind")), ()) if _is_there(raw, path)]
        changes += [Delete(path) for path in dropped]
    if (old in FLAT) == (new in FLAT):
        if raw.get("kind") == "ResourceSlice" and old == "v1alpha3":
            for path, device in _listed(raw, ("spec", "devices")):
                changes += _capacities((*path, "basic"), device.get("basic"))
        return Conversion(tuple(changes), tuple(dropped))
    if spec is not None:
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


def _claim_spec(raw: Mapping[str, Any]) -> tuple[FieldPath, Any]:
    kind = raw.get("kind")
    if kind == "ResourceClaim":
        return ("spec",), raw.get("spec")
    if kind == "ResourceClaimTemplate":
        return ("spec", "spec"), value_at(raw, ("spec", "spec"))
    return (), None


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


def _is_there(raw: Mapping[str, Any], path: FieldPath) -> bool:
    parent = value_at(raw, path[:-1])
    return isinstance(parent, Mapping) and path[-1] in parent
