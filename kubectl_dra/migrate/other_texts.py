"""Devices that are requested by texts: manifests as text, Helm's parameters, names elsewhere, and placeholders."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from kubectl_dra.api.schema import FieldPath
from kubectl_dra.errors import FileError
from kubectl_dra.manifests.changes import leaves
from kubectl_dra.manifests.charts import chart_of
from kubectl_dra.manifests.documents import Document, each_document
from kubectl_dra.manifests.source import ACTION, HELM_ACTION, Source
from kubectl_dra.manifests.values import distinct_nodes
from kubectl_dra.migrate.reading import evidence, named_in, pointed, relevant
from kubectl_dra.migrate.vendors.catalogue import VendorCatalogue, is_extended

_REQUESTS: Final = ("limits", "requests")
# As helm's --set writes a path: the dots of a name are escaped.
_PARAMETER: Final = re.compile(r"(?:\A|\.)(?:limits|requests)\.(.+)\Z")
_KIND: Final = re.compile(r"^[ \t{-]*[\"']?kind[\"']?\s*:", re.MULTILINE)
_REQUEST_LINE: Final = re.compile(r"^\s*(?:limits|requests)\s*:", re.MULTILINE)


class EmbeddedAsk(NamedTuple):
    """A text that requests devices: its place in the object, and the resources."""

    path: FieldPath
    names: tuple[str, ...]


def embedded_asks(value: Any, catalogue: VendorCatalogue) -> Iterator[EmbeddedAsk]:
    """Every text in a mapping or list that requests known resources."""
    for path, text in leaves(value):
        names = tuple(dict.fromkeys(asked(text, catalogue))) if isinstance(text, str) else ()
        if names:
            yield EmbeddedAsk(path, names)


def asked(text: str, catalogue: VendorCatalogue) -> Iterator[str]:
    """The known resources that a text asks for."""
    if "/" not in text and "~1" not in text:
        return
    if "\n" not in text and text.lstrip()[:1] not in ("{", "["):
        match = _PARAMETER.search(text)
        name = match[1].replace("\\.", ".") if match is not None else ""
        if name and is_extended(name) and catalogue.moves(name):
            yield name
        yield from (name for _, name in pointed(text, catalogue))
        return
    if not relevant(text):
        return
    yield from (name for _, name in pointed(text, catalogue))
    try:
        documents = list(each_document(Source("<text>", text)))
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


# Known resources that an object names in other places than requests of pods: settings, arguments, texts.

OTHER_USES: Final = frozenset(
    ("apiVersion", "kind", "tolerations", "annotations", "labels", "nodeSelector", "affinity", "taints", "image")
)
"""Fields with values that look like resource names but request nothing."""
# The keys of taints and labels, wherever expressions and tolerations stand.
_LABELS: Final = frozenset(("key", "matchLabels", "nodeLabels", "nodeTaints"))


def named(raw: Mapping[str, Any], catalogue: VendorCatalogue) -> Iterator[EmbeddedAsk]:
    """Every field of an object that is named after a known resource, and every value that names some."""
    for field, value in raw.items():
        if field not in ("metadata", "status"):
            yield from _named(value, (field,), catalogue)


def _named(value: Any, path: FieldPath, catalogue: VendorCatalogue) -> Iterator[EmbeddedAsk]:
    if isinstance(value, Mapping):
        for key, below in value.items():
            if key in OTHER_USES or key in _LABELS:
                continue
            if is_extended(key):
                if below not in (0, "0") and catalogue.moves(key, value):
                    yield EmbeddedAsk((*path, key), (key,))
            elif key == "requests" and isinstance(below, Mapping) and isinstance(value.get("limits"), Mapping):
                # A request beside its limit is the same one.
                rest = {name: amount for name, amount in below.items() if name not in value["limits"]}
                yield from _named(rest, (*path, key), catalogue)
            else:
                yield from _named(below, (*path, key), catalogue)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _named(item, (*path, index), catalogue)
    elif isinstance(value, str) and ("/" in value or "~1" in value):
        # A parameter of Helm has the dots of a name escaped.
        escaped = asked(value, catalogue) if "\\" in value and "\n" not in value else ()
        names = dict.fromkeys((*escaped, *named_in(value, catalogue)))
        if names:
            yield EmbeddedAsk(path, tuple(names))


# Placeholders of templaters in place of values, and how each kind is filled in.

_THEN: Final = "then write the placeholder where the number is now: count in the ResourceClaimTemplate, without quotes"
_ITS_TOOL: Final = "pipe what its tool makes of it into kubectl dra migrate -"


class Placeholder(NamedTuple):
    """What a placeholder of one kind looks like, and a command that migrates what it stands for."""

    pattern: re.Pattern[str]
    command: str


_KINDS: Final = (
    Placeholder(HELM_ACTION, "helm template CHART | kubectl dra migrate -"),
    Placeholder(ACTION, _ITS_TOOL),
    Placeholder(re.compile(r"\$\([A-Za-z_]\w*\)"), "kubectl kustomize DIR | kubectl dra migrate -"),
    Placeholder(re.compile(r"\$\{[^}\n]+\}|\$[A-Za-z_]\w*"), "envsubst < FILE | kubectl dra migrate -"),
    Placeholder(
        re.compile(r"@[A-Za-z_]\w*@|%[A-Za-z_]\w*%|__[A-Za-z]\w*__|<[A-Za-z][\w -]*>"),
        _ITS_TOOL,
    ),
)


def fill_in(text: str, name: str = "") -> str:
    """What to do about the placeholder in a value or line of a file; empty if there is none."""
    for kind in _KINDS:
        if kind.pattern.search(text):
            command = kind.command.replace("CHART", shlex.quote(chart)) if (chart := chart_of(name)) else kind.command
            command = command.replace("FILE", shlex.quote(name)) if Path(name).is_file() else command
            return f"migrate it filled in ({command}), {_THEN}"
    return ""


# Documents that are not Kubernetes objects: which of the resources that they name they may ask for.


def not_mentioned(
    document: Document, seen: Sequence[tuple[int, str]], catalogue: VendorCatalogue
) -> list[tuple[int, str]]:
    """The places without those that ask for nothing: in labels and the like, in scripts and other texts of lines."""
    texts = list(_texts(document.root)) if seen else []
    uses = list(_other_uses(document.root)) if seen else []
    out: list[tuple[int, str]] = []
    for at, name in seen:
        if any(start <= at < end for start, end in uses):
            continue
        inside = next((text for start, end, text in texts if start <= at < end), None)
        if inside is None or not is_extended(name) or name in asked(inside, catalogue):
            out.append((at, name))
    return out


def has_kind(text: str) -> bool:
    """Whether an object may be in a text; a template without a kind is part of one, or values of a chart."""
    return _KIND.search(text) is not None


def is_chart_test(raw: Any) -> bool:
    """Whether it is a suite of helm's plugin unittest, which checks what a chart makes of values."""
    tests = raw.get("tests") if isinstance(raw, Mapping) else None
    return isinstance(tests, list) and any(isinstance(test, Mapping) and "asserts" in test for test in tests)


def _texts(root: Any) -> Iterator[tuple[int, int, str]]:
    """Start, end and value of each block of text."""
    for node in distinct_nodes((root,)):
        if node.id == "scalar" and node.style in ("|", ">"):
            yield node.start_mark.index, node.end_mark.index, node.value


def _other_uses(root: Any) -> Iterator[tuple[int, int]]:
    """Start and end of each value in which names request nothing."""
    for node in distinct_nodes((root,)):
        for key, value in node.value if node.id == "mapping" else ():
            if key.value in OTHER_USES or key.value in _LABELS:
                yield value.start_mark.index, value.end_mark.index
