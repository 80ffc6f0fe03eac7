"""Quantities: quantity("40Gi") and its functions."""

from __future__ import annotations

from collections.abc import Callable

from kubectl_dra.api.quantity import Quantity, QuantityError
from kubectl_dra.cel.errors import EvaluationError
from kubectl_dra.cel.functions import Function, Overload
from kubectl_dra.cel.libraries import FORMER_QUANTITIES, QUANTITIES, REVISED
from kubectl_dra.cel.library.support import (
    NOMINAL,
    accepted,
    comes_after,
    comes_before,
    declared,
    member,
    overload,
    parsing,
    reading,
)
from kubectl_dra.cel.types import BOOL, DOUBLE, INT, QUANTITY, STRING
from kubectl_dra.cel.values import detached


def _as_integer(quantity: Quantity) -> int:
    value = quantity.as_int64()
    if value is None:
        raise EvaluationError("cannot convert value to integer")
    return value


def _computing(
    compute: Callable[[Quantity, Quantity], Quantity], *, whole: bool, copied: bool
) -> Callable[..., Quantity]:
    """A sum or difference with a quantity or a ``whole`` number; ``copied`` leaves the receiver as it is."""

    def computed(left: Quantity, right: Quantity | int) -> Quantity:
        left = detached(left) if copied else left
        try:
            return compute(left, Quantity.of(right, "DecimalExponent") if whole else right)  # type: ignore[arg-type]
        except QuantityError as error:
            raise EvaluationError(str(error)) from None

    return computed


def _sums(id: str, compute: Callable[[Quantity, Quantity], Quantity]) -> list[Overload]:
    return [
        member(
            id + suffix, (QUANTITY, of), QUANTITY, _computing(compute, whole=of is INT, copied=copied), NOMINAL, version
        )
        for suffix, of in (("", QUANTITY), ("_int", INT))
        for copied, version in ((False, FORMER_QUANTITIES), (True, REVISED))
    ]


def functions() -> list[Function]:
    one, two = (QUANTITY,), (QUANTITY, QUANTITY)
    parse, accepts = parsing(Quantity.parse, QuantityError), accepted(Quantity.parse, QuantityError)
    return declared(
        "quantities",
        {
            "quantity": [overload("string_to_quantity", (STRING,), QUANTITY, parse, reading())],
            "isQuantity": [overload("is_quantity_string", (STRING,), BOOL, accepts, reading())],
            "sign": [overload("quantity_sign", one, INT, Quantity.sign, NOMINAL)],
            "isGreaterThan": [member("quantity_is_greater_than", two, BOOL, comes_after, NOMINAL)],
            "isLessThan": [member("quantity_is_less_than", two, BOOL, comes_before, NOMINAL)],
            "compareTo": [member("quantity_compare_to", two, INT, lambda left, right: left.compare(right), NOMINAL)],
            "asApproximateFloat": [member("quantity_get_float", one, DOUBLE, Quantity.approximate_float, NOMINAL)],
            "asInteger": [member("quantity_get_int", one, INT, _as_integer, NOMINAL)],
            "isInteger": [member("quantity_is_integer", one, BOOL, Quantity.is_integer, NOMINAL)],
            "add": _sums("quantity_add", lambda left, right: left.add(right)),
            "sub": _sums("quantity_sub", lambda left, right: left.sub(right)),
        },
        version=QUANTITIES,
    )
