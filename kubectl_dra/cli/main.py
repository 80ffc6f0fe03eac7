"""The command line: its commands, and how errors end it."""

from __future__ import annotations

import errno
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple

import typer
from typer.main import get_command

from kubectl_dra.errors import DraError, NoDRA, UndeterminedError, UsageError
from kubectl_dra.exit_codes import EXIT_ERROR, EXIT_NO, EXIT_UNDETERMINED
from kubectl_dra.safe_output import install, lines, put

TIMES: Final = 1
"""From this level on: versions, and how long it took."""
REQUESTS: Final = 6
"""From this level on: every request to the API server, with the status and the size of its answer."""
_FLAG: Final = re.compile(r"(?:-v|--v)=([0-9]{1,18})\Z|-(v+)\Z")
_LEVEL: Final = re.compile(r"[0-9]{1,2}\Z")


def taken_out(arguments: Sequence[str]) -> tuple[list[str], int]:
    """The arguments without ``-v=LEVEL`` (or -v LEVEL, -v, -vv, ...), and the highest level given, else 0."""
    rest: list[str] = []
    level = 0
    words = iter(range(len(arguments)))
    for index in words:
        word = arguments[index]
        if word == "--":
            rest += arguments[index:]
            break
        match = _FLAG.match(word)
        if match is None:
            rest.append(word)
        elif word == "-v" and _LEVEL.match("".join(arguments[index + 1 : index + 2])):
            level = max(level, int(arguments[next(words)]))
        else:
            level = max(level, int(match[1]) if match[1] else len(match[2]))
    return rest, level


def begin(level: int) -> Callable[[], None]:
    """Starts to say what is done; the result ends it."""
    if level < TIMES:
        return lambda: None
    import platform

    from kubectl_dra import __version__

    started = time.monotonic()
    _say(f"kubectl-dra {__version__}, Python {platform.python_version()} on {platform.system().lower()}")
    stop = _follow_requests() if level >= REQUESTS else lambda: None

    def end() -> None:
        stop()
        _say(f"took {time.monotonic() - started:.2f} s")

    return end


def _follow_requests() -> Callable[[], None]:
    from kubectl_dra.cluster.transport import Sent, observers

    def observe(sent: Sent) -> None:
        size = f", {sent.size:,} bytes" if sent.size else ""
        _say(f"{sent.method} {sent.url} {sent.status} in {sent.seconds * 1000:.0f} ms{size}")

    observers.append(observe)
    return lambda: observers.remove(observe)


def _say(sentence: str) -> None:
    lines((f"-v: {sentence}",), sys.stderr)


_NAMES_REFUSED: Final = (errno.ENAMETOOLONG, errno.EACCES)
"""What the system says of a name that was typed, wherever it first meets the name."""


class Command(NamedTuple):
    """A command: a summary that fits beside its name on 80 columns, its page, and which module has its flags.

    That of ``explain`` is ``ExplainFlags``, and so on.
    """

    summary: str
    page: str
    flags: str = "flags"


COMMANDS: Final = {
    "explain": Command("Say why a pod or claim gets no devices, and what would help", "pending.md", "explain"),
    "fit": Command("Say how many pods of a workload fit, and what makes room", "fit.md"),
    "share": Command("Say how pods can share devices, and write the claim for it", "sharing.md"),
    "lint": Command("Find what the API server would reject, and what fails later", "rules/README.md", "lint"),
    "migrate": Command("Rewrite manifests from device plugins or older DRA to v1", "migration.md", "migrate"),
    "devices": Command("List devices: where they are, their state, who holds them", "usage.md", "list_flags"),
    "claims": Command("List claims: devices, node, pods, and what each waits for", "usage.md", "list_flags"),
    "top": Command("Count devices by node, class, namespace, owner or claim", "usage.md", "list_flags"),
    "metrics": Command("Print or serve metrics for Prometheus: devices, and causes", "monitoring.md"),
    "drivers": Command("Say how each driver is on each node, and what ails it", "drivers.md", "list_flags"),
    "taint": Command("Keep new pods off devices, or end the pods that use them", "maintenance.md", "taint"),
    "untaint": Command("Remove the rules that taint made", "maintenance.md", "taint"),
    "snapshot": Command("Save what is read from a cluster in one file", "start.md"),
    "can": Command("Say whether you may run a command, and which role allows it", "rbac.md"),
    "demo": Command("Play an example: a pod that is stuck, and the answer", "start.md"),
    "ui": Command("Look around on one screen: fleet, pending, claims, devices", "ui.md"),
    "lsp": Command("Serve an editor: findings, meanings, proposals, fixes", "editors.md"),
    "version": Command("Print the versions, and what is modelled of each release", "versions.md"),
    "completion": Command("Print the script that completes commands in a shell", "start.md"),
}
"""Each command by its name; its help is ``help/NAME.txt``."""
_PACKAGES: Final = ("completion", "explain", "lint", "migrate", "taint")
"""Commands that are a package here, and run in its module ``run``; the others are a module.

``run`` takes the flags of the command and of the connection and returns the exit code. It raises a DraError for wrong
usage, names that do not exist, input that cannot be read and a cluster that does not answer.
"""


def root(
    context: typer.Context, version: bool = typer.Option(False, "--version", help="Print the version and exit.")
) -> None:
    if version:
        from kubectl_dra import __version__

        put(f"kubectl-dra {__version__}\n")
        raise typer.Exit
    if context.invoked_subcommand is None:
        # As kubectl does: who gives nothing asks for the help.
        put(f"{context.get_help()}\n")


def _group() -> typer.Typer:
    app = typer.Typer(
        name="kubectl dra",
        help="Kubernetes Dynamic Resource Allocation: what is wrong with a manifest, why a claim is pending, what "
        "exists. kubectl dra COMMAND --help explains a command, kubectl dra options lists the flags of all commands.",
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    )
    app.callback(invoke_without_command=True)(root)
    return app


def _with(commands: Iterable[str]) -> typer.Typer:
    """The command line with these commands and their flags."""
    from kubectl_dra.cli.command_line import as_function
    from kubectl_dra.text import DOCS

    app = _group()
    for name in commands:
        command = COMMANDS[name]
        flags = getattr(_module(command.flags), f"{name.title()}Flags")
        text = (Path(__file__).parent / "help" / f"{name}.txt").read_text(encoding="utf-8")
        page = f"Documentation: {DOCS}/{command.page}"
        declare = app.command(name, cls=flags.COMMAND, help=text, short_help=command.summary, epilog=page)
        declare(as_function(flags, partial(_perform, name)))
    return app


def _perform(name: str, flags: Any, connection: Any) -> int:
    code: int = _module(f"{name}.run" if name in _PACKAGES else name).run(flags, connection)
    return code


def _module(name: str) -> Any:
    """A module of this package. What is not called is not imported: that took longer than a small lint."""
    return import_module(f"kubectl_dra.cli.{name}")


@cache
def everything() -> typer.Typer:
    """The command line with all commands."""
    return _with(COMMANDS)


def _listing() -> typer.Typer:
    """All commands with their summaries, without their flags."""
    app = _group()
    for name, command in COMMANDS.items():
        app.command(name, help=command.summary)(lambda: None)
    return app


def run(arguments: Sequence[str]) -> int:
    """Runs the command line and returns its exit code; a traceback never reaches the user."""
    install()
    words, level = taken_out(arguments)
    end = begin(level)
    try:
        # ``help COMMAND`` as kubectl has it.
        return _run([*words[1:2], "--help"] if words[:1] == ["help"] else list(words))
    finally:
        end()


@cache
def _parser(*commands: str) -> Any:
    """The group of these commands, which parses a command line and runs it. It takes time to make."""
    return get_command(_with(commands))


def _called(arguments: Sequence[str]) -> Any:
    """The command line with the command that is called; all of them where none is."""
    if list(arguments) in ([], ["--help"], ["-h"]):
        return get_command(_listing())
    if arguments[0] in COMMANDS:
        return _parser(arguments[0])
    if arguments[0].startswith("-"):
        return _parser(*COMMANDS)
    from kubectl_dra.cli.usage_errors import unknown_command

    raise unknown_command(arguments, COMMANDS)


def _options() -> int:
    """Print the flags that all commands share, as ``kubectl options`` does."""
    from kubectl_dra.cli.command_line import connection_help

    put(
        "These flags can be passed to any command that reads a cluster; kubectl has the same ones.\n\n"
        f"{connection_help()}\n"
        "Besides, every command takes -v=LEVEL: 1 prints how long it took, 6 every request to the server.\n"
        "One that has -o json takes -o jsonpath=TEMPLATE as well, with kubectl's meaning.\n"
    )
    return 0


def _result(arguments: Sequence[str]) -> Any:
    """What the command line returns, which is an exit code unless it printed a help."""
    if any("jsonpath" in word for word in arguments):
        from kubectl_dra.cli.jsonpath import printed, taken_out

        words, template = taken_out(arguments)
        if template is not None:
            return printed(template, partial(_result, words))
    return _called(arguments)(args=list(arguments), prog_name="kubectl dra", standalone_mode=False)


def _run(arguments: Sequence[str]) -> int:
    if list(arguments) in (["options"], ["options", "--help"]):
        return _options()
    try:
        result = _result(arguments)
        # What is still in the buffer would fail at the interpreter's end, where nobody catches it.
        sys.stdout.flush()
    except SystemExit as stop:
        # The parser makes "nobody reads the output any more" a plain 1, which is an answer of ours.
        if isinstance(stop.__context__, OSError) and stop.__context__.errno == errno.EPIPE:
            _drop_output()
            return 141
        if notes := getattr(stop, "__notes__", ()):
            return _fail(f"ended: {'; '.join(notes)}", _code(stop.code))
        return _code(stop.code)
    except NoDRA as answer:
        return _told(str(answer), EXIT_NO)
    except DraError as error:
        code = EXIT_UNDETERMINED if isinstance(error, UndeterminedError) else EXIT_ERROR
        return _fail(str(error), code, error.more)
    except KeyboardInterrupt as stop:
        return _fail("; ".join(("interrupted", *getattr(stop, "__notes__", ()))), 130)
    except BrokenPipeError:
        _drop_output()
        return 141
    except (RecursionError, MemoryError) as error:
        return _fail(f"the input is nested too deeply or too large ({type(error).__name__})")
    except Exception as error:
        if wrong := _usage(error):
            return _fail(str(wrong), EXIT_ERROR, wrong.more)
        if type(error).__name__ == "Abort":
            return _fail("; ".join(("interrupted", *getattr(error.__cause__, "__notes__", ()))), 130)
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            _drop_output()
            return _fail(f"cannot write: {error.strerror}")
        if isinstance(error, OSError) and error.errno in _NAMES_REFUSED and error.filename is not None:
            return _fail(f"{os.fsdecode(error.filename)}: {error.strerror}")
        if os.environ.get("KUBECTL_DRA_DEBUG"):
            raise
        what = f"a defect of kubectl-dra: {type(error).__name__}: {error}"
        return _fail(f"{what}. Set KUBECTL_DRA_DEBUG=1 to see where, and please report it")
    return result if isinstance(result, int) else 0


def _usage(error: Exception) -> UsageError | None:
    """What is wrong with the command line, and where its help is; None for an error of another kind.

    The parser's errors are known by what they have: releases of typer differ in where their classes are.
    """
    say = getattr(error, "format_message", None)
    if say is None:
        return None
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "kubectl dra"
    said = " ".join(say().split()).rstrip(".").replace("a valid int range", "a whole number")
    if near := _choices_like(said, error):
        from kubectl_dra.text import did_you_mean

        said = f"{said}; {did_you_mean(near)}"
    return UsageError(said, (f"See '{path} --help' for usage.",))


def _choices_like(said: str, error: Exception) -> tuple[str, ...]:
    """The values of a flag or argument that are like the one that it has not."""
    from kubectl_dra.text import nearest

    known = getattr(getattr(getattr(error, "param", None), "type", None), "choices", ())
    typed, is_choice, _ = said.rpartition("' is not one of ")
    return nearest(typed.rpartition("'")[2], [str(choice) for choice in known]) if is_choice else ()


def _drop_output() -> None:
    """What is still in the buffer has nowhere to go; the interpreter would complain about it at its end."""
    # A container may have no /dev/null. A pipe holds the rest of a buffer, and its other end stays open.
    _, nowhere = os.pipe()
    os.dup2(nowhere, sys.stdout.fileno())


def _code(code: object) -> int:
    if isinstance(code, int):
        return code
    return 0 if code is None else EXIT_ERROR


def _told(sentence: str, code: int, more: Sequence[str] = ()) -> int:
    """Say how it ended, and return the exit code."""
    from kubectl_dra.report.color import tell

    # What cannot be written any more is no reason to end without the message.
    with suppress(OSError, ValueError):
        sys.stdout.flush()
    tell(sentence, more=more)
    return code


def _fail(message: str, code: int = EXIT_ERROR, more: Sequence[str] = ()) -> int:
    return _told(f"error: {message}", code, more)
