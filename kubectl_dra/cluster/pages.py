"""One page of a list: its head, and its items as bytes, each to be decoded straight into its target struct."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import msgspec

from kubectl_dra.cluster.pod_lists import PodText


class ListMeta(msgspec.Struct, frozen=True, rename="camel"):
    """``metadata`` of a list. ``token`` requests the next page; it is empty on the last one."""

    token: str | None = msgspec.field(default=None, name="continue")
    remaining_item_count: int | None = None


class Page(msgspec.Struct, frozen=True, rename="camel"):
    """One answer to a list request."""

    kind: str = ""
    api_version: str = ""
    metadata: ListMeta = ListMeta()
    entries: list[msgspec.Raw] | None = msgspec.field(default=None, name="items")

    # Decoded at once, where a kind was asked for and all items are of its usual shape; ``data`` is the text then.
    objects: list[Any] | None = None
    data: bytes = b""

    @property
    def items(self) -> list[msgspec.Raw]:
        """The objects, which may lack apiVersion and kind."""
        return self.entries or []

    @property
    def size(self) -> int:
        """The number of items."""
        return len(self.items if self.objects is None else self.objects)

    @property
    def item_kind(self) -> str:
        """The kind of the items."""
        return self.kind.removesuffix("List")


class _PodPage(msgspec.Struct, frozen=True, rename="camel"):
    kind: str = ""
    api_version: str = ""
    metadata: ListMeta = ListMeta()
    items: list[PodText] | None = None


_decoder = msgspec.json.Decoder(Page)
_pods = msgspec.json.Decoder(_PodPage)


def page(data: bytes, *, pods: bool = False) -> Page | None:
    """Read a page, decoding ``pods`` at once; None if it is not a list of objects.

    Raises:
        ValueError: not a JSON object.
    """
    if data.lstrip()[:1] != b"{":
        raise ValueError
    if pods:
        with suppress(msgspec.ValidationError):
            whole = _pods.decode(data)
            return Page(whole.kind, whole.api_version, whole.metadata, None, whole.items or [], data)
    try:
        found = _decoder.decode(data)
    except msgspec.ValidationError:
        return None
    return found if all(bytes(memoryview(item)[:1]) == b"{" for item in found.items) else None


def whole(item: msgspec.Raw, of: Page) -> dict[str, Any]:
    """An item as JSON, with apiVersion and kind and without managedFields. Raises ValueError."""
    raw: dict[str, Any] = msgspec.json.decode(item)
    raw.setdefault("apiVersion", of.api_version)
    raw.setdefault("kind", of.item_kind)
    metadata = raw.get("metadata")
    if isinstance(metadata, dict):
        metadata.pop("managedFields", None)
    return raw
