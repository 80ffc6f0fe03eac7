"""What is mutated: the clusters of our examples."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

EXAMPLES: Final = Path(__file__).parents[2] / "examples" / "explain"


class Example(NamedTuple):
    """The objects of an example, and the target that its command names."""

    items: list[Any]
    target: tuple[str, ...]


@cache
def examples() -> Sequence[Example]:
    out = []
    for folder in sorted(EXAMPLES.iterdir()):
        path, command = folder / "cluster.yaml", folder / "command"
        if path.exists() and command.exists():
            words = command.read_text().split()[3:]
            target = words[: words.index("--snapshot")] if "--snapshot" in words else words[:3]
            loaded = yaml.load(path.read_text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
            # Through JSON: times become the texts that they are.
            out.append(Example(json.loads(json.dumps(loaded["items"], default=str)), tuple(target)))
    return out
