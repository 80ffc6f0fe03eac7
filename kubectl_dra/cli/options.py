"""Options that several commands share, with kubectl's names and meanings."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

import typer

CONNECTION = "Cluster connection"
SNAPSHOT = "What is read"


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
    request_timeout: str = "0"


Snapshots = Annotated[
    list[str] | None,
    typer.Option(
        "--snapshot",
        metavar="PATH",
        help="Read the cluster from a file or directory (kubectl get -o json or yaml), or - for standard input, "
        "instead of a live one. May be given several times.",
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
Kubeconfig = Annotated[str, typer.Option("--kubeconfig", metavar="PATH", help="Path to the kubeconfig file.")]
Context = Annotated[str, typer.Option("--context", metavar="NAME", help="Kubeconfig context to use.")]
Cluster = Annotated[str, typer.Option("--cluster", metavar="NAME", help="Kubeconfig cluster to use.")]
User = Annotated[str, typer.Option("--user", metavar="NAME", help="Kubeconfig user to use.")]
Server = Annotated[str, typer.Option("--server", "-s", metavar="URL", help="Address of the API server.")]
Token = Annotated[str, typer.Option("--token", metavar="TOKEN", help="Bearer token for the API server.")]
AsUser = Annotated[str, typer.Option("--as", metavar="USER", help="User to impersonate.")]
AsGroup = Annotated[
    list[str] | None,
    typer.Option("--as-group", metavar="GROUP", help="Group to impersonate; may be repeated."),
]
AsUid = Annotated[str, typer.Option("--as-uid", metavar="UID", help="UID to impersonate.")]
Insecure = Annotated[bool, typer.Option("--insecure-skip-tls-verify", help="Do not check the server's certificate.")]
TlsServerName = Annotated[
    str, typer.Option("--tls-server-name", metavar="NAME", help="Name to expect in the server's certificate.")
]
RequestTimeout = Annotated[
    str,
    typer.Option(
        "--request-timeout",
        metavar="DURATION",
        help="How long one request may take: 5s, 2m; 0 means no limit.",
    ),
]
