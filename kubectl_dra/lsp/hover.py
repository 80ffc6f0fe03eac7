"""What a word of a manifest means, as Markdown: a field, an attribute, a function of selectors, a device class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from kubectl_dra.cel.declarations import Function, Overload
from kubectl_dra.data.drivers import catalogue
from kubectl_dra.lint.registry import BY_CODE
from kubectl_dra.lint.result import LocatedFinding
from kubectl_dra.lsp.cursor import Cursor, Span, cursor_at
from kubectl_dra.lsp.fields_shown import field_at, page
from kubectl_dra.lsp.knowledge import Knowledge, Meaning
from kubectl_dra.lsp.selector_words import member_at, word_at
from kubectl_dra.wording import amount

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


def _rule(found: LocatedFinding) -> str:
    rule = BY_CODE[found.code]
    advice = f"\n\n{found.advice}" if found.advice else ""
    return f"**{rule.code}**: {rule.title()}{advice}\n\n{rule.why()}"


def _meaning(text: str, offset: int, cursor: Cursor, known: Knowledge) -> Hover | None:
    if cursor.selector is not None:
        return _in_selector(text, offset, cursor.selector, known)
    if cursor.on_key:
        field = field_at(cursor.kind, cursor.version, cursor.path)
        return None if field is None else Hover(page(cursor.path[-1], field, known.target.release), cursor.word)
    if cursor.path[-1:] == ("deviceClassName",):
        found = _device_class(text[cursor.word.start : cursor.word.end], known)
        return Hover(found, cursor.word) if found else None
    return None


def _in_selector(text: str, offset: int, selector: Span, known: Knowledge) -> Hover | None:
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
        where = "No device of the snapshot has it" if known.target.snapshot is not None else "No driver is known to"
        return f"**{name}** of {domain}\n\n{where}{'' if known.target.snapshot is not None else ' publish it'}."
    lines = [f"**{name}** of {domain}: {meaning.type}"]
    if meaning.values:
        lines.append(f"One of {', '.join(f'`{value}`' for value in meaning.values)}.")
    elif meaning.example and meaning.published is None:
        lines.append(f"For example `{meaning.example}`.")
    if meaning.published is not None:
        total = known.seen.drivers.get(domain)
        of = f" of {total:,}" if total else ""
        lines.append(f"On {meaning.published.devices:,}{of} devices of the snapshot: {_values(meaning)}.")
    elif known.target.snapshot is not None:
        lines.append("No device of the snapshot has it.")
    return "\n\n".join(lines)


def _values(meaning: Meaning) -> str:
    assert meaning.published is not None
    ranked = sorted(meaning.published.values.items(), key=lambda item: (-item[1], item[0]))
    shown = ", ".join(f"`{value}` ({count:,})" for value, count in ranked[:_FEW])
    return shown if len(ranked) <= _FEW else f"{shown}, and {amount(len(ranked) - _FEW, 'other value')}"


def _function(function: Function) -> str:
    signatures = "\n".join(_signature(function.name, overload) for overload in function.overloads)
    examples = "".join(f"\n\n```cel\n{example}\n```" for example in function.examples[:2])
    return f"```cel\n{signatures}\n```\n\n{function.documentation}{examples}"


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
        return f"DeviceClass **{name}**\n\n{there}" if there else ""
    installed = driver.classes[name]
    selector = f"\n\n```cel\n{installed.selector}\n```" if installed.selector else ""
    resource = f"\n\nServes the extended resource `{installed.extended_resource}`." * bool(installed.extended_resource)
    return f"DeviceClass **{name}**, installed by {driver.title}{selector}{resource}" + (
        f"\n\n{there}" if there else ""
    )
