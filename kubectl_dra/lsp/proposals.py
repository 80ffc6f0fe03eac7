"""What may stand at a place of a manifest: fields, values, names of objects, words of a selector."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import NamedTuple

from kubectl_dra.cel import library
from kubectl_dra.lsp.cursor import Cursor, Span, Typed, cursor_at, typed
from kubectl_dra.lsp.fields import (
    Parameters,
    api_versions_of,
    field_at,
    fields_at,
    kinds_in,
    page,
    parameter_page,
    parameter_type,
    parameters_at,
    struct_at,
    type_of,
    values_of,
)
from kubectl_dra.lsp.knowledge import Knowledge
from kubectl_dra.lsp.nearby import names
from kubectl_dra.manifests.source import Source


class Sort(StrEnum):
    """What a proposal is; editors draw a picture for each."""

    field = "field"
    value = "value"
    name = "name"
    function = "function"


class Proposal(NamedTuple):
    """A word to put in place of ``span``. ``detail`` is short, ``documentation`` is Markdown."""

    label: str
    sort: Sort
    span: Span
    detail: str = ""
    documentation: str = ""
    text: str = ""


def proposals_at(
    text: str, offset: int, known: Knowledge, name: str = "", others: Iterable[Source] = ()
) -> list[Proposal]:
    """What may stand at an offset of the text of a file; ``others`` are texts with objects that it may name."""
    cursor = cursor_at(text, offset)
    if cursor.selector is not None:
        what = typed(text[cursor.selector.start : offset])
        return list(_in_selector(what, Span(offset - len(what.prefix), offset), known))
    if (inside := parameters_at(text, offset, cursor)) is not None:
        return list(_of_parameters(cursor, offset, inside))
    if cursor.on_key:
        above = field_at(cursor.kind, cursor.api_version, cursor.path[:-1])
        if above is None or not above.scalar:
            return list(_fields(cursor, offset, known))
        # An item of a list of texts.
        cursor = cursor._replace(path=cursor.path[:-1], on_key=False)
    return list(_values(cursor, known, Source(name, text), others))


def _fields(cursor: Cursor, offset: int, known: Knowledge) -> Iterator[Proposal]:
    span = Span(cursor.word.start, max(cursor.word.end, offset))
    struct = struct_at(cursor.kind, cursor.api_version, cursor.path[:-1])
    for name, field in fields_at(cursor.kind, cursor.api_version, cursor.path[:-1]).items():
        if field.exists(known.target.release) and (name == cursor.path[-1] or name not in cursor.keys):
            meaning = page(struct, name, field, known.target.release)
            text = f"{name}: " if field.scalar and not field.container else f"{name}:"
            yield Proposal(name, Sort.field, span, type_of(field), meaning, text)


def _of_parameters(cursor: Cursor, offset: int, inside: Parameters) -> Iterator[Proposal]:
    """Keys or values of what is opaque to Kubernetes, and not to us."""
    if not cursor.on_key:
        yield from _each(values_of(inside.below(inside.path)), Sort.value, cursor.word)
        return
    span = Span(cursor.word.start, max(cursor.word.end, offset))
    above = inside.path[:-1]
    fields = inside.below(above)
    for name, field in fields.items() if isinstance(fields, dict) else ():
        if name == inside.path[-1] or name not in cursor.keys:
            text = f"{name}:" if isinstance(field, dict) else f"{name}: "
            yield Proposal(name, Sort.field, span, parameter_type(field), parameter_page(inside, (*above, name)), text)


def _values(cursor: Cursor, known: Knowledge, own: Source, others: Iterable[Source]) -> Iterator[Proposal]:
    name = cursor.path[-1] if cursor.path else ""
    near = names(cursor, own, others)
    field = field_at(cursor.kind, cursor.api_version, cursor.path)
    if name == "deviceClassName":
        yield from _each(dict.fromkeys((*near, *known.classes())), Sort.name, cursor.word)
    elif near:
        yield from _each(near, Sort.name, cursor.word)
    elif cursor.path == ("kind",):
        yield from _each(kinds_in(cursor.api_version, known.target.release), Sort.value, cursor.word)
    elif cursor.path == ("apiVersion",):
        yield from _each(api_versions_of(cursor.kind, known.target.release), Sort.value, cursor.word)
    elif name == "driver":
        yield from _each(known.drivers(), Sort.name, cursor.word)
    elif name in ("matchAttribute", "distinctAttribute"):
        yield from _each(known.qualified(), Sort.name, cursor.word)
    elif cursor.path[-2:] in (("tolerations", "key"), ("taint", "key")) and field is not None:
        yield from _each(known.taints(), Sort.name, cursor.word)
    elif field is not None:
        values = ("true", "false") if field.type == "bool" else field.values
        yield from (
            Proposal(value, Sort.value, cursor.word, "default" if value == field.default else "") for value in values
        )


def _each(words: Iterable[str], sort: Sort, span: Span) -> Iterator[Proposal]:
    return (Proposal(word, sort, span) for word in words)


def _in_selector(what: Typed, span: Span, known: Knowledge) -> Iterator[Proposal]:
    if what.what == "domain":
        yield from _each(known.domains(what.map), Sort.name, span)
    elif what.what == "driver":
        yield from _each(known.drivers(), Sort.name, span)
    elif what.what == "name":
        yield from _names(what, span, known)
    elif what.what == "value":
        yield from _attribute_values(what, span, known)
    elif what.what == "field":
        fields = known.environment.fields("kubernetes.DRADevice") or {}
        yield from (Proposal(name, Sort.field, span, str(type)) for name, type in fields.items())
    elif what.what in ("method", "word"):
        yield from _functions(what.what == "method", span, known)


def _names(what: Typed, span: Span, known: Knowledge) -> Iterator[Proposal]:
    for name in known.names(what.map, what.domain):
        meaning = known.meaning(what.map, what.domain, name)
        detail = "" if meaning is None else meaning.type
        if meaning is not None and meaning.published is not None:
            detail = f"{detail}, on {meaning.published.devices:,} devices"
        yield Proposal(name, Sort.field, span, detail)


def _attribute_values(what: Typed, span: Span, known: Knowledge) -> Iterator[Proposal]:
    meaning = known.meaning(what.map, what.domain, what.name)
    if meaning is None:
        return
    counted = {} if meaning.published is None else meaning.published.values
    for value in dict.fromkeys(
        (*sorted(counted, key=lambda published: -counted[published]), *meaning.values, *meaning.examples)
    ):
        yield Proposal(value, Sort.value, span, f"{counted[value]:,} devices" if value in counted else "")


def _functions(member: bool, span: Span, known: Knowledge) -> Iterator[Proposal]:
    for name, function in known.functions.items():
        if any(overload.member == member for overload in function.overloads):
            yield Proposal(
                name, Sort.function, span, function.library, library.reference(name).documentation, f"{name}("
            )
    for name, _, on_value in known.environment.macros():
        if on_value == member:
            yield Proposal(name, Sort.function, span, "macro", "", f"{name}(")
    if not member:
        yield Proposal("device", Sort.name, span, "the device that is looked at")
