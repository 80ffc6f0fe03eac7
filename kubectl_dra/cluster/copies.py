"""Which of two copies of an object to use, and whether they differ at all."""

from __future__ import annotations

from typing import Any, NamedTuple

from msgspec import Struct, structs
from msgspec.structs import replace

from kubectl_dra.api.meta import ObjectMeta
from kubectl_dra.api.nodes import Node
from kubectl_dra.api.slices import ResourceSlice
from kubectl_dra.api.wire import Wire
from kubectl_dra.cluster.snapshot import Event


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
    if isinstance(item, Node | Event):
        return item
    if isinstance(item, Wire):
        own: Any = item
        return structs.replace(own, metadata=essence(own.metadata))
    return replace(item, metadata=essence(item.metadata))
