"""Values remembered for the identity of objects that are too large to compare."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class ByIdentity(Generic[K, V]):
    """A value for each object. The objects live as long as this does: only living objects have an identity."""

    __slots__ = ("_kept", "_values")

    def __init__(self) -> None:
        self._values: dict[int, V] = {}
        self._kept: list[object] = []

    def get(self, item: K) -> V | None:
        """The value of an object; None if it has none."""
        return self._values.get(id(item))

    def __getitem__(self, item: K) -> V:
        """The value of an object that has one."""
        return self._values[id(item)]

    def put(self, item: K, value: V) -> V:
        """Remember the value of an object, and return it."""
        self._kept.append(item)
        self._values[id(item)] = value
        return value

    def of(self, item: K, make: Callable[[K], V]) -> V:
        """The value of an object, made if it has none yet."""
        known = self._values.get(id(item))
        return self.put(item, make(item)) if known is None else known

    def put_all(self, items: Collection[K], values: Iterable[V]) -> None:
        """Remember the values of several objects."""
        self._kept.append((*items,))
        self._values.update(zip(map(id, items), values, strict=True))

    def each(self, items: Iterable[K]) -> list[V]:
        """The values of objects that have one."""
        values = self._values
        return [values[key] for key in map(id, items)]

    def without(self, items: Sequence[K]) -> Sequence[K]:
        """Those of the objects that have no value."""
        values = self._values
        return [item for item in items if id(item) not in values] if values else items

    @property
    def by_id(self) -> dict[int, V]:
        """The values by the identities of their objects."""
        return self._values
