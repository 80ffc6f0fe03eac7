"""A compiled expression: its type, its cost, and its evaluation on devices."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from kubectl_dra.api.limits import MAX_EXPRESSION_COST
from kubectl_dra.cel import ast
from kubectl_dra.cel.checker import Checked, check
from kubectl_dra.cel.closures import InstantiationError, compile_closures
from kubectl_dra.cel.device import Attribute, DeviceInput, as_attribute, device_value
from kubectl_dra.cel.errors import (
    CompileError,
    ErrorKind,
    EvaluationError,
    InternalError,
    Issue,
    Phase,
    compilation_failed,
    refused,
)
from kubectl_dra.cel.lexer import MAX_DEPTH, ParseError, with_room
from kubectl_dra.cel.parser import parse
from kubectl_dra.cel.protobuf import refusal
from kubectl_dra.cel.types import BOOL, CelType
from kubectl_dra.cel.validate import validate
from kubectl_dra.cel.values import (
    OptionalValue,
    Value,
    type_name,
    with_shared_quantities,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from kubectl_dra.cel.closures.calls import Closure
    from kubectl_dra.cel.columns import Column, DeviceTable, KeyAnswer, Part
    from kubectl_dra.cel.environment import Environment
    from kubectl_dra.cel.runtime_cost import TraceEntry


def compile_expression(environment: Environment, text: str, *, derived: bool = False) -> Program:
    """Compile an expression. An invalid one raises CompileError, and nothing else.

    It is a selector, or ``derived``: an attribute, whose value may have any type that attributes have.

    The limits on length and cost (``api.schema``) are the API server's and are not checked here.
    """
    # A JSON or YAML decoder of Kubernetes would have replaced lone surrogates, too.
    source = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    try:
        return with_room(lambda: _compiled(environment, source, derived))
    except RecursionError:
        issue = Issue(f"expression recursion limit exceeded: {MAX_DEPTH}")
        raise CompileError((issue,), "compilation failed: " + issue.message) from None


def _compiled(environment: Environment, source: str, derived: bool) -> Program:
    try:
        tree = parse(source, environment.macros(), escapes=environment.escapes_fields)
    except ParseError as error:
        raise compilation_failed(error.issues, source) from None
    checked = check(tree.expression, environment)
    if checked.issues:
        raise compilation_failed(checked.issues, source)
    issues = validate(checked, environment)
    if issues:
        raise compilation_failed(issues, source)
    output = checked.node_types[checked.expression.id]
    wanted = ("bool", "any", "dyn") if environment.list_attributes else ("bool", "any")
    if derived:
        if not _is_attribute(output, lists=environment.list_attributes):
            lists = " or a list of these scalars" if environment.list_attributes else ""
            scalars = "a primitive scalar (string, integer, boolean, semver)"
            message = f"must evaluate to {scalars}{lists}, not {output.declared_name()}"
            raise refused(message, source)
    elif output.nullable or output.kind not in wanted:
        message = f"must evaluate to bool or the unknown type, not {output.declared_name()}"
        raise refused(message, source)
    program = Program(environment, ast.Ast(checked.expression, source, tree.macro_calls), checked)
    try:
        program.prepare()
    except InstantiationError as error:
        message = f"program instantiation failed: {error.message}"
        raise refused(message, source, error.offset, Phase.INSTANTIATION) from None
    return program


def _is_attribute(output: CelType, *, lists: bool) -> bool:
    """Whether a type is one of those that attributes of devices have."""
    if lists and output.kind == "list":
        return _is_attribute(output.parameters[0], lists=False)
    known = output.kind in ("any", "bool", "dyn", "int", "string") or output.name == "kubernetes.Semver"
    return known and not output.nullable


class Program:
    """A compiled selector. Immutable to its users; costly parts are built on demand."""

    def __init__(
        self, environment: Environment, tree: ast.Ast, checked: Checked, span: tuple[int, int] | None = None
    ) -> None:
        self.environment = environment
        self.ast = tree
        self.start, self.end = span or (0, len(tree.source))
        self._checked = checked
        self._closure: tuple[Closure, int] | None = None
        self._metered: tuple[Closure, int] | None = None
        self._meter: Any = None
        self._terms: tuple[Program, ...] = ()

    def __repr__(self) -> str:
        return f"Program({self.expression!r})"

    @property
    def expression(self) -> str:
        """The text of the expression, or of this term of it."""
        return self.ast.source[self.start : self.end]

    @property
    def output_type(self) -> CelType:
        """bool, or any or dyn for an attribute value used by itself."""
        return self._checked.node_types[self._checked.expression.id]

    def type_of(self, node: ast.Expression) -> CelType:
        """The type of a part of the expression, as the checker knows it."""
        return self._checked.node_types[node.id]

    @cached_property
    def max_cost(self) -> int:
        """The worst-case cost, which the API server limits to 1,000,000."""
        from kubectl_dra.cel.cost import estimate_cost

        checked = self._checked
        return with_room(lambda: estimate_cost(checked.expression, checked.node_types, checked.overloads)).max

    @cached_property
    def _shares_quantities(self) -> bool:
        return self._checked.shares_quantities

    @cached_property
    def columns(self) -> frozenset[Column] | None:
        """What the expression can read of a device; None if that is known only at run time."""
        from kubectl_dra.cel.columns import columns_of

        return with_room(lambda: columns_of(self.ast.expression))

    # --- evaluation ------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Build the closures. Raises InstantiationError if Kubernetes could not build a program either."""
        if self._closure is None:
            self._closure = with_room(lambda: compile_closures(self._checked, self.environment))

    def evaluate(self, device: DeviceInput) -> bool:
        """Whether the device matches. Raises EvaluationError."""
        return self.evaluate_value(device_value(device, self.environment.converts_lists()))

    def evaluate_value(self, value: Value) -> bool:
        """Like ``evaluate``, for a device already converted by ``device.device_value``."""
        value = self.evaluate_raw(value)
        return value if value is True or value is False else as_bool(value)

    def derived(self, device: DeviceInput) -> Attribute:
        """The attribute that a program compiled as ``derived`` gives for a device. Raises EvaluationError."""
        return as_attribute(self.evaluate_raw(device_value(device, self.environment.converts_lists())))

    def evaluate_devices(self, devices: Sequence[DeviceInput] | DeviceTable) -> list[bool | EvaluationError]:
        """The outcome per device. Devices that the expression cannot tell apart are evaluated once.

        Pass one DeviceTable to all expressions that are evaluated on the same devices.
        """
        from kubectl_dra.cel.columns import DeviceTable

        table = devices if isinstance(devices, DeviceTable) else DeviceTable(devices)
        lists = self.environment.converts_lists()
        first = self._first_terms()
        complete = len(first) == len(self.terms())
        return table.evaluate([term._part() for term in first], self._part(), lists, complete=complete)

    @property
    def cheap(self) -> bool:
        """Whether parts of it can be answered by themselves: it never costs too much, and no part changes another."""
        return self.max_cost <= MAX_EXPRESSION_COST and not self._shares_quantities

    @property
    def by_key(self) -> KeyAnswer | None:
        """The answer as a function of the only column that is read; None where only evaluation tells."""
        if not self.cheap:
            return None
        from kubectl_dra.cel.columns import key_answer

        return key_answer(self.ast.expression, self.columns)

    def _part(self) -> Part:
        from kubectl_dra.cel.columns import Part

        return Part(self.columns, self._outcome, self.by_key)

    def _first_terms(self) -> tuple[Program, ...]:
        """The leading terms worth evaluating before the whole because they read less of a device.

        All terms, if every term but the last is worth it. None if terms cannot be evaluated separately:
        because of the cost of the whole, or because one term can notice that another changed a quantity.
        """
        terms, columns = self.terms(), self.columns
        if len(terms) == 1 or not self.cheap:
            return ()
        for number, term in enumerate(terms):
            read = term.columns
            less = read is not None and (columns is None or read < columns)
            if term.output_type != BOOL or read is None or not (less or (number and term is terms[-1])):
                return terms[:number]
        return terms

    def _outcome(self, value: Value) -> bool | EvaluationError:
        try:
            return self.evaluate_value(value)
        except EvaluationError as error:
            return error

    def evaluate_raw(self, value: Value) -> Value:
        """The value of the expression, of any type. Raises EvaluationError."""
        if self.max_cost > MAX_EXPRESSION_COST:
            return self.actual_cost(value)[0]
        self.prepare()
        assert self._closure is not None
        closure, slots = self._closure
        if not self._shares_quantities:
            try:
                return closure([value, *[None] * (slots - 1)])
            except RecursionError:
                pass  # Again below, with room.
            except EvaluationError:
                raise
            except Exception as error:
                raise InternalError(f"internal error: {error!r}") from error
        return self._run(closure, slots, value)

    def actual_cost(self, value: Value) -> tuple[Value, int]:
        """The value and the cost of computing it. Raises EvaluationError, also above the cost limit."""
        from kubectl_dra.cel.runtime_cost import CostMeter

        if self._metered is None:
            meter = CostMeter()
            self._meter = meter
            self._metered = with_room(lambda: compile_closures(self._checked, self.environment, meter))
        closure, slots = self._metered
        result = self._run(closure, slots, value, self._meter.reset)
        return result, self._meter.cost

    @property
    def last_cost(self) -> int:
        """The cost of the last ``actual_cost`` call, even if it raised."""
        return 0 if self._meter is None else int(self._meter.cost)

    def _run(self, closure: Closure, slots: int, value: Value, restart: Callable[[], None] | None = None) -> Value:
        """Evaluate a closure. Every failure becomes an EvaluationError."""

        def once() -> Value:
            if restart is not None:
                restart()
            device = with_shared_quantities(value) if self._shares_quantities else value
            return closure([device, *[None] * (slots - 1)])

        try:
            return with_room(once)
        except EvaluationError:
            raise
        except RecursionError:
            raise EvaluationError("expression is nested too deeply to be evaluated") from None
        except Exception as error:
            raise InternalError(f"internal error: {error!r}") from error

    # --- explanations ----------------------------------------------------------------------------

    def trace(self, device: DeviceInput) -> tuple[TraceEntry, ...]:
        """The values of all sub-expressions on a device, the whole expression first.

        Raises EvaluationError only if the device itself cannot be converted.
        """
        from kubectl_dra.cel.runtime_cost import Recording, entries

        value = device_value(device, self.environment.converts_lists())
        recording = Recording()
        meter = None
        if self.max_cost > MAX_EXPRESSION_COST:
            from kubectl_dra.cel.runtime_cost import CostMeter

            meter = CostMeter()

        def restart() -> None:
            recording.clear()
            if meter is not None:
                meter.reset()

        closure, slots = with_room(lambda: compile_closures(self._checked, self.environment, meter, recording))
        try:
            self._run(closure, slots, value, restart)
        except EvaluationError as error:
            recording.outcomes.setdefault(self.ast.expression.id, [error])
        return entries(self.ast, recording)

    def terms(self) -> tuple[Program, ...]:
        """The operands of the top-level ``&&``, in order, each as a program with its own span.

        Terms below ``cel.bind`` keep the binding. An expression without ``&&`` is its own single term.
        """
        if not self._terms:
            terms: list[Program] = []
            _collect_terms(self._checked.expression, (), terms, self)
            self._terms = tuple(terms) if len(terms) > 1 else (self,)
        return self._terms

    def part(self, node: ast.Expression) -> Program:
        """A part of the expression that is outside of loops, as a program with its own span."""
        return _term(node, (), self)


def _collect_terms(
    node: ast.Expression, bindings: tuple[ast.Comprehension, ...], terms: list[Program], whole: Program
) -> None:
    pending: list[tuple[ast.Expression, tuple[ast.Comprehension, ...]]] = [(node, bindings)]
    while pending:
        node, bindings = pending.pop()
        if isinstance(node, ast.Call) and node.function == "_&&_":
            pending.extend([(part, bindings) for part in reversed(node.arguments)])
        elif isinstance(node, ast.Comprehension) and node.iter_var == "#unused":
            pending.append((node.result, (*bindings, node)))
        else:
            terms.append(_term(node, bindings, whole))


def _term(node: ast.Expression, bindings: tuple[ast.Comprehension, ...], whole: Program) -> Program:
    expression: ast.Expression = node
    node_types = whole._checked.node_types
    if bindings:
        node_types = dict(node_types)
    for binding in reversed(bindings):
        expression = replace(binding, result=expression)
        assert isinstance(node_types, dict)
        node_types[binding.id] = node_types[node.id]
    checked = Checked(expression, node_types, whole._checked.overloads, ())
    tree = ast.Ast(expression, whole.ast.source, whole.ast.macro_calls)
    return Program(whole.environment, tree, checked, (node.start, node.end))


def as_bool(value: Value) -> bool:
    """The outcome of a selector for the scheduler. Raises EvaluationError for non-boolean values."""
    if value is True or value is False:
        return bool(value)
    if isinstance(value, OptionalValue):
        if value.has_value and (value.value is True or value.value is False):
            return bool(value.value)
        reason = refusal(value.value, "bool").message if value.has_value else "optional.none() dereference"
    else:
        reason = refusal(value, "bool").message
    text = f"CEL result of type {type_name(value)} could not be converted to bool: {reason}"
    raise EvaluationError(text, kind=ErrorKind.NOT_BOOL)
