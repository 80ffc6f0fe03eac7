"""What ``demo`` does: list the examples, or play one."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kubectl_dra.cli.flags import DemoFlags
from kubectl_dra.command import CommandLine
from kubectl_dra.data.code_pages import packed
from kubectl_dra.errors import InputError
from kubectl_dra.report.color import Painter
from kubectl_dra.safe_output import put
from kubectl_dra.text import did_you_mean, nearest

if TYPE_CHECKING:
    from kubectl_dra.cli.options import ConnectionFlags


# The examples that come with the program.


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


def run(flags: DemoFlags, connection: ConnectionFlags) -> int:
    """Lists or plays; returns the exit code. Raises InputError: there is no such example."""
    known = played_examples()
    if not known:
        raise InputError("the examples were not installed with this program; they are in the repository")
    if not flags.name:
        _list(known, flags)
        return 0
    example = known.get(flags.name)
    if example is None:
        near = nearest(flags.name, known) or _sharing_a_word(flags.name, known)
        hint = f"; {did_you_mean(near)}" if near else ""
        raise InputError(f'there is no example "{flags.name}"{hint} (kubectl dra demo lists them)')
    if flags.path:
        put(f"{example.folder}\n")
        return 0
    _play(example, flags)
    return 0


def _sharing_a_word(name: str, known: Mapping[str, PlayedExample]) -> list[str]:
    """The examples that have most words of a name in theirs."""
    common = {other: len({*name.lower().split("-")} & {*other.split("-")}) for other in known}
    most = max(common.values())
    return [other for other, count in common.items() if count == most > 0][:3]


def _list(known: Mapping[str, PlayedExample], flags: DemoFlags) -> None:
    out = Painter(color=flags.color.value)
    width = max(map(len, known))
    for name, example in known.items():
        out.sentence(example.title, indent=" " * (width + 2), first=f"{name.ljust(width)}  ")
    out.write("")
    out.write("Play one: kubectl dra demo no-device-matches")


def _play(example: PlayedExample, flags: DemoFlags) -> None:
    from kubectl_dra.cli import main

    out = Painter(color=flags.color.value)
    out.write((example.title, "bold"))
    out.paragraph(example.situation)
    out.write("")
    out.write(f"$ {CommandLine(('cd', str(example.folder)))}")
    out.write((f"$ {CommandLine(('kubectl', 'dra', *example.command))}", "bold"))
    sys.stdout.flush()
    os.chdir(example.folder)
    code = main.run([*example.command, "--color", flags.color.value])
    out.write("")
    out.write(f"Exit code {code}. Other examples: kubectl dra demo")
