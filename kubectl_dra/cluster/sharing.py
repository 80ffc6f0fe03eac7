"""Equal parts of many objects become one object."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Final, TypeVar

from kubectl_dra.api.quantity import Quantity, QuantityError
from kubectl_dra.api.wire import Amount

T = TypeVar("T")
REMEMBERED: Final = 20_000
"""How many different objects of one kind are remembered to find equal ones."""


class Unusual(ValueError):
    """Not of the shape that the reader reads."""


class FirstOfEqual(dict[Any, Any]):
    """Returns the first of equal objects, up to a number of distinct ones."""

    def first(self, key: Any, value: T) -> T:
        known: T | None = self.get(key)
        if known is not None:
            return known
        if len(self) < REMEMBERED:
            self[key] = value
        return value

    def made(self, key: bytes, make: Callable[[bytes], T]) -> T:
        """What ``make`` makes of the bytes, made once."""
        known: T | None = self.get(key)
        return self.first(key, make(key)) if known is None else known


class CheckedAmounts:
    """Quantities, each parsed once to see whether it is valid."""

    def __init__(self) -> None:
        self._valid: set[Amount] = set()

    def check(self, amounts: Collection[Amount]) -> None:
        """Raises Unusual if one is invalid."""
        if self._valid.issuperset(amounts):
            return
        for amount in amounts:
            if amount not in self._valid:
                try:
                    Quantity.from_json(amount)
                except QuantityError:
                    raise Unusual from None
                if len(self._valid) < REMEMBERED:
                    self._valid.add(amount)
