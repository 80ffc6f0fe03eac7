"""A second reading of edited text by parsers that share no code with PyYAML, by whose nodes edits are made: ruamel.yaml
and, for JSON, the json module.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from typing import Any, Final

from kubectl_dra.errors import FileError
from kubectl_dra.manifests.documents import Document, NotAnObject, parse
from kubectl_dra.manifests.files import Rewritten
from kubectl_dra.manifests.source import Source

_MARKER: Final = re.compile(r"^(?=---(?:\s|\Z))", re.MULTILINE)
_FIRST_MARKER: Final = re.compile(r"\A((?:[ \t]*(?:#.*)?\r?\n)*)---[ \t]*\r?\n")
_DIRECTIVE: Final = re.compile(r"^%", re.MULTILINE)
_PAIR: Final = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_BLANKS: Final = re.compile(r"\s*")
_BEYOND: Final = re.compile("[\U00010000-\U0010ffff]")


def confirmed(file: Rewritten) -> bool:
    """Whether the second parser agrees with the first about the edited text, or could not read the original."""
    try:
        documents = parse(Source(file.file, file.after))
    except NotAnObject:
        # Nothing is left in it, or it is a list, as a JSON patch is.
        return not file.after.strip() or confirmed(
            file._replace(before=_below_key(file.before), after=_below_key(file.after))
        )
    except FileError:
        return False
    values = _json_values(file.after)
    if values is not None:
        return len(values) == len(documents) and all(map(_alike_json, values, (one.root for one in documents)))
    alike = read_alike(file.after, documents)
    return bool(alike) or (alike is None and read_alike(file.before, ()) is None)


class _Pairs(list[tuple[str, Any]]):
    """The keys and values of a JSON object, in order."""


def _json_values(text: str) -> list[Any] | None:
    """The values of a JSON stream, with numbers as they are written; None if it is none."""
    import json

    if not text.lstrip().startswith("{"):
        return None
    decoder = json.JSONDecoder(
        parse_int=str, parse_float=str, parse_constant=str, object_pairs_hook=_Pairs, strict=False
    )
    out, at = list[Any](), text.index("{")
    try:
        while at < len(text):
            value, end = decoder.raw_decode(text, at)
            out.append(value)
            at = _BLANKS.match(text, end).end()  # type: ignore[union-attr]
    except (ValueError, RecursionError):
        return None
    return out


def _alike_json(value: Any, root: Any) -> bool:
    """Whether a value that json has read is what PyYAML's nodes say, scalars as they are written."""
    stack = [(value, root)]
    while stack:
        value, node = stack.pop()
        if isinstance(value, _Pairs):
            if node.id != "mapping" or len(value) != len(node.value):
                return False
            for (key, below), (name, twin) in zip(value, node.value, strict=True):
                stack += ((key, name), (below, twin))
        elif isinstance(value, list):
            if node.id != "sequence" or len(value) != len(node.value):
                return False
            stack += zip(value, node.value, strict=True)
        else:
            words = "null" if value is None else str(value).lower() if isinstance(value, bool) else value
            if node.id != "scalar" or (
                words != node.value and _BEYOND.sub("??", words) != _BEYOND.sub("??", node.value)
            ):
                return False
    return True


def _below_key(text: str) -> str:
    """The one document of a text as the value of a key."""
    lines = _FIRST_MARKER.sub(r"\1#\n", text).splitlines(keepends=True)
    return "text:\n" + "".join(f"  {line}" for line in lines)


def read_alike(text: str, documents: Sequence[Document]) -> bool | None:
    """Whether the second parser finds the same mappings, lists and scalars in the text as its documents have.

    Scalars are compared as written, because YAML 1.2 and kubectl disagree about which are numbers. None if
    the second parser cannot read the text.
    """
    from ruamel.yaml import YAML
    from ruamel.yaml.error import ReusedAnchorWarning, YAMLError

    read: dict[str, list[Any]] = {}
    try:
        with warnings.catch_warnings():
            # PyYAML is told the same, as kubectl is: an anchor defined twice is no mistake.
            warnings.simplefilter("ignore", ReusedAnchorWarning)
            for part in _parts(text):
                if part not in read:
                    # Documents that are written alike are read once: it is slow.
                    found = YAML(typ="safe", pure=True).compose_all(part)
                    read[part] = [root for root in found if root is not None and _has(root)]
    except (YAMLError, RecursionError, ValueError):
        return None
    roots = [root for part in _parts(text) for root in read[part]]
    return len(roots) == len(documents) and all(
        _alike(root, document.root) for root, document in zip(roots, documents, strict=True)
    )


def _parts(text: str) -> list[str]:
    """The text, cut before each line that begins a document, where no directive says how to read what follows."""
    return [text] if _DIRECTIVE.search(text) else _MARKER.split(text)


def _has(root: Any) -> bool:
    """Whether a document has content."""
    return not (root.id == "scalar" and not root.style and root.value in ("", "~", "null", "Null", "NULL"))


def _alike(one: Any, other: Any) -> bool:
    stack, seen = [(one, other)], set()
    while stack:
        left, right = stack.pop()
        if (id(left), id(right)) in seen:
            continue
        seen.add((id(left), id(right)))
        if left.id != right.id or len(left.value) != len(right.value):
            return False
        if left.id == "scalar":
            # ``documents`` reads such a pair of escapes in JSON as two question marks.
            if left.value != right.value and _PAIR.sub("??", left.value) != right.value:
                return False
        elif left.id == "sequence":
            stack += zip(left.value, right.value, strict=True)
        else:
            for pair, twin in zip(left.value, right.value, strict=True):
                stack += zip(pair, twin, strict=True)
    return True
