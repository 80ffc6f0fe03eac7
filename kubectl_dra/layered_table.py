"""A table that differs in a few entries from another one, and shares the rest with it."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, Mapping, ValuesView
from typing import Any, Final, TypeVar

K = TypeVar("K")
V = TypeVar("V")

_FEWEST: Final = 64
_SHARE: Final = 8
"""A table is written out anew once more than this part of it has changed, and more than a few entries."""


def layered(base: Mapping[K, V], changes: Mapping[K, V | None]) -> Mapping[K, V]:
    """The table after the changes; None takes an entry out.

    The order is that of a dict: an entry that is replaced keeps its place, a new one comes last.
    """
    if not changes:
        return base
    below, changed, gone = base, dict[K, V](), set[K]()
    if isinstance(base, Layered):
        below, changed, gone = base._below, dict(base._changed), set(base._gone)
    for key, value in changes.items():
        if value is not None:
            changed[key] = value
            continue
        changed.pop(key, None)
        if key in below:
            gone.add(key)
    table = Layered(below, changed, gone)
    return table if len(changed) + len(gone) <= max(_FEWEST, len(below) // _SHARE) else dict(table.items())


class Layered(Mapping[K, V]):
    """What ``layered_table`` gives: entries of ``below`` that are ``gone`` or ``changed``, and further ones."""

    __slots__ = ("_below", "_changed", "_gone")

    def __init__(self, below: Mapping[K, V], changed: Mapping[K, V], gone: set[K]) -> None:
        self._below = below
        self._changed = changed
        self._gone = gone

    def __getitem__(self, key: K) -> V:
        if key in self._changed:
            return self._changed[key]
        if key in self._gone:
            raise KeyError(key)
        return self._below[key]

    def get(self, key: K, default: Any = None) -> Any:
        if key in self._changed:
            return self._changed[key]
        return default if key in self._gone else self._below.get(key, default)

    def __contains__(self, key: object) -> bool:
        return key in self._changed or (key not in self._gone and key in self._below)

    def __len__(self) -> int:
        # Counted here: most tables are made to be looked up in, and changed again.
        below, gone = self._below, self._gone
        return len(below) - len(gone) + sum(key in gone or key not in below for key in self._changed)

    def __iter__(self) -> Iterator[K]:
        return (key for key, _ in self._entries())

    def items(self) -> ItemsView[K, V]:
        return _Items(self)

    def values(self) -> ValuesView[V]:
        return _Values(self)

    def _entries(self) -> Iterator[tuple[K, V]]:
        below, changed, gone = self._below, self._changed, self._gone
        for key, value in below.items():
            if key not in gone:
                yield key, changed.get(key, value)
        for key, value in changed.items():
            # One that was taken out and came back has lost its place.
            if key in gone or key not in below:
                yield key, value


# Views that look up no entry by itself.
class _Items(ItemsView[K, V]):
    _mapping: Layered[K, V]

    def __iter__(self) -> Iterator[tuple[K, V]]:
        return self._mapping._entries()


class _Values(ValuesView[V]):
    _mapping: Layered[object, V]

    def __iter__(self) -> Iterator[V]:
        return (value for _, value in self._mapping._entries())
