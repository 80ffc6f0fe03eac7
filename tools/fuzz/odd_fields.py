"""Every field of every kind of the examples, to be given a value of another type."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from kubectl_dra.api.neighbour_kinds import kind_here
from tools.fuzz.examples import examples

Path = tuple[str | int, ...]
ODD: Final[tuple[Any, ...]] = ([], ["x"], {"a": [1]}, 1, True, "x", None, [["x"]])


class ExampleField(NamedTuple):
    """A field at ``path`` of an object."""

    item: dict[str, Any]
    path: Path

    @property
    def value(self) -> Any:
        """What the object has there."""
        at: Any = self.item
        for part in self.path:
            at = at[part]
        return at

    def holding(self, value: Any) -> dict[str, Any]:
        """The object with another value there."""
        odd = copy.deepcopy(self.item)
        *above, last = self.path
        at: Any = odd
        for part in above:
            at = at[part]
        at[last] = value
        return odd


def _places(value: Any, path: Path = ()) -> Iterator[Path]:
    found = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in found:
        yield (*path, key)
        yield from _places(below, (*path, key))


def fields_by_kind() -> dict[str, list[ExampleField]]:
    """By kind, each field that an object of the examples has, once; entries of a list count as one."""
    found: dict[str, list[ExampleField]] = {}
    for _, field in fields_of([items for items, _ in examples()]):
        found.setdefault(field.item["kind"], []).append(field)
    return found


def fields_of(clusters: Iterable[Sequence[Any]]) -> Iterator[tuple[Sequence[Any], ExampleField]]:
    """Each field that an object of the clusters has, once, with the cluster; entries of a list count as one."""
    seen: set[tuple[str, ...]] = set()
    for items in clusters:
        for item in items:
            for path in _places(item):
                steps = (part if isinstance(part, str) else "*" for part in path)
                shape = (kind_here(item["kind"], item["apiVersion"]), *steps)
                if shape not in seen:
                    seen.add(shape)
                    yield items, ExampleField(item, path)
