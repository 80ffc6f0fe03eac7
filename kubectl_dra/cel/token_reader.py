"""Reads the tokens of an expression one by one, and limits the depth of the resulting tree."""

from __future__ import annotations

from kubectl_dra.cel import ast
from kubectl_dra.cel.errors import Issue
from kubectl_dra.cel.lexer import END, Token

MAX_DEPTH = 250
"""cel-go's limit, both for nested grammar rules and for chains of operators, selections and calls."""


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
        raise ParseError(Issue(f"Syntax error: {what} input '{token.text}' expecting {expected}", token.start))

    def _complain(self, message: str, offset: int) -> ast.Expression:
        """Record an error that does not end parsing. Returns a placeholder node."""
        self._issues.append(Issue(message, offset))
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

    def _closing(self, closing: str) -> Token:
        """Consume the end of a literal, with or without a trailing comma."""
        comma = self._accept(",")
        return self._expect(closing, None if comma else f"{{'{closing}', ','}}")

    def _has_next(self, closing: str) -> bool:
        """Whether a comma and another element follow. A comma before ``closing`` is not consumed."""
        if self._tokens[self._index].kind != "," or self._tokens[self._index + 1].kind == closing:
            return False
        self._index += 1
        return True
