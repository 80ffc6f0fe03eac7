"""Macro expansion, node for node like cel-go and its extensions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from msgspec.structs import replace

from kubectl_dra.api.releases import Release
from kubectl_dra.cel import ast
from kubectl_dra.cel.errors import PlacedError
from kubectl_dra.cel.libraries import ALWAYS, BINDINGS, LISTS, OPTIONAL_MACROS, TWO_VARIABLES, LibraryVersion

# What a macro expander is, and the nodes that it builds.

MacroKey: TypeAlias = tuple[str, int, bool]
"""Name, number of arguments without the receiver, whether called on a receiver."""
Expander: TypeAlias = Callable[
    ["MacroContext", "ast.Expression | None", "tuple[ast.Expression, ...]"], "ast.Expression | None"
]
"""Builds a macro's expression from its receiver and arguments; None if it is an ordinary call."""


class MacroError(PlacedError):
    """A macro was called with invalid arguments."""


class MacroContext:
    """Builds nodes for an expander, with fresh ids and the position of the macro call."""

    __slots__ = ("_next_id", "end", "position", "start")

    def __init__(self, next_id: Callable[[], int], position: int, start: int, end: int) -> None:
        self._next_id = next_id
        self.position = position
        self.start = start
        self.end = end

    def _common(self) -> tuple[int, int, int, int]:
        return (self._next_id(), self.position, self.start, self.end)

    def literal(self, value: Any) -> ast.Literal:
        return ast.Literal(*self._common(), value)

    def identifier(self, name: str) -> ast.Identifier:
        return ast.Identifier(*self._common(), name)

    def call(self, function: str, *arguments: ast.Expression) -> ast.Call:
        return ast.Call(*self._common(), function, None, arguments)

    def member_call(self, function: str, target: ast.Expression, *arguments: ast.Expression) -> ast.Call:
        return ast.Call(*self._common(), function, target, arguments)

    def list(self, *elements: ast.Expression) -> ast.ListLiteral:
        return ast.ListLiteral(*self._common(), elements)

    def empty_map(self) -> ast.MapLiteral:
        return ast.MapLiteral(*self._common(), ())

    def presence_test(self, operand: ast.Expression, field: str) -> ast.Select:
        return ast.Select(*self._common(), operand, field, True)

    def comprehension(
        self,
        iter_range: ast.Expression,
        iter_vars: tuple[str, str],
        accu_var: str,
        accu_init: ast.Expression,
        condition: ast.Expression,
        step: ast.Expression,
        result: ast.Expression,
    ) -> ast.Comprehension:
        return ast.Comprehension(
            *self._common(), iter_range, iter_vars[0], iter_vars[1], accu_var, accu_init, condition, step, result
        )

    def copy(self, node: ast.Expression) -> ast.Expression:
        """The same tree with fresh ids; positions stay."""
        return _copy(node, self._next_id)


def _copy(node: ast.Expression, next_id: Callable[[], int]) -> ast.Expression:
    def copied(part: ast.Expression) -> ast.Expression:
        return _copy(part, next_id)

    def all_of(parts: tuple[ast.Expression, ...]) -> tuple[ast.Expression, ...]:
        return tuple(map(copied, parts))

    node = replace(node, id=next_id())
    if isinstance(node, ast.Select):
        return replace(node, operand=copied(node.operand))
    if isinstance(node, ast.Call):
        return replace(node, target=node.target and copied(node.target), arguments=all_of(node.arguments))
    if isinstance(node, ast.ListLiteral):
        return replace(node, elements=all_of(node.elements))
    if isinstance(node, ast.MapLiteral):
        entries = [
            replace(entry, id=next_id(), key=copied(entry.key), value=copied(entry.value)) for entry in node.entries
        ]
        return replace(node, entries=tuple(entries))
    if isinstance(node, ast.StructLiteral):
        return replace(
            node, fields=tuple([replace(field, id=next_id(), value=copied(field.value)) for field in node.fields])
        )
    if isinstance(node, ast.Comprehension):
        return replace(
            node,
            iter_range=copied(node.iter_range),
            accu_init=copied(node.accu_init),
            loop_condition=copied(node.loop_condition),
            loop_step=copied(node.loop_step),
            result=copied(node.result),
        )
    return node


ACCUMULATOR = "@result"
_OLD_ACCUMULATOR = "__result__"
_UNUSED = "#unused"
_SORT_INPUT = "@__sortBy_input__"
_Arguments = tuple[ast.Expression, ...]


def _variable(node: ast.Expression, message: str) -> str:
    if not isinstance(node, ast.Identifier):
        raise MacroError(message, node.position)
    return node.name


def _loop_variable(node: ast.Expression, message: str) -> str:
    name = _variable(node, message)
    if name in (ACCUMULATOR, _OLD_ACCUMULATOR):
        raise MacroError("iteration variable overwrites accumulator variable", node.position)
    return name


def _loop_variables(arguments: _Arguments) -> tuple[str, str]:
    first = _variable(arguments[0], "argument must be a simple name")
    second = _variable(arguments[1], "argument must be a simple name")
    if first == second:
        raise MacroError(f"duplicate variable name: {first}", arguments[1].position)
    _loop_variable(arguments[0], "")
    _loop_variable(arguments[1], "")
    return first, second


def _has(context: MacroContext, target: ast.Expression | None, arguments: _Arguments) -> ast.Expression:
    operand = arguments[0]
    # A macro-made presence test is a selection too: cel-go accepts has(has(a.b)).
    if isinstance(operand, ast.Select):
        return context.presence_test(operand.operand, operand.field)
    raise MacroError("invalid argument to has() macro", operand.position)


class _Loop(NamedTuple):
    """A macro that loops: its range, the names of its variables, and its bodies."""

    context: MacroContext
    target: ast.Expression
    names: tuple[str, str]
    bodies: _Arguments

    def accumulated(self) -> ast.Identifier:
        return self.context.identifier(ACCUMULATOR)

    def update(self, operator: str, operand: ast.Expression) -> ast.Expression:
        """The accumulated value with an operand added by an operator."""
        return self.context.call(operator, self.accumulated(), operand)

    def where(self, predicate: ast.Expression, step: ast.Expression) -> ast.Expression:
        """A step that is taken for some items."""
        return self.context.call("_?_:_", predicate, step, self.accumulated())

    def folded(
        self,
        start: ast.Expression,
        step: ast.Expression,
        condition: ast.Expression | None = None,
        result: ast.Expression | None = None,
    ) -> ast.Expression:
        """The loop; unless told otherwise it goes through the whole range and gives what it accumulates."""
        condition, result = condition or self.context.literal(True), result or self.accumulated()
        return self.context.comprehension(self.target, self.names, ACCUMULATOR, start, condition, step, result)


def _loop(fold: Callable[[_Loop], ast.Expression], *, two: bool = False) -> Expander:
    """A macro of one or ``two`` variables over a range."""
    # cel-go words it in two ways.
    message = "argument is not an identifier" if fold is _map else "argument must be a simple name"

    def expand(context: MacroContext, target: ast.Expression | None, arguments: _Arguments) -> ast.Expression:
        names = _loop_variables(arguments) if two else (_loop_variable(arguments[0], message), "")
        return fold(_Loop(context, _receiver(target), names, arguments[2 if two else 1 :]))

    return expand


def _all(loop: _Loop) -> ast.Expression:
    undecided = loop.context.call("@not_strictly_false", loop.accumulated())
    return loop.folded(loop.context.literal(True), loop.update("_&&_", loop.bodies[0]), undecided)


def _exists(loop: _Loop) -> ast.Expression:
    undecided = loop.context.call("@not_strictly_false", loop.context.call("!_", loop.accumulated()))
    return loop.folded(loop.context.literal(False), loop.update("_||_", loop.bodies[0]), undecided)


def _exists_one(loop: _Loop) -> ast.Expression:
    counted = loop.where(loop.bodies[0], loop.update("_+_", loop.context.literal(1)))
    return loop.folded(loop.context.literal(0), counted, result=loop.update("_==_", loop.context.literal(1)))


def _map(loop: _Loop) -> ast.Expression:
    """A list of the last body; with two bodies, of the items for which the first one holds."""
    step = loop.update("_+_", loop.context.list(loop.bodies[-1]))
    return loop.folded(loop.context.list(), loop.where(loop.bodies[0], step) if len(loop.bodies) == 2 else step)


def _filter(context: MacroContext, target: ast.Expression | None, arguments: _Arguments) -> ast.Expression:
    name = _loop_variable(arguments[0], "argument is not an identifier")
    return _map(_Loop(context, _receiver(target), (name, ""), (arguments[1], arguments[0])))


def _transform_map(loop: _Loop) -> ast.Expression:
    return _inserted(loop, loop.context.identifier(loop.names[0]), loop.bodies[-1])


def _transform_map_entry(loop: _Loop) -> ast.Expression:
    return _inserted(loop, loop.bodies[-1])


def _inserted(loop: _Loop, *insertion: ast.Expression) -> ast.Expression:
    step: ast.Expression = loop.context.call("cel.@mapInsert", loop.accumulated(), *insertion)
    return loop.folded(loop.context.empty_map(), loop.where(loop.bodies[0], step) if len(loop.bodies) == 2 else step)


def _receiver(target: ast.Expression | None) -> ast.Expression:
    assert target is not None
    return target


def _local(context: MacroContext, name: str, value: ast.Expression, result: ast.Expression) -> ast.Comprehension:
    """``result`` with the variable ``name`` bound to ``value``: a loop over an empty range."""
    return context.comprehension(
        context.list(), (_UNUSED, ""), name, value, context.literal(False), context.identifier(name), result
    )


def _bind(context: MacroContext, target: ast.Expression | None, arguments: _Arguments) -> ast.Expression | None:
    if not isinstance(target, ast.Identifier) or target.name != "cel":
        return None
    name = _variable(arguments[0], "cel.bind() variable names must be simple identifiers")
    return _local(context, name, arguments[1], arguments[2])


def _optional(
    context: MacroContext, target: ast.Expression | None, arguments: _Arguments, *, flat: bool
) -> ast.Expression:
    """``optMap``, and ``optFlatMap``, whose body is an optional itself."""
    macro = "optFlatMap" if flat else "optMap"
    name = _variable(arguments[0], f"{macro}() variable name must be a simple identifier")
    receiver = _receiver(target)
    body = _local(context, name, context.member_call("value", context.copy(receiver)), arguments[1])
    return context.call(
        "_?_:_",
        context.member_call("hasValue", receiver),
        body if flat else context.call("optional.of", body),
        context.call("optional.none"),
    )


def _sort_by(context: MacroContext, target: ast.Expression | None, arguments: _Arguments) -> ast.Expression:
    receiver = _receiver(target)
    if isinstance(receiver, (ast.Literal, ast.MapLiteral, ast.StructLiteral)):
        raise MacroError(
            "sortBy can only be applied to a list, identifier, comprehension, call or select expression",
            receiver.position,
        )
    keys = _MAP(context, context.identifier(_SORT_INPUT), arguments)
    assert keys is not None
    sort = context.member_call("@sortByAssociatedKeys", context.identifier(_SORT_INPUT), keys)
    return _local(context, _SORT_INPUT, receiver, sort)


_MAP: Expander = _loop(_map)
_TRANSFORM: Expander = _loop(_map, two=True)
_TRANSFORM_MAP: Expander = _loop(_transform_map, two=True)
_TRANSFORM_ENTRY: Expander = _loop(_transform_map_entry, two=True)
# Name, argument count, on a receiver, version of its library, expander.
_TABLE: tuple[tuple[str, int, bool, LibraryVersion, Expander], ...] = (
    ("has", 1, False, ALWAYS, _has),
    ("all", 2, True, ALWAYS, _loop(_all)),
    ("exists", 2, True, ALWAYS, _loop(_exists)),
    ("exists_one", 2, True, ALWAYS, _loop(_exists_one)),
    ("map", 2, True, ALWAYS, _MAP),
    ("map", 3, True, ALWAYS, _MAP),
    ("filter", 2, True, ALWAYS, _filter),
    ("optMap", 2, True, OPTIONAL_MACROS, partial(_optional, flat=False)),
    ("optFlatMap", 2, True, OPTIONAL_MACROS, partial(_optional, flat=True)),
    ("bind", 3, True, BINDINGS, _bind),
    ("all", 3, True, TWO_VARIABLES, _loop(_all, two=True)),
    ("exists", 3, True, TWO_VARIABLES, _loop(_exists, two=True)),
    ("exists_one", 3, True, TWO_VARIABLES, _loop(_exists_one, two=True)),
    ("existsOne", 3, True, TWO_VARIABLES, _loop(_exists_one, two=True)),
    ("transformList", 3, True, TWO_VARIABLES, _TRANSFORM),
    ("transformList", 4, True, TWO_VARIABLES, _TRANSFORM),
    ("transformMap", 3, True, TWO_VARIABLES, _TRANSFORM_MAP),
    ("transformMap", 4, True, TWO_VARIABLES, _TRANSFORM_MAP),
    ("transformMapEntry", 3, True, TWO_VARIABLES, _TRANSFORM_ENTRY),
    ("transformMapEntry", 4, True, TWO_VARIABLES, _TRANSFORM_ENTRY),
    ("sortBy", 2, True, LISTS, _sort_by),
)


def macros_for(release: Release, stored: bool) -> dict[MacroKey, Expander]:
    """The macros of a release for new or for stored expressions."""
    return {
        (name, count, member): expander
        for name, count, member, version, expander in _TABLE
        if version.offered(release, frozenset(), stored=stored)
    }
