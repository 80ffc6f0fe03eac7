"""What is being typed: the words of a command line, read with the table of flags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kubectl_dra.cli.completion.kinds import SWITCH, TEXT
from kubectl_dra.cli.completion.table import ARGUMENTS, COMMANDS, FLAGS

COMMAND = "command"
FLAG = "flag"


class TypedWords(NamedTuple):
    """What the last word can become.

    ``kind`` is ``command``, ``flag``, a kind of the table, or the words themselves; ``typed`` is the part
    typed so far. ``given`` holds the preceding flags with their values, ``arguments`` the other words of
    ``command``.
    """

    kind: str | tuple[str, ...]
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
    found = {name: tuple(values) for name, values in given.items()}

    def answer(kind: str | tuple[str, ...], typed: str = current) -> TypedWords:
        return TypedWords(kind, typed, command, found, tuple(arguments))

    if pending:
        return answer(FLAGS[command][pending][0])
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


def _flag(command: str, word: str) -> tuple[str, str | tuple[str, ...]] | None:
    """The long name of a flag and its kind; None if the command has no such flag."""
    flags = FLAGS.get(command, {})
    if word in flags:
        return word, flags[word][0]
    if not word.startswith("--"):
        for name, (kind, _, short, _) in flags.items():
            if short and word.startswith(short):
                return name, kind
    return None


def _argument(command: str, position: int) -> str | tuple[str, ...]:
    for index, (kind, repeated) in enumerate(ARGUMENTS[command]):
        if index == position or repeated:
            return kind
    return TEXT
