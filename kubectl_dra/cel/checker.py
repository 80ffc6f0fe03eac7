"""The static type checker: names, types and overloads of an expression.

It follows cel-go's checker, and returns the tree with
qualified names resolved (``sets.contains(a, b)`` becomes a global call), the type of every node and
the possible overloads of every call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from kubectl_dra.cel import ast, types
from kubectl_dra.cel.ast import qualified_name
from kubectl_dra.cel.errors import Issue
from kubectl_dra.cel.functions import Overload
from kubectl_dra.cel.protobuf import MESSAGES
from kubectl_dra.cel.types import (
    DYN,
    ERROR,
    Bindings,
    CelType,
    equal_or_less_specific,
    instantiate,
    list_of,
    map_of,
    optional_of,
    parameter_names,
)
from kubectl_dra.cel.values import SENSITIVE_OVERLOADS, Uint

if TYPE_CHECKING:
    from kubectl_dra.cel.environment import Environment


class Checked(Struct, eq=False):
    """A checked expression: the resolved tree, and types and overloads by node id."""

    expression: ast.Expression
    node_types: Mapping[int, CelType]
    overloads: Mapping[int, tuple[Overload, ...]]
    issues: tuple[Issue, ...]

    @property
    def shares_quantities(self) -> bool:
        """Whether the result can depend on Kubernetes changing quantities in place."""
        return any(row.id in SENSITIVE_OVERLOADS for overloads in self.overloads.values() for row in overloads)


def check(expression: ast.Expression, environment: Environment) -> Checked:
    """Check an expression. The result's ``issues`` hold the errors found."""
    checker = Checker(environment)
    resolved = checker.check(expression)
    node_types = checker.node_types
    for node_id, node_type in node_types.items():
        if node_type.parameters or node_type.kind == "param":
            node_types[node_id] = checker.bindings.substitute(node_type, True)
    return Checked(resolved, node_types, checker.overloads, tuple(checker.issues))


_LITERAL_TYPES: dict[type, CelType] = {
    bool: types.BOOL,
    bytes: types.BYTES,
    float: types.DOUBLE,
    int: types.INT,
    type(None): types.NULL,
    str: types.STRING,
    Uint: types.UINT,
}


class Checker:
    """Checks one expression; see ``check``."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._scopes: list[dict[str, CelType]] = []
        self._free = 0
        self.bindings = Bindings()
        self.node_types: dict[int, CelType] = {}
        self.overloads: dict[int, tuple[Overload, ...]] = {}
        self.issues: list[Issue] = []

    # --- helpers ---------------------------------------------------------------------------------

    def _report(self, position: int, message: str) -> None:
        self.issues.append(Issue(message, position))

    def _fresh(self) -> CelType:
        self._free += 1
        return types.type_param(f"_var{self._free - 1}")

    def _lookup(self, name: str) -> tuple[str, CelType] | None:
        if name.startswith("."):
            name = name[1:]
        for scope in reversed(self._scopes):
            if name in scope:
                return name, scope[name]
        declared = self._environment.variable(name)
        return None if declared is None else (name, declared)

    def _type(self, node: ast.Expression) -> CelType:
        return self.node_types[node.id]

    def _mismatch(self, position: int, expected: CelType, actual: CelType) -> None:
        self._report(position, f"expected type '{expected}' but found '{actual}'")

    def _undeclared(self, node: ast.Expression, name: str, member: bool) -> None:
        message = f"undeclared reference to '{name}' (in container '')"
        near = self._environment.suggestion(name, member)
        self.issues.append(Issue(message, node.position, undeclared=name, near=near))
        self.node_types[node.id] = ERROR

    # --- nodes -----------------------------------------------------------------------------------

    def check(self, node: ast.Expression) -> ast.Expression:
        if isinstance(node, ast.Literal):
            self.node_types[node.id] = _LITERAL_TYPES[node.value.__class__]
            return node
        if isinstance(node, ast.Identifier):
            return self._identifier(node)
        if isinstance(node, ast.Select):
            return self._select(node)
        if isinstance(node, ast.Call):
            return self._call(node)
        if isinstance(node, ast.Comprehension):
            return self._comprehension(node)
        if isinstance(node, ast.ListLiteral):
            return self._list(node)
        if isinstance(node, ast.MapLiteral):
            return self._map(node)
        return self._struct(node)

    def _identifier(self, node: ast.Identifier) -> ast.Expression:
        variable = self._lookup(node.name)
        if variable is None:
            self._undeclared(node, node.name, member=False)
            return node
        self.node_types[node.id] = variable[1]
        if variable[0] == node.name:
            return node
        return replace(node, name=variable[0])

    def _select(self, node: ast.Select) -> ast.Expression:
        if not node.test_only:
            name = qualified_name(node)
            variable = None if name is None else self._lookup(name)
            if variable is not None:
                self.node_types[node.id] = variable[1]
                return ast.Identifier(node.id, node.position, node.start, node.end, variable[0])
        operand = self.check(node.operand)
        result = self._field_type(node, operand, node.field, optional=False)
        if node.test_only:
            result = types.BOOL
        self.node_types[node.id] = self.bindings.substitute(result, False)
        return replace(node, operand=operand)

    def _optional_select(self, node: ast.Call) -> ast.Expression:
        operand = self.check(node.arguments[0])
        field = node.arguments[1]
        assert isinstance(field, ast.Literal)
        result = self._field_type(node, operand, str(field.value), optional=True)
        self.node_types[node.id] = self.bindings.substitute(result, False)
        return replace(node, arguments=(operand, field))

    def _field_type(self, node: ast.Expression, operand: ast.Expression, field: str, optional: bool) -> CelType:
        target = self.bindings.substitute(self._type(operand), False)
        is_optional = target.is_optional
        if is_optional:
            target = target.parameters[0]
        result = ERROR
        if target.kind == "map":
            result = target.parameters[1]
        elif target.kind == "struct":
            result = self._struct_field(node.position, target.name, field)
        elif target.kind == "param":
            self.bindings.assign(DYN, target)
            result = DYN
        else:
            if not target.is_dynamic and target.kind != "error":
                self._report(node.position, f"type '{target}' does not support field selection")
            result = DYN
        return optional_of(result) if is_optional or optional else result

    def _struct_field(self, position: int, struct: str, field: str) -> CelType:
        """The type of a struct's field. An unknown field is reported and has the error type."""
        fields = self._environment.fields(struct)
        if fields is None:
            self._report(position, f"unexpected failed resolution of '{struct}'")
            return ERROR
        field_type = fields.get(field)
        if field_type is None:
            near = self._environment.suggestion(f"{struct}.{field}", True)
            self.issues.append(Issue(f"undefined field '{field}'", position, near=near))
            return ERROR
        return field_type

    def _call(self, node: ast.Call) -> ast.Expression:
        if node.function == "_?._":
            return self._optional_select(node)
        arguments = [self.check(argument) for argument in node.arguments]
        if node.target is None:
            function = node.function[1:] if node.function.startswith(".") else node.function
            overloads = self._environment.overloads(function)
            if overloads is None:
                self._undeclared(node, node.function, member=False)
            else:
                self._resolve(node, function, overloads, None, arguments)
            return replace(node, function=function, arguments=tuple(arguments))
        prefix = qualified_name(node.target)
        if prefix is not None:
            function = f"{prefix[1:] if prefix.startswith('.') else prefix}.{node.function}"
            overloads = self._environment.overloads(function)
            if overloads is not None:
                self._resolve(node, function, overloads, None, arguments)
                return replace(node, function=function, target=None, arguments=tuple(arguments))
        target = self.check(node.target)
        overloads = self._environment.overloads(node.function)
        if overloads is None:
            self._undeclared(node, node.function, member=True)
        else:
            self._resolve(node, node.function, overloads, target, arguments)
        return replace(node, target=target, arguments=tuple(arguments))

    def _resolve(
        self,
        node: ast.Call,
        function: str,
        overloads: Sequence[Overload],
        target: ast.Expression | None,
        arguments: list[ast.Expression],
    ) -> None:
        given = [self._type(argument) for argument in arguments]
        if target is not None:
            given.insert(0, self._type(target))
        if function == "_&&_" or function == "_||_":
            self._resolve_logic(node, overloads, arguments, given)
            return
        bindings = self.bindings
        result: CelType | None = None
        matching: list[Overload] = []
        for overload in overloads:
            if overload.member != (target is not None) or len(overload.parameters) != len(given):
                continue
            wanted: Sequence[CelType] = overload.parameters
            outcome = overload.result
            names = parameter_names((outcome, *wanted))
            if names:
                fresh = {name: self._fresh() for name in names}
                wanted = [instantiate(parameter, fresh) for parameter in wanted]
                outcome = instantiate(outcome, fresh)
            if not bindings.assign_all(given, wanted):
                continue
            matching.append(overload)
            outcome = bindings.substitute(outcome, False)
            if result is None:
                result = outcome
            elif not result.is_dynamic and outcome != result:
                result = DYN
        if result is None:
            self._no_match(node, function, given, target is not None)
            return
        self.node_types[node.id] = result
        self.overloads[node.id] = tuple(matching)

    def _resolve_logic(
        self, node: ast.Call, overloads: Sequence[Overload], arguments: list[ast.Expression], given: list[CelType]
    ) -> None:
        result = types.BOOL
        for argument, argument_type in zip(arguments, given, strict=True):
            if not self.bindings.assign(argument_type, types.BOOL):
                self._mismatch(argument.position, types.BOOL, argument_type)
                result = ERROR
        self.node_types[node.id] = result
        self.overloads[node.id] = tuple(overloads[:1])

    def _no_match(self, node: ast.Call, function: str, given: list[CelType], member: bool) -> None:
        shown = [str(self.bindings.substitute(argument, True)) for argument in given]
        receiver = f"{shown.pop(0)}." if member else ""
        signature = f"{receiver}({', '.join(shown)})"
        self._report(node.position, f"found no matching overload for '{function}' applied to '{signature}'")
        self.node_types[node.id] = ERROR

    def _list(self, node: ast.ListLiteral) -> ast.Expression:
        elements: list[ast.Expression] = []
        element_type: CelType | None = None
        for index, element in enumerate(node.elements):
            element = self.check(element)
            elements.append(element)
            current = self._type(element)
            if index in node.optional_indices:
                current = self._unwrapped(element, current)
            element_type = self._joined(element_type, current)
        self.node_types[node.id] = list_of(element_type or self._fresh())
        return replace(node, elements=tuple(elements))

    def _unwrapped(self, node: ast.Expression, current: CelType) -> CelType:
        if current.is_optional:
            return current.parameters[0]
        if not current.is_dynamic:
            self._mismatch(node.position, optional_of(current), current)
        return current

    def _joined(self, previous: CelType | None, current: CelType) -> CelType:
        if previous is None:
            return current
        if self.bindings.assign(previous, current):
            return previous if equal_or_less_specific(previous, current) else current
        # Mixed literals are refused later (see `validate`), where format strings are exempt.
        return DYN

    def _map(self, node: ast.MapLiteral) -> ast.Expression:
        entries: list[ast.MapEntry] = []
        key_type: CelType | None = None
        value_type: CelType | None = None
        for entry in node.entries:
            key = self.check(entry.key)
            key_type = self._joined(key_type, self._type(key))
            value = self.check(entry.value)
            current = self._type(value)
            if entry.optional:
                current = self._unwrapped(value, current)
            value_type = self._joined(value_type, current)
            entries.append(replace(entry, key=key, value=value))
        self.node_types[node.id] = map_of(key_type or self._fresh(), value_type or self._fresh())
        return replace(node, entries=tuple(entries))

    def _struct(self, node: ast.StructLiteral) -> ast.Expression:
        variable = self._lookup(node.type_name)
        if variable is None:
            self._undeclared(node, node.type_name, member=False)
            return node
        name, declared = variable
        result = ERROR
        struct = name
        if declared.kind != "type":
            self._report(node.position, f"'{declared.name}' is not a type")
        else:
            result = declared.parameters[0]
            if result.kind == "null":
                struct = "google.protobuf.NullValue"
            elif name not in MESSAGES and result.kind != "struct":
                self._report(node.position, f"'{result.name}' is not a message type")
                result = ERROR
        self.node_types[node.id] = result
        fields = [self._struct_entry(struct, field) for field in node.fields]
        return replace(node, type_name=name, fields=tuple(fields))

    def _struct_entry(self, struct: str, field: ast.FieldEntry) -> ast.FieldEntry:
        value = self.check(field.value)
        wanted = self._struct_field(field.position, struct, field.name)
        given = self._type(value)
        if field.optional:
            given = self._unwrapped(value, given)
        if not self.bindings.assign(wanted, given):
            self._report(
                field.position, f"expected type of field '{field.name}' is '{wanted}' but provided type is '{given}'"
            )
        return replace(field, value=value)

    def _comprehension(self, node: ast.Comprehension) -> ast.Expression:
        iter_range = self.check(node.iter_range)
        accu_init = self.check(node.accu_init)
        range_type = self.bindings.substitute(self._type(iter_range), False)
        accu_type = self._type(accu_init)
        first, second = self._loop_types(iter_range, range_type, bool(node.iter_var2))
        self._scopes.append({node.accu_var: accu_type})
        loop = {node.iter_var: first}
        if node.iter_var2:
            loop[node.iter_var2] = second
        self._scopes.append(loop)
        condition = self.check(node.loop_condition)
        self._assert_type(condition, types.BOOL)
        step = self.check(node.loop_step)
        self._assert_type(step, accu_type)
        self._scopes.pop()
        result = self.check(node.result)
        self._scopes.pop()
        self.node_types[node.id] = self.bindings.substitute(self._type(result), False)
        return replace(
            node, iter_range=iter_range, accu_init=accu_init, loop_condition=condition, loop_step=step, result=result
        )

    def _loop_types(self, node: ast.Expression, range_type: CelType, two: bool) -> tuple[CelType, CelType]:
        """The types of the loop variables when iterating over a range."""
        if range_type.kind == "list":
            element = range_type.parameters[0]
            return (types.INT, element) if two else (element, element)
        if range_type.kind == "map":
            return range_type.parameters[0], range_type.parameters[1]
        if range_type.kind in ("dyn", "error", "param"):
            self.bindings.assign(DYN, range_type)
            return DYN, DYN
        self._report(
            node.position,
            f"expression of type '{range_type}' cannot be range of a comprehension (must be list, map, or dynamic)",
        )
        return ERROR, ERROR

    def _assert_type(self, node: ast.Expression, wanted: CelType) -> None:
        if not self.bindings.assign(wanted, self._type(node)):
            self._mismatch(node.position, wanted, self._type(node))
