"""Commands as typer runs them: flags from structs, help in groups, and the flags of a question for what follows it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache
from inspect import Parameter, Signature, signature
from typing import Annotated, Any, ClassVar, Final, TypeVar, get_args, get_origin

import typer
import typer.main
from msgspec import Struct
from typer.core import TyperCommand

from kubectl_dra.cli.options import REQUEST_TIMEOUT, Complete, ConnectionFlags, Snapshots
from kubectl_dra.command import LIVE, Argv, ClusterFlags, CommandLine
from kubectl_dra.errors import DraError, FlagValueError, NoKubeconfig, UsageError

F = TypeVar("F", bound="CommandFlags")
S = TypeVar("S", bound=Struct)
_WHERE: Final = ("kubeconfig", "context", "cluster", "user", "server", "as_user")
"""The connection flags that a follow-up command needs to reach the same cluster."""
_LISTED_ONCE: Final = (
    "cluster",
    "user",
    "server",
    "token",
    "as_user",
    "as_groups",
    "as_uid",
    "insecure_skip_tls_verify",
    "tls_server_name",
    "request_timeout",
)
"""The connection flags that the help of a command leaves to ``kubectl dra options``."""
_FIRST: Final = ("manifests", "namespace", "all_namespaces", "node", "nodes", "labels")
"""The flags that stand before a command's own in its help, by their fields: those that everybody knows from kubectl."""
_GROUPS: Final = {
    "Output": ("output", "watch", "full", "sort", "limit", "no_headers", "color"),
    "The cluster": (
        "context",
        "kubeconfig",
        "live",
        "snapshots",
        "complete",
        "at",
        "release",
        "gates",
        "scheduler_config",
    ),
}
"""The flags that stand behind them, in the same order in each help."""
_TRUE: Final = ("1", "t", "T", "TRUE", "true", "True")
_FALSE: Final = ("0", "f", "F", "FALSE", "false", "False")
"""Values that kubectl accepts as false for a switch."""


def _rank(parameter: Any) -> int:
    """The place of a parameter in a help: arguments, what is known from kubectl, own flags, output, the cluster."""
    if parameter.param_type_name == "argument":
        return -1
    if parameter.name in _FIRST:
        return _FIRST.index(parameter.name)
    last = [*(name for names in _GROUPS.values() for name in names), *_LISTED_ONCE]
    return len(_FIRST) + (1 + last.index(parameter.name) if parameter.name in last else 0)


class DocumentedCommand(TyperCommand):
    """A command that says at first where its documentation is: typer would say it last, and break the address."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, those that several commands have in one order."""
        return sorted(super().get_params(ctx), key=_rank)

    def format_usage(self, ctx: Any, formatter: Any) -> None:
        """Write how it is called, and below it that address."""
        super().format_usage(ctx, formatter)
        formatter.write(f"{self.epilog}\n")

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        """Write the help, no line of which is wider than the terminal."""
        from kubectl_dra.cli.folded_help import folded

        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(folded(self.help or "", formatter.width - formatter.current_indent))

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write nothing."""


class ClusterCommand(DocumentedCommand):
    """A command with the connection flags after its own; the context's ``obj`` has their values.

    ``params`` are click's. Some releases of typer use the package and others a copy of their own, so no name
    of their type is right for all.
    """

    request_timeout: ClassVar[str] = REQUEST_TIMEOUT
    """The default time limit of one request."""

    def __init__(self, *arguments: Any, params: list[Any], **settings: Any) -> None:
        super().__init__(*arguments, params=[*params, *_connecting(self.request_timeout).params], **settings)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the command's own flags, those of its output, and how a cluster is chosen; ``options`` has the rest."""
        from kubectl_dra.cli.folded_help import choices_folded

        groups: dict[str, list[tuple[str, str]]] = {title: [] for title in ("Arguments", "Options", *_GROUPS)}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx) if parameter.name not in _LISTED_ONCE else None
            if record is not None:
                own = "Arguments" if parameter.param_type_name == "argument" else "Options"
                groups[next((title for title, names in _GROUPS.items() if parameter.name in names), own)].append(
                    (choices_folded(record[0], formatter.width), record[1])
                )
        for title, records in groups.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)
        formatter.write('\nUse "kubectl dra options" for the other flags that choose and reach the cluster.\n')

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments, including kubectl's forms: -o=json, --live=true, -A=false.

        Raises UsageError: words that the command has no argument for.
        """
        ctx.allow_extra_args = True
        try:
            super().parse_args(ctx, list(self._plain(args)))
        except Exception as error:
            # The parser does not say whose option lacks its value; the error is to name this command's help.
            if getattr(error, "ctx", ctx) is None:
                error.ctx = ctx  # type: ignore[attr-defined]
            if (why := self._why_not(args, error)) is not None:
                raise why from None
            raise
        if ctx.args and not ctx.resilient_parsing:
            from kubectl_dra.cli.usage_errors import unexpected_words

            raise unexpected_words(
                self.name or "",
                ctx.args,
                files=any("-f" in parameter.opts for parameter in self.params),
                namespace=ctx.params.get("namespace") or "",
                where=self._cluster(ctx.params),
            )
        rest: list[str] = ctx.args
        return rest

    def _why_not(self, words: list[str], error: Exception) -> UsageError | None:
        """Why a flag of kubectl is not there, or a value of its ``-o``."""
        param: Any = getattr(error, "param", None)
        unknown = getattr(error, "option_name", "")
        if param is None and not unknown:
            return None
        from kubectl_dra.cli.usage_errors import why_not

        if unknown or "-o" not in getattr(param, "opts", ()):
            return why_not(self.name or "", words, unknown, ())
        return why_not(self.name or "", words, "-o", tuple(getattr(param.type, "choices", ())))

    def _plain(self, words: list[str]) -> Iterator[str]:
        options: dict[str, Any] = {
            name: option for option in self.params if option.param_type_name == "option" for name in option.opts
        }
        if any(word.startswith("--sort-by") for word in words):
            from kubectl_dra.cli.usage_errors import sorted_by

            words = sorted_by(words)
        for index, word in enumerate(words):
            if word == "--":
                yield from words[index:]
                return
            name, equals, value = word.partition("=")
            if not equals or name not in options:
                yield word
            elif options[name].is_flag:
                if value in _TRUE:
                    yield name
                elif value not in _FALSE:
                    yield word
            elif name.startswith("--"):
                yield word
            else:
                yield from (name, value)

    def invoke(self, ctx: Any) -> Any:
        """Combine the connection flags into one value and call the command with the rest."""
        ctx.obj = self._connection(ctx.params)
        where = self._cluster(ctx.params)
        for flag in _connecting(self.request_timeout).params:
            del ctx.params[flag.name]
        try:
            return super().invoke(ctx)
        except DraError as error:
            told: DraError = error
            if isinstance(error, NoKubeconfig) and "snapshots" in ctx.params:
                told = NoKubeconfig(f"{error}, or read a snapshot with --snapshot")
            told.more = (*error.more, *_asked_of(where, error.commands))
            told.commands = ()
            raise told from None

    def _connection(self, given: Mapping[str, Any]) -> ConnectionFlags:
        flags = _connecting(self.request_timeout)
        connection: ConnectionFlags = flags.callback(**{flag.name: given[flag.name] for flag in flags.params})
        return connection

    def _cluster(self, given: Mapping[str, Any]) -> ClusterFlags:
        """The flags among those given that choose the cluster or snapshot."""
        saved = ReadingFlags(tuple(given.get("snapshots") or ()), bool(given.get("complete")))
        return cluster_flags(saved, self._connection(given))


def _asked_of(where: ClusterFlags, commands: Sequence[tuple[str, CommandLine]]) -> Iterator[str]:
    """Commands as lines, each after its label, for the cluster or snapshot of the question."""
    for label, command in commands:
        if not command.misnamed:
            asked = where.asks(command)
            live = f" ({LIVE})" if where.saved and "--snapshot" not in asked.argv else ""
            warned = f", {command.effect.warning.lower()}" if command.effect.changes else ""
            yield f"{label}{warned}{live}: {asked}"


class CommandFlags(Struct, frozen=True):
    """Base of the flags and arguments of a command.

    A field is annotated with its ``typer.Option`` or ``typer.Argument``; it is a tuple if it may be repeated.
    """

    COMMAND: ClassVar[type[TyperCommand]] = ClusterCommand


class ReadingFlags(CommandFlags, frozen=True):
    """Base of the flags of a command that reads saved objects, if some are named."""

    snapshots: Snapshots = ()
    complete: Complete = False


class SchedulingFlags(ReadingFlags, frozen=True):
    """Base of the flags of a command that asks the scheduler about a cluster: of what it has no flag, this is so."""

    # No annotations: these are no fields, and commands that have such a flag declare it.
    manifests = gates = tuple[str, ...]()
    namespace = scheduler_config = release = ""


def as_function(flags: type[F], run: Callable[[F, ConnectionFlags], int]) -> Callable[..., None]:
    """A command as typer takes it; ``run`` returns the exit code."""

    def command(context: typer.Context, **given: Any) -> None:
        function = _made(flags, given)
        if getattr(function, "complete", False) and not getattr(function, "snapshots", ()):
            raise UsageError("--complete is about saved objects: add --snapshot FILE")
        raise typer.Exit(run(function, context.obj or ConnectionFlags()))

    own = Parameter("context", Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    _declare(command, [own, *_parameters(flags)])
    return command


def _parameters(flags: type[object]) -> Iterator[Parameter]:
    """The fields of a struct as parameters of a function, in types that typer understands."""
    for field in signature(flags, eval_str=True).parameters.values():
        declared = field.replace(kind=Parameter.KEYWORD_ONLY)
        kind, option = get_args(field.annotation)
        if get_origin(kind) is tuple:
            of = get_args(kind)[0]
            declared = declared.replace(annotation=Annotated[list[of] | None, option], default=None)  # type: ignore[valid-type]
        yield declared


def _declare(function: Callable[..., Any], parameters: list[Parameter]) -> None:
    """Declare these parameters to typer."""
    function.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    function.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}


def _made(flags: type[S], given: Mapping[str, Any]) -> S:
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}
    return flags(**{name: value for name, value in values.items() if value is not None})


def connection_given(given: Mapping[str, Sequence[str]]) -> ConnectionFlags:
    """The connection flags of an unfinished command line: flag to its values, of which the last counts."""
    values: dict[str, Any] = {}
    for parameter in _connecting(REQUEST_TIMEOUT).params:
        for flag in parameter.opts:
            if flag in given:
                values[parameter.name] = (
                    True if parameter.is_flag else list(given[flag]) if parameter.multiple else given[flag][-1]
                )
    return _made(ConnectionFlags, values)


def cluster_flags(reading: ReadingFlags, connection: ConnectionFlags) -> ClusterFlags:
    """The flags that choose the cluster or snapshot, for a follow-up command."""
    if reading.snapshots:
        paths = [word for path in reading.snapshots for word in ("--snapshot", path)]
        return ClusterFlags((*paths, *(("--complete",) if reading.complete else ())), saved=True)
    return connection_flags(connection, _WHERE)


def connection_flags(connection: ConnectionFlags, names: Collection[str]) -> ClusterFlags:
    """Those of the connection flags that were given, for a follow-up command."""
    given = (
        (flag, getattr(connection, flag.name)) for flag in _connecting(REQUEST_TIMEOUT).params if flag.name in names
    )
    return ClusterFlags(tuple(word for flag, value in given if value for word in (flag.opts[0], value)))


def repeated(given: Mapping[str, Sequence[str]]) -> Argv:
    """Flags with their values as words of a command, those without a value left out."""
    return tuple(word for flag, values in given.items() for value in values if value for word in (flag, value))


def assumed_flags(flags: SchedulingFlags) -> dict[str, Sequence[str]]:
    """What is assumed of the cluster and its scheduler, for a follow-up command."""
    return {
        "--kubernetes-version": (flags.release,),
        "--feature-gates": flags.gates,
        "--scheduler-config": (flags.scheduler_config,),
    }


def with_other_values(error: FlagValueError, asked: Argv) -> FlagValueError:
    """The error with what to paste: the command that was ``asked``, with the values that the flag can have."""
    error.commands = [
        (label, CommandLine(tuple(value if word == error.typed else word for word in asked), placed=True))
        for label, value in error.instead
    ]
    return error


def connection_help() -> str:
    """The connection flags, which every command that reads a cluster takes, with their help."""
    command = _connecting(REQUEST_TIMEOUT)
    with typer.Context(command, info_name="kubectl dra", max_content_width=110) as context:
        records = (param.get_help_record(context) for param in command.params)
        formatter = context.make_formatter()
        formatter.write_dl([record for record in records if record is not None])
        return str(formatter.getvalue())


@cache
def _connecting(default_timeout: str) -> Any:
    """The connection flags as a click command that returns the ConnectionFlags."""
    app = typer.Typer(add_completion=False)

    def connection(**given: Any) -> ConnectionFlags:
        return _made(ConnectionFlags, given)

    declared = _parameters(ConnectionFlags)
    _declare(
        connection,
        [
            parameter.replace(default=default_timeout) if parameter.name == "request_timeout" else parameter
            for parameter in declared
        ],
    )
    app.command()(connection)
    return typer.main.get_command(app)
