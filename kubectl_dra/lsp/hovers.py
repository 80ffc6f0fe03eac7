"""What a word of a manifest means, as Markdown: a field, an attribute, a function of selectors, a device class."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from kubectl_dra.cel import library
from kubectl_dra.cel.functions import Function, Overload
from kubectl_dra.data.drivers import catalogue
from kubectl_dra.lint.finding import LocatedFinding
from kubectl_dra.lint.rules import BY_CODE
from kubectl_dra.lsp.cursor import Cursor, Span, cursor_at, member_at, word_at
from kubectl_dra.lsp.fields import field_at, kind_page, page, parameter_page, parameters_at, struct_at
from kubectl_dra.lsp.knowledge import Knowledge, Meaning
from kubectl_dra.text import amount

_FEW: Final = 8


class Hover(NamedTuple):
    """What to show, as Markdown, and the span of the text that it is about."""

    text: str
    span: Span


def hover_at(text: str, offset: int, findings: Sequence[LocatedFinding], known: Knowledge) -> Hover | None:
    """What to show at an offset: first what lint found there, then what stands there."""
    about = [finding for finding in findings if finding.offset <= offset <= max(finding.end_offset, finding.offset + 1)]
    cursor = cursor_at(text, offset)
    meaning = _meaning(text, offset, cursor, known)
    if not about:
        return meaning
    parts = [_rule(finding) for finding in about]
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
    advice = f"\n\n{_plain(finding.advised)}" if finding.advice else ""
    return f"**{rule.code}**: {rule.title()}{advice}\n\n{rule.why()}"


def _meaning(text: str, offset: int, cursor: Cursor, known: Knowledge) -> Hover | None:
    if cursor.selector is not None:
        return _hover_in_selector(text, offset, cursor.selector, known)
    written, release = text[cursor.word.start : cursor.word.end].strip("'\""), known.target.release
    if not cursor.on_key and cursor.path[-1:] == ("deviceClassName",):
        meaning = _device_class(written, known)
        return Hover(meaning, cursor.word) if meaning else None
    if not cursor.on_key and cursor.path in (("kind",), ("apiVersion",)):
        meaning = kind_page(cursor.kind, release)
        return Hover(meaning, cursor.word) if meaning else None
    if (inside := parameters_at(text, offset, cursor)) is not None:
        meaning = parameter_page(inside, inside.path)
        return Hover(meaning, cursor.word) if meaning else None
    field = field_at(cursor.kind, cursor.api_version, cursor.path)
    if field is None:
        return None
    struct = struct_at(cursor.kind, cursor.api_version, cursor.path[:-1])
    return Hover(page(struct, cursor.path[-1], field, release), cursor.word)


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
    elif meaning.examples and meaning.published is None:
        lines.append(f"For example {', '.join(map(_code, meaning.examples[:_FEW]))}.")
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
