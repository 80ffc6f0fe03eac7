"""CEL on several lines: broken where a reader would break it, without changing the expression."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

_OPEN, _CLOSE = ("(", "[", "{"), (")", "]", "}")
_COMPARISONS = frozenset(("==", "!=", "<=", ">=", "<", ">", "in"))
_JOINED = {"?": 0, "||": 1, "&&": 2}
_DEEPEST = 30
"""Deeper nesting is not broken into lines, so that the time stays proportional to the text."""
INDENT = "  "


class _Piece(NamedTuple):
    """A token, whether a blank precedes it, and how well a line can begin with it (lower is better)."""

    text: str
    blank: bool
    rank: tuple[int, int, int] | None


def folded(expression: str, width: int) -> list[str]:
    """Lines of at most ``width`` characters if possible, never broken inside a string or name.

    Lines begin with ``&&``, ``||`` or ``?``, outermost first. Only if that is not enough do they begin with a
    comparison, an argument or a call, as many per line as fit. A text that is not CEL stays unchanged.
    """
    lines = [line for line in expression.expandtabs(2).splitlines() if line.strip()]
    if len(lines) > 1 and '"""' not in expression and "'''" not in expression:
        margin = min(len(line) - len(line.lstrip()) for line in lines)
        return [part for line in lines for part in _line(line[margin:].rstrip(), width)]
    return _line(expression.strip(), width)


def _line(text: str, width: int) -> list[str]:
    if len(text) <= width:
        return [text]
    lead = text[: len(text) - len(text.lstrip())]
    pieces = _pieces(text)
    if pieces is None:
        return [text]
    return [lead + line for line in _broken(pieces, width - len(lead))]


def _pieces(text: str) -> list[_Piece] | None:
    """The tokens of CEL without comments; None for anything else."""
    from kubectl_dra.cel.lexer import END, LexicalError, tokenize

    if "//" in text:
        return None
    try:
        tokens = tokenize(text)
    except LexicalError:
        return None
    found: list[_Piece] = []
    depth, end, before = 0, 0, ""
    for token in tokens:
        if token.kind == END:
            break
        if token.kind in _CLOSE:
            depth -= 1
        found.append(
            _Piece(text[token.start : token.end], token.start > end and end > 0, _rank(token.kind, before, depth))
        )
        if token.kind in _OPEN:
            depth += 1
        before, end = token.kind, token.end
    return found


def _rank(kind: str, before: str, depth: int) -> tuple[int, int, int] | None:
    if depth > _DEEPEST:
        return None
    if kind in _JOINED and before not in (".", "["):
        return 0, depth, _JOINED[kind]
    if kind in _COMPARISONS:
        return 1, depth, 0
    if before == ",":
        return 2, depth, 0
    if kind == "." and before in (")", "]"):
        return 3, depth, 0
    return None


def _text(pieces: Sequence[_Piece]) -> str:
    return "".join((" " if piece.blank and index else "") + piece.text for index, piece in enumerate(pieces))


def _broken(pieces: Sequence[_Piece], width: int) -> list[str]:
    text = _text(pieces)
    places = [(piece.rank, index) for index, piece in enumerate(pieces) if index and piece.rank is not None]
    if len(text) <= width or not places:
        return [text]
    best = min(rank for rank, _ in places)
    parts = [*_split(pieces, [index for rank, index in places if rank == best])]
    inner = INDENT if best[0] or best[1] else ""
    if best[0]:
        parts = _filled(parts, width, len(inner))
    out = _broken(parts[0], width)
    for part in parts[1:]:
        out += [inner + line for line in _broken(part, width - len(inner))]
    return out


def _split(pieces: Sequence[_Piece], at: Sequence[int]) -> Iterator[Sequence[_Piece]]:
    for start, end in zip((0, *at), (*at, len(pieces)), strict=True):
        yield pieces[start:end]


def _filled(parts: Iterable[Sequence[_Piece]], width: int, inner: int) -> list[Sequence[_Piece]]:
    """The parts joined as far as lines can hold them. Lines after the first are indented by ``inner``."""
    lines: list[list[_Piece]] = []
    room = 0
    for part in parts:
        size = len(_text(part)) + part[0].blank
        if not lines or size > room:
            lines.append([])
            room = width - inner if lines[1:] else width
            size -= part[0].blank
        lines[-1] += part
        room -= size
    return [*lines]
