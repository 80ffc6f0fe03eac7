"""Text to tree: literals, positions, limits, syntax that Kubernetes refuses."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_dra.api.releases import Release
from kubectl_dra.cel import ast
from kubectl_dra.cel.lexer import MAX_DEPTH, ParseError, with_room
from kubectl_dra.cel.macros import macros_for
from kubectl_dra.cel.parser import parse
from kubectl_dra.cel.values import Uint

MACROS = macros_for(Release(1, 36), stored=False)


def tree(text: str) -> ast.Expression:
    return with_room(lambda: parse(text, MACROS).expression)


def value(text: str) -> Any:
    node = tree(text)
    assert isinstance(node, ast.Literal)
    return node.value


def shape(node: ast.Expression) -> str:
    """A compact text of a tree: calls with their internal names."""
    if isinstance(node, ast.Literal):
        return repr(node.value)
    if isinstance(node, ast.Identifier):
        return node.name
    if isinstance(node, ast.Select):
        return f"{shape(node.operand)}.{node.field}{'?' if node.test_only else ''}"
    if isinstance(node, ast.Call):
        arguments = ",".join(map(shape, node.arguments))
        target = "" if node.target is None else shape(node.target) + "."
        return f"{target}{node.function}({arguments})"
    if isinstance(node, ast.ListLiteral):
        parts = [("?" if i in node.optional_indices else "") + shape(e) for i, e in enumerate(node.elements)]
        return f"[{','.join(parts)}]"
    if isinstance(node, ast.MapLiteral):
        parts = [f"{'?' if e.optional else ''}{shape(e.key)}:{shape(e.value)}" for e in node.entries]
        return f"{{{','.join(parts)}}}"
    if isinstance(node, ast.StructLiteral):
        return node.type_name + "{" + ",".join(f"{f.name}:{shape(f.value)}" for f in node.fields) + "}"
    parts = [shape(part) for part in ast.children(node)]
    return f"fold<{node.iter_var},{node.iter_var2},{node.accu_var}>({';'.join(parts)})"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1", 1),
        ("-1", -1),
        ("--1", 1),
        ("- 5", -5),
        ("0x1F", 31),
        ("-0x1f", -31),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("1u", Uint(1)),
        ("0xFFu", Uint(255)),
        ("18446744073709551615u", Uint(2**64 - 1)),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("-1.5e-3", -0.0015),
        ("true", True),
        ("null", None),
        ("'a'", "a"),
        ('"a"', "a"),
        (r'"\n\t\\\"\'\`\?"', "\n\t\\\"'`?"),
        (r"'\x41\u00e9\U0001F600\101'", "Aé😀A"),
        (r"'\xff'", "ÿ"),
        (r"r'\n'", "\\n"),
        ('"""a"b\nc"""', 'a"b\nc'),
        ("'''a\r\nb'''", "a\nb"),
        ("r'''a\\'''", "a\\"),
        (r"b'\xff\101a'", b"\xffAa"),
        ("b'é'", "é".encode()),
        ("br'\\n'", b"\\n"),
        ("1 // comment", 1),
        ("//x\n1", 1),
    ],
)
def test_literals(text: str, expected: Any) -> None:
    found = value(text)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 + 2 * 3", "_+_(1,_*_(2,3))"),
        ("1 * 2 + 3", "_+_(_*_(1,2),3)"),
        ("1 - 2 - 3", "_-_(_-_(1,2),3)"),
        ("(1 - (2 - 3))", "_-_(1,_-_(2,3))"),
        ("1 - -1", "_-_(1,-1)"),
        ("1 -1", "_-_(1,1)"),
        ("-x", "-_(x)"),
        ("--x", "x"),
        ("!x", "!_(x)"),
        ("!!!x", "!_(x)"),
        ("!-1", "!_(-1)"),
        ("a < b == c", "_==_(_<_(a,b),c)"),
        ("a in b", "@in(a,b)"),
        ("a ? b : c ? d : e", "_?_:_(a,b,_?_:_(c,d,e))"),
        ("a?.b:c", "_?_:_(a,.b,c)"),
        ("a.b.c", "a.b.c"),
        ("a.?b.c", "_?._(a,'b').c"),
        ("a[?b][c]", "_[_](_[?_](a,b),c)"),
        ("a.b(c, d)", "a.b(c,d)"),
        ("f()", "f()"),
        ("[1, ?a, 2,]", "[1,?a,2]"),
        ("[]", "[]"),
        ("[,]", "[]"),
        ("{'a': 1, ?b: c,}", "{'a':1,?b:c}"),
        ("{}", "{}"),
        ("a.b{c: 1, d: 2}", "a.b{c:1,d:2}"),
        ("a.package", "a.package"),
        ("-1.foo()", "-1.foo()"),
        ("-x.y", "-_(x.y)"),
        ("a || b && c", "_||_(a,_&&_(b,c))"),
        ("a && b && c", "_&&_(_&&_(a,b),c)"),
        ("a && b && c && d", "_&&_(_&&_(a,b),_&&_(c,d))"),
        ("a && b && c && d && e", "_&&_(_&&_(_&&_(a,b),c),_&&_(d,e))"),
    ],
)
def test_operators(text: str, expected: str) -> None:
    assert shape(tree(text)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "", "1 +", "a.", "a..b", "[1,,]", "{1}", "{a: 1,,}", "(1", "1)", "a = b", "a === b", "a & b", "a and b",
        "`a`", "a.`b`", "'a", '"a\nb"', r"'\q'", r"'\400'", r"'\ud800'", r"b'\u0041'", r'R"\""', "1 2",
        "a.true", "in", "package", "for(x)",
        "9223372036854775808", "--9223372036854775808", "18446744073709551616u", "1e999", "0x", "1e",
        "a ? b", "a.?b()", "!", "-!x", "@a", "a?b:", "has()[", "1.", "a[1", "a{b}", "rb'a'", "a -- ", "#",
    ],
)  # fmt: skip
def test_refused(text: str) -> None:
    with pytest.raises(ParseError):
        parse(text, MACROS)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("for + while", [("reserved identifier: for", 0), ("reserved identifier: while", 6)]),
        ("has(1) && has(has(2))", [("invalid argument to has() macro", o) for o in (4, 18, 18)]),
        ("[1].all(import, true)", [("reserved identifier: import", 8), ("argument must be a simple name", 8)]),
        ("import(1, for)", [("reserved identifier: import", 0)]),
        ("1e400 == 18446744073709551616u", [("invalid double literal", 0), ("invalid uint literal", 9)]),
        ("a.`b` == for", [("unsupported syntax: '`'", 2), ("reserved identifier: for", 9)]),
    ],
)
def test_all_complaints_are_heard(text: str, expected: list[tuple[str, int]]) -> None:
    with pytest.raises(ParseError) as caught:
        parse(text, MACROS)
    assert [(issue.message, issue.offset) for issue in caught.value.issues] == expected


@pytest.mark.parametrize(
    ("text", "message", "offset"),
    [
        ("9223372036854775808 > 0", "invalid int literal", 0),
        ("1 + package", "reserved identifier: package", 4),
        ("[1].exists(x.y, true)", "argument must be a simple name", 12),
        ("has(a[1])", "invalid argument to has() macro", 5),
        ("[1].map(1, 1)", "argument is not an identifier", 8),
        ("[1].all(x, x, true)", "duplicate variable name: x", 11),
        ("[1].all(__result__, true)", "iteration variable overwrites accumulator variable", 8),
        ("cel.bind(1, 2, 3)", "cel.bind() variable names must be simple identifiers", 9),
        ("a.optMap(1, 2)", "optMap() variable name must be a simple identifier", 9),
        ("1.sortBy(x, x)", "sortBy can only be applied to", 0),
        ("a == b and c", "Syntax error: mismatched input 'and' expecting <EOF>", 7),
        ("a.`b`", "unsupported syntax: '`'", 2),
        ("1 2", "Syntax error: extraneous input '2' expecting <EOF>", 2),
        ("1 2 3", "Syntax error: mismatched input '2' expecting <EOF>", 2),
        ("a[1 2]", "Syntax error: extraneous input '2' expecting ']'", 4),
        ("[1 2]", "Syntax error: extraneous input '2' expecting {']', ','}", 3),
        ("[1", "Syntax error: mismatched input '<EOF>' expecting {']', ','}", 2),
        ("{1: 2", "Syntax error: mismatched input '<EOF>' expecting {'}', ','}", 5),
    ],
)
def test_messages_and_positions(text: str, message: str, offset: int) -> None:
    with pytest.raises(ParseError) as caught:
        parse(text, MACROS)
    assert message in caught.value.issues[0].message
    assert caught.value.issues[0].offset == offset


@pytest.mark.parametrize(
    ("build", "deepest"),
    [
        # How deep Kubernetes 1.36 follows each construct.
        (lambda n: "(" * n + "true" + ")" * n, 249),
        (lambda n: "[" * n + "]" * n, 250),
        (lambda n: "1" + "+1" * n, 250),
        (lambda n: "a" + ".b" * n, 250),
        (lambda n: "true ? true : " * n + "true", 249),
        (lambda n: "1+(" * n + "1" + ")" * n, 124),
        (lambda n: "1 == (" * n + "1" + ")" * n, 124),
        (lambda n: "a.b(" * n + "1" + ")" * n, 249),
        (lambda n: "!" * n + "true", 5000),
        (lambda n: "true" + " || true" * n, 5000),
    ],
)  # fmt: skip
def test_depth_limits(build: Any, deepest: int) -> None:
    assert _parses(build(deepest))
    if deepest < 5000:
        assert not _parses(build(deepest + 1))


def _parses(text: str) -> bool:
    try:
        tree(text)
    except ParseError as error:
        assert "recursion" in error.issues[0].message
        assert str(MAX_DEPTH) in error.issues[0].message or "max recursion depth" in error.issues[0].message
        return False
    return True


def test_spans_and_positions() -> None:
    text = "(a.b) == [c, f(d)][1]"
    spans = {text[node.start : node.end]: node.position for node in ast.walk(tree(text))}
    assert spans == {
        "(a.b) == [c, f(d)][1]": 6,
        "a.b": 2,
        "a": 1,
        "[c, f(d)][1]": 18,
        "[c, f(d)]": 9,
        "c": 10,
        "f(d)": 14,
        "d": 15,
        "1": 19,
    }


def test_ids_are_unique() -> None:
    parsed = parse("[1].map(x, [2].exists(y, y == x)).sortBy(z, z).optMap(o, has(o.a))", MACROS)
    ids = [node.id for node in ast.walk(parsed.expression)]
    assert len(ids) == len(set(ids))


@given(st.text(max_size=40))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    try:
        parse(text, MACROS)
    except ParseError as error:
        assert error.issues[0].message


@given(st.text(max_size=20))
def test_quoted_text_comes_back(text: str) -> None:
    escaped = "".join(f"\\U{ord(character):08x}" for character in text)
    assert value(f'"{escaped}"') == text


@given(st.binary(max_size=20))
def test_quoted_bytes_come_back(content: bytes) -> None:
    escaped = "".join(f"\\x{byte:02x}" for byte in content)
    assert value(f"b'{escaped}'") == content


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a.`b-c/d.e`", "a.b-c/d.e"),
        ("a.?`b`", "_?._(a,'b')"),
        ("has(a.`in`)", "a.in?"),
        ("a.b{`c`: 1}", "a.b{c:1}"),
    ],
)
def test_fields_in_backquotes_where_a_release_takes_them(text: str, expected: str) -> None:
    assert shape(with_room(lambda: parse(text, MACROS, escapes=True).expression)) == expected


@pytest.mark.parametrize("text", ["`a`.b", "a.`b`()", "a.`b`{c: 1}", "a.``", "a.`b$`"])
def test_nothing_but_fields_stands_in_backquotes(text: str) -> None:
    with pytest.raises(ParseError):
        parse(text, MACROS, escapes=True)
