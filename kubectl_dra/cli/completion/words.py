"""What is being typed: the words of a command line, read with the table of flags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from kubectl_dra.cli.completion.table import ARGUMENTS, COMMANDS, FLAGS, Kind

# What a flag or an argument takes, found from the command line's own declaration.

SWITCH: Final = ""
"""A flag without a value."""
TEXT: Final = "text"
"""Free text: nothing to offer."""
FILE: Final = "file"
DIRECTORY: Final = "directory"
_BY_FLAG: Final = {
    "--namespace": "namespace",
    "--node": "node",
    "--class": "class",
    "--driver": "driver",
    "--pool": "pool",
    "--device": "device",
    "--trace": "device",
    "--request": "request",
    "--pod": "pod",
    "--claim": "claim",
    "--context": "context",
    "--cluster": "cluster",
    "--user": "user",
    "--from": "release",
    "--kubernetes-version": "release",
    "--to": "release",
    "--feature-gates": "gate",
    "--select": "rule",
    "--ignore": "rule",
    "--what-if": "change",
    "--with-node": FILE,
}
_BY_METAVAR: Final = {
    "PATH": FILE,
    "FILE": FILE,
    "MANIFEST": FILE,
    "DIR": DIRECTORY,
    "NS": "namespace",
    "NODE": "node",
    "DEVICE": "device",
    "DRIVER": "driver",
    "CLASS": "class",
    "TAINT": "taint",
    "CAUSE": "cause",
    "RULE": "rule",
}


_OWN_VALUES: Final = {"can": "asking", "demo": "example"}
"""Commands whose argument is one of a list that no cluster changes."""


def of_option(option: Any) -> Kind:
    """The kind of a click option."""
    if option.is_flag or option.count:
        return SWITCH
    if choices := _choices(option):
        return choices
    for name in option.opts:
        if name in _BY_FLAG:
            return _BY_FLAG[name]
    return _BY_METAVAR.get((option.metavar or "").strip("[]."), TEXT)


def of_argument(argument: Any, command: str) -> Kind:
    """The kind of a click argument; ``device+taint`` where devices come first, then taints."""
    if choices := _choices(argument):
        return choices
    shown = argument.metavar or argument.name.upper()
    if command in _OWN_VALUES:
        return _OWN_VALUES[command]
    if "pod/" in shown:
        return "target"
    if "NODE" in shown:
        return "node"
    devices, taints = "DEVICE" in shown, "KEY" in shown or "TAINT" in shown
    taint = "untaint" if command == "untaint" else "taint"
    if devices or taints:
        return "+".join(word for word, there in (("device", devices), (taint, taints)) if there)
    return FILE if "PATH" in shown or "FILE" in shown else TEXT


def _choices(parameter: Any) -> tuple[str, ...]:
    return tuple(str(getattr(choice, "value", choice)) for choice in getattr(parameter.type, "choices", ()))


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
