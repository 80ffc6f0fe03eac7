"""What is being typed, read with the command line as data: completion needs neither typer nor the commands.

``make completions`` writes ``table.tsv`` from the commands: a line is a command with its summary, an argument or a flag
of one, or a value of some kind. It has tabs and is no JSON because a shell waits for the imports, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


COMMANDS, ARGUMENTS, FLAGS, VALUES = _read(Path(__file__).with_name("table.tsv"))


# What a flag or an argument takes.

SWITCH: Final = ""
"""A flag without a value."""
TEXT: Final = "text"
"""Free text: nothing to offer."""
FILE: Final = "file"
DIRECTORY: Final = "directory"

COMMAND = "command"
FLAG = "flag"


class TypedWords(NamedTuple):
    """What the last word can become.

    ``kind`` is ``command``, ``flag``, a kind of the table, or the words themselves; ``typed`` is the part
    typed so far. ``given`` holds the preceding flags with their values, ``arguments`` the other words of
    ``command``.
    """

    kind: Kind
    typed: str
    command: str
    given: Mapping[str, tuple[str, ...]]
    arguments: tuple[str, ...]


def wanted(words: Sequence[str]) -> TypedWords:
    """What the last of the words (after ``kubectl dra``) can become; it may be empty."""
    *before, current = words or [""]
    command, arguments = "", list[str]()
    given: dict[str, list[str]] = {}
    pending, closed = "", False
    for word in before:
        if pending:
            given.setdefault(pending, []).append(word)
            pending = ""
        elif word == "--" and not closed:
            closed = True
        elif word.startswith("-") and word != "-" and not closed:
            name, _, value = word.partition("=")
            flag = _flag(command, name)
            if "=" in word or flag is None or flag[1] == SWITCH:
                given.setdefault(flag[0] if flag else name, []).append(value)
            elif len(word) > 2 and not word.startswith("--"):
                given.setdefault(flag[0], []).append(word[2:])
            else:
                pending = flag[0]
        elif not command:
            command = word
        else:
            arguments.append(word)
    flags = {name: tuple(values) for name, values in given.items()}

    def answer(kind: Kind, typed: str = current) -> TypedWords:
        return TypedWords(kind, typed, command, flags, tuple(arguments))

    if pending:
        return answer(FLAGS[command][pending].kind)
    if current.startswith("-") and not closed:
        name, equals, value = current.partition("=")
        if not equals:
            return answer(FLAG)
        flag = _flag(command, name)
        return answer(TEXT if flag is None or flag[1] == SWITCH else flag[1], value)
    if not command:
        return answer(COMMAND)
    if command not in COMMANDS:
        return answer(TEXT)
    return answer(_argument(command, len(arguments)))


def _flag(command: str, word: str) -> tuple[str, Kind] | None:
    """The long name of a flag and its kind; None if the command has no such flag."""
    flags = FLAGS.get(command, {})
    if word in flags:
        return word, flags[word].kind
    if not word.startswith("--"):
        for name, flag in flags.items():
            if flag.short and word.startswith(flag.short):
                return name, flag.kind
    return None


def _argument(command: str, position: int) -> Kind:
    for index, (kind, repeated) in enumerate(ARGUMENTS.get(command, ())):
        if index == position or repeated:
            return kind
    return TEXT
