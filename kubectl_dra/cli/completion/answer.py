"""``kubectl_complete-dra``: what kubectl runs to complete ``kubectl dra <TAB>``.

It gets the words typed after ``kubectl dra``, the last one possibly empty, and prints candidates, one per line, each
with a tab and its meaning where it has one, then a directive of kubectl's completion protocol. The shells' own scripts
ask for the same with ``kubectl-dra __complete``. Words that depend on no cluster are answered from a table: typer and
the commands are not imported.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence

from kubectl_dra.cli.completion import words as kinds
from kubectl_dra.cli.completion.words import COMMAND, COMMANDS, FLAG, FLAGS, VALUES, TypedWords, wanted
from kubectl_dra.safe_output import install, lines

# Bits of cobra's directive, which kubectl and our scripts read.
FILES = 0
NO_SPACE = 2
NO_FILES = 4
DIRECTORIES = 16
KEEP_ORDER = 32

_CHANGES = (
    ("count=", "another number of devices"),
    ("class=", "another DeviceClass"),
    ("selector=", "other selectors"),
    ("capacity=", "another amount of capacity"),
    ("toleration=", "one more toleration"),
    ("constraints=none", "no constraints"),
    ("free=", "a claim without its devices"),
    ("untaint=", "a device without its taints"),
)
_LISTS = ("gate", "rule")


def main() -> None:
    """Prints the candidates for the words on the command line."""
    answer(sys.argv[1:])


def answer(words: Sequence[str]) -> None:
    """Prints the candidates for the last word, and ends the process.

    A cluster that does not answer may still be waited for by a thread; it is not waited for here.
    """
    try:
        candidates, directive = complete(words or [""])
        install()
        lines((*candidates, f":{directive}"), sys.stdout)
        sys.stdout.flush()
    except OSError:
        # The shell has gone, or cannot keep what it is told; nobody is there to read a sentence.
        pass
    os._exit(0)


def complete(words: Sequence[str]) -> tuple[list[str], int]:
    """The candidates for the last word, each with a tab and its meaning where it has one, and the directive."""
    typed = wanted(words)
    if typed.kind == COMMAND:
        return _starting(COMMANDS.items(), typed.typed), NO_FILES
    if typed.kind == FLAG:
        return _flags(typed), NO_FILES
    if isinstance(typed.kind, tuple):
        return _starting(((word, "") for word in typed.kind), typed.typed), NO_FILES
    if typed.kind == kinds.FILE:
        return [], FILES
    if typed.kind == kinds.DIRECTORY:
        return [], DIRECTORIES
    if typed.kind in _LISTS:
        return _list(typed.kind, typed.typed)
    if typed.kind in VALUES:
        return _starting(VALUES[typed.kind], typed.typed), NO_FILES | KEEP_ORDER
    if typed.kind == kinds.TEXT:
        return [], NO_FILES
    return _of_cluster(typed)


def _flags(typed: TypedWords) -> list[str]:
    flags = FLAGS.get(typed.command, {})
    if len(typed.typed) == 2 and typed.typed[1] != "-":
        return [typed.typed] if any(flag.short == typed.typed for flag in flags.values()) else []
    fresh = ((name, flag.summary) for name, flag in flags.items() if flag.repeatable or name not in typed.given)
    return sorted(_starting(fresh, typed.typed))


def _list(kind: str, typed: str) -> tuple[list[str], int]:
    """Values that are given comma-separated, gates with ``=true`` or ``=false``."""
    done, comma, last = typed.rpartition(",")
    gate, equals, state = last.partition("=")
    if kind == "gate" and equals:
        return [f"{done}{comma}{gate}={word}" for word in ("true", "false") if word.startswith(state)], NO_FILES
    given = {word.partition("=")[0] for word in done.split(",")}
    ending = "=" if kind == "gate" else ""
    fresh = ((f"{done}{comma}{value}{ending}", summary) for value, summary in VALUES[kind] if value not in given)
    return _starting(fresh, typed), NO_FILES | (NO_SPACE if kind == "gate" else 0)


def _of_cluster(typed: TypedWords) -> tuple[list[str], int]:
    if typed.kind == "change" and not any(typed.typed.startswith(part) for part in ("class=", "free=", "untaint=")):
        return _starting(_CHANGES, typed.typed), NO_FILES | NO_SPACE | KEEP_ORDER
    from kubectl_dra.cli.completion.live import candidates

    names, more = candidates(typed)
    return _starting(names, typed.typed), NO_FILES | KEEP_ORDER | (NO_SPACE if more else 0)


def _starting(values: Iterable[tuple[str, str]], typed: str) -> list[str]:
    return [f"{value}\t{summary}" if summary else value for value, summary in values if value.startswith(typed)]


if __name__ == "__main__":
    main()
