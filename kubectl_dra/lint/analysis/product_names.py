"""Names of products, of which manifests have a part, or another spelling."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from kubectl_dra.cel import ast
from kubectl_dra.cel.columns import Column
from kubectl_dra.lint.analysis.cel_terms import TEXT_TESTS, column_of, constant, scoped
from kubectl_dra.lint.analysis.published_devices import known_driver
from kubectl_dra.lint.context import Context

if TYPE_CHECKING:
    from kubectl_dra.cel.program import Program

_WORD: Final = re.compile(r"[^\s-]+")


def common_part(text: str, meant: Sequence[str]) -> str:
    """A word of the text, as all names that are meant spell it; empty if there is none."""
    words = text.lower().replace("-", " ").replace("_", " ").split()
    # A number of a model tells more than the vendor's name.
    for word in sorted(words, key=lambda word: not any(char.isdigit() for char in word)):
        spelled = next((part for part in _WORD.findall(meant[0]) if part.lower() == word), "")
        if spelled and all(spelled in name for name in meant):
            return spelled
    return ""


class MiscasedPart(Struct, frozen=True):
    """A part of a name that no known name has, but for its capitals.

    ``argument`` is where it is written, ``text`` what; ``spelled`` is how the names have it.
    """

    call: ast.Call
    argument: ast.Expression
    column: Column
    text: str
    spelled: tuple[str, ...]


def miscased_parts(context: Context, program: Program) -> Iterator[MiscasedPart]:
    """The tests of a part of an attribute, such as ``productName.contains("h100")``, that only capitals make false."""
    for node, scope in scoped(program.ast.expression):
        if not isinstance(node, ast.Call) or node.target is None or node.function not in TEXT_TESTS:
            continue
        column, value = column_of(node.target, scope), constant(node.arguments[0])
        driver = known_driver(context, column.domain) if column is not None else None
        if column is None or driver is None or value is None or value.type != "string" or column.kind != "attribute":
            continue
        attribute = driver.attributes.get(column.id or "")
        names = attribute.values or (driver.product_names if attribute.names == "products" else ()) if attribute else ()
        spelled = _spelled(node.function, value.text, names)
        if spelled:
            yield MiscasedPart(node, node.arguments[0], column, value.text, spelled)


def _spelled(function: str, text: str, names: Sequence[str]) -> tuple[str, ...]:
    """How names spell a part that they have only in other capitals; none if one has it as it is, or in no way."""
    test, low = TEXT_TESTS[function], text.lower()
    if any(test(name, text) for name in names):
        return ()
    having = [name for name in names if test(name.lower(), low) and len(name.lower()) == len(name)]
    starts = [(name, name.lower().rfind(low) if function == "endsWith" else name.lower().find(low)) for name in having]
    return tuple(dict.fromkeys(name[start : start + len(low)] for name, start in starts))
