"""Reading the content of an optional, which passes through native Go values.

That conversion fails for quantities, versions, addresses and URLs. The optional then holds the error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kubectl_dra.cel.errors import EvaluationError, no_such_overload
from kubectl_dra.cel.values import DefaultMap, OptionalValue, TypeValue, Value, type_of

if TYPE_CHECKING:
    from kubectl_dra.cel.closures.closure import Closure, Frame

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


def raising(implementation: Callable[..., Value]) -> Callable[..., Value]:
    """Raise the error that an optional may hold (see ``native_types``)."""

    def taken(*values: Value) -> Value:
        result = implementation(*values)
        if result.__class__ is EvaluationError:
            raise result
        return result

    return taken


def alternative(optional: Closure, other: Closure, *, take_value: bool, strict: bool) -> Closure:
    """``or`` and ``orValue``: evaluates the second operand only if the first is empty.

    A first operand that is no optional is an error if ``strict``, and the result otherwise.
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
