"""Whether the types of raw values are surely right: quick looks that leave what is rare to ``api.decoding``."""

from __future__ import annotations

from typing import Any, Final

from kubectl_dra.api.decoding import struct_mismatch

_NOT_TEXT: Final = frozenset(
    (
        "generation",
        "deletionGracePeriodSeconds",
        "labels",
        "annotations",
        "finalizers",
        "ownerReferences",
        "managedFields",
    )
)
_FLAGS: Final = frozenset(("controller", "blockOwnerDeletion"))
_TERM: Final = frozenset(("matchFields", "matchExpressions"))


def dumped(value: Any) -> bytes:
    """A text that only equal values have; empty where there is none."""
    from orjson import dumps

    try:
        return dumps(value)
    except TypeError:
        return b""


def plain_meta(meta: Any) -> bool:
    """Whether all types of ``metadata`` are right; never true where one is not."""
    if type(meta) is not dict:
        return False
    for key, value in meta.items():
        kind = type(value)
        if kind is str and key not in _NOT_TEXT:
            continue
        if kind is dict and key in ("labels", "annotations") and all(type(text) is str for text in value.values()):
            continue
        if kind is list and key == "ownerReferences" and all(map(_is_owner, value)):
            continue
        if kind is list and key == "managedFields" and all(map(_is_managed, value)):
            continue
        if kind is list and key == "finalizers" and all(type(text) is str for text in value):
            continue
        if kind is not int or key != "generation":
            return struct_mismatch(meta, "ObjectMeta") is None
    return True


def _is_owner(raw: Any) -> bool:
    return type(raw) is dict and all(type(value) is (bool if key in _FLAGS else str) for key, value in raw.items())


def _is_managed(raw: Any) -> bool:
    return type(raw) is dict and all(key == "fieldsV1" or type(value) is str for key, value in raw.items())


def plain_node_selector(raw: Any) -> bool:
    """Whether it is a node selector of requirements with their values, or None; false leaves it open."""
    if raw is None:
        return True
    if type(raw) is not dict or raw.keys() != {"nodeSelectorTerms"} or type(raw["nodeSelectorTerms"]) is not list:
        return False
    for term in raw["nodeSelectorTerms"]:
        if type(term) is not dict or term.keys() - _TERM:
            return False
        for requirements in term.values():
            if type(requirements) is not list or not all(map(_is_requirement, requirements)):
                return False
    return True


def _is_requirement(raw: Any) -> bool:
    if type(raw) is not dict or raw.keys() != {"key", "operator", "values"} or type(raw["values"]) is not list:
        return False
    return type(raw["key"]) is str and type(raw["operator"]) is str and all(type(text) is str for text in raw["values"])


def all_text(entries: Any) -> bool:
    """Whether it is a list of objects that hold nothing but text."""
    return isinstance(entries, list | tuple) and all(
        type(entry) is dict and all(type(value) is str for value in entry.values()) for entry in entries
    )


def plain_taints(taints: Any) -> bool:
    return taints is None or all_text(taints)
