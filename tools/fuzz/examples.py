"""What is mutated: the clusters of our examples, and the manifests of our pages."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

from tools.fuzz.mutations import Pool, pool_of

ROOT: Final = Path(__file__).parents[2]
EXAMPLES: Final = ROOT / "examples" / "explain"
_BLOCK: Final = re.compile(r"^```yaml\n(.*?)^```", re.MULTILINE | re.DOTALL)
_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


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
            loaded = yaml.load(path.read_text(), Loader=_LOADER)
            # Through JSON: times become the texts that they are.
            out.append(Example(json.loads(json.dumps(loaded["items"], default=str)), tuple(target)))
    return out


@cache
def object_pool() -> Pool:
    """The values of each field in the examples."""
    return pool_of([item for example in examples() for item in example.items])


@cache
def manifests() -> Sequence[str]:
    """Texts with one or several objects: examples, and what the pages of rules and migrations show."""
    paths = [*sorted((ROOT / "examples").glob("**/*.yaml")), *sorted((ROOT / "docs").glob("**/*.md"))]
    found: list[str] = []
    for path in paths:
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".md":
            found += [block for block in _BLOCK.findall(text) if "apiVersion:" in block]
        elif len(text) < 20_000 and "apiVersion:" in text:
            found.append(text)
    return found


@cache
def documents() -> Sequence[Sequence[Any]]:
    """The objects of each manifest that is YAML."""
    out = []
    for text in manifests():
        try:
            loaded = [each for each in yaml.load_all(text, Loader=_LOADER) if isinstance(each, dict)]
        except yaml.YAMLError:
            continue
        if loaded:
            out.append(json.loads(json.dumps(loaded, default=str)))
    return out


@cache
def manifest_pool() -> Pool:
    """The values of each field in the manifests."""
    return pool_of([each for group in documents() for each in group])
