"""The steps of a chain: selections and indexes on a variable or any other base.

After the first optional step every step is optional. An optional base is unwrapped once, at the start of the
chain.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from kubectl_dra.cel import ast
from kubectl_dra.cel.errors import ErrorKind, EvaluationError, located, no_such_overload
from kubectl_dra.cel.protobuf import FIELDS
from kubectl_dra.cel.values import (
    OPTIONAL_NONE,
    DefaultMap,
    Message,
    OptionalValue,
    TypeValue,
    Uint,
    Value,
    find,
    go_name,
    is_list,
    type_name,
    type_of,
)

if TYPE_CHECKING:
    from kubectl_dra.cel.closures.calls import Closure, Frame, Recorder
    from kubectl_dra.cel.runtime_cost import CostMeter


# Reading the content of an optional, which passes through native Go values.
#
# That conversion fails for quantities, versions, addresses and URLs. The optional then holds the error.

_UNCONVERTIBLE = {
    "kubernetes.Quantity": "*resource.Quantity",
    "kubernetes.Semver": "semver.Version",
    "net.IP": "netip.Addr",
    "net.CIDR": "netip.Prefix",
    "kubernetes.URL": "*url.URL",
}


def native(value: Value) -> Value:
    """The content of an optional after conversion to a native Go value and back."""
    if value.__class__ is DefaultMap:
        return dict(value)
    if value.__class__ is TypeValue:
        return value.name
    if value.__class__ is OptionalValue:
        return native(value.value) if value.has_value else None
    name = type_of(value).name if value.__class__ is not EvaluationError else ""
    go_type = _UNCONVERTIBLE.get(name)
    if go_type is not None:
        return EvaluationError(f"unsupported conversion to ref.Val: ({go_type}){value}")
    return value


def as_variable(value: Value) -> Value:
    """The result of reading a variable. Only optionals change."""
    if value.__class__ is OptionalValue and value.has_value:
        return OptionalValue(native(value.value))
    return value


def content(optional: OptionalValue) -> Value:
    if isinstance(optional.value, EvaluationError):
        raise optional.value
    return optional.value


NOTHING = object()
"""What an empty optional gives."""


def optional_part(value: Value, part: str, node: ast.Expression) -> Value:
    """The content of an optional that is a part of a literal, written with ``?``; NOTHING of an empty one."""
    if value.__class__ is not OptionalValue:
        message = f"cannot initialize optional {part} from non-optional value {value}"
        raise located(EvaluationError(message), node)
    return content(value) if value.has_value else NOTHING


def raising(implementation: Callable[..., Value]) -> Callable[..., Value]:
    """Raise the error that an optional may hold (see ``native``)."""

    def taken(*values: Value) -> Value:
        result = implementation(*values)
        if result.__class__ is EvaluationError:
            raise result
        return result

    return taken


def alternative(optional: Closure, other: Closure, *, take_value: bool, strict: bool) -> Closure:
    """``or`` and ``orValue``: evaluates the second operand only if the first is empty.

    A first operand that is not an optional is an error if ``strict``, and otherwise the result.
    """

    def alternative(frame: Frame) -> Value:
        value = optional(frame)
        if value.__class__ is not OptionalValue:
            if strict:
                raise no_such_overload()
            return value
        if not value.has_value:
            return other(frame)
        return content(value) if take_value else value

    return alternative


INDEXING = frozenset(("_[_]", "_?._", "_[?_]"))
"""The functions that are steps of a chain."""
KEY_CLASSES = frozenset((str, int, Uint, bool, float))
"""The classes of values that can be keys."""


class Qualifier(NamedTuple):
    """One step of a chain: a constant key, or a closure that computes it. ``free`` steps cost nothing."""

    key: Value
    compute: Closure | None
    optional: bool
    test_only: bool
    node: ast.Expression
    free: bool = False


def is_attribute(node: ast.Expression) -> bool:
    """Whether a node is a variable or a chain on one, rather than a call or literal."""
    if isinstance(node, ast.Call):
        return node.function in INDEXING or node.function == "_?_:_"
    return isinstance(node, (ast.Identifier, ast.Select))


def base_is_conditional(node: ast.Expression) -> bool:
    """Whether a chain starts with ``?:``. cel-go then charges only for its steps."""
    while True:
        if isinstance(node, ast.Select):
            node = node.operand
        elif isinstance(node, ast.Call) and node.function in INDEXING:
            node = node.arguments[0]
        else:
            return isinstance(node, ast.Call) and node.function == "_?_:_"


def key_text(key: Value) -> str:
    if key.__class__ is bool:
        return "true" if key else "false"
    return str(key) if key.__class__ is not Uint else str(int(key))


def _list_index(key: Value) -> int:
    """A list index. Whole numbers of any numeric type are accepted."""
    if key.__class__ is int or key.__class__ is Uint:
        return int(key)
    if key.__class__ is float and key.is_integer():
        return int(key)
    if key.__class__ is float:
        raise EvaluationError(f"unsupported index value {key} in list")
    raise EvaluationError(f"unsupported index type '{type_name(key)}' in list")


def step(value: Value, key: Value, presence: bool) -> tuple[Value, bool]:
    """``value[key]`` and whether it exists. Without ``presence``, a missing key is an error."""
    if isinstance(value, dict):
        exists, result = find(value, key)
        if exists:
            return result, True
    elif is_list(value):
        index = _list_index(key)
        if 0 <= index < len(value):
            return value[index], True
        if not presence:
            raise EvaluationError(f"index out of bounds: {key_text(key)}")
    elif value.__class__ is Message:
        return _message_field(value, key)
    if presence:
        return None, False
    raise EvaluationError(f"no such key: {key_text(key)}", kind=ErrorKind.NO_KEY, name=key_text(key))


def _message_field(message: Message, key: Value) -> tuple[Value, bool]:
    """A field of a protobuf message and whether it is set. Unset fields have the zero value of their type."""
    known = FIELDS[message.cel_type.name]
    if key not in known:
        raise EvaluationError(f"no such field '{key_text(key)}'")
    return message.fields.get(key, "" if known[key].kind == "string" else None), bool(message.fields.get(key))


def constant_steps(base: Closure, qualifiers: tuple[Qualifier, ...]) -> Closure:
    """A chain of constant keys; this is the common case."""
    plan = [(q.key, q.node) for q in qualifiers]
    only_strings = all(key.__class__ is str for key, _ in plan)

    def steps(frame: Frame) -> Value:
        value = base(frame)
        if value.__class__ is OptionalValue:
            return general_steps(lambda _: value, qualifiers, None, None)(frame)
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


def general_steps(
    base: Closure, qualifiers: tuple[Qualifier, ...], meter: CostMeter | None, recorder: Recorder | None
) -> Closure:
    def steps(frame: Frame) -> Value:
        value = base(frame)
        optional = value.__class__ is OptionalValue
        if optional:
            if not value.has_value:
                return value
            value = native(value.value)
            if value.__class__ is EvaluationError:
                raise value
        for qualifier in qualifiers:
            optional = optional or qualifier.optional
            key, compute, node = qualifier.key, qualifier.compute, qualifier.node
            counted = meter if not qualifier.free else None
            try:
                if compute is not None:
                    key = compute(frame)
                    if key.__class__ not in KEY_CLASSES:
                        raise located(EvaluationError(f"invalid qualifier type: {go_name(key)}"), node)
                # Only the base of a chain is unwrapped.
                owner = None if value.__class__ is OptionalValue else value
                selected, present = step(owner, key, optional or qualifier.test_only)
            except EvaluationError as error:
                # An optional step costs something only where it leads to a value.
                if counted is not None and not optional:
                    counted.spend(1)
                located(error, node)
                if recorder is not None:
                    recorder(node.id, error)
                raise
            if counted is not None and (present or not optional):
                counted.spend(1)
            if qualifier.test_only and not optional:
                selected, present = present, True
            if not present:
                if recorder is not None:
                    recorder(node.id, OPTIONAL_NONE)
                return OPTIONAL_NONE
            value = selected
            if recorder is not None and node is not qualifiers[-1].node:
                recorder(node.id, OptionalValue(value) if optional else value)
        return OptionalValue(value) if optional else value

    return steps
