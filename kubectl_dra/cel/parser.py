"""Tokens to syntax tree, with macros expanded.

A recursive descent parser for CEL's grammar with cel-go's limits: ``MAX_DEPTH`` applies to nested grammar
rules and to chains of operators, selections and calls. Like cel-go, it turns long ``&&`` and ``||`` chains
into balanced trees.
"""

from __future__ import annotations

from collections.abc import Mapping

from kubectl_dra.cel import ast
from kubectl_dra.cel.errors import Issue
from kubectl_dra.cel.lexer import (
    END,
    LITERALS,
    MAX_DEPTH,
    RESERVED,
    LexicalError,
    ParseError,
    Token,
    TokenReader,
    literal_value,
    tokenize,
    unreadable,
)
from kubectl_dra.cel.macros import Expander, MacroContext, MacroError, MacroKey

MAX_CODE_POINTS = 100_000

_RELATIONS = {"<": "_<_", "<=": "_<=_", ">=": "_>=_", ">": "_>_", "==": "_==_", "!=": "_!=_", "in": "@in"}
_SUMS = {"+": "_+_", "-": "_-_"}
_PRODUCTS = {"*": "_*_", "/": "_/_", "%": "_%_"}
_OPERAND = (
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
)


def parse(source: str, macros: Mapping[MacroKey, Expander], *, escapes: bool = False) -> ast.Ast:
    """Parse an expression. Raises ParseError.

    With ``escapes`` a field may stand in backquotes, as in ``a.`b-c` ``; otherwise that is an error.
    """
    if len(source) > MAX_CODE_POINTS:
        raise ParseError(
            Issue(f"expression code point size exceeds limit: size: {len(source)}, limit {MAX_CODE_POINTS}")
        )
    try:
        tokens = tokenize(source)
    except LexicalError as error:
        plain = unreadable(source, error.offset)
        raise ParseError(Issue(f"Syntax error: {error.message}", error.offset, plain=plain)) from None
    parser = _Parser(source, tokens, macros, escapes)
    expression = parser.parse()
    return ast.Ast(expression, source, parser.macro_calls)


class _Parser(TokenReader):
    def __init__(self, source: str, tokens: list[Token], macros: Mapping[MacroKey, Expander], escapes: bool) -> None:
        super().__init__(tokens)
        self._source = source
        self._macros = macros
        self._escapes = escapes
        # How deep the grammar's recursive rules are nested right now.
        self._expr_depth = 0
        self._relation_depth = 0
        self._calc_depth = 0
        self.macro_calls: dict[int, ast.Call] = {}

    def parse(self) -> ast.Expression:
        try:
            expression = self._expression()
            if self._tokens[self._index].kind != END:
                self._unexpected("<EOF>", END)
        except ParseError as error:
            raise ParseError(*self._issues, *error.issues) from None
        if self._issues:
            raise ParseError(*self._issues)
        return expression

    def _expression(self) -> ast.Expression:
        self._expr_depth += 1
        if self._expr_depth > MAX_DEPTH:
            raise self._too_deep()
        condition = self._logic("||")
        question = self._accept("?")
        if question is not None:
            chosen = self._logic("||")
            self._expect(":")
            other = self._expression()
            condition = self._operation("_?_:_", question, condition, chosen, other)
        self._expr_depth -= 1
        return condition

    def _logic(self, operator: str) -> ast.Expression:
        first = self._logic("&&") if operator == "||" else self._relation()
        if self._tokens[self._index].kind != operator:
            return first
        terms, operators = [first], []
        while (token := self._accept(operator)) is not None:
            term = self._logic("&&") if operator == "||" else self._relation()
            operators.append((self.next_id(), token))
            terms.append(term)
        return self._balanced("_||_" if operator == "||" else "_&&_", terms, operators, 0, len(operators) - 1)

    def _balanced(
        self, function: str, terms: list[ast.Expression], operators: list[tuple[int, Token]], low: int, high: int
    ) -> ast.Expression:
        middle = (low + high + 1) // 2
        left = terms[middle] if middle == low else self._balanced(function, terms, operators, low, middle - 1)
        right = terms[middle + 1] if middle == high else self._balanced(function, terms, operators, middle + 1, high)
        node_id, token = operators[middle]
        node = ast.Call(node_id, token.start, self._span(left)[0], self._span(right)[1], function, None, (left, right))
        self._count(node, left, right, step=0)
        return node

    def _relation(self) -> ast.Expression:
        self._relation_depth += 1
        if self._relation_depth > MAX_DEPTH:
            raise self._too_deep()
        left = self._calc(0)
        while (function := _RELATIONS.get(self._tokens[self._index].kind)) is not None:
            token = self._tokens[self._index]
            self._index += 1
            # The right operand is one more nested `relation` rule in the grammar.
            self._relation_depth += 1
            if self._relation_depth > MAX_DEPTH:
                raise self._too_deep()
            right = self._calc(0)
            self._relation_depth -= 1
            left = self._operation(function, token, left, right)
        self._relation_depth -= 1
        return left

    def _calc(self, precedence: int) -> ast.Expression:
        self._calc_depth += 1
        if self._calc_depth > MAX_DEPTH:
            raise self._too_deep()
        left = self._unary()
        while True:
            token = self._tokens[self._index]
            function = _PRODUCTS.get(token.kind)
            if function is not None and precedence <= 1:
                right_precedence = 2
            else:
                function = _SUMS.get(token.kind)
                if function is None or precedence > 0:
                    break
                right_precedence = 1
            self._index += 1
            right = self._calc(right_precedence)
            left = self._operation(function, token, left, right)
        self._calc_depth -= 1
        return left

    def _operation(self, function: str, token: Token, *arguments: ast.Expression) -> ast.Expression:
        node = ast.Call(
            self.next_id(),
            token.start,
            self._span(arguments[0])[0],
            self._span(arguments[-1])[1],
            function,
            None,
            arguments,
        )
        self._count(node, *arguments)
        return node

    def _unary(self) -> ast.Expression:
        first = self._tokens[self._index]
        if first.kind != "!" and (first.kind != "-" or self._is_negative_number()):
            return self._member()
        count = 0
        while self._tokens[self._index].kind == first.kind:
            self._index += 1
            count += 1
        operand = self._member()
        start, end = first.start, self._span(operand)[1]
        if count % 2 == 0:
            self._outer[operand.id] = (start, end)
            return operand
        function = "!_" if first.kind == "!" else "-_"
        node = ast.Call(self.next_id(), first.start, start, end, function, None, (operand,))
        self._count(node, operand, step=0)
        return node

    def _is_negative_number(self) -> bool:
        return self._tokens[self._index + 1].kind in ("NUM_INT", "NUM_FLOAT")

    def _member(self) -> ast.Expression:
        node = self._primary()
        while True:
            token = self._tokens[self._index]
            if token.kind == ".":
                self._index += 1
                node = self._selection(node, token)
            elif token.kind == "[":
                self._index += 1
                optional = self._accept("?") is not None
                index = self._expression()
                closing = self._expect("]")
                operand = node
                node = ast.Call(
                    self.next_id(),
                    token.start,
                    self._span(operand)[0],
                    closing.end,
                    "_[?_]" if optional else "_[_]",
                    None,
                    (operand, index),
                )
                self._count(node, operand, index)
            else:
                return node

    def _selection(self, operand: ast.Expression, dot: Token) -> ast.Expression:
        start = self._span(operand)[0]
        optional = self._accept("?") is not None
        escaped = self._accept("ESC_IDENTIFIER")
        if escaped is not None and not self._escapes:
            return self._complain("unsupported syntax: '`'", escaped.start)
        name = escaped or self._expect("IDENTIFIER")
        field_name = name.text.strip("`")
        if optional:
            field = ast.Literal(self.next_id(), name.start, name.start, name.end, field_name)
            node: ast.Expression = ast.Call(self.next_id(), dot.start, start, name.end, "_?._", None, (operand, field))
        elif self._tokens[self._index].kind == "(" and escaped is None:
            opening = self._tokens[self._index]
            self._index += 1
            arguments, closing = self._arguments()
            node = self._call(name.text, operand, arguments, opening.start, start, closing.end)
            self._count(node, operand, *arguments)
            return node
        else:
            node = ast.Select(self.next_id(), dot.start, start, name.end, operand, field_name)
        self._count(node, operand)
        return node

    def _arguments(self) -> tuple[tuple[ast.Expression, ...], Token]:
        arguments: list[ast.Expression] = []
        if (closing := self._accept(")")) is not None:
            return (), closing
        while True:
            arguments.append(self._expression())
            if self._accept(",") is None:
                return tuple(arguments), self._expect(")")

    def _call(
        self,
        function: str,
        target: ast.Expression | None,
        arguments: tuple[ast.Expression, ...],
        position: int,
        start: int,
        end: int,
    ) -> ast.Expression:
        """A call, or the expansion of the macro with that name."""
        node = ast.Call(self.next_id(), position, start, end, function, target, arguments)
        expander = self._macros.get((function, len(arguments), target is not None))
        if expander is None:
            return node
        try:
            expanded = expander(MacroContext(self.next_id, position, start, end), target, arguments)
        except MacroError as error:
            return self._complain(error.message, error.offset)
        if expanded is None:
            return node
        self.macro_calls[expanded.id] = node
        return expanded

    def _primary(self) -> ast.Expression:
        token = self._tokens[self._index]
        kind = token.kind
        if kind == "IDENTIFIER":
            return self._name(token, leading_dot=False)
        if kind == "(":
            self._index += 1
            inner = self._expression()
            closing = self._expect(")")
            self._outer[inner.id] = (token.start, closing.end)
            return inner
        if kind == "[":
            return self._list()
        if kind == "{":
            return self._map()
        if kind == ".":
            self._index += 1
            name = self._tokens[self._index]
            if name.kind != "IDENTIFIER":
                self._unexpected("IDENTIFIER")
            return self._name(name, leading_dot=True)
        return self._literal(token)

    def _name(self, token: Token, leading_dot: bool) -> ast.Expression:
        start = token.start - 1 if leading_dot else token.start
        if leading_dot:
            start = self._tokens[self._index - 1].start
        if self._is_message():
            return self._message(start, leading_dot)
        self._index += 1
        if token.text in RESERVED:
            return self._reserved(token, start)
        name = "." + token.text if leading_dot else token.text
        opening = self._accept("(")
        if opening is None:
            return ast.Identifier(self.next_id(), token.start, start, token.end, name)
        arguments, closing = self._arguments()
        node = self._call(name, None, arguments, opening.start, start, closing.end)
        self._count(node, *arguments, step=0)
        return node

    def _reserved(self, token: Token, start: int) -> ast.Expression:
        """The node for a reserved name. Errors in arguments after it are not reported."""
        plain = f"'{token.text}' is a word that CEL reserves and does not use"
        node = self._complain(f"reserved identifier: {token.text}", start, plain)
        heard = len(self._issues)
        if self._accept("(") is not None:
            self._arguments()
        del self._issues[heard:]
        return node

    def _is_message(self) -> bool:
        """Whether ``a.b.c{`` follows."""
        index = self._index + 1
        tokens = self._tokens
        while tokens[index].kind == "." and tokens[index + 1].kind == "IDENTIFIER":
            index += 2
        return tokens[index].kind == "{"

    def _message(self, start: int, leading_dot: bool) -> ast.Expression:
        names = [self._expect("IDENTIFIER").text]
        while self._accept(".") is not None:
            names.append(self._expect("IDENTIFIER").text)
        opening = self._expect("{")
        node_id = self.next_id()

        def field() -> ast.FieldEntry:
            optional = self._accept("?") is not None
            name = self._accept("ESC_IDENTIFIER") or self._expect("IDENTIFIER")
            if name.kind == "ESC_IDENTIFIER" and not self._escapes:
                self._complain("unsupported syntax: '`'", name.start)
            colon = self._expect(":")
            return ast.FieldEntry(self.next_id(), colon.start, name.text.strip("`"), self._expression(), optional)

        fields, closing = self._entries("}", field)
        type_name = ("." if leading_dot else "") + ".".join(names)
        node = ast.StructLiteral(node_id, opening.start, start, closing.end, type_name, tuple(fields))
        self._count(node, *[field.value for field in fields], step=0)
        return node

    def _list(self) -> ast.Expression:
        opening = self._expect("[")
        node_id = self.next_id()
        entries, closing = self._entries("]", lambda: (self._accept("?") is not None, self._expression()))
        elements = tuple([element for _, element in entries])
        optional = tuple([index for index, (is_optional, _) in enumerate(entries) if is_optional])
        node = ast.ListLiteral(node_id, opening.start, opening.start, closing.end, elements, optional)
        self._count(node, *elements, step=0)
        return node

    def _map(self) -> ast.Expression:
        opening = self._expect("{")
        node_id = self.next_id()

        def entry() -> ast.MapEntry:
            optional = self._accept("?") is not None
            key = self._expression()
            colon = self._expect(":")
            return ast.MapEntry(self.next_id(), colon.start, key, self._expression(), optional)

        entries, closing = self._entries("}", entry)
        node = ast.MapLiteral(node_id, opening.start, opening.start, closing.end, tuple(entries))
        self._count(node, *[part for entry in entries for part in (entry.key, entry.value)], step=0)
        return node

    def _literal(self, token: Token) -> ast.Expression:
        start = token.start
        negative = token.kind == "-" and self._is_negative_number()
        if negative:
            self._index += 1
            token = self._tokens[self._index]
        if token.kind not in LITERALS:
            self._unexpected(_OPERAND)
        try:
            value = literal_value(token, negative)
        except ValueError as error:
            self._index += 1
            return self._complain(str(error), start)
        self._index += 1
        return ast.Literal(self.next_id(), start, start, token.end, value)
