"""``kubectl_complete-dra``: what kubectl runs to complete ``kubectl dra <TAB>``.

It gets the words typed after ``kubectl dra``, the last one possibly empty, and prints candidates, one per
line, then a directive of kubectl's completion protocol.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

NO_FILES = ":4"
FILES = ":0"


def main() -> None:
    """Prints the candidates for the words on the command line."""
    words = sys.argv[1:] or [""]
    candidates, directive = complete(words)
    sys.stdout.write("".join(f"{candidate}\n" for candidate in candidates) + directive + "\n")


def complete(words: Sequence[str]) -> tuple[list[str], str]:
    """The candidates for the last word, and the directive: whether file names complete as well."""
    import typer.main

    from kubectl_dra.cli.main import app

    command: Any = typer.main.get_command(app)
    *typed, current = words
    for word in typed:
        found = getattr(command, "commands", {}).get(word)
        if found is not None:
            command = found
    if typed and typed[-1].startswith("-") and (values := _values(command, typed[-1])) is not None:
        return [value for value in values if value.startswith(current)], FILES if not values else NO_FILES
    names = [*getattr(command, "commands", {})] if not current.startswith("-") else [*_flags(command)]
    if not names and not current.startswith("-") and any(p.param_type_name == "argument" for p in command.params):
        if command.name == "lint":
            return [], FILES
        names = ["pod/", "claim/"]
    return sorted(name for name in names if name.startswith(current)), NO_FILES


def _flags(command: Any) -> Iterator[str]:
    for parameter in command.params:
        yield from (name for name in parameter.opts if name.startswith("--"))


def _values(command: Any, flag: str) -> list[str] | None:
    """The values of a flag that takes one: its choices, none where it is free text or a path."""
    for parameter in command.params:
        if flag in parameter.opts and not getattr(parameter, "is_flag", False):
            return [str(getattr(choice, "value", choice)) for choice in getattr(parameter.type, "choices", ())]
    return None


if __name__ == "__main__":
    main()
