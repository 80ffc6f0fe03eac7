"""Options that several commands share, with kubectl's names and meanings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Annotated, Any, ClassVar, Final

import typer
import typer.main
from typer.core import TyperCommand

from kubectl_dra.errors import UsageError

REQUEST_TIMEOUT: Final = "1m"
_TRUE: Final = ("1", "t", "T", "TRUE", "true", "True")
_FALSE: Final = ("0", "f", "F", "FALSE", "false", "False")
"""What kubectl takes as the value of a flag that needs none."""


class Output(StrEnum):
    """Output formats of data commands."""

    text = "text"
    json = "json"
    yaml = "yaml"


class Color(StrEnum):
    """When to use colours."""

    auto = "auto"
    always = "always"
    never = "never"


@dataclass(frozen=True, slots=True)
class Connection:
    """kubectl's connection flags, as given."""

    kubeconfig: str = ""
    context: str = ""
    cluster: str = ""
    user: str = ""
    server: str = ""
    token: str = ""
    as_user: str = ""
    as_groups: tuple[str, ...] = ()
    as_uid: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    request_timeout: str = REQUEST_TIMEOUT


def no_empty_path(paths: list[str] | None) -> list[str] | None:
    """The paths as given. An empty one, which a shell variable that is not set leaves, would be the current directory.

    Raises:
        UsageError: one is empty.
    """
    if paths and "" in paths:
        raise UsageError("a path is empty: is a variable of the shell not set? The current directory is .")
    return paths


Snapshots = Annotated[
    list[str] | None,
    typer.Option(
        "--snapshot",
        metavar="PATH",
        callback=no_empty_path,
        help="Read the cluster from a file or directory (kubectl get -o json or yaml, also gzipped), or - for standard "
        "input, instead of a live one. May be given several times.",
    ),
]
Namespace = Annotated[str, typer.Option("--namespace", "-n", metavar="NS", help="Namespace of the pod or claim.")]
OutputOption = Annotated[Output, typer.Option("--output", "-o", help="Output format.")]
ColorOption = Annotated[Color, typer.Option("--color", help="When to colour text output (NO_COLOR is honoured).")]
ReleaseOption = Annotated[
    str,
    typer.Option(
        "--kubernetes-version",
        metavar="VERSION",
        help="Release whose behaviour is assumed, 1.34 to 1.37. Default: the cluster's, else 1.36.",
    ),
]
GatesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--feature-gates",
        metavar="GATE=true|false",
        help="Feature gates that differ from the release's defaults, comma-separated.",
    ),
]


class ClusterCommand(TyperCommand):
    """A command with the connection flags behind its own; ``connection_of`` has their values.

    ``params`` are click's. Some releases of typer use the package and others a copy of their own, so no name of their
    type is right for all.
    """

    request_timeout: ClassVar[str] = REQUEST_TIMEOUT
    """How long one request may take where the user does not say."""

    def __init__(self, *arguments: Any, params: list[Any], **settings: Any) -> None:
        super().__init__(*arguments, params=[*params, *_flags(self.request_timeout).params], **settings)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Reads the arguments, in kubectl's forms too: -o=json, --live=true, -A=false."""
        return super().parse_args(ctx, list(self._plain(args)))

    def _plain(self, words: list[str]) -> Iterator[str]:
        options: dict[str, Any] = {
            name: option for option in self.params if option.param_type_name == "option" for name in option.opts
        }
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
        """Makes one value of the connection flags and calls the command with the rest."""
        flags = _flags(self.request_timeout)
        ctx.obj = flags.callback(**{flag.name: ctx.params.pop(flag.name) for flag in flags.params})
        return super().invoke(ctx)


def connection_of(context: typer.Context) -> Connection:
    """The connection flags that a ``ClusterCommand`` was called with."""
    connection = context.obj
    assert isinstance(connection, Connection)
    return connection


def cluster_flags(snapshots: Sequence[str], connection: Connection) -> str:
    """The flags that say which cluster, or whose snapshot, with a space before each: for a command that follows."""
    import shlex

    if snapshots:
        return "".join(f" --snapshot {shlex.quote(path)}" for path in snapshots)
    given = {"kubeconfig": connection.kubeconfig, "context": connection.context, "cluster": connection.cluster}
    given |= {"user": connection.user, "server": connection.server, "as": connection.as_user}
    return "".join(f" --{flag} {shlex.quote(value)}" for flag, value in given.items() if value)


@cache
def _flags(default_timeout: str) -> Any:
    """The connection flags as a click command that returns the Connection."""
    app = typer.Typer(add_completion=False)

    @app.command()
    def connection(
        kubeconfig: Annotated[
            str, typer.Option("--kubeconfig", metavar="PATH", help="Path to the kubeconfig file.")
        ] = "",
        context: Annotated[str, typer.Option("--context", metavar="NAME", help="Kubeconfig context to use.")] = "",
        cluster: Annotated[str, typer.Option("--cluster", metavar="NAME", help="Kubeconfig cluster to use.")] = "",
        user: Annotated[str, typer.Option("--user", metavar="NAME", help="Kubeconfig user to use.")] = "",
        server: Annotated[str, typer.Option("--server", "-s", metavar="URL", help="Address of the API server.")] = "",
        token: Annotated[str, typer.Option("--token", metavar="TOKEN", help="Bearer token for the API server.")] = "",
        as_user: Annotated[str, typer.Option("--as", metavar="USER", help="User to impersonate.")] = "",
        as_group: Annotated[
            list[str] | None,
            typer.Option("--as-group", metavar="GROUP", help="Group to impersonate; may be repeated."),
        ] = None,
        as_uid: Annotated[str, typer.Option("--as-uid", metavar="UID", help="UID to impersonate.")] = "",
        insecure_skip_tls_verify: Annotated[
            bool, typer.Option("--insecure-skip-tls-verify", help="Do not check the server's certificate.")
        ] = False,
        tls_server_name: Annotated[
            str, typer.Option("--tls-server-name", metavar="NAME", help="Name to expect in the server's certificate.")
        ] = "",
        request_timeout: Annotated[
            str,
            typer.Option(
                "--request-timeout",
                metavar="DURATION",
                help="How long one request may take: 5s, 2m; 0 means no limit.",
            ),
        ] = default_timeout,
    ) -> Connection:
        return Connection(
            kubeconfig=kubeconfig,
            context=context,
            cluster=cluster,
            user=user,
            server=server,
            token=token,
            as_user=as_user,
            as_groups=tuple(as_group or ()),
            as_uid=as_uid,
            insecure_skip_tls_verify=insecure_skip_tls_verify,
            tls_server_name=tls_server_name,
            request_timeout=request_timeout,
        )

    return typer.main.get_command(app)
