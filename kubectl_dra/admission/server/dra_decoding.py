"""What the API server cannot decode under strict field validation: HTTP 400.

Unknown fields, duplicate fields, values of the wrong JSON type. For resource.k8s.io the table in
``api.fields`` decides, for other kinds the schemas of Kubernetes 1.36.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from typing import Any, Final

from kubectl_dra.admission.server.model import BAD_REQUEST, Key, Path, Violation, Violations, violation
from kubectl_dra.admission.server.scalars import scalar_problem, wrong_type
from kubectl_dra.api.fields import KINDS, fields
from kubectl_dra.api.releases import Release
from kubectl_dra.api.schema import Field

_STRING: Final = Field("string", "", False, False, True)
_OBJECT_META: Final = Field("ObjectMeta", "", False, False, False)
_HEAD: Final = {"apiVersion": _STRING, "kind": _STRING, "metadata": _OBJECT_META}


def decoding(raw: Mapping[str, Any], version: str, release: Release) -> Violations:
    """Everything in an object of resource.k8s.io that cannot be decoded, in the object's order."""
    kind = raw["kind"]
    yield from _fields_of(raw, kind, {**_table(kind, version, release), **_HEAD}, version, release, ())


def duplicates(paths: Iterable[Path]) -> Violations:
    """Fields that occur twice in the manifest's text."""
    for path in paths:
        yield violation(path, BAD_REQUEST, "duplicate-field", f"{path[-1]!r} is given twice")


def unknown(at: Path, known: Iterable[str], note: str = "") -> Violations:
    """A field that the kind does not have there; ``known`` are the existing ones."""
    message = f"there is no field {at[-1]!r} here{note}"
    if not note:
        close = _close(str(at[-1]), tuple(known))
        message += f"; did you mean {close!r}?" if close else ""
    yield violation(at, BAD_REQUEST, "unknown-field", message)


@lru_cache(maxsize=1024)
def _close(name: str, known: tuple[str, ...]) -> str:
    from difflib import get_close_matches

    return next(iter(get_close_matches(name, known, 1, 0.75)), "")


def wrong(at: Path, problem: tuple[str, str] | None) -> tuple[Violation, ...]:
    """A value that its field's type does not accept."""
    return () if problem is None else (violation(at, BAD_REQUEST, *problem),)


@cache
def _table(struct: str, version: str, release: Release) -> Mapping[str, Field]:
    table = fields("ObjectMeta" if struct == "ClaimMetadata" else struct, version)
    return {name: field for name, field in table.items() if field.exists(release)}


def _fields_of(
    raw: Mapping[str, Any], name: str, table: Mapping[str, Field], version: str, release: Release, at: Path
) -> Violations:
    for key, value in raw.items():
        field = table.get(key)
        if field is None:
            yield from unknown((*at, key), table, _note(name, key, version, release))
        elif value is not None:
            below = _items if field.container else _item
            yield from below(value, field, version, release, (*at, key))


def _note(struct: str, key: str, version: str, release: Release) -> str:
    """A hint if the field belongs to another release or version."""
    if struct == "ClaimMetadata" or struct in KINDS:
        return ""
    if struct == "DeviceSubRequest" and key == "adminAccess":
        return "; admin access is only for requests with exactly"
    if field := fields(struct, version).get(key):
        last = field.until
        since = f"it came with 1.{field.since}" if last is None else f"1.{last} was the last with it"
        return f" in {release}: {since}"
    flat = version in ("v1beta1", "v1alpha3")
    wrapper = {"DeviceRequest": "exactly", "Device": "basic"}.get(struct, "")
    if flat and key == wrapper == "exactly":
        return f" in {version}: its content is directly in the request"
    if not flat and key == wrapper == "basic":
        return f" in {version}: its content is directly in the device"
    if not flat and wrapper == "exactly" and key in fields("ExactDeviceRequest", version):
        return f" in {version}: it is inside exactly"
    if flat and wrapper == "basic" and key in fields("BasicDevice", version):
        return f" in {version}: it is inside basic"
    return ""


def _items(value: Any, field: Field, version: str, release: Release, at: Path) -> Violations:
    if field.container == "list":
        if not isinstance(value, list):
            yield from wrong(at, wrong_type("a list", value))
            return
        for index, item in enumerate(value):
            yield from _item(item, field, version, release, (*at, index))
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _item(item, field, version, release, (*at, Key(key)))
    else:
        yield from wrong(at, wrong_type("an object", value))


def _item(value: Any, field: Field, version: str, release: Release, at: Path) -> Iterable[Violation]:
    if field.scalar:
        return wrong(at, scalar_problem(value, field.type))
    if isinstance(value, dict):
        return _fields_of(value, field.type, _table(field.type, version, release), version, release, at)
    return () if value is None else wrong(at, wrong_type("an object", value))
