"""Options that several commands share, with kubectl's names and meanings."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Final

from msgspec import Struct
from typer import Option

from kubectl_dra.errors import UsageError

REQUEST_TIMEOUT: Final = "1m"


class Output(StrEnum):
    """Output formats of data commands."""

    text = "text"
    json = "json"
    yaml = "yaml"


class TableOutput(StrEnum):
    """Output formats of a table."""

    text = "text"
    wide = "wide"
    json = "json"
    yaml = "yaml"
    name = "name"


class Color(StrEnum):
    """When to use colours."""

    auto = "auto"
    always = "always"
    never = "never"


class ConnectionFlags(Struct, frozen=True):
    """kubectl's connection flags, as given."""

    kubeconfig: Annotated[str, Option("--kubeconfig", metavar="PATH", help="Path to the kubeconfig file.")] = ""
    context: Annotated[str, Option("--context", metavar="NAME", help="Kubeconfig context to use.")] = ""
    cluster: Annotated[str, Option("--cluster", metavar="NAME", help="Kubeconfig cluster to use.")] = ""
    user: Annotated[str, Option("--user", metavar="NAME", help="Kubeconfig user to use.")] = ""
    server: Annotated[str, Option("--server", "-s", metavar="URL", help="Address of the API server.")] = ""
    token: Annotated[str, Option("--token", metavar="TOKEN", help="Bearer token for the API server.")] = ""
    as_user: Annotated[str, Option("--as", metavar="USER", help="User to impersonate.")] = ""
    as_groups: Annotated[
        tuple[str, ...], Option("--as-group", metavar="GROUP", help="Group to impersonate; may be repeated.")
    ] = ()
    as_uid: Annotated[str, Option("--as-uid", metavar="UID", help="UID to impersonate.")] = ""
    insecure_skip_tls_verify: Annotated[
        bool, Option("--insecure-skip-tls-verify", help="Do not check the server's certificate.")
    ] = False
    tls_server_name: Annotated[
        str, Option("--tls-server-name", metavar="NAME", help="Name to expect in the server's certificate.")
    ] = ""
    request_timeout: Annotated[
        str,
        Option(
            "--request-timeout", metavar="DURATION", help="How long one request may take: 5s, 2m; 0 means no limit."
        ),
    ] = REQUEST_TIMEOUT


def no_empty_path(paths: Sequence[str] | None) -> Sequence[str] | None:
    """The paths as given. An empty one, from an unset shell variable, would mean the current directory.

    Raises UsageError: one is empty.
    """
    if paths and "" in paths:
        raise UsageError("a path is empty: is a variable of the shell not set? The current directory is .")
    return paths


WithNodes = Annotated[
    tuple[str, ...],
    Option(
        "--with-node",
        metavar="NODES",
        help="Answer as if there were more nodes; may be repeated. FILE (a Node and its ResourceSlices), [like=]NODE, "
        "8xH100, a machine type (a3-highgpu-8g), nvidia.com/gpu=8, or product=NAME,devices=N; of all but a file, "
        ",ATTRIBUTE=VALUE says what devices have, ,label:KEY=VALUE what the node has; ,count=N how many nodes.",
    ),
]
Snapshots = Annotated[
    tuple[str, ...],
    Option(
        "--snapshot",
        metavar="PATH",
        callback=no_empty_path,
        help="Read the cluster from a file or directory (kubectl get -o json or yaml, also gzipped), or - for standard "
        "input, instead of a live one. May be given several times.",
    ),
]
Complete = Annotated[
    bool,
    Option(
        "--complete",
        help="The files of --snapshot have everything: a kind of which they have no object has none in the cluster.",
    ),
]
BaselineOption = Annotated[
    str, Option("--baseline", metavar="FILE", help="Leave out what FILE lists: only new findings count.")
]
WriteBaselineOption = Annotated[
    bool, Option("--write-baseline", help="Write everything that is found to the file of --baseline, and exit.")
]
Namespace = Annotated[str, Option("--namespace", "-n", metavar="NS", help="Namespace of the pod or claim.")]
Labels = Annotated[
    str, Option("--selector", "-l", metavar="LABELS", help="Only what has these labels: app=web,tier!=test.")
]
Everywhere = Annotated[
    bool, Option("--all-namespaces", "-A", help="Of all namespaces, as without it; for those used to kubectl.")
]
Full = Annotated[bool, Option("--full", help="Show everything that is known, as -o wide does.")]
OutputOption = Annotated[Output, Option("--output", "-o", help="Output format.")]
ColorOption = Annotated[Color, Option("--color", help="When to colour text output (NO_COLOR is honoured).")]
SchedulerConfigOption = Annotated[
    str,
    Option(
        "--scheduler-config",
        metavar="FILE",
        help="The KubeSchedulerConfiguration that the scheduler runs with: its profiles, plugins and arguments. "
        "Default: the default profile.",
    ),
]
NoHeaders = Annotated[
    bool, Option("--no-headers", help="Only the rows of the text table, each on one line with all columns.")
]
Watch = Annotated[bool, Option("--watch", "-w", help="List again every five seconds; on a terminal in place.")]
LimitOption = Annotated[
    int | None, Option("--limit", metavar="N", min=1, help="Show at most N rows of the text table.", show_default=False)
]
ReleaseOption = Annotated[
    str,
    Option(
        "--kubernetes-version",
        metavar="VERSION",
        help="Release whose behaviour is assumed, 1.34 to 1.37. Default: the cluster's, else 1.36.",
    ),
]
GatesOption = Annotated[
    tuple[str, ...],
    Option(
        "--feature-gates",
        metavar="GATE=true|false",
        help="Feature gates that differ from the release's defaults, comma-separated.",
    ),
]
Config = Annotated[
    str, Option("--config", metavar="FILE", help="Configuration instead of the nearest .kubectl-dra.yaml.")
]
CheckedRelease = Annotated[
    str,
    Option(
        "--kubernetes-version",
        metavar="VERSION",
        help="Release to check for, 1.31 to 1.37. Default: the cluster's with --live or --snapshot, else 1.37.",
    ),
]
CheckedNamespace = Annotated[
    str, Option("--namespace", "-n", metavar="NS", help="With --live: read this namespace of the cluster.")
]
