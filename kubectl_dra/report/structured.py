"""A result for machines, as JSON or YAML."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TextIO


def write(result: Mapping[str, Any], output: str, stream: TextIO) -> None:
    """Write a result as ``json`` or ``yaml``."""
    if output == "json":
        stream.write(json_text(result))
        return
    import yaml

    yaml.safe_dump(dict(result), stream, sort_keys=False, allow_unicode=True, width=110)


def json_text(result: Mapping[str, Any]) -> str:
    """The result as indented JSON, ending in a newline. Much faster than the standard library on large results."""
    from msgspec import json

    try:
        return json.format(json.encode(result), indent=2).decode() + "\n"
    except (OverflowError, TypeError, UnicodeError):
        # Whole numbers beyond 64 bits, and what no text can hold.
        from json import dumps

        return dumps(result, indent=2, ensure_ascii=False) + "\n"
