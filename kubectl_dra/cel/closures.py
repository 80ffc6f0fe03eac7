"""The exact evaluator: an expression as a tree of Python closures.

Each closure takes the frame (a list; slot 0 is ``device``, the others are local variables) and returns a
value or raises EvaluationError with the place of the error. What cel-go does is followed closely, including
what looks odd:

* Selections and indexes on one base form one chain. After the first optional step every step is optional,
  and an optional base is unwrapped once, at the start of the chain.
* Reading an optional from a variable or as the outcome of ``? :`` converts its content to a native value and
  back, which fails for quantities, versions, addresses and URLs.
* ``!=`` is true when the comparison for equality is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from kubectl_dra.cel import ast
from kubectl_dra.cel.dispatch import dispatcher, no_overload
from kubectl_dra.cel.errors import EvaluationError, InternalError, no_such_overload
from kubectl_dra.cel.shared_quantity import SENSITIVE_OVERLOADS, SharedQuantity
from kubectl_dra.cel.values import (
    OPTIONAL_NONE,
    DefaultMap,
    MutableList,
    MutableMap,
    OptionalValue,
    TypeValue,
    Uint,
    Value,
    ValueMap,
    contains,
    equals,
    find,
    is_list,
    type_name,
    type_of,
)

if TYPE_CHECKING:
    from kubectl_dra.cel.checker import Checked
    from kubectl_dra.cel.declarations import Overload
    from kubectl_dra.cel.environment import Environment

Frame = list[Any]
Closure = Callable[[Frame], Value]


class Meter(Protocol):
    """Counts the actual cost of an evaluation; see ``kubectl_dra.cel.runtime_cost``."""

    def spend(self, units: int) -> None:
        """Add units; raises CostLimitExceeded above the limit."""
        ...

    def call(self, function: str, overloads: Sequence[Overload], values: Sequence[Value], result: Value) -> None:
        """Add the cost of a call that has happened. An error counts as result None."""
        ...


class Recorder(Protocol):
    """Told the outcome of every node; an error comes as EvaluationError."""

    def __call__(self, node_id: int, outcome: Value) -> None: ...


class InstantiationError(Exception):
    """The expression type-checks, but Kubernetes cannot make a program of it."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset


class Qualifier(NamedTuple):
    """One step of a chain: a constant key, or a closure that computes it."""

    key: Value
    compute: Closure | None
    optional: bool
    test_only: bool
    node: ast.Expression


class _Lazy:
    """A bound variable not read yet."""

    __slots__ = ("compute",)

    def __init__(self, compute: Closure) -> None:
        self.compute = compute


_CONVERSIONS = frozenset(("bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"))
_REGEX_FUNCTIONS = frozenset(("matches", "find", "findAll"))
_KEY_CLASSES = frozenset((str, int, Uint, bool, float))
_UNHASHABLE = frozenset(("bytes", "kubernetes.Semver"))


def compile_closures(
    checked: Checked,
    environment: Environment,
    meter: Meter | None = None,
    recorder: Recorder | None = None,
) -> tuple[Closure, int]:
    """The closure of a checked expression and the number of slots its frame needs.

    Raises InstantiationError. With a meter the cost is counted; with a recorder every outcome is told.
    """
    compiler = _Compiler(checked, environment, meter, recorder)
    closure = compiler.compile(checked.expression)
    return closure, compiler.slot_count


def located(error: EvaluationError, node: ast.Node) -> EvaluationError:
    """The error with the place of ``node``, unless it has a place already."""
    if error.offset is None:
        error.offset, error.start, error.end = node.position, node.start, node.end
    return error


# --- values in chains -----------------------------------------------------------------------------


def _key_text(key: Value) -> str:
    if key.__class__ is bool:
        return "true" if key else "false"
    return str(key) if key.__class__ is not Uint else str(int(key))


def _list_index(key: Value) -> int:
    """A list index; whole numbers of any numeric type will do."""
    if key.__class__ is int or key.__class__ is Uint:
        return int(key)
    if key.__class__ is float and key.is_integer():
        return int(key)
    if key.__class__ is float:
        raise EvaluationError(f"unsupported index value {key} in list")
    raise EvaluationError(f"unsupported index type '{type_name(key)}' in list")


def step(value: Value, key: Value, presence: bool) -> tuple[Value, bool]:
    """``value[key]`` and whether it exists; without ``presence`` a missing key is an error."""
    if isinstance(value, dict):
        found, result = find(value, key)
        if found:
            return result, True
    elif is_list(value):
        index = _list_index(key)
        if 0 <= index < len(value):
            return value[index], True
        if not presence:
            raise EvaluationError(f"index out of bounds: {_key_text(key)}")
    if presence:
        return None, False
    raise EvaluationError(f"no such key: {_key_text(key)}")


_UNCONVERTIBLE = {
    "kubernetes.Quantity": "*resource.Quantity",
    "kubernetes.Semver": "semver.Version",
    "net.IP": "netip.Addr",
    "net.CIDR": "netip.Prefix",
    "kubernetes.URL": "*url.URL",
}


def _native(value: Value) -> Value:
    """The content of an optional after a round trip through native Go values."""
    if value.__class__ is DefaultMap:
        return dict(value)
    if value.__class__ is TypeValue:
        return value.name
    if value.__class__ is OptionalValue:
        return _native(value.value) if value.has_value else None
    name = type_of(value).name if value.__class__ is not EvaluationError else ""
    go_type = _UNCONVERTIBLE.get(name)
    if go_type is not None:
        return EvaluationError(f"unsupported conversion to ref.Val: ({go_type}){value}")
    return value


def _as_variable(value: Value) -> Value:
    """What reading a variable gives; only optionals change."""
    if value.__class__ is OptionalValue and value.has_value:
        return OptionalValue(_native(value.value))
    return value


class _Compiler:
    def __init__(
        self, checked: Checked, environment: Environment, meter: Meter | None, recorder: Recorder | None
    ) -> None:
        self._types = checked.node_types
        self._overloads = checked.overloads
        self._environment = environment
        self._meter = meter
        self._recorder = recorder
        self._scopes: list[dict[str, int]] = []
        self._constants: dict[int, Value] = {}
        self.slot_count = 1
        self._shares_quantities = any(
            overload.id in SENSITIVE_OVERLOADS for chosen in checked.overloads.values() for overload in chosen
        )

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
        return _recorded(closure, recorder, node.id)

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
        """A variable, a chain of selections on anything, or a conditional, as a value of its own."""
        if isinstance(node, ast.Identifier) and self._types[node.id].kind == "type":
            return self._type_name(node)
        closure = self._chain(node, ())
        meter = self._meter
        if isinstance(node, ast.Select) and node.test_only:
            # The presence test costs nothing itself, only the steps do.
            def present(frame: Frame) -> Value:
                found = closure(frame)
                return found.has_value if found.__class__ is OptionalValue else found

            return present
        if meter is None or _base_is_conditional(node):
            return closure
        spend = meter.spend

        def metered(frame: Frame) -> Value:
            try:
                return closure(frame)
            finally:
                spend(1)

        return metered

    def _type_name(self, node: ast.Identifier) -> Closure:
        if self._slot(node.name) is None and node.name != "kubernetes.DRADevice":
            return self._constant(node, TypeValue(node.name))
        raise InstantiationError(f"reference to undefined type: {node.name}", node.position)

    def _chain(self, node: ast.Expression, later: tuple[Qualifier, ...]) -> Closure:
        """The closure of ``node`` followed by the steps ``later``, as one chain."""
        if isinstance(node, ast.Select):
            qualifier = Qualifier(node.field, None, False, node.test_only, node)
            return self._chain(node.operand, (qualifier, *later))
        if isinstance(node, ast.Call) and node.function in ("_[_]", "_?._", "_[?_]"):
            optional = node.function != "_[_]"
            qualifier = self._qualifier(node, node.arguments[1], optional)
            return self._chain(node.arguments[0], (qualifier, *later))
        if isinstance(node, ast.Call) and node.function == "_?_:_":
            return self._conditional(node, later)
        if isinstance(node, ast.Identifier) and self._types[node.id].kind != "type":
            slot = self._slot(node.name)
            assert slot is not None
            base = _read(slot)
            if self._recorder is not None:
                base = _recorded(base, self._recorder, node.id)
            return self._steps(base, later, node)
        return self._steps(self.compile(node), later, node)

    def _qualifier(self, node: ast.Expression, index: ast.Expression, optional: bool) -> Qualifier:
        closure = self.compile(index)
        if not self._is_constant(index):
            if self._meter is not None and not _costs_a_unit(index):
                closure = _metered_key(closure, self._meter)
            return Qualifier(None, closure, optional, False, node)
        key = self._constants[index.id]
        if key.__class__ not in _KEY_CLASSES:
            raise InstantiationError(f"invalid qualifier type: {type_name(key)}", index.position)
        return Qualifier(key, None, optional, False, node)

    def _conditional(self, node: ast.Call, later: tuple[Qualifier, ...]) -> Closure:
        condition = self.compile(node.arguments[0])
        chosen, other = [self._branch(branch, later) for branch in node.arguments[1:]]

        def conditional(frame: Frame) -> Value:
            decision = condition(frame)
            if decision is True:
                return chosen(frame)
            if decision is False:
                return other(frame)
            raise located(no_such_overload(), node)

        return conditional

    def _branch(self, node: ast.Expression, later: tuple[Qualifier, ...]) -> Closure:
        closure = self._chain(node, later)
        if self._recorder is not None and not later and _is_attribute(node):
            return _recorded(closure, self._recorder, node.id)
        return closure

    def _steps(self, base: Closure, qualifiers: tuple[Qualifier, ...], node: ast.Expression) -> Closure:
        """Apply the steps of a chain to its base."""
        if not qualifiers:
            # Optionals have a static type, except behind dyn.
            kind = self._types[node.id]
            if not (kind.is_optional or kind.is_dynamic):
                return base
            return lambda frame: _as_variable(base(frame))
        meter, recorder = self._meter, self._recorder
        simple = meter is None and recorder is None
        if simple and all(q.compute is None and not q.optional and not q.test_only for q in qualifiers):
            return _constant_steps(base, qualifiers)
        return _general_steps(base, qualifiers, meter, recorder)

    # --- calls -----------------------------------------------------------------------------------

    def _call(self, node: ast.Call) -> Closure:
        function = node.function
        if function in ("_[_]", "_?._", "_[?_]", "_?_:_"):
            return self._attribute(node)
        operands = node.arguments if node.target is None else (node.target, *node.arguments)
        closures = [self.compile(operand) for operand in operands]
        if function == "_&&_":
            return self._logic(closures, node, False)
        if function == "_||_":
            return self._logic(closures, node, True)
        if function == "@not_strictly_false":
            return self._not_strictly_false(closures[0], node)
        candidates = self._overloads.get(node.id, ())
        if function == "@in" and len(candidates) == 1 and candidates[0].id == "in_list":
            if self._is_constant(operands[1]):
                elements = self._constants[operands[1].id]
                if not elements:
                    return self._constant(node, False)
                members = _member_set(elements)
                if members is not None:
                    return self._in_set(closures[0], members, elements, node)
            return self._strict(node, closures, in_list)
        if function in ("or", "orValue") and len(closures) == 2:
            return _alternative(closures[0], closures[1], take_value=function == "orValue")
        if function == "_==_":
            return self._strict(node, closures, equals)
        if function == "_!=_":
            return self._strict(node, closures, unequal)
        if function == "@in":
            return self._strict(node, closures, in_container)
        if function == "_+_":
            return self._strict(node, closures, self._addition(node))
        if function == "cel.@mapInsert":
            return self._strict(node, closures, _map_insert)
        implementation = self._implementation(node, len(operands))
        if len(candidates) == 1:
            closures = _panicking(candidates[0].id, closures)
        if function in _REGEX_FUNCTIONS and len(operands) > 1 and self._is_constant(operands[1]):
            self._check_pattern(self._constants[operands[1].id], operands[1])
            implementation = _on_type_names(implementation)
        if function in _CONVERSIONS and len(operands) == 1 and self._is_constant(operands[0]):
            try:
                return self._constant(node, implementation(self._constants[operands[0].id]))
            except EvaluationError as error:
                raise InstantiationError(error.message, node.position) from None
        if function == "value":
            implementation = _raising(implementation)
        return self._strict(node, closures, implementation)

    def _implementation(self, node: ast.Call, count: int) -> Callable[..., Value]:
        declared = self._environment.function(node.function)
        assert declared is not None
        implementation = dispatcher(declared, self._overloads.get(node.id, ()), count)
        if self._shares_quantities and node.function == "quantity":
            return lambda text: SharedQuantity(implementation(text))
        return implementation

    def _addition(self, node: ast.Call) -> Callable[..., Value]:
        add = self._implementation(node, 2)

        def addition(left: Value, right: Value) -> Value:
            if left.__class__ is MutableList:
                if not is_list(right):
                    raise no_such_overload()
                left.extend(list(right))
                return left
            return add(left, right)

        return addition

    def _check_pattern(self, pattern: Value, node: ast.Expression) -> None:
        from kubectl_dra.cel.validate import compile_pattern

        if pattern.__class__ is not str:
            return
        try:
            compile_pattern(pattern)
        except EvaluationError as error:
            raise InstantiationError(error.message, node.position) from None

    def _strict(self, node: ast.Call, closures: list[Closure], function: Callable[..., Value]) -> Closure:
        """A call that needs the values of all operands."""
        if self._meter is not None:
            return self._metered_call(node, closures, function, self._meter)
        if len(closures) == 1:
            only = closures[0]

            def unary(frame: Frame) -> Value:
                value = only(frame)
                try:
                    return function(value)
                except EvaluationError as error:
                    raise located(error, node)  # noqa: B904

            return unary
        if len(closures) == 2:
            left, right = closures

            def binary(frame: Frame) -> Value:
                first = left(frame)
                second = right(frame)
                try:
                    return function(first, second)
                except EvaluationError as error:
                    raise located(error, node)  # noqa: B904

            return binary

        def several(frame: Frame) -> Value:
            values = [closure(frame) for closure in closures]
            try:
                return function(*values)
            except EvaluationError as error:
                raise located(error, node)  # noqa: B904

        return several

    def _metered_call(
        self, node: ast.Call, closures: list[Closure], function: Callable[..., Value], meter: Meter
    ) -> Closure:
        name, overloads = node.function, self._overloads.get(node.id, ())

        declared = self._environment.function(name)
        # cel-go stops at a failed operand in calls with many, in those with a compiled pattern, and in
        # those whose overload is not known beforehand. It charges a call that has all its operands, failed
        # or not.
        stops = (
            len(closures) > 2
            or (name in _REGEX_FUNCTIONS and self._is_constant(node.arguments[-1]))
            or (name[0].isalpha() and len(overloads) > 1 and declared is not None and not declared.implementation)
        )

        def call(frame: Frame) -> Value:
            values: list[Value] = []
            problem: EvaluationError | None = None
            for closure in closures:
                try:
                    values.append(closure(frame))
                except EvaluationError as error:
                    if error.fatal:
                        raise
                    values.append(error)
                    problem = problem or error
                    if stops:
                        break
            if problem is not None:
                if len(values) == len(closures):
                    meter.call(name, overloads, values, None)
                raise problem
            try:
                result = function(*values)
            except EvaluationError as error:
                meter.call(name, overloads, values, None)
                raise located(error, node)  # noqa: B904
            meter.call(name, overloads, values, result)
            return result

        return call

    def _in_set(
        self,
        closure: Closure,
        members: frozenset[Any],
        elements: Sequence[Value],
        node: ast.Call,
    ) -> Closure:
        def in_set(value: Value, _: Value = None) -> bool:
            if type_name(value) in _UNHASHABLE:
                raise InternalError(f"internal error: runtime error: hash of unhashable type {type_name(value)}")
            return _member_key(value) in members

        def lookup(frame: Frame) -> Value:
            # Free of charge, unlike a search in a list.
            value = closure(frame)
            try:
                return in_set(value)
            except EvaluationError as error:
                raise located(error, node)  # noqa: B904

        return lookup

    def _logic(self, closures: list[Closure], node: ast.Call, decisive: bool) -> Closure:
        """``&&`` (decisive False) and ``||`` (decisive True): the decisive value beats errors."""
        left, right = closures
        undecided = not decisive

        def logic(frame: Frame) -> Value:
            problem: EvaluationError | None = None
            try:
                value = left(frame)
                if value is decisive:
                    return decisive
                if value is not undecided:
                    problem = located(no_such_overload(), node)
            except InternalError:
                raise
            except EvaluationError as error:
                if error.fatal:
                    raise
                problem = error
            if problem is None:
                value = right(frame)
                if value is decisive or value is undecided:
                    return value
                raise located(no_such_overload(), node)
            try:
                if right(frame) is decisive:
                    return decisive
            except EvaluationError as error:
                if error.fatal:
                    raise
            raise problem

        return logic

    def _not_strictly_false(self, closure: Closure, node: ast.Call) -> Closure:
        meter = self._meter

        def not_strictly_false(frame: Frame) -> Value:
            try:
                value = closure(frame)
            except EvaluationError as error:
                if error.fatal:
                    raise
                value = None
            if meter is not None:
                meter.spend(1)
            return value is not False

        return not_strictly_false

    # --- literals --------------------------------------------------------------------------------

    def _list(self, node: ast.ListLiteral) -> Closure:
        closures = [self.compile(element) for element in node.elements]
        optional = frozenset(node.optional_indices)
        meter = self._meter

        def build(frame: Frame) -> Value:
            return [closure(frame) for closure in closures]

        def build_optional(frame: Frame) -> Value:
            result: list[Value] = []
            for index, closure in enumerate(closures):
                value = closure(frame)
                if index in optional:
                    if value.__class__ is not OptionalValue:
                        message = f"cannot initialize optional list element from non-optional value {value}"
                        raise located(EvaluationError(message), node)
                    if not value.has_value:
                        continue
                    value = _content(value)
                result.append(value)
            return result

        chosen = build_optional if optional else build
        if all(self._is_constant(element) for element in node.elements):
            return self._constant(node, chosen([]))
        return chosen if meter is None else _metered_literal(chosen, meter, 10)

    def _map(self, node: ast.MapLiteral) -> Closure:
        entries = [(self.compile(entry.key), self.compile(entry.value), entry.optional) for entry in node.entries]
        meter = self._meter

        def build(frame: Frame) -> Value:
            result: ValueMap = ValueMap()
            for key_closure, value_closure, optional in entries:
                key = _map_key(key_closure(frame))
                value = value_closure(frame)
                if optional:
                    if value.__class__ is not OptionalValue:
                        message = f"cannot initialize optional entry '{_key_text(key)}' from non-optional value {value}"
                        raise located(EvaluationError(message), node)
                    if not value.has_value:
                        result.pop(key, None)
                        continue
                    value = _content(value)
                result[key] = value
            return result

        if all(self._is_constant(e.key) and self._is_constant(e.value) for e in node.entries):
            try:
                return self._constant(node, build([]))
            except EvaluationError as error:
                raise InstantiationError(error.message, node.position) from None
        return build if meter is None else _metered_literal(build, meter, 30)

    def _struct(self, node: ast.StructLiteral) -> Closure:
        closures = [self.compile(field.value) for field in node.fields]
        meter = self._meter

        def build(frame: Frame) -> Value:
            for closure in closures:
                closure(frame)
            raise located(EvaluationError(f"unknown type '{node.type_name}'"), node)

        return build if meter is None else _metered_literal(build, meter, 40)

    # --- loops -----------------------------------------------------------------------------------

    def _comprehension(self, node: ast.Comprehension) -> Closure:
        accu_init = self.compile(node.accu_init)
        iter_range = self.compile(node.iter_range)
        accu_slot, first_slot, second_slot = self._new_slot(), self._new_slot(), self._new_slot()
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
        two = bool(node.iter_var2)

        def fold(frame: Frame) -> Value:
            iterable = iter_range(frame)
            saved = frame[accu_slot], frame[first_slot], frame[second_slot]
            frame[accu_slot] = _Lazy(accu_init)
            try:
                for first, second in items(iterable, two, node):
                    frame[first_slot] = first
                    frame[second_slot] = second
                    if constant_condition is None:
                        # An error in the condition does not end the loop.
                        try:
                            if condition(frame) is False:
                                break
                        except EvaluationError as error:
                            if error.fatal:
                                raise
                    elif constant_condition is False:
                        break
                    try:
                        frame[accu_slot] = loop_step(frame)
                    except EvaluationError as error:
                        if error.fatal:
                            raise
                        frame[accu_slot] = error
                return _frozen(result(frame))
            finally:
                frame[accu_slot], frame[first_slot], frame[second_slot] = saved

        return fold


def _base_is_conditional(node: ast.Expression) -> bool:
    """Whether a chain starts with ``?:``; cel-go charges its steps only."""
    while True:
        if isinstance(node, ast.Select):
            node = node.operand
        elif isinstance(node, ast.Call) and node.function in ("_[_]", "_?._", "_[?_]"):
            node = node.arguments[0]
        else:
            return isinstance(node, ast.Call) and node.function == "_?_:_"


def _recorded(closure: Closure, recorder: Recorder, node_id: int) -> Closure:
    def recorded(frame: Frame) -> Value:
        try:
            value = closure(frame)
        except EvaluationError as error:
            recorder(node_id, error)
            raise
        recorder(node_id, value)
        return value

    return recorded


def _costs_a_unit(node: ast.Expression) -> bool:
    """Whether evaluating a node by itself adds the unit that an index by it costs."""
    if isinstance(node, ast.Call) and node.function not in ("_[_]", "_?._", "_[?_]"):
        return False
    return isinstance(node, (ast.Call, ast.Select, ast.Identifier)) and not _base_is_conditional(node)


def _metered_key(closure: Closure, meter: Meter) -> Closure:
    def metered(frame: Frame) -> Value:
        try:
            return closure(frame)
        finally:
            meter.spend(1)

    return metered


def _is_attribute(node: ast.Expression) -> bool:
    """Whether a node is a variable or a chain on one, not a call or literal."""
    if isinstance(node, ast.Call):
        return node.function in ("_[_]", "_?._", "_[?_]", "_?_:_")
    return isinstance(node, (ast.Identifier, ast.Select))


def _metered_literal(closure: Closure, meter: Meter, units: int) -> Closure:
    def metered(frame: Frame) -> Value:
        try:
            value = closure(frame)
        except EvaluationError as error:
            if not error.fatal:
                meter.spend(units)
            raise
        meter.spend(units)
        return value

    return metered


def _alternative(optional: Closure, other: Closure, take_value: bool) -> Closure:
    """``or`` and ``orValue``: the second operand is only evaluated when the first is empty."""

    def alternative(frame: Frame) -> Value:
        value = optional(frame)
        if value.__class__ is not OptionalValue:
            return value
        if not value.has_value:
            return other(frame)
        return _content(value) if take_value else value

    return alternative


def _read(slot: int) -> Closure:
    if slot == 0:
        return lambda frame: frame[0]

    def read(frame: Frame) -> Value:
        value = frame[slot]
        if value.__class__ is _Lazy:
            try:
                value = value.compute(frame)
            except EvaluationError as error:
                if error.fatal:
                    raise
                value = error
            if value.__class__ is list and not value:
                value = MutableList()
            elif not value and isinstance(value, dict) and value.__class__ is not DefaultMap:
                value = MutableMap()
            frame[slot] = value
        if isinstance(value, EvaluationError):
            raise value
        return value

    return read


def _frozen(value: Value) -> Value:
    """A collected list or map, no longer to be changed in place."""
    if value.__class__ is MutableList:
        return list(value)
    if value.__class__ is MutableMap:
        return ValueMap(value)
    return value


def _content(optional: OptionalValue) -> Value:
    if isinstance(optional.value, EvaluationError):
        raise optional.value
    return optional.value


def _constant_steps(base: Closure, qualifiers: tuple[Qualifier, ...]) -> Closure:
    """A chain of constant keys, the common case."""
    plan = [(q.key, q.node) for q in qualifiers]
    only_strings = all(key.__class__ is str for key, _ in plan)

    def steps(frame: Frame) -> Value:
        value = base(frame)
        if value.__class__ is OptionalValue:
            return _optional_steps(value, qualifiers, frame)
        for key, node in plan:
            if only_strings and value.__class__ is dict and key in value:
                value = value[key]
                continue
            try:
                value = step(value, key, False)[0]
            except EvaluationError as error:
                raise located(error, node)  # noqa: B904
        return value

    return steps


def _optional_steps(base: OptionalValue, qualifiers: tuple[Qualifier, ...], frame: Frame) -> Value:
    return _general_steps(lambda _: base, qualifiers, None, None)(frame)


def _general_steps(
    base: Closure, qualifiers: tuple[Qualifier, ...], meter: Meter | None, recorder: Recorder | None
) -> Closure:
    def steps(frame: Frame) -> Value:
        value = base(frame)
        optional = value.__class__ is OptionalValue
        if optional:
            if not value.has_value:
                return value
            value = _native(value.value)
            if value.__class__ is EvaluationError:
                raise value
        for qualifier in qualifiers:
            optional = optional or qualifier.optional
            key, compute, node = qualifier.key, qualifier.compute, qualifier.node
            if compute is not None:
                # An index by a variable costs one unit, which its own evaluation adds.
                key = compute(frame)
                if key.__class__ not in _KEY_CLASSES:
                    raise located(EvaluationError(f"invalid qualifier type: {type_name(key)}"), node)
            try:
                if value.__class__ is OptionalValue:
                    # Only the base of a chain is unwrapped.
                    found, present = step(None, key, optional or qualifier.test_only)
                else:
                    found, present = step(value, key, optional or qualifier.test_only)
            except EvaluationError as error:
                if meter is not None and compute is None:
                    meter.spend(1)
                located(error, node)
                if recorder is not None:
                    recorder(node.id, error)
                raise
            if meter is not None and compute is None and (present or not optional):
                meter.spend(1)
            if qualifier.test_only and not optional:
                found, present = present, True
            if not present:
                if recorder is not None:
                    recorder(node.id, OPTIONAL_NONE)
                return OPTIONAL_NONE
            value = found
            if recorder is not None and node is not qualifiers[-1].node:
                recorder(node.id, OptionalValue(value) if optional else value)
        return OptionalValue(value) if optional else value

    return steps


def items(iterable: Value, two: bool, node: ast.Comprehension) -> Any:
    """What the loop variables become in turn: pairs, the second one None if there is only one variable."""
    if isinstance(iterable, dict):
        return list(iterable.items())
    if is_list(iterable):
        if two:
            return enumerate(iterable)
        return [(element, None) for element in iterable]
    if two:
        message = f"unsupported comprehension range type: {type_name(iterable)}"
    else:
        message = f"got '{type_name(iterable)}', expected iterable type"
    raise located(EvaluationError(message), node.iter_range)


def _map_key(key: Value) -> Value:
    if key.__class__ in _KEY_CLASSES or key is None:
        return key
    name = type_name(key)
    if name in ("bytes", "kubernetes.Semver"):
        raise InternalError(f"internal error: runtime error: hash of unhashable type {name}")
    try:
        hash(key)
    except TypeError:
        raise EvaluationError(f"unsupported key type: {name}") from None
    return key


def unequal(left: Value, right: Value) -> bool:
    try:
        return not equals(left, right)
    except EvaluationError as error:
        if error.fatal:
            raise
        return True


def in_list(value: Value, elements: Sequence[Value]) -> bool:
    for element in elements:
        try:
            if equals(value, element):
                return True
        except EvaluationError as error:
            if error.fatal:
                raise
    return False


def in_container(value: Value, container: Value) -> bool:
    if isinstance(container, dict):
        return contains(container, value)
    if is_list(container):
        return in_list(value, container)
    raise no_overload("@in", (value, container))


def _map_insert(mapping: Value, *more: Value) -> Value:
    """Insert one entry (key, value) or all entries of a map; a key must be new."""
    if not isinstance(mapping, dict):
        raise no_overload("cel.@mapInsert", (mapping, *more))
    entries: Mapping[Value, Value]
    if len(more) == 2:
        entries = {_map_key(more[0]): more[1]}
    elif isinstance(more[0], dict):
        entries = more[0]
    else:
        raise no_overload("cel.@mapInsert", (mapping, *more))
    result = mapping if mapping.__class__ is MutableMap else ValueMap(mapping)
    for key, value in entries.items():
        if contains(result, key):
            raise EvaluationError(f"insert failed: key {_key_text(key)} already exists")
        result[key] = value
    return result


def _panicking(overload: str, closures: list[Closure]) -> list[Closure]:
    """Operands whose cost cel-go cannot count when they are errors; it panics instead."""
    if overload == "list_distinct" or overload.endswith("_sort"):
        position, fits = 0, is_list
    elif overload.endswith("_sortByAssociatedKeys"):
        position, fits = 1, is_list
    elif overload == "list_flatten_int":
        position, fits = 1, _is_int
    else:
        return closures
    operand = closures[position]

    def checked(frame: Frame) -> Value:
        try:
            value = operand(frame)
        except EvaluationError as error:
            raise InternalError(f"internal error: {error.message}") from None
        if not fits(value):
            raise InternalError(f"internal error: unexpected {type_name(value)}")
        return value

    return [*closures[:position], checked, *closures[position + 1 :]]


def _is_int(value: Value) -> bool:
    return value.__class__ is int


def _on_type_names(implementation: Callable[..., Value]) -> Callable[..., Value]:
    """With a compiled pattern, cel-go searches whatever has a Go string inside: types by their name."""

    def search(*values: Value) -> Value:
        if values[0].__class__ is TypeValue:
            values = (values[0].name, *values[1:])
        return implementation(*values)

    return search


def _raising(implementation: Callable[..., Value]) -> Callable[..., Value]:
    """Optionals may hold an error (see ``_native``); taking it out raises it."""

    def taken(*values: Value) -> Value:
        result = implementation(*values)
        if result.__class__ is EvaluationError:
            raise result
        return result

    return taken


# --- sets of constants ----------------------------------------------------------------------------


def _member_key(value: Value) -> Any:
    """A hashable stand-in for Go's equality of values: same type and same content."""
    kind = value.__class__
    if kind is str or kind is bool or kind is int or kind is Uint:
        return (kind, value)
    if kind is float:
        return None if value != value else (kind, value)
    return None


def _member_set(elements: Sequence[Value]) -> frozenset[Any] | None:
    """The members of a constant list as a set, or None if it is not one of plain values."""
    members: set[Any] = set()
    for element in elements:
        kind = element.__class__
        if kind not in _KEY_CLASSES:
            return None
        key = _member_key(element)
        if key is not None:
            members.add(key)
        if kind is int or kind is Uint:
            members.add((float, float(element)))
            if kind is Uint and element < 1 << 63:
                members.add((int, int(element)))
            elif kind is int and element >= 0:
                members.add((Uint, Uint(element)))
        elif kind is float and element.is_integer():
            if -(2.0**63) < element < 2.0**63:
                members.add((int, int(element)))
            if 0 <= element < 2.0**64:
                members.add((Uint, Uint(int(element))))
    members.discard(None)
    return frozenset(members)
