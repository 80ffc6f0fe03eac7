"""Which of two copies of an object to use, and whether they differ at all."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, NamedTuple, TypeVar

from msgspec import Struct, structs
from msgspec.structs import replace

from kubectl_dra.api.meta import Amount, ObjectMeta, Wire, title
from kubectl_dra.api.quantity import Quantity, QuantityError
from kubectl_dra.api.slices import ResourceSlice
from kubectl_dra.cluster.snapshot import Event
from kubectl_dra.errors import InputError


class Place(NamedTuple):
    """Where an object was read: the input, the line of its document, and its index in a List."""

    source: str
    line: int = 0
    item: int | None = None

    def __str__(self) -> str:
        line = f":{self.line}" if self.line else ""
        item = f" (item {self.item})" if self.item is not None else ""
        return f"{self.source}{line}{item}"


class Kept(Struct, frozen=True, gc=False):
    """An object that was read, with the metadata that identifies its state."""

    object: Any
    place: Place
    uid: Any
    version: Any


def newer(before: Kept, after: Kept) -> bool:
    """Whether both are states of one object and the second is the later one."""
    if not before.uid or before.uid != after.uid:
        return False
    try:
        return int(after.version) > int(before.version)
    except (TypeError, ValueError):
        return False


def essence(item: Any) -> Any:
    """The content that makes two copies differ: everything that is read except the server's bookkeeping."""
    if isinstance(item, ResourceSlice):
        return replace(item.exact(), creation_timestamp="")
    if isinstance(item, ObjectMeta):
        return structs.replace(item, uid="", resource_version="", generation=0, creation_timestamp="")
    if isinstance(item, Event):
        return item
    if isinstance(item, Wire):
        own: Any = item
        return structs.replace(own, metadata=essence(own.metadata))
    return replace(item, metadata=essence(item.metadata))


_OF_SERVER: Final = ("uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink")


class Makers:
    """The objects of manifests that make pods, as they are written, each once: ``taken``."""

    def __init__(self, namespace: str) -> None:
        """``namespace`` is that of what names none."""
        self._namespace = namespace
        self._first: dict[tuple[str, str, str, str], tuple[Any, Place]] = {}
        self.taken: list[Mapping[str, Any]] = []

    def take(self, raw: Mapping[str, Any], place: Place) -> bool:
        """Keep an object; false of one that is there already. Raises InputError if the two differ."""
        meta = {name: value for name, value in (raw.get("metadata") or {}).items() if name not in _OF_SERVER}
        meta["namespace"] = meta.get("namespace") or self._namespace
        if meta.get("name"):
            group = str(raw["apiVersion"]).rpartition("/")[0]
            key = (group, raw["kind"], str(meta["namespace"]), str(meta["name"]))
            content = {**raw, "metadata": meta, "status": None}
            before, where = self._first.setdefault(key, (content, place))
            if before != content:
                both = f"{where} and {place}"
                raise InputError(f"two different objects are called {title(content)}: {both}; leave one of them out")
            if where is not place:
                return False
        self.taken.append(raw)
        return True


# Equal parts of many objects become one object.

T = TypeVar("T")
REMEMBERED: Final = 20_000
"""Number of different objects of one kind that are remembered to find equal ones."""


class Unusual(ValueError):
    """Not of the shape that the reader reads."""


class Interner(dict[Any, Any]):
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
