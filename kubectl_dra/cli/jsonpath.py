"""``-o jsonpath=TEMPLATE``, with kubectl's meaning: parts of what ``-o json`` prints. Whatever has JSON takes it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from io import StringIO
from typing import Final

from kubectl_dra.errors import UsageError

_FLAG: Final = re.compile(r"(?:-o=?|--output=)jsonpath(?:=(.*))?", re.DOTALL)
_VALUE: Final = re.compile(r"jsonpath(?:=(.*))?", re.DOTALL)


def taken_out(arguments: Sequence[str]) -> tuple[list[str], str | None]:
    """The arguments with ``-o json`` instead, and the template; None where none is given."""
    rest: list[str] = []
    template = None
    for index, word in enumerate(arguments):
        if word == "--":
            return [*rest, *arguments[index:]], template
        if (match := _FLAG.fullmatch(word)) is not None:
            rest += ["-o", "json"]
        elif rest[-1:] in (["-o"], ["--output"]) and (match := _VALUE.fullmatch(word)) is not None:
            rest.append("json")
        else:
            rest.append(word)
            continue
        template = match[1] or ""
    return rest, template


def printed(template: str, run: Callable[[], int]) -> int:
    """Runs a command that prints JSON, prints what the template takes from it, and returns the command's exit code.

    Raises UsageError: no template.
    """
    from msgspec import DecodeError, json

    from kubectl_dra.report.jsonpath import filled
    from kubectl_dra.report.jsonpath import template as parsed
    from kubectl_dra.safe_output import put

    if not template:
        raise UsageError("-o jsonpath needs a template: -o jsonpath='{.items[*].name}'")
    parts = parsed(template)
    with redirect_stdout(StringIO()) as out:
        code = run()
    try:
        document = json.decode(out.getvalue())
    except DecodeError:
        # What is no JSON is an error that was told, or another answer.
        put(out.getvalue())
        return code
    put(filled(parts, document))
    return code
