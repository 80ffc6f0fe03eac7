"""``kubectl dra migrate``: from device plugins and older DRA versions to ResourceClaims."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from kubectl_dra.cli import options as opt

HELP = """Rewrite manifests from device plugins and older DRA versions to ResourceClaims of v1.

Reads files, directories, standard input (-) and kustomizations (-k), and prints what it would change and why.
Writes only with --write or --output-dir. What does not have to change stays as it is, byte for byte; what cannot
be changed for certain is refused, with what to do by hand.

\b
Examples:
  # the plan, and the diff
  kubectl dra migrate manifests/
  kubectl dra migrate --diff manifests/
  # in CI: exit code 1 if anything is left to migrate
  kubectl dra migrate --check manifests/
  # in place, or file by file
  kubectl dra migrate --write manifests/
  kubectl dra migrate --interactive manifests/
  # what a chart renders
  helm template CHART | kubectl dra migrate - -o yaml > migrated.yaml
  # for a cluster that serves v1beta1 only
  kubectl dra migrate --to v1beta1 --diff manifests/
  # what in the cluster still uses device plugins, and which namespaces are ready
  kubectl dra migrate --live -A
  # where the migrated pods would land, and on how many nodes before
  kubectl dra migrate manifests/ --live
  # the rollout in phases, as files to review
  kubectl dra migrate plan --live -A --output-dir rollout
  # the way back, from claims that migrate made
  kubectl dra migrate --reverse --diff manifests/
  # what is MIG301?
  kubectl dra migrate --code MIG301

\b
Exit codes:
  0  nothing to do; or it is done, and nothing was refused
  1  something would change, was refused, or needs --unsafe
  2  error: usage, nothing to read, a file that cannot be written
"""


class MigrateOutput(StrEnum):
    """Formats of the plan; yaml prints the migrated manifests themselves."""

    text = "text"
    json = "json"
    yaml = "yaml"


class Strategy(StrEnum):
    """What asks for devices afterwards."""

    claims = "claims"
    extended_resource = "extended-resource"
    auto = "auto"


class ShareChoice(StrEnum):
    """Whose devices they are."""

    template = "template"
    claim = "claim"


class Version(StrEnum):
    """API versions that can be written."""

    v1 = "v1"
    v1beta2 = "v1beta2"
    v1beta1 = "v1beta1"


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("migrate", help=HELP, cls=opt.ClusterCommand)(migrate)


def migrate(
    context: typer.Context,
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[plan] [PATH]...",
            help="Files, directories, or - for standard input. After the word plan: what the rollout is written for.",
            show_default=False,
            callback=opt.no_empty_path,
        ),
    ] = None,
    kustomize: Annotated[
        list[str] | None,
        typer.Option(
            "--kustomize",
            "-k",
            metavar="DIR",
            callback=opt.no_empty_path,
            help="Migrate what kustomize builds from a directory.",
        ),
    ] = None,
    diff: Annotated[bool, typer.Option("--diff", help="Show the changes as a unified diff; write nothing.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Only list what would change or is refused.")] = False,
    write: Annotated[bool, typer.Option("--write", help="Change the files.")] = False,
    interactive: Annotated[
        bool, typer.Option("--interactive", help="Show the diff of each file and ask whether to write it.")
    ] = False,
    # Not -o: that is the format here, as in kubectl and in every other command of ours.
    output_dir: Annotated[
        str,
        typer.Option("--output-dir", metavar="DIR", help="Write all files, changed or not, below DIR instead."),
    ] = "",
    claims_file: Annotated[
        str,
        typer.Option(
            "--claims-file",
            metavar="FILE",
            help="Put new objects into FILE, behind what it has. Default: into the file of the workload.",
        ),
    ] = "",
    strategy: Annotated[
        Strategy,
        typer.Option(
            "--strategy",
            help="claims: pods claim devices. extended-resource: DeviceClasses take the resource over and the "
            "workloads stay (1.36 and later). auto: the second where it is the same, else the first.",
        ),
    ] = Strategy.claims,
    share: Annotated[
        ShareChoice,
        typer.Option("--share", help="template: each pod has its own devices. claim: all pods of a workload share."),
    ] = ShareChoice.template,
    to: Annotated[
        Version | None,
        typer.Option("--to", help="API version to write. Default: v1, or the newest that the release has."),
    ] = None,
    unsafe: Annotated[
        bool, typer.Option("--unsafe", help="Make also the changes that may change which devices a pod gets.")
    ] = False,
    reverse: Annotated[
        bool,
        typer.Option("--reverse", help="The way back: claims that migrate made become requests of device plugins."),
    ] = False,
    live: Annotated[
        bool,
        typer.Option(
            "--live",
            help="Look at the cluster: without PATH, what uses device plugins; with PATH, where the pods would land.",
        ),
    ] = False,
    snapshot: opt.Snapshots = None,
    namespace: Annotated[
        str, typer.Option("--namespace", "-n", metavar="NS", help="Look at this namespace of the cluster.")
    ] = "",
    all_namespaces: Annotated[
        bool, typer.Option("--all-namespaces", "-A", help="Look at all namespaces of the cluster.")
    ] = False,
    vendors: Annotated[
        list[str] | None,
        typer.Option("--vendors", metavar="FILE", help="More vendors, as in kubectl_dra/migrate/vendors."),
    ] = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option("--exclude", metavar="PATTERN", help="Leave out files and directories below PATH that match."),
    ] = None,
    kubernetes_version: Annotated[
        str,
        typer.Option(
            "--kubernetes-version", metavar="VERSION", help="Release to write for, 1.32 to 1.37. Default: 1.37."
        ),
    ] = "",
    code: Annotated[str, typer.Option("--code", metavar="CODE", help="Explain one code and exit.")] = "",
    output: Annotated[
        MigrateOutput, typer.Option("--output", "-o", help="MigrateOutput format; yaml prints the migrated manifests.")
    ] = MigrateOutput.text,
    color: opt.ColorOption = opt.Color.auto,
) -> None:
    from kubectl_dra.cli.migrate import run as migrate_run

    asked = migrate_run.MigrateQuestion(
        paths=tuple(paths or ()),
        kustomize=tuple(kustomize or ()),
        diff=diff,
        check=check,
        write=write,
        interactive=interactive,
        output_dir=output_dir,
        claims_file=claims_file,
        strategy=strategy.value,
        share=share.value,
        to="" if to is None else to.value,
        unsafe=unsafe,
        vendors=tuple(vendors or ()),
        exclude=tuple(exclude or ()),
        release=kubernetes_version,
        code=code,
        output=output.value,
        color=color.value,
        reverse=reverse,
        live=live,
        snapshots=tuple(snapshot or ()),
        namespace=namespace,
        all_namespaces=all_namespaces,
        connection=opt.connection_of(context),
    )
    raise typer.Exit(migrate_run.run(asked))
