"""The examples that come with the program."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from kubectl_dra.data.packed import packed


class PlayedExample(NamedTuple):
    """An example: its folder, what it is about, the situation in a paragraph, and the words behind kubectl dra."""

    folder: Path
    title: str
    situation: str
    command: tuple[str, ...]


def played_examples() -> Mapping[str, PlayedExample]:
    """All examples by name: those installed with the package, or those of the checkout that it runs from."""
    return {path.parent.name: _read(path.parent) for path in sorted(packed("examples").glob("*/command"))}


def _read(folder: Path) -> PlayedExample:
    heading, _, rest = (folder / "README.md").read_text(encoding="utf-8").partition("\n")
    words = shlex.split((folder / "command").read_text(encoding="utf-8"))
    situation = " ".join(rest.strip().split("\n\n")[0].split())
    return PlayedExample(folder, heading.removeprefix("# "), situation, tuple(words[2:]))
