"""What the language server answers at a place of a manifest: what may stand there, and what it means."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from typing import Any, Final, NamedTuple

from kubectl_dra.api.fields import KINDS, fields_at, values_of
from kubectl_dra.api.releases import EVERY, Release
from kubectl_dra.api.schema import Field
from kubectl_dra.cel import library
from kubectl_dra.cel.environment import Environment
from kubectl_dra.cel.functions import Function, Overload
from kubectl_dra.cel.library import table
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.data.drivers import catalogue
from kubectl_dra.lint.context import AssumedCluster
from kubectl_dra.lint.finding import LocatedFinding
from kubectl_dra.lint.rules import BY_CODE
from kubectl_dra.lsp.cursor import Cursor, Span, Typed, cursor_at, member_at, typed, word_at
from kubectl_dra.text import amount

# The fields of DRA kinds as an editor shows them, from the one table of the API.


def struct_at(kind: str, version: str, path: Sequence[str]) -> Mapping[str, Field]:
    """The fields of the mapping at a path of a DRA kind; none for what the table does not know."""
    return fields_at(kind, version, path) if kind in KINDS else {}


def field_at(kind: str, version: str, path: Sequence[str]) -> Field | None:
    """The field at a path of a DRA kind."""
    return struct_at(kind, version, path[:-1]).get(path[-1]) if path else None


def page(name: str, field: Field, release: Release) -> str:
    """A field as Markdown: its type, default and limit, and which releases and feature gates it needs."""
    lines = [f"**{name}**: {type_of(field)}"]
    if field.default is not None:
        lines.append(f"Default: `{field.default}`.")
    if (most := field.limit(release if field.exists(release) else field.releases.oldest)) is not None:
        lines.append(f"At most {most:,} {'bytes' if field.scalar and not field.container else 'entries'}.")
    if field.releases != EVERY:
        lines.append(f"In Kubernetes {field.releases}.")
    if field.gates:
        lines.append(f"Dropped from new objects unless {' and '.join(f'`{gate}`' for gate in field.gates)} is on.")
    if not field.exists(release):
        lines.append(f"**Kubernetes {release} does not have it.**")
    return "\n\n".join(lines)


def type_of(field: Field) -> str:
    """The type in words: string, list of DeviceRequest, map of Counter."""
    return f"{field.container} of {field.type}" if field.container else field.type


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


def proposals_at(text: str, offset: int, known: Knowledge) -> list[Proposal]:
    """What may stand at an offset."""
    cursor = cursor_at(text, offset)
    if cursor.selector is not None:
        what = typed(text[cursor.selector.start : offset])
        return list(_in_selector(what, Span(offset - len(what.prefix), offset), known))
    if cursor.on_key:
        return list(_fields(cursor, offset, known))
    return list(_values(cursor, known))


def _fields(cursor: Cursor, offset: int, known: Knowledge) -> Iterator[Proposal]:
    span = Span(cursor.word.start, max(cursor.word.end, offset))
    for name, field in struct_at(cursor.kind, cursor.version, cursor.path[:-1]).items():
        if field.exists(known.target.release) and (name == cursor.path[-1] or name not in cursor.keys):
            yield Proposal(
                name,
                Sort.field,
                span,
                type_of(field),
                page(name, field, known.target.release),
                _written(field.scalar, name),
            )


def _written(scalar: bool, name: str) -> str:
    return f"{name}: " if scalar else f"{name}:"


def _values(cursor: Cursor, known: Knowledge) -> Iterator[Proposal]:
    name = cursor.path[-1] if cursor.path else ""
    if name == "deviceClassName":
        yield from _each(known.classes(), Sort.name, cursor.word)
    elif name == "driver":
        yield from _each(known.drivers(), Sort.name, cursor.word)
    elif field_at(cursor.kind, cursor.version, cursor.path) is not None:
        yield from _each(values_of(name), Sort.value, cursor.word)


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
    for value in dict.fromkeys((*sorted(counted, key=lambda each: -counted[each]), *meaning.values)):
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


# What a word of a manifest means, as Markdown: a field, an attribute, a function of selectors, a device class.

_FEW: Final = 8


class Hover(NamedTuple):
    """What to show, as Markdown, and the span of the text that it is about."""

    text: str
    span: Span


def hover_at(text: str, offset: int, findings: Sequence[LocatedFinding], known: Knowledge) -> Hover | None:
    """What to show at an offset: first what lint found there, then what stands there."""
    about = [found for found in findings if found.offset <= offset <= max(found.end_offset, found.offset + 1)]
    cursor = cursor_at(text, offset)
    meaning = _meaning(text, offset, cursor, known)
    if not about:
        return meaning
    parts = [_rule(found) for found in about]
    span = Span(about[0].offset, about[0].end_offset)
    return Hover("\n\n---\n\n".join([*parts, *((meaning.text,) if meaning is not None else ())]), span)


# What strangers wrote, in manifests and snapshots, must not become a picture or a link.

_WORD: Final = re.compile(r"[A-Za-z0-9]+([._/-][A-Za-z0-9]+)*")
_MARKS: Final = re.compile(r"[\\`*_{}\[\]<>()#!|~&]")


def _code(value: str) -> str:
    """A value as code, which nothing in it can end."""
    line = " ".join(value.split("\n"))
    fence = "`" * (1 + max(map(len, re.findall("`+", line)), default=0))
    space = " " if line.startswith(("`", " ")) or line.endswith(("`", " ")) or not line else ""
    return f"{fence}{space}{line}{space}{fence}"


def _name(value: str) -> str:
    """A name of a stranger: as it is where nothing in it means something to Markdown."""
    return value if _WORD.fullmatch(value) else _code(value)


def _plain(sentence: str) -> str:
    """A sentence of ours with a stranger's words in it, none of which is Markdown."""
    return _MARKS.sub(r"\\\g<0>", sentence)


def _rule(finding: LocatedFinding) -> str:
    rule = BY_CODE[finding.code]
    advice = f"\n\n{_plain(finding.advice)}" if finding.advice else ""
    return f"**{rule.code}**: {rule.title()}{advice}\n\n{rule.why()}"


def _meaning(text: str, offset: int, cursor: Cursor, known: Knowledge) -> Hover | None:
    if cursor.selector is not None:
        return _hover_in_selector(text, offset, cursor.selector, known)
    if cursor.on_key:
        field = field_at(cursor.kind, cursor.version, cursor.path)
        return None if field is None else Hover(page(cursor.path[-1], field, known.target.release), cursor.word)
    if cursor.path[-1:] == ("deviceClassName",):
        found = _device_class(text[cursor.word.start : cursor.word.end], known)
        return Hover(found, cursor.word) if found else None
    return None


def _hover_in_selector(text: str, offset: int, selector: Span, known: Knowledge) -> Hover | None:
    expression, at = text[selector.start : selector.end], offset - selector.start
    member = member_at(expression, at)
    if member is not None and member.name:
        meaning = known.meaning(member.map, member.domain, member.name)
        said = _attribute(member.domain, member.name, meaning, known)
        return Hover(said, Span(selector.start + member.start, selector.start + member.end))
    if member is not None and (driver := catalogue().driver(member.domain)) is not None:
        return Hover(f"**{driver.name}**: {driver.title}", Span(offset, offset))
    function = known.functions.get(word_at(expression, at))
    return None if function is None else Hover(_function(function), Span(offset, offset))


def _attribute(domain: str, name: str, meaning: Meaning | None, known: Knowledge) -> str:
    if meaning is None:
        where = (
            "No device of the snapshot has it"
            if known.target.snapshot is not None
            else "No driver is known to publish it"
        )
        return f"**{_name(name)}** of {_name(domain)}\n\n{where}."
    lines = [f"**{_name(name)}** of {_name(domain)}: {meaning.type}"]
    if meaning.values:
        lines.append(f"One of {', '.join(map(_code, meaning.values))}.")
    elif meaning.example and meaning.published is None:
        lines.append(f"For example {_code(meaning.example)}.")
    if meaning.published is not None:
        total = known.seen.drivers.get(domain)
        of = f" of {total:,}" if total else ""
        lines.append(f"On {meaning.published.devices:,}{of} devices of the snapshot: {_hover_values(meaning)}.")
    elif known.target.snapshot is not None:
        lines.append("No device of the snapshot has it.")
    return "\n\n".join(lines)


def _hover_values(meaning: Meaning) -> str:
    assert meaning.published is not None
    ranked = sorted(meaning.published.values.items(), key=lambda item: (-item[1], item[0]))
    shown = ", ".join(f"{_code(value)} ({count:,})" for value, count in ranked[:_FEW])
    return shown if len(ranked) <= _FEW else f"{shown}, and {amount(len(ranked) - _FEW, 'other value')}"


def _function(function: Function) -> str:
    signatures = "\n".join(_signature(function.name, overload) for overload in function.overloads)
    documentation, written = library.reference(function.name)
    examples = "".join(f"\n\n```cel\n{example}\n```" for example in written[:2])
    return f"```cel\n{signatures}\n```\n\n{documentation}{examples}"


def _signature(name: str, overload: Overload) -> str:
    parameters = [str(parameter) for parameter in overload.parameters]
    called = f"{parameters[0]}.{name}" if overload.member else name
    return f"{called}({', '.join(parameters[1:] if overload.member else parameters)}) -> {overload.result}"


def _device_class(name: str, known: Knowledge) -> str:
    snapshot = known.target.snapshot
    if snapshot is not None and snapshot.classes:
        there = "The snapshot has it." if name in snapshot.classes else "**The snapshot has no such DeviceClass.**"
    else:
        there = ""
    driver = catalogue().of_class(name)
    if driver is None:
        return f"DeviceClass **{_name(name)}**\n\n{there}" if there else ""
    installed = driver.classes[name]
    selector = f"\n\n```cel\n{installed.selector}\n```" if installed.selector else ""
    resource = f"\n\nServes the extended resource `{installed.extended_resource}`." * bool(installed.extended_resource)
    return f"DeviceClass **{_name(name)}**, installed by {driver.title}{selector}{resource}" + (
        f"\n\n{there}" if there else ""
    )


# What the devices of a snapshot publish, counted: drivers, attributes, capacities and their values.


class PublishedValues(NamedTuple):
    """An attribute or capacity: its type, how many devices have it, and how many have each value."""

    type: str
    devices: int
    values: Mapping[str, int]


class DevicesSeen(NamedTuple):
    """``drivers`` counts their devices. ``attributes`` and ``capacity`` are by domain and name."""

    drivers: Mapping[str, int]
    attributes: Mapping[tuple[str, str], PublishedValues]
    capacity: Mapping[tuple[str, str], PublishedValues]
    classes: tuple[str, ...]


NOTHING: Final = DevicesSeen({}, {}, {}, ())
_CAPACITY: Final = frozenset(("value", "requestPolicy"))


def devices_seen(snapshot: Snapshot) -> DevicesSeen:
    """Count what the devices of the snapshot publish."""
    drivers: Counter[str] = Counter()
    attributes: dict[tuple[str, str], list[tuple[str, str]]] = {}
    capacity: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for slice in snapshot.slices:
        for device in slice.devices:
            drivers[device.driver] += 1
            for found, kept in ((device.attributes, attributes), (device.capacity, capacity)):
                for written, value in found.items():
                    domain, _, name = written.rpartition("/")
                    kept.setdefault((domain or device.driver, name), []).extend(_texts(value))
    return DevicesSeen(drivers, _counted(attributes), _counted(capacity), tuple(snapshot.classes))


def _texts(value: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The types and texts of a value: one, or those of a list."""
    for type, found in value.items():
        if type in _CAPACITY:
            if type == "value":
                yield "quantity", str(found)
            continue
        for each in found if isinstance(found, list | tuple) else (found,):
            yield type, str(each).lower() if isinstance(each, bool) else str(each)


def _counted(found: Mapping[tuple[str, str], list[tuple[str, str]]]) -> dict[tuple[str, str], PublishedValues]:
    return {
        name: PublishedValues(values[0][0], len(values), Counter(text for _, text in values))
        for name, values in found.items()
        if values
    }


class Meaning(NamedTuple):
    """What an attribute or capacity is: its type, possible values if they are few, and who publishes it.

    ``published`` is None without a snapshot that has it.
    """

    type: str
    values: tuple[str, ...]
    example: str
    published: PublishedValues | None


class Knowledge:
    """What the server knows about the world, computed when it is first asked for."""

    def __init__(self, target: AssumedCluster) -> None:
        self.target: Final = target

    @cached_property
    def seen(self) -> DevicesSeen:
        """The devices of the snapshot."""
        return NOTHING if self.target.snapshot is None else devices_seen(self.target.snapshot)

    @cached_property
    def environment(self) -> Environment:
        """The CEL environment of new selectors."""
        return Environment.for_release(self.target.release, self.target.features)

    @cached_property
    def functions(self) -> Mapping[str, Function]:
        """The functions that a selector may call by name; operators are left out."""
        found = {name: self.environment.function(name) for name in table() if name.replace(".", "").isidentifier()}
        return {name: function for name, function in found.items() if function is not None}

    def drivers(self) -> tuple[str, ...]:
        """Names of drivers: those of the snapshot, or all documented ones."""
        return tuple(self.seen.drivers) or catalogue().names

    def classes(self) -> tuple[str, ...]:
        """Names of DeviceClasses: those of the snapshot, or all that documented drivers install."""
        return self.seen.classes or catalogue().classes

    def domains(self, part: str) -> tuple[str, ...]:
        """The domains that devices' attributes or capacities are in."""
        published = self.seen.attributes if part == "attributes" else self.seen.capacity
        return tuple(dict.fromkeys(domain for domain, _ in published)) or catalogue().names

    def names(self, part: str, domain: str) -> tuple[str, ...]:
        """The names of a domain's attributes or capacities: published ones, then documented ones."""
        published = self.seen.attributes if part == "attributes" else self.seen.capacity
        driver = catalogue().driver(domain)
        documented = () if driver is None else driver.attributes if part == "attributes" else driver.capacities
        own = (name for name in documented if "/" not in name)
        return tuple(dict.fromkeys([*(name for at, name in published if at == domain), *own]))

    def meaning(self, part: str, domain: str, name: str) -> Meaning | None:
        """What is known of an attribute or capacity; None if nothing is."""
        published = (self.seen.attributes if part == "attributes" else self.seen.capacity).get((domain, name))
        driver = catalogue().driver(domain)
        if part == "capacity":
            documented = driver is not None and name in driver.capacities
            return Meaning("quantity", (), "", published) if documented or published else None
        attribute = driver.attributes.get(name) if driver is not None else None
        if attribute is None:
            return None if published is None else Meaning(published.type, (), "", published)
        values = tuple(str(value) for value in attribute.values)
        return Meaning(attribute.type, values, attribute.example, published)
