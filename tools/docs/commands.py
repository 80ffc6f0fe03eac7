"""Writes one page per command under ``docs/commands``, from the commands themselves.

Run ``python -m tools.docs.commands docs/commands`` after a change of a command, a flag or a help text.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import typer
import typer.main

from tools.docs.folder import write

_VERBATIM = "\b\n"
_ESCAPED = re.compile(r"([*<`])")


class Command(NamedTuple):
    """A command as it is typed; ``words`` are what follows ``kubectl dra``.

    ``command`` is click's. Some releases of typer use the package and others a copy of their own, so no name of its
    type is right for all.
    """

    words: tuple[str, ...]
    command: Any
    context: typer.Context

    @property
    def name(self) -> str:
        """What is typed."""
        return " ".join(("kubectl dra", *self.words))

    @property
    def file(self) -> str:
        """The name of its page."""
        return "-".join(self.words) + ".md"


def commands() -> Iterator[Command]:
    """Every command that is not hidden, in the order of the help; a group comes before its commands."""
    from kubectl_dra.cli.main import everything

    group = typer.main.get_command(everything())
    root = typer.Context(group, info_name="kubectl dra", **group.context_settings)
    yield from _below(group, root, ())


def _below(group: Any, context: typer.Context, words: tuple[str, ...]) -> Iterator[Command]:
    if not hasattr(group, "list_commands"):
        return
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is None or command.hidden:
            continue
        inner = typer.Context(command, parent=context, info_name=name)
        yield Command((*words, name), command, inner)
        yield from _below(command, inner, (*words, name))


def pages() -> Iterator[tuple[str, str]]:
    """(file name, text) of every page, the index first."""
    yield "README.md", _index()
    for one in commands():
        yield one.file, _page(one)


def _index() -> str:
    from kubectl_dra.cli.main import everything

    root = typer.main.get_command(everything())
    lines = ["# Commands", "", _prose(root.help or ""), "", "| command | purpose |", "|---|---|"]
    for one in commands():
        purpose = _prose((one.command.help or "").split("\n\n")[0])
        lines.append(f"| [`{one.name}`]({one.file}) | {purpose} |")
    lines += [
        "",
        "Results go to standard output, everything else to standard error. `kubectl dra COMMAND` is the same as",
        "`kubectl-dra COMMAND`. These pages are generated from the commands (`make docs`).",
        "",
    ]
    return "\n".join(lines)


def _page(one: Command) -> str:
    # The help has its examples first; here what is said of the command comes before titles.
    blocks = sorted(_blocks(one.command.help or ""), key=lambda block: block.startswith("## "))
    parts = [f"# {one.name}", *blocks]
    # Before Examples and Exit codes people look for how it is called.
    usage = " ".join(one.command.collect_usage_pieces(one.context))
    parts.insert(2, f"```text\n{one.name} {usage}\n```")
    for title, kind in (("Arguments", "argument"), ("Options", "option")):
        parameters = [
            parameter for parameter in one.command.get_params(one.context) if parameter.param_type_name == kind
        ]
        if listed := list(_parameters(parameters, one.context)):
            parts += [f"## {title}", "\n".join(listed)]
    return "\n\n".join(parts) + "\n"


def _blocks(text: str) -> Iterator[str]:
    """The paragraphs of a help text as Markdown: what click leaves alone is a titled block of code."""
    for paragraph in re.split(r"\n{2,}", text.strip("\n")):
        if not paragraph.startswith(_VERBATIM):
            yield _prose(paragraph)
            continue
        title, *lines = paragraph.removeprefix(_VERBATIM).split("\n")
        language = "sh" if title.startswith("Example") else "text"
        body = "\n".join(line.removeprefix("  ") for line in lines).rstrip()
        yield f"## {title.rstrip(':')}\n\n```{language}\n{body}\n```"


def _parameters(parameters: list[Any], context: typer.Context) -> Iterator[str]:
    for parameter in parameters:
        record = parameter.get_help_record(context)
        if record is not None:
            flags, meaning = (" ".join(part.split()) for part in record)
            yield f"- `{flags}`: {_ESCAPED.sub(_escape, meaning)}" if meaning else f"- `{flags}`"


def _prose(text: str) -> str:
    return _ESCAPED.sub(_escape, " ".join(text.split()))


def _escape(match: re.Match[str]) -> str:
    return "&lt;" if match[1] == "<" else f"\\{match[1]}"


if __name__ == "__main__":
    write(Path(sys.argv[1]), pages())
