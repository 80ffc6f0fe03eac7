"""What the API server fills in and drops when an object is created, in any served version.

Defaults: SetDefaults functions of resource.k8s.io. Dropping: fields of features that are off. ``api.dra_fields``
holds both facts; this module adds the conditions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from kubectl_dra.api.dra_fields import CREATION, KINDS, depends_on_gates, fields, gated
from kubectl_dra.api.releases import GROUP, UNTOLD, Release
from kubectl_dra.api.schema import Field, change_items

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
