"""Quantities: quantity("40Gi") and its functions."""

from __future__ import annotations

from typing import Any

from kubectl_dra.api.quantity import Quantity, QuantityError
from kubectl_dra.cel.errors import EvaluationError
from kubectl_dra.cel.functions import Function, Overload
from kubectl_dra.cel.known_sizes import STRING_TRAVERSAL_FACTOR
from kubectl_dra.cel.libraries import FORMER_QUANTITIES, QUANTITIES, REVISED
from kubectl_dra.cel.library.support import (
    function,
    member,
    nominal_actual,
    nominal_estimate,
    overload,
    scan_first_argument,
    scan_first_value,
)
from kubectl_dra.cel.types import BOOL, DOUBLE, INT, QUANTITY, STRING
from kubectl_dra.cel.values import detached

_LIBRARY = "quantities"


def _quantity(text: str) -> Quantity:
    try:
        return Quantity.parse(text)
    except QuantityError as error:
        raise EvaluationError(str(error)) from None


def _is_quantity(text: str) -> bool:
    try:
        Quantity.parse(text)
    except QuantityError:
        return False
    return True


def _sign(quantity: Quantity) -> int:
    return quantity.sign()


def _is_greater(left: Quantity, right: Quantity) -> bool:
    return left.compare(right) > 0


def _is_less(left: Quantity, right: Quantity) -> bool:
    return left.compare(right) < 0


def _compare(left: Quantity, right: Quantity) -> int:
    return left.compare(right)


def _as_float(quantity: Quantity) -> float:
    return quantity.approximate_float()


def _as_integer(quantity: Quantity) -> int:
    value = quantity.as_int64()
    if value is None:
        raise EvaluationError("cannot convert value to integer")
    return value


def _is_integer(quantity: Quantity) -> bool:
    return quantity.is_integer()


def _add(left: Quantity, right: Quantity) -> Quantity:
    try:
        return left.add(right)
    except QuantityError as error:
        raise EvaluationError(str(error)) from None


def _subtract(left: Quantity, right: Quantity) -> Quantity:
    try:
        return left.sub(right)
    except QuantityError as error:
        raise EvaluationError(str(error)) from None


def _add_to_copy(left: Quantity, right: Quantity) -> Quantity:
    return _add(detached(left), right)


def _subtract_from_copy(left: Quantity, right: Quantity) -> Quantity:
    return _subtract(detached(left), right)


def _add_int_to_copy(left: Quantity, right: int) -> Quantity:
    return _add_int(detached(left), right)


def _subtract_int_from_copy(left: Quantity, right: int) -> Quantity:
    return _subtract_int(detached(left), right)


def _add_int(left: Quantity, right: int) -> Quantity:
    return _add(left, Quantity.of(right, "DecimalExponent"))


def _subtract_int(left: Quantity, right: int) -> Quantity:
    return _subtract(left, Quantity.of(right, "DecimalExponent"))


def functions() -> list[Function]:
    nominal: dict[str, Any] = {"estimate": nominal_estimate, "actual": nominal_actual, "version": QUANTITIES}
    former, revised = nominal | {"version": FORMER_QUANTITIES}, nominal | {"version": REVISED}
    reading: dict[str, Any] = {
        "estimate": scan_first_argument(STRING_TRAVERSAL_FACTOR),
        "actual": scan_first_value(),
        "version": QUANTITIES,
    }

    def of_quantity(name: str, documentation: str, example: str, *overloads: Overload) -> Function:
        return function(name, _LIBRARY, documentation, (example,), overloads)

    return [
        of_quantity(
            "quantity",
            "The quantity a text is; suffixes as in manifests.",
            'quantity("40Gi") == quantity("40960Mi")',
            overload("string_to_quantity", (STRING,), QUANTITY, _quantity, **reading),
        ),
        of_quantity(
            "isQuantity",
            "Whether quantity() takes the text.",
            'isQuantity("1.5G") && !isQuantity("200K")',
            overload("is_quantity_string", (STRING,), BOOL, _is_quantity, **reading),
        ),
        of_quantity(
            "sign",
            "1, 0 or -1; a function, not a method.",
            'sign(quantity("-1")) == -1',
            overload("quantity_sign", (QUANTITY,), INT, _sign, **nominal),
        ),
        of_quantity(
            "isGreaterThan",
            "Whether a quantity is greater than another one.",
            'quantity("1Gi").isGreaterThan(quantity("1G"))',
            member("quantity_is_greater_than", (QUANTITY, QUANTITY), BOOL, _is_greater, **nominal),
        ),
        of_quantity(
            "isLessThan",
            "Whether a quantity is less than another one.",
            'quantity("900m").isLessThan(quantity("1"))',
            member("quantity_is_less_than", (QUANTITY, QUANTITY), BOOL, _is_less, **nominal),
        ),
        of_quantity(
            "compareTo",
            "1, 0 or -1 by order; there is no >= on quantities.",
            'quantity("2Gi").compareTo(quantity("1Gi")) >= 0',
            member("quantity_compare_to", (QUANTITY, QUANTITY), INT, _compare, **nominal),
        ),
        of_quantity(
            "asApproximateFloat",
            "The quantity as a double.",
            'quantity("1500m").asApproximateFloat() == 1.5',
            member("quantity_get_float", (QUANTITY,), DOUBLE, _as_float, **nominal),
        ),
        of_quantity(
            "asInteger",
            "The quantity as an integer; an error unless isInteger().",
            'quantity("50k").asInteger() == 50000',
            member("quantity_get_int", (QUANTITY,), INT, _as_integer, **nominal),
        ),
        of_quantity(
            "isInteger",
            "Whether asInteger() works: not for fractions, too large values, and texts such as 1.5Gi.",
            'quantity("50k").isInteger() && !quantity("1500m").isInteger()',
            member("quantity_is_integer", (QUANTITY,), BOOL, _is_integer, **nominal),
        ),
        of_quantity(
            "add",
            "The sum with a quantity or integer; compare it on the left of ==, on the right it is an error.",
            'quantity("1Gi").add(quantity("1Gi")) == quantity("2Gi")',
            member("quantity_add", (QUANTITY, QUANTITY), QUANTITY, _add, **former),
            member("quantity_add", (QUANTITY, QUANTITY), QUANTITY, _add_to_copy, **revised),
            member("quantity_add_int", (QUANTITY, INT), QUANTITY, _add_int, **former),
            member("quantity_add_int", (QUANTITY, INT), QUANTITY, _add_int_to_copy, **revised),
        ),
        of_quantity(
            "sub",
            "The difference with a quantity or integer; like a sum only good on the left of ==.",
            'quantity("1k").sub(1) == quantity("999")',
            member("quantity_sub", (QUANTITY, QUANTITY), QUANTITY, _subtract, **former),
            member("quantity_sub", (QUANTITY, QUANTITY), QUANTITY, _subtract_from_copy, **revised),
            member("quantity_sub_int", (QUANTITY, INT), QUANTITY, _subtract_int, **former),
            member("quantity_sub_int", (QUANTITY, INT), QUANTITY, _subtract_int_from_copy, **revised),
        ),
    ]
