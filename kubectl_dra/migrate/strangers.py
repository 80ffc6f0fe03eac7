"""Documents that are not Kubernetes objects: which of the resources that they name they may ask for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kubectl_dra.manifests.documents import Document
from kubectl_dra.migrate.requests_in_texts import asked
from kubectl_dra.migrate.vendors.catalogue import VendorCatalogue, is_extended


def not_mentioned(
    document: Document, seen: Sequence[tuple[int, str]], catalogue: VendorCatalogue
) -> list[tuple[int, str]]:
    """The places without those in scripts and other texts on several lines that ask for nothing."""
    texts = list(_texts(document.root)) if seen else []
    out: list[tuple[int, str]] = []
    for at, name in seen:
        inside = next((text for start, end, text in texts if start <= at < end), None)
        if inside is None or not is_extended(name) or name in asked(inside, catalogue):
            out.append((at, name))
    return out


def is_chart_test(raw: Any) -> bool:
    """Whether it is a suite of helm's plugin unittest, which checks what a chart makes of values."""
    tests = raw.get("tests") if isinstance(raw, Mapping) else None
    return isinstance(tests, list) and any(isinstance(test, Mapping) and "asserts" in test for test in tests)


def _texts(root: Any) -> Iterator[tuple[int, int, str]]:
    """Start, end and value of each block of text."""
    stack, seen = [root], set[int]()
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if node.id == "sequence":
            stack.extend(node.value)
        elif node.id == "mapping":
            for pair in node.value:
                stack.extend(pair)
        elif node.style in ("|", ">"):
            yield node.start_mark.index, node.end_mark.index, node.value
