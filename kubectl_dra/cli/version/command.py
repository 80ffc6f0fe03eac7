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


class Quick(opt.ClusterCommand):
    """A command that does not wait for a server that does not answer."""

    request_timeout = "3s"


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("version", help=HELP, cls=Quick)(version)


def version(
    context: typer.Context,
    client: Annotated[bool, typer.Option("--client", help="Do not ask the server.")] = False,
    output: opt.OutputOption = opt.Output.text,
    color: opt.ColorOption = opt.Color.auto,
) -> None:
    from kubectl_dra.cli.version import run as version_run

    raise typer.Exit(version_run.run(opt.connection_of(context), output.value, color.value, ask=not client))
