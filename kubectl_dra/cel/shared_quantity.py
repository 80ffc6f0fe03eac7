"""A device's quantity that changes during an evaluation as it does in Kubernetes.

Kubernetes holds a quantity such as 1.5Ti as a pointer to a big decimal, and ``add`` and ``sub`` write into
the decimal of their receiver, until 1.37. So ``m.isGreaterThan(m.sub(5))`` compares ``m`` with itself. Comparing a
plain quantity with such a decimal also turns the plain one into a decimal, after which ``asInteger`` fails.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubectl_dra.api.quantity import Quantity

SENSITIVE_OVERLOADS = frozenset(
    {
        "quantity_add",
        "quantity_add_int",
        "quantity_sub",
        "quantity_sub_int",
        "quantity_get_int",
        "quantity_is_integer",
    }
)
"""Only expressions with one of these can tell a shared quantity from an ordinary one."""


class SharedQuantity(Quantity):
    """A quantity that ``add`` and ``sub`` change in place."""

    __slots__ = ("_aliases",)

    def __init__(self, quantity: Quantity, aliases: list[SharedQuantity] | None = None) -> None:
        super().__init__(quantity.unscaled, quantity.exponent, quantity.format, wide=quantity.wide)
        self._aliases = [] if aliases is None else aliases
        self._aliases.append(self)

    def add(self, other: Quantity) -> Quantity:
        return self._became(super().add(other))

    def sub(self, other: Quantity) -> Quantity:
        return self._became(super().sub(other))

    def compare(self, other: Quantity) -> int:
        self._meet(other)
        return super().compare(other)

    def _meet(self, other: Quantity) -> None:
        if other.wide and not self.wide:
            self._set(self, wide=True)

    def _set(self, value: Quantity, wide: bool) -> None:
        Quantity.__init__(self, value.unscaled, value.exponent, self.format, wide=wide, computed=self.computed)

    def _became(self, outcome: Quantity) -> Quantity:
        if self.wide:
            for alias in self._aliases:
                alias._set(outcome, wide=True)
            result = SharedQuantity(outcome, self._aliases)
        else:
            result = SharedQuantity(outcome)
        Quantity.__init__(result, outcome.unscaled, outcome.exponent, outcome.format, wide=outcome.wide, computed=True)
        return result


def detached(quantity: Quantity) -> Quantity:
    """A copy that changes alone: since 1.37, ``add`` and ``sub`` leave their receiver as it is."""
    if not isinstance(quantity, SharedQuantity):
        return quantity
    copied = SharedQuantity(quantity)
    Quantity.__init__(
        copied, quantity.unscaled, quantity.exponent, quantity.format, wide=quantity.wide, computed=quantity.computed
    )
    return copied


def with_shared_quantities(device: Mapping[str, Any]) -> dict[str, Any]:
    """The device value with fresh shared quantities, for one evaluation."""
    copied = dict(device)
    capacity = copied["capacity"]
    copied["capacity"] = capacity.__class__(
        {
            domain: {name: SharedQuantity(quantity) for name, quantity in quantities.items()}
            for domain, quantities in capacity.items()
        }
    )
    return copied
