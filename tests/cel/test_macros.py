"""Expansion: costs and evaluation depend on the exact tree."""

from __future__ import annotations

import pytest

from kubectl_dra.api.releases import Release
from kubectl_dra.cel import ast
from kubectl_dra.cel.macros import macros_for
from kubectl_dra.cel.parser import parse
from tests.cel.test_parser import shape

MACROS = macros_for(Release(1, 36), stored=False)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("has(a.b)", "a.b?"),
        ("has(has(a.b))", "a.b?"),
        (
            "r.all(x, p)",
            "fold<x,,@result>(r;True;@not_strictly_false(@result);_&&_(@result,p);@result)",
        ),
        (
            "r.exists(x, p)",
            "fold<x,,@result>(r;False;@not_strictly_false(!_(@result));_||_(@result,p);@result)",
        ),
        (
            "r.exists_one(x, p)",
            "fold<x,,@result>(r;0;True;_?_:_(p,_+_(@result,1),@result);_==_(@result,1))",
        ),
        ("r.map(x, f)", "fold<x,,@result>(r;[];True;_+_(@result,[f]);@result)"),
        ("r.map(x, p, f)", "fold<x,,@result>(r;[];True;_?_:_(p,_+_(@result,[f]),@result);@result)"),
        ("r.filter(x, p)", "fold<x,,@result>(r;[];True;_?_:_(p,_+_(@result,[x]),@result);@result)"),
        (
            "r.all(i, v, p)",
            "fold<i,v,@result>(r;True;@not_strictly_false(@result);_&&_(@result,p);@result)",
        ),
        ("r.transformList(i, v, f)", "fold<i,v,@result>(r;[];True;_+_(@result,[f]);@result)"),
        (
            "r.transformMap(k, v, p, f)",
            "fold<k,v,@result>(r;{};True;_?_:_(p,cel.@mapInsert(@result,k,f),@result);@result)",
        ),
        (
            "r.transformMapEntry(k, v, e)",
            "fold<k,v,@result>(r;{};True;cel.@mapInsert(@result,e);@result)",
        ),
        ("cel.bind(x, a, b)", "fold<#unused,,x>([];a;False;x;b)"),
        (
            "o.optMap(x, f)",
            "_?_:_(o.hasValue(),optional.of(fold<#unused,,x>([];o.value();False;x;f)),optional.none())",
        ),
        (
            "o.optFlatMap(x, f)",
            "_?_:_(o.hasValue(),fold<#unused,,x>([];o.value();False;x;f),optional.none())",
        ),
        (
            "l.sortBy(x, f)",
            "fold<#unused,,@__sortBy_input__>([];l;False;@__sortBy_input__;"
            "@__sortBy_input__.@sortByAssociatedKeys("
            "fold<x,,@result>(@__sortBy_input__;[];True;_+_(@result,[f]);@result)))",
        ),
        # Not macros: other receivers, other numbers of arguments.
        ("foo.bind(x, a, b)", "foo.bind(x,a,b)"),
        ("r.all(x)", "r.all(x)"),
        ("r.existsOne(x, p)", "r.existsOne(x,p)"),
        ("all(x, p)", "all(x,p)"),
        ("r.has(a.b)", "r.has(a.b)"),
    ],
)
def test_expansion(text: str, expected: str) -> None:
    assert shape(parse(text, MACROS).expression) == expected


def test_the_call_as_written_is_kept() -> None:
    parsed = parse("[1].exists(x, has(a.b))", MACROS)
    call = parsed.macro_calls[parsed.expression.id]
    assert call.function == "exists"
    assert isinstance(call.arguments[1], ast.Select)
    assert parsed.macro_calls[call.arguments[1].id].function == "has"


@pytest.mark.parametrize(
    ("minor", "stored", "count", "known"),
    [
        (31, False, ("bind", 3), True),
        (32, False, ("all", 3), False),
        (32, True, ("all", 3), True),
        (33, False, ("all", 3), True),
        (34, False, ("sortBy", 2), False),
        (34, True, ("sortBy", 2), True),
        (35, False, ("sortBy", 2), True),
    ],
)
def test_releases(minor: int, stored: bool, count: tuple[str, int], known: bool) -> None:
    assert ((*count, True) in macros_for(Release(1, minor), stored)) is known
