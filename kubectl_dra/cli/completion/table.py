"""The command line as data, so that completion needs neither typer nor the commands.

``make completions`` writes ``table.tsv`` from the commands: a line is a command with its summary, an argument or a flag
of one, or a value of some kind. It has tabs and is no JSON because a shell waits for the imports, too.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

Kind = str | tuple[str, ...]
"""The values of a flag or argument: a tuple of words, or the name of a kind of value."""
EITHER: Final = "|"
"""Stands in the file before each of the words that are a kind."""
REPEATABLE: Final = "+"
CONNECTION: Final = "*"
"""Stands in the file in place of a command, at flags of all commands that connect to a cluster."""


class KnownFlag(NamedTuple):
    """A flag. ``kind`` is empty where it takes no value, ``short`` where it has no short form."""

    kind: Kind
    repeatable: bool
    short: str
    summary: str


class KnownArgument(NamedTuple):
    """What an argument takes, and whether more of them may follow."""

    kind: Kind
    repeatable: bool


class CompletionTable(NamedTuple):
    """Command to its summary, its arguments and its flags by long name; the empty name is ``kubectl dra`` itself.

    ``values`` are those of a kind, with their meaning, that depend on no cluster.
    """

    commands: dict[str, str]
    arguments: dict[str, list[KnownArgument]]
    flags: dict[str, dict[str, KnownFlag]]
    values: dict[str, list[tuple[str, str]]]


def _kind(text: str) -> Kind:
    return tuple(text.split(EITHER)[1:]) if text.startswith(EITHER) else text


def _read(path: Path) -> CompletionTable:
    """Without the file nothing is proposed: a shell that completes shows no error."""
    known = CompletionTable({}, {}, {}, {})
    connecting = list[str]()
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError:
        return known
    for line in lines:
        what, name, *rest = line.split("\t")
        if what == "command":
            known.commands[name] = rest[0]
        elif what == "argument":
            known.arguments.setdefault(name, []).append(KnownArgument(_kind(rest[0]), rest[1] == REPEATABLE))
        elif what == "flag":
            flag, kind, again, short, summary = rest
            known.flags.setdefault(name, {})[flag] = KnownFlag(_kind(kind), again == REPEATABLE, short, summary)
        elif what == "connects":
            connecting.append(name)
        else:
            known.values.setdefault(name, []).append((rest[0], rest[1]))
    shared = known.flags.pop(CONNECTION, {})
    for name in connecting:
        known.flags.setdefault(name, {}).update(shared)
    return known


COMMANDS, ARGUMENTS, FLAGS, VALUES = _read(Path(__file__).with_suffix(".tsv"))
