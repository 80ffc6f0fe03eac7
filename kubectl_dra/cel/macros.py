"""Macro expansion, node for node like cel-go and its extensions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from kubectl_dra.api.releases import Release
from kubectl_dra.cel import ast
from kubectl_dra.cel.libraries import ALWAYS, BINDINGS, LISTS, OPTIONAL_MACROS, TWO_VARIABLES, LibraryVersion

# What a macro expander is, and the nodes that it builds.

MacroKey: TypeAlias = tuple[str, int, bool]
"""Name, number of arguments without the receiver, whether called on a receiver."""
Expander: TypeAlias = Callable[
    ["MacroContext", "ast.Expression | None", "tuple[ast.Expression, ...]"], "ast.Expression | None"
]
"""Builds a macro's expression from its receiver and arguments; None if it is an ordinary call."""


class MacroError(Exception):
    """A macro was called with invalid arguments; reported at ``offset``."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset


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
    common = (next_id(), node.position, node.start, node.end)
    if isinstance(node, ast.Literal):
        return ast.Literal(*common, node.value)
    if isinstance(node, ast.Identifier):
        return ast.Identifier(*common, node.name)
    if isinstance(node, ast.Select):
        return ast.Select(*common, _copy(node.operand, next_id), node.field, node.test_only)
    if isinstance(node, ast.Call):
        arguments = [_copy(argument, next_id) for argument in node.arguments]
        target = None if node.target is None else _copy(node.target, next_id)
        return ast.Call(*common, node.function, target, tuple(arguments))
    if isinstance(node, ast.ListLiteral):
        elements = [_copy(element, next_id) for element in node.elements]
        return ast.ListLiteral(*common, tuple(elements), node.optional_indices)
    if isinstance(node, ast.MapLiteral):
        entries = []
        for entry in node.entries:
            entry_id, key, value = next_id(), _copy(entry.key, next_id), _copy(entry.value, next_id)
            entries.append(ast.MapEntry(entry_id, entry.position, key, value, entry.optional))
        return ast.MapLiteral(*common, tuple(entries))
    if isinstance(node, ast.StructLiteral):
        fields = []
        for field in node.fields:
            field_id, value = next_id(), _copy(field.value, next_id)
            fields.append(ast.FieldEntry(field_id, field.position, field.name, value, field.optional))
        return ast.StructLiteral(*common, node.type_name, tuple(fields))
    return ast.Comprehension(
        *common,
        _copy(node.iter_range, next_id),
        node.iter_var,
        node.iter_var2,
        node.accu_var,
        _copy(node.accu_init, next_id),
        _copy(node.loop_condition, next_id),
        _copy(node.loop_step, next_id),
        _copy(node.result, next_id),
    )


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


def _fold_all(
    context: MacroContext, target: ast.Expression, names: tuple[str, str], predicate: ast.Expression
) -> ast.Expression:
    return context.comprehension(
        target,
        names,
        ACCUMULATOR,
        context.literal(True),
        context.call("@not_strictly_false", context.identifier(ACCUMULATOR)),
        context.call("_&&_", context.identifier(ACCUMULATOR), predicate),
        context.identifier(ACCUMULATOR),
    )


def _fold_exists(
    context: MacroContext, target: ast.Expression, names: tuple[str, str], predicate: ast.Expression
) -> ast.Expression:
    return context.comprehension(
        target,
        names,
        ACCUMULATOR,
        context.literal(False),
        context.call("@not_strictly_false", context.call("!_", context.identifier(ACCUMULATOR))),
        context.call("_||_", context.identifier(ACCUMULATOR), predicate),
        context.identifier(ACCUMULATOR),
    )


def _fold_exists_one(
    context: MacroContext, target: ast.Expression, names: tuple[str, str], predicate: ast.Expression
) -> ast.Expression:
    increment = context.call("_+_", context.identifier(ACCUMULATOR), context.literal(1))
    return context.comprehension(
        target,
        names,
        ACCUMULATOR,
        context.literal(0),
        context.literal(True),
        context.call("_?_:_", predicate, increment, context.identifier(ACCUMULATOR)),
        context.call("_==_", context.identifier(ACCUMULATOR), context.literal(1)),
    )


def _fold_list(
    context: MacroContext,
    target: ast.Expression,
    names: tuple[str, str],
    predicate: ast.Expression | None,
    element: ast.Expression,
) -> ast.Expression:
    """Fold ``target`` into a list of ``element`` for the items where ``predicate`` holds."""
    step = context.call("_+_", context.identifier(ACCUMULATOR), context.list(element))
    return context.comprehension(
        target,
        names,
        ACCUMULATOR,
        context.list(),
        context.literal(True),
        _guarded(context, predicate, step),
        context.identifier(ACCUMULATOR),
    )


def _fold_map(
    context: MacroContext,
    target: ast.Expression,
    names: tuple[str, str],
    predicate: ast.Expression | None,
    insertion: _Arguments,
) -> ast.Expression:
    step = context.call("cel.@mapInsert", context.identifier(ACCUMULATOR), *insertion)
    return context.comprehension(
        target,
        names,
        ACCUMULATOR,
        context.empty_map(),
        context.literal(True),
        _guarded(context, predicate, step),
        context.identifier(ACCUMULATOR),
    )


def _guarded(context: MacroContext, predicate: ast.Expression | None, step: ast.Expression) -> ast.Expression:
    if predicate is None:
        return step
    return context.call("_?_:_", predicate, step, context.identifier(ACCUMULATOR))


def _receiver(target: ast.Expression | None) -> ast.Expression:
    assert target is not None
    return target


def _all(context: MacroContext, target: ast.Expression | None, arguments: _Arguments) -> ast.Expression:
    name = _loop_variable(arguments[0], "argument must be a simple name")
    return _fold_all(context, _receiver(target), (name, ""), arguments[1])


def _exists(context: MacroContext, target: ast.Expression | None, arguments: _Arguments) -> ast.Expression:
    name = _loop_variable(arguments[0], "argument must be a simple name")
    return _fold_exists(context, _receiver(target), (name, ""), arguments[1])


def _exists_one(context: MacroContext, target: ast.Expression | None, arguments: _Arguments) -> ast.Expression:
    name = _loop_variable(arguments[0], "argument must be a simple name")
    return _fold_exists_one(context, _receiver(target), (name, ""), arguments[1])


def _map(context: MacroContext, target: ast.Expression | None, arguments: _Arguments) -> ast.Expression:
    name = _loop_variable(arguments[0], "argument is not an identifier")
    predicate = arguments[1] if len(arguments) == 3 else None
    return _fold_list(context, _receiver(target), (name, ""), predicate, arguments[-1])


def _filter(context: MacroContext, target: ast.Expression | None, arguments: _Arguments) -> ast.Expression:
    name = _loop_variable(arguments[0], "argument is not an identifier")
    return _fold_list(context, _receiver(target), (name, ""), arguments[1], arguments[0])


def _all2(context: MacroContext, target: ast.Expression | None, arguments: _Arguments) -> ast.Expression:
    return _fold_all(context, _receiver(target), _loop_variables(arguments), arguments[2])


def _exists2(context: MacroContext, target: ast.Expression | None, arguments: _Arguments) -> ast.Expression:
    return _fold_exists(context, _receiver(target), _loop_variables(arguments), arguments[2])


def _exists_one2(context: MacroContext, target: ast.Expression | None, arguments: _Arguments) -> ast.Expression:
    return _fold_exists_one(context, _receiver(target), _loop_variables(arguments), arguments[2])


def _transform_list(context: MacroContext, target: ast.Expression | None, arguments: _Arguments) -> ast.Expression:
    names = _loop_variables(arguments)
    predicate = arguments[2] if len(arguments) == 4 else None
    return _fold_list(context, _receiver(target), names, predicate, arguments[-1])


def _transform_map(context: MacroContext, target: ast.Expression | None, arguments: _Arguments) -> ast.Expression:
    names = _loop_variables(arguments)
    predicate = arguments[2] if len(arguments) == 4 else None
    insertion = (context.identifier(names[0]), arguments[-1])
    return _fold_map(context, _receiver(target), names, predicate, insertion)


def _transform_map_entry(context: MacroContext, target: ast.Expression | None, arguments: _Arguments) -> ast.Expression:
    names = _loop_variables(arguments)
    predicate = arguments[2] if len(arguments) == 4 else None
    return _fold_map(context, _receiver(target), names, predicate, (arguments[-1],))


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


def _opt_map(context: MacroContext, target: ast.Expression | None, arguments: _Arguments) -> ast.Expression:
    name = _variable(arguments[0], "optMap() variable name must be a simple identifier")
    receiver = _receiver(target)
    value = context.member_call("value", context.copy(receiver))
    return context.call(
        "_?_:_",
        context.member_call("hasValue", receiver),
        context.call("optional.of", _local(context, name, value, arguments[1])),
        context.call("optional.none"),
    )


def _opt_flat_map(context: MacroContext, target: ast.Expression | None, arguments: _Arguments) -> ast.Expression:
    name = _variable(arguments[0], "optFlatMap() variable name must be a simple identifier")
    receiver = _receiver(target)
    value = context.member_call("value", context.copy(receiver))
    return context.call(
        "_?_:_",
        context.member_call("hasValue", receiver),
        _local(context, name, value, arguments[1]),
        context.call("optional.none"),
    )


def _sort_by(context: MacroContext, target: ast.Expression | None, arguments: _Arguments) -> ast.Expression:
    receiver = _receiver(target)
    if isinstance(receiver, (ast.Literal, ast.MapLiteral, ast.StructLiteral)):
        raise MacroError(
            "sortBy can only be applied to a list, identifier, comprehension, call or select expression",
            receiver.position,
        )
    keys = _map(context, context.identifier(_SORT_INPUT), arguments)
    sort = context.member_call("@sortByAssociatedKeys", context.identifier(_SORT_INPUT), keys)
    return context.comprehension(
        context.list(),
        (_UNUSED, ""),
        _SORT_INPUT,
        receiver,
        context.literal(False),
        context.identifier(_SORT_INPUT),
        sort,
    )


# Name, argument count, on a receiver, version of its library, expander.
_TABLE: tuple[tuple[str, int, bool, LibraryVersion, Expander], ...] = (
    ("has", 1, False, ALWAYS, _has),
    ("all", 2, True, ALWAYS, _all),
    ("exists", 2, True, ALWAYS, _exists),
    ("exists_one", 2, True, ALWAYS, _exists_one),
    ("map", 2, True, ALWAYS, _map),
    ("map", 3, True, ALWAYS, _map),
    ("filter", 2, True, ALWAYS, _filter),
    ("optMap", 2, True, OPTIONAL_MACROS, _opt_map),
    ("optFlatMap", 2, True, OPTIONAL_MACROS, _opt_flat_map),
    ("bind", 3, True, BINDINGS, _bind),
    ("all", 3, True, TWO_VARIABLES, _all2),
    ("exists", 3, True, TWO_VARIABLES, _exists2),
    ("exists_one", 3, True, TWO_VARIABLES, _exists_one2),
    ("existsOne", 3, True, TWO_VARIABLES, _exists_one2),
    ("transformList", 3, True, TWO_VARIABLES, _transform_list),
    ("transformList", 4, True, TWO_VARIABLES, _transform_list),
    ("transformMap", 3, True, TWO_VARIABLES, _transform_map),
    ("transformMap", 4, True, TWO_VARIABLES, _transform_map),
    ("transformMapEntry", 3, True, TWO_VARIABLES, _transform_map_entry),
    ("transformMapEntry", 4, True, TWO_VARIABLES, _transform_map_entry),
    ("sortBy", 2, True, LISTS, _sort_by),
)


def macros_for(release: Release, stored: bool) -> dict[MacroKey, Expander]:
    """The macros of a release for new or for stored expressions."""
    return {
        (name, count, member): expander
        for name, count, member, version, expander in _TABLE
        if version.offered(release, frozenset(), stored=stored)
    }
