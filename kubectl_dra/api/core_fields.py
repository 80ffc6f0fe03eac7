"""The fields of kinds outside resource.k8s.io: a row for each that a struct of ``api`` decodes, by its annotations.

The text in ``Annotated[str, "node"]`` is what an anonymized copy has in its place (``cluster.anonymize``), or
"time" for the type; a struct says how a value is laid out that is decoded as any. A snapshot keeps the field unless
it is ``NOT_SAVED``. These rows are no base for calling a field unknown: they have only what is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache, reduce
from operator import or_
from types import NoneType, UnionType
from typing import Any, Final, Union, get_args, get_origin, get_type_hints

from msgspec import structs

from kubectl_dra.api import (
    gangs,
    kueue,
    labels,
    meta,
    neighbour_kinds,
    nodes,
    plugins,
    pods,
    policy,
    volumes,
)
from kubectl_dra.api.meta import NOT_SAVED, WORKED_OUT, Amount, Wire
from kubectl_dra.api.schema import Field, row

_TEXTS: Final[Mapping[Any, str]] = {str: "string", int: "int", bool: "bool", Amount: "quantity"}
_CLASSES: Final[Mapping[str, type[Wire]]] = {
    **{
        name: kind
        for module in (
            gangs,
            kueue,
            labels,
            meta,
            neighbour_kinds,
            nodes,
            plugins,
            pods,
            policy,
            volumes,
        )
        for name, kind in vars(module).items()
        if isinstance(kind, type) and issubclass(kind, Wire)
    },
    **dict.fromkeys(("ReplicaSet", "ReplicationController", "Service", "StatefulSet"), policy.PodSelecting),
    **{name: row.struct for name, row in neighbour_kinds.NEIGHBOUR_KINDS.items()},
}
_SUBJECT: Final = {
    "apiVersion": "string subject",
    "kind": "string subject",
    "namespace": "string namespace",
    "name": "string subject",
    "uid": "string scrambled",
}
_NOT_DECODED: Final[Mapping[str, Mapping[str, str]]] = {
    "Event": {
        **dict.fromkeys(("involvedObject", "regarding"), "*EventSubject"),
        "reason": "string reason",
        **dict.fromkeys(("message", "note"), "string said"),
        "type": "string keep",
        **dict.fromkeys(("count", "deprecatedCount"), "int"),
        "series": "*EventSeries",
        **dict.fromkeys(("firstTimestamp", "lastTimestamp", "eventTime"), "time"),
        **dict.fromkeys(("deprecatedFirstTimestamp", "deprecatedLastTimestamp"), "time"),
        **dict.fromkeys(("source", "deprecatedSource"), "*EventSource"),
        **dict.fromkeys(("reportingComponent", "reportingController"), "string component"),
    },
    "EventSubject": _SUBJECT,
    "EventSeries": {"count": "int", "lastObservedTime": "time"},
    "EventSource": {"component": "string component"},
    "Namespace": {},
    "NodeCondition": {"reason": "string reason"},
    "ExtendedClaimStatus": {"requestMappings": "[]RequestMapping"},
    "RequestMapping": {
        "containerName": "string container",
        "resourceName": "string resource",
        "requestName": "string request",
    },
    "PodSpec": {"nodeName": "string node"},
}
"""Fields that are kept for people, or read one by one. Events come in the forms of two API groups."""


@cache
def core_rows(struct: str) -> Mapping[str, Field]:
    """The fields of a struct by their names in the API. Raises KeyError for an unknown struct."""
    rows = {name: row(text) for name, text in _NOT_DECODED.get(struct, {}).items()}
    if struct in _NOT_DECODED and struct not in _CLASSES:
        return rows
    return {**dict(_decoded(_CLASSES[struct])), **rows}


def _decoded(kind: type[Wire]) -> Iterator[tuple[str, Field]]:
    hints = get_type_hints(kind, include_extras=True)
    for attribute, name in zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True):
        said = getattr(hints[attribute], "__metadata__", ("",))[0]
        if said == WORKED_OUT:
            continue
        layout = said.__name__ if isinstance(said, type) else "time" if said == "time" else ""
        word = "" if layout or said == NOT_SAVED else said
        field = row(f"{_notation(hints[attribute], layout)} {word}".strip())
        yield name, structs.replace(field, saved=said != NOT_SAVED)


def _notation(hint: Any, layout: str) -> str:
    """A type as ``api.schema`` writes it."""
    hint = get_args(hint)[0] if hasattr(hint, "__metadata__") else hint
    if hint in _TEXTS:
        return layout or _TEXTS[hint]
    arguments, origin = get_args(hint), get_origin(hint)
    if origin in (Union, UnionType):
        present = [argument for argument in arguments if argument is not NoneType]
        return f"*{layout or _notation(reduce(or_, present), '')}" if len(present) < len(arguments) else "any"
    if origin is tuple:
        return f"[]{layout or _notation(arguments[0], '')}"
    if origin is dict:
        return layout or ("object" if arguments[1] is Any else "{}" + _notation(arguments[1], ""))
    return layout or str(hint.__name__)
