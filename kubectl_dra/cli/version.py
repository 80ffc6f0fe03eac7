"""``kubectl dra version``: which version this is, and which Kubernetes it models."""

from __future__ import annotations

from typing import Annotated

import typer

from kubectl_dra.cli import options as opt

HELP = """Print the versions of kubectl-dra, Python and the server, and what is modelled of each Kubernetes release.

The server is asked once, for at most three seconds (--request-timeout); a server that does not answer is no error.
--client asks none.

\b
Examples:
  # everything
  kubectl dra version
  # without asking the server
  kubectl dra version --client
  # for a script: just our version
  kubectl dra --version
  # is a gate on by default in the server's release?
  kubectl dra version -o json

\b
Exit codes:
  0  printed
  2  error: usage
"""


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("version", help=HELP)(version)


def version(
    client: Annotated[bool, typer.Option("--client", help="Do not ask the server.")] = False,
    output: opt.OutputOption = opt.Output.text,
    color: opt.ColorOption = opt.Color.auto,
    kubeconfig: opt.Kubeconfig = "",
    context: opt.Context = "",
    cluster: opt.Cluster = "",
    user: opt.User = "",
    server: opt.Server = "",
    token: opt.Token = "",
    as_user: opt.AsUser = "",
    as_group: opt.AsGroup = None,
    as_uid: opt.AsUid = "",
    insecure_skip_tls_verify: opt.Insecure = False,
    tls_server_name: opt.TlsServerName = "",
    request_timeout: opt.RequestTimeout = "3s",
) -> None:
    from kubectl_dra.cli import version_run

    connection = opt.Connection(
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
    raise typer.Exit(version_run.run(connection, output.value, color.value, ask=not client))
