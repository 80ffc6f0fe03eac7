"""Text to tokens, by CEL's lexical rules (longest match, like the lexer of the reference grammar)."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from kubectl_dra.cel import ast
from kubectl_dra.cel.errors import Issue, PlacedError
from kubectl_dra.cel.values import Uint

_ESCAPE = r"""\\(?:[abfnrtv"'\\?`]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7]{2})"""
_STRING = (
    r"(?:[rR](?:\"\"\"[\s\S]*?\"\"\"|'''[\s\S]*?'''|\"[^\"\n\r]*\"|'[^'\n\r]*')"
    rf"|\"\"\"(?:{_ESCAPE}|[^\\])*?\"\"\"|'''(?:{_ESCAPE}|[^\\])*?'''"
    rf"|\"(?:{_ESCAPE}|[^\\\"\n\r])*\"|'(?:{_ESCAPE}|[^\\'\n\r])*')"
)
_TOKEN = re.compile(
    r"(?P<SPACE>(?:[\t \r\n\f]+|//[^\n]*)+)"
    rf"|(?P<STRING>{_STRING})"
    rf"|(?P<BYTES>[bB]{_STRING})"
    r"|(?P<IDENTIFIER>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<NUM_FLOAT>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<NUM_UINT>(?:0x[0-9a-fA-F]+|[0-9]+)[uU])"
    r"|(?P<NUM_INT>0x[0-9a-fA-F]+|[0-9]+)"
    r"|(?P<OPERATOR>&&|\|\||==|!=|<=|>=|[<>\[\]{}().,\-!?:+*/%])"
    r"|(?P<ESC_IDENTIFIER>`[A-Za-z0-9_./ -]+`)"
)
_CONSTANTS = {"true": True, "false": False, "null": None}
_KEYWORDS = frozenset({"in", *_CONSTANTS})
LITERALS = frozenset({"STRING", "BYTES", "NUM_INT", "NUM_UINT", "NUM_FLOAT", *_CONSTANTS})
"""The kinds of tokens that are values."""
RESERVED = frozenset(
    {
        *("as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop", "namespace"),
        *("package", "return", "var", "void", "while"),
    }
)
"""Identifiers that cannot be used as names."""
END = "<EOF>"
_T = TypeVar("_T")


class LexicalError(PlacedError):
    """A character that cannot start a token."""


class Token(NamedTuple):
    """``kind`` is the text itself for operators and keywords, otherwise STRING, IDENTIFIER ..."""

    kind: str
    text: str
    start: int
    end: int


def tokenize(source: str) -> list[Token]:
    """All tokens without blanks and comments, followed by one of kind END.

    Raises LexicalError.
    """
    tokens: list[Token] = []
    match = _TOKEN.match
    offset = 0
    length = len(source)
    while offset < length:
        token = match(source, offset)
        if token is None:
            raise LexicalError(f"token recognition error at: {_shown(source[offset])}", offset)
        kind = token.lastgroup
        end = token.end()
        if kind != "SPACE":
            text = token.group()
            if kind == "OPERATOR" or (kind == "IDENTIFIER" and text in _KEYWORDS):
                kind = text
            tokens.append(Token(kind or "", text, offset, end))
        offset = end
    tokens.append(Token(END, END, length, length))
    return tokens


def _shown(character: str) -> str:
    escaped = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}.get(character, character)
    return f"'{escaped}'"


_SIMPLE_ESCAPES = dict(zip("abfnrtv\\\"'`?", "\a\b\f\n\r\t\v\\\"'`?", strict=True))
_ANY_ESCAPE = re.compile(_ESCAPE)


def _content(text: str) -> tuple[str, bool]:
    """The text between the quotes, with newlines normalized, and whether it is raw."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    raw = text[0] in "rR"
    if raw:
        text = text[1:]
    triple = len(text) >= 6 and text[:3] in ('"""', "'''")
    return (text[3:-3] if triple else text[1:-1]), raw


def string_value(text: str) -> str:
    """The value of a STRING token. Raises ValueError with Kubernetes' message."""
    content, raw = _content(text)
    if raw or "\\" not in content:
        return content
    return _ANY_ESCAPE.sub(_string_escape, content)


def _string_escape(match: re.Match[str]) -> str:
    text = match.group()
    simple = _SIMPLE_ESCAPES.get(text[1])
    if simple is not None and len(text) == 2:
        return simple
    code = int(text[2:], 16) if text[1] in "xXuU" else int(text[1:], 8)
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise ValueError("invalid unicode code point")
    return chr(code)


def bytes_value(text: str) -> bytes:
    """The value of a BYTES token. Raises ValueError with Kubernetes' message."""
    content, raw = _content(text[1:])
    if raw or "\\" not in content:
        return content.encode()
    parts: list[bytes] = []
    offset = 0
    for match in _ANY_ESCAPE.finditer(content):
        parts.append(content[offset : match.start()].encode())
        offset = match.end()
        escape = match.group()
        if escape[1] in "uU":
            raise ValueError("unable to unescape string")
        if escape[1] in "xX":
            parts.append(bytes((int(escape[2:], 16),)))
        elif len(escape) == 2:
            parts.append(_SIMPLE_ESCAPES[escape[1]].encode())
        else:
            parts.append(bytes((int(escape[1:], 8),)))
    parts.append(content[offset:].encode())
    return b"".join(parts)


def _magnitude(text: str) -> int:
    """The number that a digit string stands for. Overlong strings give a number beyond 64 bits."""
    base = 10
    if text.startswith("0x"):
        text, base = text[2:], 16
    digits = text.lstrip("0")
    return int(digits or "0", base) if len(digits) <= 20 else 1 << 64


def int_value(text: str, negative: bool) -> int:
    """The value of a NUM_INT token. Raises ValueError when it is outside int64."""
    value = _magnitude(text)
    if negative:
        value = -value
    if not -(1 << 63) <= value < 1 << 63:
        raise ValueError("invalid int literal")
    return value


def uint_value(text: str) -> Uint:
    """The value of a NUM_UINT token. Raises ValueError when it is outside uint64."""
    value = _magnitude(text[:-1])
    if value >= 1 << 64:
        raise ValueError("invalid uint literal")
    return Uint(value)


def float_value(text: str, negative: bool) -> float:
    """The value of a NUM_FLOAT token. Raises ValueError when it is too large for a double."""
    value = float(text)
    if value == float("inf"):
        raise ValueError("invalid double literal")
    return -value if negative else value


def literal_value(token: Token, negative: bool) -> Any:
    """The value of a token from ``LITERALS``, negated if ``negative``. Raises ValueError."""
    kind = token.kind
    if kind == "STRING":
        return string_value(token.text)
    if kind == "NUM_INT":
        return int_value(token.text, negative)
    if kind == "NUM_FLOAT":
        return float_value(token.text, negative)
    if kind in _CONSTANTS:
        return _CONSTANTS[kind]
    return uint_value(token.text) if kind == "NUM_UINT" else bytes_value(token.text)


# Reads the tokens of an expression one by one, and limits the depth of the resulting tree.

MAX_DEPTH = 250
"""cel-go's limit, both for nested grammar rules and for chains of operators, selections and calls."""


_WORDS = {"and": "&&", "or": "||", "not": "!", "AND": "&&", "OR": "||", "NOT": "!"}
_DOUBLE = "=&|"
"""Characters of which two in a row are an operator."""


def unreadable(source: str, offset: int) -> str:
    """Why no token begins there, in plain words."""
    character = source[offset]
    if character in "\"'":
        return f"the text that begins with {character} is not closed"
    if character in "\u201c\u201d\u2018\u2019\u201e":
        return f'{character} is a quotation mark of prose: write "'
    if character == "#":
        return "# begins no comment in CEL; in a YAML text of several lines it is a part of the text"
    if character in _DOUBLE:
        many = offset > 0 and source[offset - 1] == character
        return f"{'one ' if many else ''}{character} {'too many' if many else 'is no operator'}: write {character * 2}"
    return f"{_shown(character)} is nothing that CEL knows"


def _misplaced(token: Token, expected: str) -> str:
    """Why a token cannot stand where it does, in plain words."""
    if expected == END:
        if token.text in _WORDS:
            return f"'{token.text}' is no operator: write {_WORDS[token.text]}"
        if token.text in (")", "]", "}"):
            return f"'{token.text}' closes nothing that is open"
        return f"'{token.text}' follows a complete expression: an operator such as && is missing before it"
    if "STRING" in expected:
        wanted = "a value"
    elif "IDENTIFIER" in expected:
        wanted = "a name"
    else:
        wanted = " or ".join(expected.strip("{}").split(", ")) if expected.startswith("{'") else expected
    found = "the expression ends" if token.kind == END else f"'{token.text}' stands"
    return f"{found} where {wanted} is expected"


class ParseError(Exception):
    """The text is not a valid expression; ``issues`` has at least one reason."""

    def __init__(self, *issues: Issue) -> None:
        super().__init__(issues[0].message)
        self.issues = issues


class TokenReader:
    """Base of a recursive descent parser: the next token, node ids, errors and depths."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._index = 0
        self._last_id = 0
        # Node id -> number of operators, selections, calls on the longest path below it.
        self._chain: dict[int, int] = {}
        # Node id -> span including the parentheses around it.
        self._outer: dict[int, tuple[int, int]] = {}
        self._issues: list[Issue] = []

    def next_id(self) -> int:
        self._last_id += 1
        return self._last_id

    def _accept(self, kind: str) -> Token | None:
        token = self._tokens[self._index]
        if token.kind != kind:
            return None
        self._index += 1
        return token

    def _expect(self, kind: str, expected: str | None = None) -> Token:
        """Consume the next token, which must be of this kind. Messages call it ``expected``."""
        token = self._tokens[self._index]
        if token.kind != kind:
            self._unexpected(expected or (f"'{kind}'" if kind != "IDENTIFIER" else kind), kind)
        self._index += 1
        return token

    def _unexpected(self, expected: str, kind: str = "") -> None:
        """Reject the next token. It counts as surplus if a token of ``kind`` follows it."""
        token = self._tokens[self._index]
        too_many = token.kind != END and self._tokens[self._index + 1].kind == kind
        what = "extraneous" if too_many else "mismatched"
        message = f"Syntax error: {what} input '{token.text}' expecting {expected}"
        raise ParseError(Issue(message, token.start, plain=_misplaced(token, expected)))

    def _complain(self, message: str, offset: int, plain: str = "") -> ast.Expression:
        """Record an error that does not end parsing. Returns a placeholder node."""
        self._issues.append(Issue(message, offset, plain=plain))
        return ast.Literal(self.next_id(), offset, offset, offset, None)

    def _too_deep(self) -> ParseError:
        return ParseError(Issue(f"expression recursion limit exceeded: {MAX_DEPTH}"))

    def _span(self, node: ast.Expression) -> tuple[int, int]:
        return self._outer.get(node.id) or (node.start, node.end)

    def _count(self, node: ast.Expression, *parts: ast.Expression, step: int = 1) -> None:
        """Record the length of the longest chain below a node, and reject more than MAX_DEPTH."""
        chain = self._chain
        depth = step
        for part in parts:
            below = chain.get(part.id, 0) + step
            if below > depth:
                depth = below
        if depth > MAX_DEPTH:
            raise ParseError(Issue("max recursion depth exceeded"))
        if depth:
            chain[node.id] = depth

    def _entries(self, closing: str, read: Callable[[], _T]) -> tuple[list[_T], Token]:
        """The entries of a literal, with or without a trailing comma, and the token that ends it."""
        entries: list[_T] = []
        more = self._tokens[self._index].kind not in (closing, ",")
        while more:
            entries.append(read())
            more = self._has_next(closing)
        comma = self._accept(",")
        return entries, self._expect(closing, None if comma else f"{{'{closing}', ','}}")

    def _has_next(self, closing: str) -> bool:
        """Whether a comma and another element follow. A comma before ``closing`` is not consumed."""
        if self._tokens[self._index].kind != "," or self._tokens[self._index + 1].kind == closing:
            return False
        self._index += 1
        return True


# Room for deep recursion.
#
# Kubernetes accepts expressions nested 250 levels deep, and each level may need several Python calls. Work runs
# with the normal recursion limit first, and is repeated with a higher one only if it hits that limit.

_LIMIT = 60_000


def with_room(work: Callable[[], _T]) -> _T:
    """Run ``work``, and repeat it with a higher recursion limit if needed. ``work`` must have no side effects."""
    try:
        return work()
    except RecursionError:
        pass
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, _LIMIT))
    try:
        return work()
    finally:
        sys.setrecursionlimit(before)
