"""The exact evaluator: an expression as a tree of Python closures.

Each closure takes the frame (a list; slot 0 is ``device``, the others are local variables) and returns a
value or raises EvaluationError with the position of the error. The closures follow cel-go closely, oddities
included. This module builds the tree, one kind of node at a time; the other modules of the package implement
the closures.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from kubectl_dra.cel import ast, protobuf
from kubectl_dra.cel.closures import calls
from kubectl_dra.cel.closures import collections as aggregates
from kubectl_dra.cel.closures.calls import charged, in_container, in_list, in_members, member_set, recorded
from kubectl_dra.cel.closures.chains import (
    INDEXING,
    KEY_CLASSES,
    Qualifier,
    alternative,
    as_variable,
    base_is_conditional,
    constant_steps,
    general_steps,
    is_attribute,
    raising,
)
from kubectl_dra.cel.closures.collections import fold, read
from kubectl_dra.cel.errors import EvaluationError, PlacedError
from kubectl_dra.cel.functions import dispatcher
from kubectl_dra.cel.known_sizes import LIST_CREATE_COST, MAP_CREATE_COST, STRUCT_CREATE_COST
from kubectl_dra.cel.libraries import STRICT_ALTERNATIVES
from kubectl_dra.cel.values import (
    OptionalValue,
    SharedQuantity,
    TypeValue,
    Value,
    equals,
    go_name,
    unequal,
)

if TYPE_CHECKING:
    from kubectl_dra.cel.checker import Checked
    from kubectl_dra.cel.closures.calls import Closure, Frame, Recorder
    from kubectl_dra.cel.environment import Environment
    from kubectl_dra.cel.runtime_cost import CostMeter

_CONVERSIONS = frozenset(("bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"))
_REGEX_FUNCTIONS = frozenset(("matches", "find", "findAll"))


class InstantiationError(PlacedError):
    """The expression type-checks, but Kubernetes cannot build a program from it."""


def compile_closures(
    checked: Checked, environment: Environment, meter: CostMeter | None = None, recorder: Recorder | None = None
) -> tuple[Closure, int]:
    """The closure of a checked expression, and the number of slots that its frame needs.

    A meter counts the cost; a recorder receives every outcome. Raises InstantiationError.
    """
    compiler = _Compiler(checked, environment, meter, recorder)
    closure = compiler.compile(checked.expression)
    return closure, compiler.slot_count


class _Compiler:
    def __init__(
        self, checked: Checked, environment: Environment, meter: CostMeter | None, recorder: Recorder | None
    ) -> None:
        self._types = checked.node_types
        self._overloads = checked.overloads
        self._environment = environment
        self._meter = meter
        self._recorder = recorder
        self._scopes: list[dict[str, int]] = []
        self._constants: dict[int, Value] = {}
        self.slot_count = 1
        self._shares_quantities = checked.shares_quantities

    # --- helpers ---------------------------------------------------------------------------------

    def _slot(self, name: str) -> int | None:
        for scope in reversed(self._scopes):
            if name in scope:
                return scope[name]
        return 0 if name == "device" else None

    def _new_slot(self) -> int:
        self.slot_count += 1
        return self.slot_count - 1

    def _is_constant(self, node: ast.Expression) -> bool:
        return node.id in self._constants

    def _constant(self, node: ast.Expression, value: Value) -> Closure:
        self._constants[node.id] = value
        return lambda frame: value

    def compile(self, node: ast.Expression) -> Closure:
        closure = self._compile(node)
        recorder = self._recorder
        if recorder is None:
            return closure
        return recorded(closure, recorder, node.id)

    def _compile(self, node: ast.Expression) -> Closure:
        if isinstance(node, ast.Call):
            return self._call(node)
        if isinstance(node, (ast.Select, ast.Identifier)):
            return self._attribute(node)
        if isinstance(node, ast.Literal):
            return self._constant(node, node.value)
        if isinstance(node, ast.ListLiteral):
            return self._list(node)
        if isinstance(node, ast.MapLiteral):
            return self._map(node)
        if isinstance(node, ast.Comprehension):
            return self._comprehension(node)
        return self._struct(node)

    # --- chains ----------------------------------------------------------------------------------

    def _attribute(self, node: ast.Expression) -> Closure:
        """A value used by itself: a variable, a chain of selections on anything, or a conditional."""
        if isinstance(node, ast.Identifier) and self._is_name(node):
            return self._name(node)
        closure = self._chain(node, ())
        meter = self._meter
        if isinstance(node, ast.Select) and node.test_only:
            # The presence test costs nothing itself, only the steps do.
            def present(frame: Frame) -> Value:
                value = closure(frame)
                return value.has_value if value.__class__ is OptionalValue else value

            return present
        if meter is None or base_is_conditional(node):
            return closure
        return charged(closure, meter)

    def _is_name(self, node: ast.Identifier) -> bool:
        """Whether cel-go treats an identifier as a type or constant name, not as a variable."""
        return self._types[node.id].kind == "type" or self._slot(node.name) is None

    def _name(self, node: ast.Identifier) -> Closure:
        """The value of a type name, or of the only named constant."""
        if node.name == protobuf.NULL_VALUE:
            return self._constant(node, 0)
        known = node.name not in protobuf.MESSAGES or node.name in protobuf.NAMES_AS_VALUES
        if known and self._slot(node.name) is None and node.name != "kubernetes.DRADevice":
            return self._constant(node, TypeValue(node.name))
        raise InstantiationError(f"reference to undefined type: {node.name}", node.position)

    def _chain(self, node: ast.Expression, later: tuple[Qualifier, ...]) -> Closure:
        """One closure for ``node`` followed by the steps ``later``."""
        if isinstance(node, ast.Select):
            qualifier = Qualifier(node.field, None, False, node.test_only, node)
            return self._chain(node.operand, (qualifier, *later))
        if isinstance(node, ast.Call) and node.function in INDEXING:
            optional = node.function != "_[_]"
            qualifier = self._qualifier(node, node.arguments[1], optional)
            return self._chain(node.arguments[0], (qualifier, *later))
        if isinstance(node, ast.Call) and node.function == "_?_:_":
            return self._conditional(node, later)
        if isinstance(node, ast.Identifier) and not self._is_name(node):
            slot = self._slot(node.name)
            assert slot is not None
            base = read(slot)
            if self._recorder is not None:
                base = recorded(base, self._recorder, node.id)
            return self._steps(base, later, node)
        return self._steps(self.compile(node), later, node)

    def _qualifier(self, node: ast.Expression, index: ast.Expression, optional: bool) -> Qualifier:
        closure = self._key(index)
        if not self._is_constant(index):
            return Qualifier(None, closure, optional, False, node)
        key = self._constants[index.id]
        if key.__class__ not in KEY_CLASSES:
            raise InstantiationError(f"invalid qualifier type: {go_name(key)}", index.position)
        return Qualifier(key, None, optional, False, node)

    def _key(self, index: ast.Expression) -> Closure:
        """The value of an index. The unit that a chain costs as a whole is not counted: the step has one."""
        if not is_attribute(index) or (isinstance(index, ast.Select) and index.test_only):
            return self.compile(index)
        if isinstance(index, ast.Identifier) and self._is_name(index):
            return self.compile(index)
        closure = self._chain(index, ())
        return closure if self._recorder is None else recorded(closure, self._recorder, index.id)

    def _conditional(self, node: ast.Call, later: tuple[Qualifier, ...]) -> Closure:
        condition = self.compile(node.arguments[0])
        # On a conditional cel-go does not charge has().
        later = tuple(step._replace(free=step.test_only) for step in later)
        chosen, other = [self._branch(branch, later) for branch in node.arguments[1:]]
        return calls.conditional(node, condition, chosen, other)

    def _branch(self, node: ast.Expression, later: tuple[Qualifier, ...]) -> Closure:
        closure = self._chain(node, later)
        if self._recorder is not None and not later and is_attribute(node):
            return recorded(closure, self._recorder, node.id)
        return closure

    def _steps(self, base: Closure, qualifiers: tuple[Qualifier, ...], node: ast.Expression) -> Closure:
        """Apply the steps of a chain to its base."""
        if not qualifiers:
            # Optionals have a static type, except behind dyn.
            kind = self._types[node.id]
            if not (kind.is_optional or kind.is_dynamic):
                return base
            return lambda frame: as_variable(base(frame))
        meter, recorder = self._meter, self._recorder
        simple = meter is None and recorder is None
        if simple and all(q.compute is None and not q.optional and not q.test_only for q in qualifiers):
            return constant_steps(base, qualifiers)
        return general_steps(base, qualifiers, meter, recorder)

    # --- calls -----------------------------------------------------------------------------------

    def _call(self, node: ast.Call) -> Closure:
        function = node.function
        if function in INDEXING or function == "_?_:_":
            return self._attribute(node)
        operands = node.arguments if node.target is None else (node.target, *node.arguments)
        closures = [self.compile(operand) for operand in operands]
        if function == "_&&_":
            return calls.logic(node, closures[0], closures[1], decisive=False)
        if function == "_||_":
            return calls.logic(node, closures[0], closures[1], decisive=True)
        if function == "@not_strictly_false":
            return calls.not_strictly_false(closures[0], self._meter)
        candidates = self._overloads.get(node.id, ())
        if function == "@in" and len(candidates) == 1 and candidates[0].id == "in_list":
            return self._in_list(node, operands, closures)
        if function in ("or", "orValue") and len(closures) == 2:
            strict = self._environment.release in STRICT_ALTERNATIVES
            return alternative(closures[0], closures[1], take_value=function == "orValue", strict=strict)
        if function == "_==_":
            return self._strict(node, closures, equals)
        if function == "_!=_":
            return self._strict(node, closures, unequal)
        if function == "@in":
            return self._strict(node, closures, in_container)
        if function == "_+_":
            return self._strict(node, closures, calls.joining(self._implementation(node, 2)))
        if function == "cel.@mapInsert":
            return self._strict(node, closures, aggregates.map_insert)
        implementation = self._implementation(node, len(operands))
        if len(candidates) == 1:
            closures = calls.panicking(candidates[0].id, closures)
        if function in _REGEX_FUNCTIONS and len(operands) > 1 and self._is_constant(operands[1]):
            self._check_pattern(self._constants[operands[1].id], operands[1])
            implementation = calls.on_type_names(implementation)
        if function in _CONVERSIONS and len(operands) == 1 and self._is_constant(operands[0]):
            try:
                return self._constant(node, implementation(self._constants[operands[0].id]))
            except EvaluationError as error:
                raise InstantiationError(error.message, node.position) from None
        if function == "value":
            implementation = raising(implementation)
        return self._strict(node, closures, implementation)

    def _in_list(self, node: ast.Call, operands: Sequence[ast.Expression], closures: list[Closure]) -> Closure:
        if self._is_constant(operands[1]):
            elements = self._constants[operands[1].id]
            if not elements:
                return self._constant(node, False)
            members = member_set(elements)
            if members is not None:
                return in_members(closures[0], members, node)
        return self._strict(node, closures, in_list)

    def _implementation(self, node: ast.Call, count: int) -> Callable[..., Value]:
        declared = self._environment.function(node.function)
        assert declared is not None
        implementation = dispatcher(declared, self._overloads.get(node.id, ()), count)
        if self._shares_quantities and node.function == "quantity":
            return lambda text: SharedQuantity(implementation(text))
        return implementation

    def _check_pattern(self, pattern: Value, node: ast.Expression) -> None:
        from kubectl_dra.cel.library.regex import compile_pattern

        if pattern.__class__ is not str:
            return
        try:
            compile_pattern(pattern)
        except EvaluationError as error:
            raise InstantiationError(error.message, node.position) from None

    def _strict(self, node: ast.Call, closures: list[Closure], function: Callable[..., Value]) -> Closure:
        """A call that needs the values of all its operands."""
        name, overloads = node.function, self._overloads.get(node.id, ())
        declared = self._environment.function(name)
        # cel-go stops at a failed operand in calls with many or any number, in those with a compiled pattern, and
        # in those whose overload is not known beforehand.
        stops = (
            len(closures) > 2
            or (name in _REGEX_FUNCTIONS and isinstance(self._constants.get(node.arguments[-1].id), str))
            or name == "format"
            or (name[0].isalpha() and len(overloads) > 1 and declared is not None and not declared.implementation)
        )
        if self._meter is None:
            return calls.strict(node, closures, function, stops)
        return calls.metered(node, closures, function, overloads, self._meter, stops)

    # --- aggregates ------------------------------------------------------------------------------

    def _list(self, node: ast.ListLiteral) -> Closure:
        built = aggregates.list_of([self.compile(element) for element in node.elements], node)
        if all(self._is_constant(element) for element in node.elements):
            return self._constant(node, built([]))
        return self._charged_aggregate(built, LIST_CREATE_COST)

    def _map(self, node: ast.MapLiteral) -> Closure:
        entries = [(self.compile(entry.key), self.compile(entry.value), entry.optional) for entry in node.entries]
        built = aggregates.map_of(entries, node)
        if all(self._is_constant(entry.key) and self._is_constant(entry.value) for entry in node.entries):
            try:
                return self._constant(node, built([]))
            except EvaluationError as error:
                raise InstantiationError(error.message, node.position) from None
        return self._charged_aggregate(built, MAP_CREATE_COST)

    def _struct(self, node: ast.StructLiteral) -> Closure:
        # Rare, and it needs modules that nothing else does.
        from kubectl_dra.cel.closures.messages import struct_of

        built = struct_of([self.compile(field.value) for field in node.fields], node)
        return self._charged_aggregate(built, STRUCT_CREATE_COST)

    def _charged_aggregate(self, closure: Closure, units: int) -> Closure:
        return closure if self._meter is None else aggregates.charged_aggregate(closure, self._meter, units)

    # --- loops -----------------------------------------------------------------------------------

    def _comprehension(self, node: ast.Comprehension) -> Closure:
        accu_init = self.compile(node.accu_init)
        iter_range = self.compile(node.iter_range)
        slots = accu_slot, first_slot, second_slot = self._new_slot(), self._new_slot(), self._new_slot()
        self._scopes.append({node.accu_var: accu_slot})
        names = {node.iter_var: first_slot}
        if node.iter_var2:
            names[node.iter_var2] = second_slot
        self._scopes.append(names)
        condition = self.compile(node.loop_condition)
        loop_step = self.compile(node.loop_step)
        constant_condition = self._constants.get(node.loop_condition.id)
        self._scopes.pop()
        result = self.compile(node.result)
        self._scopes.pop()
        return fold(node, slots, iter_range, accu_init, condition, constant_condition, loop_step, result)
