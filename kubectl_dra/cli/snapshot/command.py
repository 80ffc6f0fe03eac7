"""``kubectl dra snapshot``: what explain needs of a cluster, in one file."""

from __future__ import annotations

from typing import Annotated

import typer

from kubectl_dra.cli import options as opt

HELP = """Save what the other commands read of a cluster in one file, to be read with --snapshot.

Holds ResourceSlices, DeviceClasses, ResourceClaims, ResourceClaimTemplates, DeviceTaintRules, Pods, Nodes,
Namespaces, ResourceQuotas, and Events of pods and claims; never Secrets or ConfigMaps. Pods are reduced to what
decides about devices: no images, commands, arguments, environment, volumes or annotations. What could not be read
is written down, so that explain misses the same on the file. The cluster is never changed.

--anonymize makes it fit for a bug report: names of nodes, namespaces, pods, claims, templates and classes, label
values, UUIDs, serial numbers and addresses are replaced, and explain still says the same. Drivers, attribute names,
values such as a product's name, request names, amounts and times stay. Look at the file before you publish it.

\b
Examples:
  # save the cluster of the current context
  kubectl dra snapshot -o cluster.json
  # look at it later, or somewhere else
  kubectl dra explain pod/train-0 -n ml --snapshot cluster.json
  # for a bug report, with a private list of what is called how now
  kubectl dra snapshot -o report.yaml --anonymize --names names.json
  # anonymize what was saved before
  kubectl dra snapshot --snapshot saved/ -o report.json --anonymize
  # into a pipe
  kubectl dra snapshot -o - | gzip > cluster.json.gz

\b
Exit codes:
  0  written
  2  error: usage, input, connection; nothing is written
"""


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("snapshot", help=HELP, cls=opt.ClusterCommand)(snapshot)


def snapshot(
    context: typer.Context,
    output: Annotated[
        str,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Where to: a .json, .yaml or .yml file, or - for JSON on stdout."
        ),
    ] = "",
    anonymize: Annotated[
        bool, typer.Option("--anonymize", help="Replace names and other identities, consistently.")
    ] = False,
    seed: Annotated[
        str,
        typer.Option(
            "--seed",
            metavar="TEXT",
            help="With --anonymize: give serial numbers and UUIDs the same replacements in each run. Default: random.",
        ),
    ] = "",
    names: Annotated[
        str,
        typer.Option(
            "--names",
            metavar="FILE",
            help="With --anonymize: also write a JSON file that says what each name was replaced by. Keep it private.",
        ),
    ] = "",
    force: Annotated[bool, typer.Option("--force", help="Replace files that exist.")] = False,
    snapshots: opt.Snapshots = None,
    namespace: Annotated[
        str,
        typer.Option(
            "--namespace", "-n", metavar="NS", help="Namespace to read where reading all namespaces is forbidden."
        ),
    ] = "",
) -> None:
    from kubectl_dra.cli.snapshot import run as snapshot_run

    asked = snapshot_run.Asked(
        output=output,
        anonymize=anonymize,
        seed=seed,
        names=names,
        force=force,
        snapshots=tuple(snapshots or ()),
        namespace=namespace,
    )
    raise typer.Exit(snapshot_run.run(asked, opt.connection_of(context)))
