"""kubectl's JSONPath templates, applied to a result: text with ``{paths}``, ``{range}`` and ``{"text"}`` in it.

As in ``kubectl get``, what is not there gives nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from operator import eq, ge, gt, le, lt, ne
from typing import Any, Final, NamedTuple

from msgspec import json

from kubectl_dra.errors import UsageError
from kubectl_dra.text import whole_number

Values = list[Any]
Step = Callable[[Values], Values]
"""From values to those that it leads to."""
_MOST: Final = 10_000
_STEP: Final = re.compile(
    r"\.\.(?P<deep>[\w-]+|\*)?|\.(?P<name>(?:[\w-]|\\.)+|\*)?"
    r"|\[\?\((?P<filter>(?:[^'\")]|'[^']*'|\"[^\"]*\")*)\)\]"
    r"|\[(?P<inside>(?:[^\]'\"]|'[^']*'|\"[^\"]*\")*)\]"
)
_COMPARED: Final = re.compile(r"^(?P<left>@[^=!<>]*?)\s*(?:(?P<how>==|!=|<=|>=|<|>)\s*(?P<right>.+?))?$")
_HOW: Final[dict[str, Callable[[Any, Any], bool]]] = {"==": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}
_SLICE: Final = re.compile(r"(-?\d*):(-?\d*)(?::(\d*))?")
_ESCAPES: Final = {"\\n": "\n", "\\t": "\t", "\\\\": "\\", '\\"': '"', "\\'": "'"}


class Loop(NamedTuple):
    """``{range PATH}…{end}``: the parts are written for each value."""

    path: Sequence[Step]
    parts: Sequence[Part]


Part = str | Loop | Sequence[Step]
"""Text, a loop, or a path whose values are written, with blanks between them."""


def template(text: str) -> Sequence[Part]:
    """The parts of a template. Raises UsageError where it is none."""
    tokens = list(_tokens(text))
    parts, rest = _parts(tokens, text)
    if rest:
        raise _wrong(text, "{end} without {range}")
    return parts


def _wrong(text: str, why: str) -> UsageError:
    return UsageError(f"-o jsonpath={text}: {why}")


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    """Texts, and what stands in braces, each with what it is."""
    if len(text) > _MOST:
        raise _wrong(f"{text[:20]}...", "it is too long")
    for match in re.finditer(
        r"(?P<text>[^{]+)|\{(?P<inside>(?:[^{}\"']|\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*')*)\}|(?P<bad>\{)", text
    ):
        if match["bad"]:
            raise _wrong(text, "a brace is not closed")
        yield ("text", match["text"]) if match["text"] is not None else ("path", match["inside"].strip())


def _parts(tokens: list[tuple[str, str]], text: str) -> tuple[list[Part], list[tuple[str, str]]]:
    """The parts up to the end or ``{end}``, and the tokens from there on."""
    parts: list[Part] = []
    while tokens:
        (what, inside), *tokens = tokens
        if what == "text":
            parts.append(inside)
        elif inside == "end":
            return parts, [("path", "end"), *tokens]
        elif inside.startswith("range ") or inside == "range":
            below, rest = _parts(tokens, text)
            if not rest:
                raise _wrong(text, "{range} without {end}")
            parts.append(Loop(_path(inside[5:].strip(), text), below))
            tokens = rest[1:]
        elif inside[:1] in ("'", '"'):
            parts.append(re.sub(r"\\.", lambda match: _ESCAPES.get(match[0], match[0]), inside[1:-1]))
        else:
            parts.append(_path(inside, text))
    return parts, []


def _path(path: str, text: str) -> list[Step]:
    path = path.removeprefix("$").removeprefix("@")
    if path and path[0] not in ".[":
        path = f".{path}"
    steps: list[Step] = []
    at = 0
    while at < len(path):
        match = _STEP.match(path, at)
        if match is None:
            raise _wrong(text, f'"{path[at:]}" is no step of a path')
        steps.append(_step(match, text))
        at = match.end()
    return steps


def _step(match: re.Match[str], text: str) -> Step:
    if match["filter"] is not None:
        return _filter(match["filter"].strip(), text)
    if match["inside"] is not None:
        return _inside(match["inside"].strip(), text)
    if match[0].startswith(".."):
        name = match["deep"]
        return lambda values: [item for value in values for below in _all(value) for item in _field(below, name or "*")]
    name = (match["name"] or "").replace("\\", "")
    return lambda values: [item for value in values for item in _field(value, name)] if name else values


def _field(value: Any, name: str) -> Values:
    if name == "*":
        return [*value.values()] if isinstance(value, dict) else value if isinstance(value, list) else []
    return [value[name]] if isinstance(value, dict) and name in value else []


def _all(value: Any) -> Iterator[Any]:
    """The value and all below it."""
    yield value
    for below in _field(value, "*"):
        yield from _all(below)


def _inside(inside: str, text: str) -> Step:
    """What stands in brackets: ``*``, quoted names, indices, a slice."""
    if inside == "*":
        return lambda values: [item for value in values for item in _field(value, "*")]
    if names := re.findall(r"'([^']*)'|\"([^\"]*)\"", inside):
        wanted = [first or second for first, second in names]
        return lambda values: [item for value in values for name in wanted for item in _field(value, name)]
    if match := _SLICE.fullmatch(inside):
        parts = [_index(part) for part in match.groups()]
        return lambda values: [item for value in values if isinstance(value, list) for item in value[slice(*parts)]]
    indices = [_index(part.strip()) for part in inside.split(",")]
    if None in indices:
        raise _wrong(text, f'"[{inside}]" is no index')
    return lambda values: [
        value[index]
        for value in values
        if isinstance(value, list)
        for index in indices
        if index is not None and -len(value) <= index < len(value)
    ]


def _index(part: str | None) -> int | None:
    number = whole_number((part or "").removeprefix("-"))
    return None if number is None else -number if (part or "").startswith("-") else number


def _filter(condition: str, text: str) -> Step:
    match = _COMPARED.match(condition)
    if match is None:
        raise _wrong(text, f'"?({condition})" is no filter: write ?(@.field == value)')
    path, how = _path(match["left"], text), match["how"]
    right = _literal(match["right"], text) if how else None

    def holds(value: Any) -> bool:
        values = _led(path, value)
        if how is None:
            return bool(values)
        same = [item for item in values if isinstance(item, str) == isinstance(right, str)]
        return any(_HOW[how](item, right) for item in same)

    return lambda values: [item for value in values if isinstance(value, list) for item in value if holds(item)]


def _literal(written: str, text: str) -> Any:
    if written[:1] in ("'", '"') and written[-1:] == written[:1]:
        return written[1:-1]
    if written in ("true", "false"):
        return written == "true"
    number = _index(written)
    if number is None:
        raise _wrong(text, f"{written} is no value: quote texts")
    return number


def _led(path: Sequence[Step], value: Any) -> Values:
    values = [value]
    for step in path:
        values = step(values)
    return values


def filled(parts: Sequence[Part], value: Any) -> str:
    """A template with the values of a result."""
    return "".join(_filled(parts, value))


def _filled(parts: Sequence[Part], value: Any) -> Iterator[str]:
    for part in parts:
        if isinstance(part, str):
            yield part
        elif isinstance(part, Loop):
            for item in _led(part.path, value):
                yield from _filled(part.parts, item)
        else:
            yield " ".join(map(_text, _led(part, value)))


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.encode(value, order="sorted").decode()
