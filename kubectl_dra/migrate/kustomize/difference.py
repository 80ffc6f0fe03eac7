"""Compares two builds, with the content of claims in place of their names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from kubectl_dra.api.releases import GROUP
from kubectl_dra.manifests.changes import Path
from kubectl_dra.manifests.documents import NotAnObject, parse
from kubectl_dra.manifests.objects import ObjectKey, object_key, objects
from kubectl_dra.manifests.source import Source
from kubectl_dra.manifests.workloads import pod_specs

FIELDS = {"resourceClaimTemplateName": "ResourceClaimTemplate", "resourceClaimName": "ResourceClaim"}
"""The fields of a pod's claim that refer to an object, and its kind."""


class BuildDifference(NamedTuple):
    """Where two builds differ: the object, the path in it, and the value on each side (None: nothing).

    ``claim``: for a path to a pod's claim, the object that it refers to in the new build; the values are then
    the specs of the objects referred to.
    """

    object: ObjectKey
    path: Path
    wanted: Any
    found: Any
    claim: ObjectKey | None = None


def objects_of(text: str) -> list[Mapping[str, Any]]:
    """The objects of a build. Raises FileError."""
    try:
        return [found.object for found in objects(parse(Source("<build>", text)))]
    except NotAnObject:
        return []


def differences(
    before: Sequence[Mapping[str, Any]], wanted: Sequence[Mapping[str, Any]], found: Sequence[Mapping[str, Any]]
) -> Iterator[BuildDifference]:
    """How ``found`` differs from ``wanted``. Both come from ``before``, and new objects are added beside its
    objects.
    """
    old = {object_key(raw) for raw in before}
    one, other = _listed(wanted), _listed(found)
    for key in dict.fromkeys((*one, *other)):
        left, right = one.get(key), other.get(key)
        if (
            key not in old
            and key[0] in FIELDS.values()
            and str((left or right or {}).get("apiVersion")).startswith(GROUP)
        ):
            # A new claim counts where a pod refers to it.
            continue
        if left is None or right is None:
            yield BuildDifference(key, (), left, right)
            continue
        yield from _of_claims(key, left, right, one, other)
        yield from _of_values(key, (), _without_references(left), _without_references(right))


def _listed(objects: Sequence[Mapping[str, Any]]) -> dict[ObjectKey, Mapping[str, Any]]:
    return {object_key(raw): raw for raw in objects}


def _of_claims(
    key: ObjectKey,
    left: Mapping[str, Any],
    right: Mapping[str, Any],
    one: Mapping[ObjectKey, Mapping[str, Any]],
    other: Mapping[ObjectKey, Mapping[str, Any]],
) -> Iterator[BuildDifference]:
    """Claims of the pods whose meaning differs, given that the pods have the same claims."""
    twins = {spec.path: spec for spec in pod_specs(right)}
    for spec in pod_specs(left):
        twin = twins.get(spec.path)
        theirs = _claims(twin.content) if twin is not None else {}
        for name, (_, entry) in _claims(spec.content).items():
            if name not in theirs:
                continue
            index, mine = theirs[name]
            for field, kind in FIELDS.items():
                if field in entry and field in mine:
                    wanted, meant = (kind, key[1], str(entry[field])), (kind, key[1], str(mine[field]))
                    should, does = one.get(wanted, {}).get("spec"), other.get(meant, {}).get("spec")
                    if should != does or (does is None and wanted != meant):
                        yield BuildDifference(key, (*spec.path, "resourceClaims", index), should, does, meant)


def _claims(spec: Mapping[str, Any]) -> dict[str, tuple[int, Mapping[str, Any]]]:
    found = spec.get("resourceClaims")
    return {
        str(entry.get("name")): (index, entry)
        for index, entry in enumerate(found if isinstance(found, list) else ())
        if isinstance(entry, Mapping)
    }


def _without_references(raw: Mapping[str, Any]) -> Any:
    """A copy in which a pod's claim keeps only the name of the field that holds its reference."""
    paths = {(*spec.path, "resourceClaims") for spec in pod_specs(raw)}
    return _copy(raw, (), paths)


def _copy(value: Any, path: Path, paths: set[Path]) -> Any:
    if isinstance(value, Mapping):
        return {
            key: "" if key in FIELDS and path[:-1] in paths else _copy(below, (*path, key), paths)
            for key, below in value.items()
        }
    if isinstance(value, list):
        return [_copy(below, (*path, index), paths) for index, below in enumerate(value)]
    return value


def _of_values(key: ObjectKey, path: Path, left: Any, right: Any) -> Iterator[BuildDifference]:
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        for field in dict.fromkeys((*left, *right)):
            yield from _of_values(key, (*path, field), left.get(field), right.get(field))
    elif isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        for index, (one, other) in enumerate(zip(left, right, strict=True)):
            yield from _of_values(key, (*path, index), one, other)
    elif left != right:
        yield BuildDifference(key, path, left, right)
