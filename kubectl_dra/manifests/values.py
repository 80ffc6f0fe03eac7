"""YAML nodes to values by kubectl's rules, which are those of sigs.k8s.io/yaml.

They are neither YAML 1.1 nor 1.2 nor PyYAML's: ``y`` and ``on`` are true, ``010`` and ``0o10`` are 8,
``12:30:45`` and dates are strings, keys become strings (``on:`` is the key "true").
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from kubectl_dra.by_identity import ByIdentity

Node = Any
"""A node of PyYAML; its classes are not imported here, because importing them takes longer than reading."""

PLAIN: Final = "?"
"""The tag of a plain scalar and of a collection without a tag."""
_TAGS: Final = "tag:yaml.org,2002:"
_STR, _BINARY, _MERGE = f"{_TAGS}str", f"{_TAGS}binary", f"{_TAGS}merge"
_RESOLVABLE: Final = frozenset(f"{_TAGS}{name}" for name in ("str", "bool", "int", "float", "null", "timestamp"))

_WORDS: Final[dict[str, Any]] = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), float("inf")),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), float("-inf")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
}
_NUMBER_START: Final = frozenset("0123456789+-.")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z", re.ASCII)
_INTEGER = re.compile(r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))\Z", re.ASCII)


class ValueProblem(Exception):
    """A ``node`` without a JSON value."""

    def __init__(self, message: str, node: Node) -> None:
        super().__init__(message)
        self.node = node


def scalar(text: str) -> Any:
    """The value of a plain scalar."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _NUMBER_START:
        return text
    plain = text.replace("_", "") if "_" in text else text
    match = _INTEGER.match(plain)
    if match is not None:
        sign, hexadecimal, binary, octal, decimal = match.groups()
        if decimal is not None:
            value = int(decimal) if len(decimal) < 21 else 1 << 64
        elif hexadecimal is not None:
            value = int(hexadecimal, 16)
        elif binary is not None:
            value = int(binary, 2)
        else:
            value = int(octal, 8)
        if value < 1 << 63 or (sign == "" and value < 1 << 64) or (sign == "-" and value == 1 << 63):
            return -value if sign == "-" else value
    if _FLOAT.match(plain):
        number = float(plain)
        return number if number not in (float("inf"), float("-inf")) else text
    return text


def key_text(value: Any, node: Node) -> str:
    """The string that a mapping key becomes. Raises ValueProblem for null."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        if value >= 1 << 63:
            raise ValueProblem("a key must be a string; this number is too large", node)
        return str(value)
    if isinstance(value, float):
        return _float_key(value)
    raise ValueProblem("a key must be a string, not null" if value is None else "a key must be a string", node)


def _float_key(value: float) -> str:
    """The shortest digits that give the same 32-bit number, with an exponent from 1e+06 upward."""
    import struct

    if value != value or value in (float("inf"), float("-inf")):
        return ".nan" if value != value else ".inf" if value > 0 else "-.inf"
    try:
        (narrow,) = struct.unpack("f", struct.pack("f", value))
    except OverflowError:
        return ".inf" if value > 0 else "-.inf"
    for digits in range(9):
        text = f"{value:.{digits}e}"
        if struct.unpack("f", struct.pack("f", float(text)))[0] == narrow:
            break
    exponent = int(text.partition("e")[2])
    if narrow == 0:
        return "-0" if text.startswith("-") else "0"
    return text if not -4 <= exponent < 6 else f"{float(text):.{max(digits - exponent, 0)}f}"


def is_merge(key: Node) -> bool:
    """Whether the key node is the merge key ``<<``."""
    return key.value == "<<" and key.tag in (PLAIN, _MERGE)


class Builder:
    """Builds the values of documents, one after another. ``strict`` refuses duplicate keys.

    ``repeated`` says whether the last document has any.
    """

    def __init__(self, strict: bool, aliases: bool) -> None:
        self.repeated = False
        self._strict = strict
        # Only for texts that have aliases: there a node can be met twice.
        self._seen: ByIdentity[Node, Any] | None = ByIdentity() if aliases else None
        self._open: set[int] = set()

    def build(self, node: Node) -> Any:
        """The node's value. Aliased nodes share one value.

        Raises:
            ValueProblem: a key that is not a string, an infinite number, a duplicate key when strict, an anchor
                that contains itself, or aliases that would expand to millions of values.
        """
        self.repeated = False
        if self._seen is None:
            return self._value(node)
        self._seen = ByIdentity()
        self._open.clear()
        value = self._value(node)
        _check_expansion(node)
        return value

    def _value(self, node: Node) -> Any:
        content = node.value
        if type(content) is str:
            return content if node.tag == _STR else self._scalar(node)
        if self._seen is None:
            return self._collection(node)
        identity = id(node)
        if identity in self._open:
            raise ValueProblem("an anchor contains itself", node)
        value = self._seen.get(node)
        if value is None:
            self._open.add(identity)
            value = self._seen.put(node, self._collection(node))
            self._open.discard(identity)
        return value

    def _collection(self, node: Node) -> Any:
        content = node.value
        if node.id == "sequence":
            return [self._value(item) for item in content]
        out: dict[str, Any] = {}
        for key, value in content:
            if key.tag == _STR:
                name = key.value
            elif type(key.value) is not str:
                raise ValueProblem("a key must be a string", key)
            elif is_merge(key):
                self._merge(value, out)
                continue
            else:
                name = key_text(self._scalar(key, key=True), key)
            if name in out:
                self.repeated = True
                if self._strict:
                    raise ValueProblem(f'the key "{name}" is there twice', key)
            out[name] = self._value(value)
        return out

    def _merge(self, node: Node, out: dict[str, Any]) -> None:
        # In a list the earlier mappings win, so they are applied last.
        parts = reversed(node.value) if node.id == "sequence" else (node,)
        for part in parts:
            if part.id != "mapping":
                raise ValueProblem("a merge key needs a mapping", part)
            out.update(self._value(part))

    def _scalar(self, node: Node, key: bool = False) -> Any:
        tag, text = node.tag, node.value
        if tag == PLAIN:
            value = scalar(text)
        elif tag == _BINARY:
            value = _decoded(text, node)
        elif tag in _RESOLVABLE and tag != _STR:
            value = _tagged(tag, text, node)
        else:
            return text
        if isinstance(value, float) and not key and not -1.8e308 < value < 1.8e308:
            raise ValueProblem(f"{text} is not a number in JSON", node)
        return value


def _tagged(tag: str, text: str, node: Node) -> Any:
    value: Any = scalar(text)
    kinds: dict[str, Any] = {
        f"{_TAGS}bool": (bool,),
        f"{_TAGS}int": (int,),
        f"{_TAGS}float": (int, float),
        f"{_TAGS}null": (type(None),),
        f"{_TAGS}timestamp": (str,),
    }
    if type(value) not in kinds[tag]:
        raise ValueProblem(f"{text!r} is not a !!{tag.removeprefix(_TAGS)}", node)
    return float(value) if kinds[tag] == (int, float) else value


def _decoded(text: str, node: Node) -> str:
    import base64
    import binascii

    try:
        return base64.b64decode("".join(text.split()), validate=True).decode("utf-8", "replace")
    except binascii.Error:
        raise ValueProblem("!!binary is not base64", node) from None


def _check_expansion(root: Node) -> None:
    """Refuse documents that are small only because aliases repeat large parts of them.

    The limits are those of kubectl's YAML library: above 400,000 values the share that may come from aliases
    falls, down to a tenth from 4,000,000 on.
    """
    sizes = ByIdentity[Node, int]()

    def size(node: Node) -> int:
        content = node.value
        if type(content) is str:
            return 1
        known = sizes.get(node)
        if known is None:
            if node.id == "sequence":
                known = 1 + sum(size(item) for item in content)
            else:
                known = 1 + sum(size(key) + size(value) for key, value in content)
            sizes.put(node, known)
        return known

    expanded = size(root)
    if expanded <= 400_000:
        return
    own = sum(1 for _ in distinct_nodes((root,)))
    allowed = 0.10 if expanded >= 4_000_000 else 0.99 - 0.89 * (expanded - 400_000) / 3_600_000
    if (expanded - own) / expanded > allowed:
        raise ValueProblem(f"aliases expand this document to {expanded:,} values", root)


def distinct_nodes(roots: Iterable[Node]) -> Iterator[Node]:
    """The nodes themselves, and all keys, values and items below them: each once, however many aliases it has."""
    seen: set[int] = set()
    stack = list(roots)
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        yield node
        if node.id == "sequence":
            stack.extend(node.value)
        elif node.id == "mapping":
            for pair in node.value:
                stack += pair
