"""What the API server cannot decode under strict field validation: HTTP 400.

Unknown fields, duplicate fields, values of the wrong JSON type. For resource.k8s.io the table in
``api.dra_fields`` decides, for other kinds the schemas of Kubernetes 1.36.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from typing import Any, Final

from kubectl_dra.admission.server.model import BAD_REQUEST, Key, Violation, Violations, violation
from kubectl_dra.api.dra_fields import KINDS, fields
from kubectl_dra.api.quantity import WRONG_FORM, Quantity, QuantityError
from kubectl_dra.api.releases import GROUP, MODELLED, SCHEMAS, Release
from kubectl_dra.api.schema import Field, FieldPath
from kubectl_dra.data.code_pages import packed

_STRING: Final = Field("string", "", False, False, True)
_OBJECT_META: Final = Field("ObjectMeta", "", False, False, False)
_HEAD: Final = {"apiVersion": _STRING, "kind": _STRING, "metadata": _OBJECT_META}


def decoding_errors(raw: Mapping[str, Any], group: str, version: str, release: Release) -> Violations:
    """Everything in an object that cannot be decoded, in the object's order. Raises KeyError for an unknown kind."""
    kind = raw["kind"]
    if group == GROUP and kind in KINDS:
        yield from _fields_of(raw, kind, {**_table(kind, version, release), **_HEAD}, version, release, ())
    else:
        yield from _outside_dra(raw, group, version, release)


def duplicates(paths: Iterable[FieldPath]) -> Violations:
    """Fields that occur twice in the manifest's text."""
    for path in paths:
        yield violation(path, BAD_REQUEST, "duplicate-field", f"{path[-1]!r} is given twice")


def unknown(at: FieldPath, known: Iterable[str], note: str = "") -> Violations:
    """A field that the kind does not have there; ``known`` are the existing ones."""
    message = f"there is no field {at[-1]!r} here{note}"
    if not note:
        close = closest(str(at[-1]), tuple(known))
        message += f"; did you mean {close!r}?" if close else ""
    yield violation(at, BAD_REQUEST, "unknown-field", message)


@lru_cache(maxsize=1024)
def closest(name: str, known: tuple[str, ...]) -> str:
    """The field that an unknown one was probably meant to be, as messages propose it; empty if none is like it."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(name, known, 1, 0.75)), "")


def wrong(at: FieldPath, problem: tuple[str, str] | None) -> tuple[Violation, ...]:
    """A value that its field's type does not accept."""
    return () if problem is None else (violation(at, BAD_REQUEST, *problem),)


@cache
def _table(struct: str, version: str, release: Release) -> Mapping[str, Field]:
    table = fields("ObjectMeta" if struct == "ClaimMetadata" else struct, version)
    return {name: field for name, field in table.items() if field.exists(release)}


def _fields_of(
    raw: Mapping[str, Any], name: str, table: Mapping[str, Field], version: str, release: Release, at: FieldPath
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
        return "; admin access is only for requests without alternatives"
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


def _items(value: Any, field: Field, version: str, release: Release, at: FieldPath) -> Violations:
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


def _item(value: Any, field: Field, version: str, release: Release, at: FieldPath) -> Iterable[Violation]:
    if field.scalar:
        return wrong(at, scalar_problem(value, field.type))
    if isinstance(value, dict):
        return _fields_of(value, field.type, _table(field.type, version, release), version, release, at)
    return () if value is None else wrong(at, wrong_type("an object", value))


# What the API server cannot decode in kinds outside resource.k8s.io, by the schemas of real servers.


_FORMATS: Final = {"date-time": "time", "int64": "int64", "int32": "int32", "int-or-string": "int-or-string"}
_SINCE_131: Final = " since 1.31: its content is directly in the entry"
_TYPES: Final = {"string": "string", "boolean": "bool", "number": "number", "integer": "int64"}


def _outside_dra(raw: Mapping[str, Any], group: str, version: str, release: Release) -> Violations:
    """What cannot be decoded of another kind. Raises KeyError for one without a schema."""
    schema = _of_release(f"{group or 'core'}_{version}_{raw['kind']}", MODELLED.closest(release))
    if schema is None:
        raise KeyError(raw["kind"])
    yield from _value(raw, schema, schema["$defs"], ())


@cache
def _of_release(name: str, release: Release) -> dict[str, Any] | None:
    """The schema of a kind in a release: that of ``SCHEMAS``, with what the release has otherwise."""
    base, changes = _read(str(SCHEMAS), name), _read(str(release), "changes")
    if base is None or changes is None:
        return base
    definitions = {**base["$defs"]}
    for struct, changed in changes["fields"].items():
        if struct in definitions:
            properties = definitions[struct]["properties"] | changed
            kept = {field: schema for field, schema in properties.items() if schema is not None}
            definitions[struct] = {**definitions[struct], "properties": kept}
    return {**base, "$defs": {**changes["structs"], **definitions}}


@cache
def _read(folder: str, name: str) -> dict[str, Any] | None:
    import json

    file = packed("schemas") / "kubernetes" / folder / f"{name}.json"
    if file.is_file():
        schema: dict[str, Any] = json.loads(file.read_text())
        return schema
    return None


def _value(value: Any, schema: Mapping[str, Any], defs: Mapping[str, Any], at: FieldPath) -> Violations:
    if value is None:
        return
    reference = schema.get("$ref")
    if reference is not None:
        name = reference.rpartition("/")[2]
        if name.endswith(".Quantity"):
            yield from wrong(at, scalar_problem(value, "quantity"))
            return
        schema = defs[name]
    properties, items, values = (schema.get(key) for key in ("properties", "items", "additionalProperties"))
    if properties is not None:
        yield from _object(value, properties, defs, at)
    elif items is not None:
        if not isinstance(value, list):
            yield from wrong(at, wrong_type("a list", value))
            return
        for index, item in enumerate(value):
            yield from _value(item, items, defs, (*at, index))
    elif isinstance(values, dict):
        if not isinstance(value, dict):
            yield from wrong(at, wrong_type("an object", value))
            return
        for key, item in value.items():
            yield from _value(item, values, defs, (*at, Key(key)))
    else:
        yield from wrong(at, scalar_problem(value, _kind(schema)))


def _object(value: Any, properties: Mapping[str, Any], defs: Mapping[str, Any], at: FieldPath) -> Violations:
    if not isinstance(value, dict):
        yield from wrong(at, wrong_type("an object", value))
        return
    for key, item in value.items():
        if key in properties:
            yield from _value(item, properties[key], defs, (*at, key))
        else:
            yield from unknown(
                (*at, key), properties, _SINCE_131 if key == "source" and "resourceClaimName" in properties else ""
            )


def _kind(schema: Mapping[str, Any]) -> str:
    """The scalar kind of a schema without properties or items."""
    known = _FORMATS.get(schema.get("format", ""))
    if known is not None:
        return known
    types = schema.get("type")
    names = [name for name in ([types] if isinstance(types, str) else types or ()) if name != "null"]
    if len(names) != 1:
        return "any"
    return _TYPES.get(names[0], "object" if names[0] == "object" else "any")


# Which JSON values a field's type accepts when the API server decodes them.


_TIME: Final = re.compile(
    r"(\d{4})-(\d{2})-(\d{2})T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:[.,]\d+)?(?:Z|[+-](?:[01]\d|2[0-4]):[0-5]\d)", re.ASCII
)
_INTEGERS: Final = {"int": 63, "int64": 63, "int32": 31}


def scalar_problem(value: Any, kind: str) -> tuple[str, str] | None:
    """The rule that a value violates and what its type wants instead; None if it fits. Null always fits.

    Kinds: string, bool, int and int64, int32, number, quantity, time, object, int-or-string, any.
    """
    if value is None or kind == "any":
        return None
    if kind == "string":
        return None if isinstance(value, str) else wrong_type("a string", value)
    if kind == "bool":
        return None if isinstance(value, bool) else wrong_type("true or false", value)
    if kind in _INTEGERS:
        return _integer_problem(value, _INTEGERS[kind])
    if kind == "quantity":
        return _quantity_problem(value)
    if kind == "time":
        return _time_problem(value)
    if kind == "object":
        return None if isinstance(value, dict) else wrong_type("an object", value)
    if kind == "int-or-string":
        return None if isinstance(value, str) else _integer_problem(value, 31)
    fits = isinstance(value, int | float) and not isinstance(value, bool)
    return None if fits else wrong_type("a number", value)


def wrong_type(wanted: str, value: Any) -> tuple[str, str]:
    """The problem of a value with another JSON type."""
    return "type-mismatch", f"must be {wanted}, not {type_name(value)}"


def type_name(value: Any) -> str:
    """What a JSON value is, in words."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return f"the number {value}"
    if isinstance(value, str):
        return "a string"
    return "a list" if isinstance(value, list) else "an object"


def _integer_problem(value: Any, bits: int) -> tuple[str, str] | None:
    whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    if isinstance(value, bool) or not whole:
        return wrong_type("a whole number", value)
    if not -(2**bits) <= value < 2**bits:
        return "type-mismatch", f"must fit into {bits + 1} bits, {value} does not"
    return None


def _quantity_problem(value: Any) -> tuple[str, str] | None:
    try:
        Quantity.from_json(value)
    except QuantityError as error:
        shown = repr(value) if isinstance(value, str) else type_name(value)
        # The form is known from the examples; the server's pattern for it takes texts that it then refuses.
        why = "" if str(error) == WRONG_FORM else f": {error}"
        return "quantity-syntax", f"{shown} is not a quantity such as 40Gi or 500m{why}"
    return None


def _time_problem(value: Any) -> tuple[str, str] | None:
    if not isinstance(value, str):
        return wrong_type("a time", value)
    match = _TIME.fullmatch(value)
    if match is None or not _is_date(*map(int, match.groups()[:3])):
        return "time-syntax", f"{value!r} is no RFC 3339 time such as 2026-01-01T00:00:00Z"
    return None


def _is_date(year: int, month: int, day: int) -> bool:
    from calendar import monthrange

    # Python's calendar has no year 0; it is a leap year like 2000.
    return 1 <= month <= 12 and 1 <= day <= monthrange(year or 2000, month)[1]
