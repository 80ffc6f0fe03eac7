"""A result for machines, as JSON or YAML."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TextIO


def write(result: Mapping[str, Any], output: str, stream: TextIO) -> None:
    """Writes a result as ``json`` or ``yaml``."""
    if output == "json":
        json.dump(result, stream, indent=2, ensure_ascii=False)
        stream.write("\n")
        return
    import yaml

    yaml.safe_dump(dict(result), stream, sort_keys=False, allow_unicode=True, width=110)
