"""What the API server cannot decode in kinds outside resource.k8s.io, by the schemas of real servers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from kubectl_dra.admission.server.dra_decoding import unknown, wrong
from kubectl_dra.admission.server.model import Key, Path, Violations
from kubectl_dra.admission.server.scalars import scalar_problem, wrong_type
from kubectl_dra.api.releases import MODELLED, SCHEMAS, Release
from kubectl_dra.data.packed import packed

_FORMATS: Final = {"date-time": "time", "int64": "int64", "int32": "int32", "int-or-string": "int-or-string"}
_SINCE_131: Final = " since 1.31: its content is directly in the entry"
_TYPES: Final = {"string": "string", "boolean": "bool", "number": "number", "integer": "int64"}


def decoding(raw: Mapping[str, Any], group: str, version: str, release: Release) -> Violations:
    """Everything in an object that cannot be decoded. Raises KeyError for a kind without a schema."""
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
    for struct, fields in changes["fields"].items():
        if struct in definitions:
            properties = definitions[struct]["properties"] | fields
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


def _value(value: Any, schema: Mapping[str, Any], defs: Mapping[str, Any], at: Path) -> Violations:
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


def _object(value: Any, properties: Mapping[str, Any], defs: Mapping[str, Any], at: Path) -> Violations:
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
