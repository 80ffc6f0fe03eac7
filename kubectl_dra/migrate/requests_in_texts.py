"""Texts inside objects that request devices: manifests and values as text, JSON patches, and Helm's parameters."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from kubectl_dra.errors import FileError
from kubectl_dra.manifests.changes import Path
from kubectl_dra.manifests.documents import Document, each
from kubectl_dra.manifests.source import Source
from kubectl_dra.migrate.prefilter import evidence, pointed, relevant
from kubectl_dra.migrate.vendors.catalogue import VendorCatalogue, is_extended

_REQUESTS: Final = ("limits", "requests")
# As helm's --set writes a path: the dots of a name are escaped.
_PARAMETER: Final = re.compile(r"(?:\A|\.)(?:limits|requests)\.(.+)\Z")
_REQUEST_LINE: Final = re.compile(r"^\s*(?:limits|requests)\s*:", re.MULTILINE)


class EmbeddedAsk(NamedTuple):
    """A text that requests devices: its place in the object, and the resources."""

    path: Path
    names: tuple[str, ...]


def embedded_asks(value: Any, catalogue: VendorCatalogue, path: Path = ()) -> Iterator[EmbeddedAsk]:
    """Every text in a value that requests known resources."""
    if isinstance(value, Mapping):
        for key, below in value.items():
            yield from embedded_asks(below, catalogue, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from embedded_asks(item, catalogue, (*path, index))
    elif isinstance(value, str):
        names = tuple(dict.fromkeys(asked(value, catalogue)))
        if names:
            yield EmbeddedAsk(path, names)


def asked(text: str, catalogue: VendorCatalogue) -> Iterator[str]:
    """The known resources that a text asks for."""
    if "/" not in text and "~1" not in text:
        return
    if "\n" not in text and text.lstrip()[:1] not in ("{", "["):
        found = _PARAMETER.search(text)
        name = found[1].replace("\\.", ".") if found is not None else ""
        if name and is_extended(name) and catalogue.moves(name):
            yield name
        yield from (name for _, name in pointed(text, catalogue))
        return
    if not relevant(text):
        return
    yield from (name for _, name in pointed(text, catalogue))
    try:
        documents = list(each(Source("<text>", text)))
    except (FileError, RecursionError):
        documents = []
    for document in documents:
        if isinstance(document, Document):
            yield from requested(document.object, catalogue)
            yield from (name for inner in embedded_asks(document.object, catalogue) for name in inner.names)
        elif _REQUEST_LINE.search(text):
            yield from (name for _, name in evidence(text, catalogue, "") if is_extended(name))
            return


def requested(value: Any, catalogue: VendorCatalogue) -> Iterator[str]:
    """Known resources in the limits and requests at any depth of a value."""
    if isinstance(value, Mapping):
        for key, below in value.items():
            if key in _REQUESTS and isinstance(below, Mapping):
                yield from (str(name) for name in below if is_extended(name) and catalogue.moves(name, below))
            else:
                yield from requested(below, catalogue)
    elif isinstance(value, list):
        for item in value:
            yield from requested(item, catalogue)
