"""The style of a document, and how to write new values in it."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import msgspec

from kubectl_dra.manifests.values import distinct_nodes, scalar

_BARE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*\Z")
_NOT_IN_YAML: Final = {code: f"\\u{code:04x}" for code in (*range(0x7F, 0xA0), 0x2028, 0x2029, 0xFEFF)}
_INDENT: Final = re.compile(r"\A +")
_QUANTITY: Final = re.compile(r"[0-9]+(\.[0-9]+)?[A-Za-z]+\Z")
# What stays one plain scalar where nothing but the line's end closes it, such as most CEL expressions.
_SENTENCE: Final = re.compile(r"[A-Za-z_(](?:[^:#\s]|:(?=\S)|(?<=\S)#| (?=\S))*\Z")


class Style(NamedTuple):
    """Style of new text.

    ``step`` is the indentation of a mapping below its key, ``dash`` that of a list's dashes. ``quote`` is the
    preferred quote; with ``quoted`` every text gets it, with ``quoted_keys`` every key. ``json``: written as
    JSON.
    """

    step: int = 2
    dash: int = 0
    quote: str = "'"
    quoted: bool = False
    quoted_keys: bool = False
    newline: str = "\n"
    json: bool = False


def style_of(text: str, root: Any) -> Style:
    """The prevailing style of a document. ``root`` is its node, ``text`` the whole source."""
    steps: Counter[int] = Counter()
    dashes: Counter[int] = Counter()
    quotes: Counter[str] = Counter()
    keys: Counter[bool] = Counter()
    for key, value in (pair for node in distinct_nodes((root,)) if node.id == "mapping" for pair in node.value):
        keys[key.style in ("'", '"')] += 1
        if value.id == "scalar":
            if value.style in ("'", '"'):
                quotes[value.style] += 1
            elif not value.style and isinstance(scalar(value.value), str):
                quotes[""] += 1
        elif root.flow_style:
            inner = value.value[0] if value.value else value
            first = inner[0] if isinstance(inner, tuple) else inner
            if first.start_mark.line > key.start_mark.line:
                steps[first.start_mark.column - key.start_mark.column] += 1
        elif not value.flow_style and value.value and value.start_mark.line > key.start_mark.line:
            # An alias has the marks of its anchor, which is above.
            indent = value.start_mark.column - key.start_mark.column
            (steps if value.id == "mapping" else dashes)[indent] += 1
    quote = '"' if quotes['"'] > quotes["'"] else "'"
    return Style(
        _common(steps, 1, 2),
        _common(dashes, 0, 0),
        quote,
        bool(quotes[quote]) and not quotes[""],
        bool(keys[True]) and not keys[False],
        _newline(text, root),
        is_json(text, root),
    )


def _newline(text: str, root: Any) -> str:
    """The prevailing line break of a document, or of the whole text if it is all on one line."""
    start, end = root.start_mark.index, root.end_mark.index
    if text.find("\n", start, end) < 0:
        start, end = 0, len(text)
    return "\r\n" if text.count("\r\n", start, end) * 2 > text.count("\n", start, end) else "\n"


def is_json(text: str, root: Any) -> bool:
    """Whether a document is written as JSON."""
    if not root.flow_style or (root.value and root.value[0][0].style != '"'):
        return False
    try:
        json.loads(text[root.start_mark.index : root.end_mark.index])
    except ValueError:
        return False
    return True


def _common(counts: Counter[int], least: int, default: int) -> int:
    known = [(number, -indent) for indent, number in counts.items() if indent >= least]
    return -max(known)[1] if known else default


# --- values on one line --------------------------------------------------------------------------


def json_text(value: Any, step: int = 0) -> str:
    """A value as JSON that YAML reads as the same: JSON may hold control characters as they are, YAML may not.

    On one line, or on several that are indented by ``step`` blanks more each.
    """
    text = json.dumps(value, ensure_ascii=False).translate(_NOT_IN_YAML)
    # Many times as fast as the indentation of ``json``, which is written in Python.
    return msgspec.json.format(text, indent=step) if step else text


def flow(value: Any, style: Style, quote: str | None = None) -> str:
    """A value on one line. Texts are in quotes of the kind ``quote``, if given."""
    if isinstance(value, dict):
        entries = [f"{key_flow(key, style)}: {flow(below, style)}" for key, below in value.items()]
        return "{" + ", ".join(entries) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(flow(below, style) for below in value) + "]"
    if not isinstance(value, str):
        return json.dumps(value)
    if style.json or not value.isprintable():
        return json_text(value)
    if not quote and not style.quoted and _plain(value, _BARE):
        return value
    return quoted(value, quote or style.quote)


def spread_out(value: Any, lead: str, style: Style) -> str:
    """A value as JSON on several lines, for a line that is indented by ``lead``."""
    lines = json_text(value, style.step).split("\n")
    if "\t" in lead:
        # A tab is one column, as a space is.
        lines = [_INDENT.sub(lambda blanks: "\t" * len(blanks[0]), line) for line in lines]
    return f"{style.newline}{lead}".join(lines)


def key_flow(key: str, style: Style) -> str:
    """A key, quoted in JSON and in files that quote their keys."""
    if style.quoted_keys or style.json:
        return quoted(key, '"' if style.json else style.quote)
    return flow(key, style._replace(quoted=False))


def quoted(value: str, quote: str) -> str:
    """A text in quotes; in double ones if it needs escapes."""
    if quote == '"' or not value.isprintable():
        return json_text(value)
    return "'" + value.replace("'", "''") + "'"


def _plain(value: str, pattern: re.Pattern[str]) -> bool:
    return bool(pattern.match(value) or _QUANTITY.match(value)) and scalar(value) == value


# --- values on lines of their own ----------------------------------------------------------------


_LITERAL: Final = re.compile(r"[!-~][ -~]*(\n[ -~]*[!-~])+\n?")
"""A text of several lines, none of them blank, that a block of YAML can hold as it is."""


def block(key: str, value: Any, indent: int, style: Style) -> Iterator[str]:
    """The lines of a key (already in its written form) and its value."""
    lead = " " * indent
    if isinstance(value, dict) and value:
        yield f"{lead}{key}:"
        for inner, below in value.items():
            yield from block(key_flow(inner, style), below, indent + style.step, style)
    elif isinstance(value, list) and value:
        yield f"{lead}{key}:"
        for item in value:
            yield from block_item(item, indent + style.dash, style)
    elif isinstance(value, str) and _LITERAL.fullmatch(value) and value.isascii() and not style.json:
        yield f"{lead}{key}: |" if value.endswith("\n") else f"{lead}{key}: |-"
        yield from (f"{lead}{' ' * style.step}{line}" for line in value.removesuffix("\n").split("\n"))
    else:
        yield f"{lead}{key}: {line_end(value, style)}"


def block_item(item: Any, indent: int, style: Style) -> Iterator[str]:
    """The lines of an item of a list, the first with its dash."""
    lead = " " * indent
    if isinstance(item, dict) and item:
        lines = [line for key, value in item.items() for line in block(key_flow(key, style), value, 0, style)]
    elif isinstance(item, list) and item:
        lines = [line for value in item for line in block_item(value, 0, style)]
    else:
        lines = [line_end(item, style)]
    for index, line in enumerate(lines):
        yield f"{lead}{'  ' if index else '- '}{line}"


def line_end(value: Any, style: Style) -> str:
    """A scalar or empty collection at the end of a line."""
    if isinstance(value, str) and not style.quoted and value.isprintable() and _plain(value, _SENTENCE):
        return value
    return flow(value, style)
