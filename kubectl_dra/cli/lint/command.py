"""``kubectl dra lint``: what is wrong in manifests."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from kubectl_dra.cli import options as opt

HELP = """Say what the API server would reject in manifests, and what it accepts but fails later.

Reads files, directories, standard input (-) and kustomizations (-k). Needs no cluster, and reads none unless
--live is given.

\b
Examples:
  # everything below a directory
  kubectl dra lint manifests/
  # what a chart renders
  helm template CHART | kubectl dra lint -
  # a kustomization
  kubectl dra lint -k overlays/prod
  # would the fixes be right? then make them
  kubectl dra lint --diff manifests/
  kubectl dra lint --fix manifests/
  # for code scanning
  kubectl dra lint -o sarif manifests/ > lint.sarif
  # against the devices that exist
  kubectl dra lint --live manifests/
  # what is rule DRA112?
  kubectl dra lint --rule DRA112

\b
Exit codes:
  0  clean
  1  findings (--fail-on says from which severity), or --diff shows a change
  2  error: usage, nothing to read, a defect
"""


class Output(StrEnum):
    """Formats of findings."""

    text = "text"
    json = "json"
    sarif = "sarif"
    github = "github"
    junit = "junit"


class FailOn(StrEnum):
    """The mildest severity that makes the exit code 1."""

    error = "error"
    warning = "warning"
    info = "info"


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("lint", help=HELP, cls=opt.ClusterCommand)(lint)


def lint(
    context: typer.Context,
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PATH]...",
            help="Files, directories, or - for standard input.",
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
            help="Check what kustomize builds from a directory.",
        ),
    ] = None,
    select: Annotated[
        list[str] | None,
        typer.Option("--select", metavar="CODES", help="Only these rules: codes, their beginnings, or names."),
    ] = None,
    ignore: Annotated[list[str] | None, typer.Option("--ignore", metavar="CODES", help="Not these rules.")] = None,
    fail_on: Annotated[
        FailOn | None,
        typer.Option("--fail-on", help="The mildest severity that makes the exit code 1. Default: warning."),
    ] = None,
    fix: Annotated[bool, typer.Option("--fix", help="Repair what is safe to repair, in the files.")] = False,
    unsafe_fixes: Annotated[
        bool,
        typer.Option(
            "--unsafe-fixes", help="Repair also what may change the meaning, in the files; with --diff, show it."
        ),
    ] = False,
    diff: Annotated[bool, typer.Option("--diff", help="Show what the fixes would change; write nothing.")] = False,
    snapshot: opt.Snapshots = None,
    live: Annotated[bool, typer.Option("--live", help="Check against the classes and devices of the cluster.")] = False,
    namespace: Annotated[
        str, typer.Option("--namespace", "-n", metavar="NS", help="With --live: the namespace of the cluster to read.")
    ] = "",
    verify: Annotated[
        bool,
        typer.Option("--verify", help="Evaluate selectors with cel-python as well and report differences."),
    ] = False,
    config: Annotated[
        str, typer.Option("--config", metavar="FILE", help="Configuration instead of the nearest .kubectl-dra.yaml.")
    ] = "",
    no_config: Annotated[bool, typer.Option("--no-config", help="Read no configuration.")] = False,
    allow_empty: Annotated[
        bool, typer.Option("--allow-empty", help="Exit with 0 where there is no Kubernetes object to check.")
    ] = False,
    rules: Annotated[bool, typer.Option("--rules", help="List all rules and exit.")] = False,
    rule: Annotated[str, typer.Option("--rule", metavar="CODE", help="Explain one rule and exit.")] = "",
    output: Annotated[Output, typer.Option("--output", "-o", help="Output format.")] = Output.text,
    color: opt.ColorOption = opt.Color.auto,
    kubernetes_version: Annotated[
        str,
        typer.Option(
            "--kubernetes-version",
            metavar="VERSION",
            help="Release to check for, 1.31 to 1.37. Default: the cluster's with --live or --snapshot, else 1.37.",
        ),
    ] = "",
    feature_gates: opt.GatesOption = None,
) -> None:
    from kubectl_dra.cli.lint import run as lint_run

    asked = lint_run.Asked(
        paths=tuple(paths or ()),
        kustomize=tuple(kustomize or ()),
        select=tuple(select or ()),
        ignore=tuple(ignore or ()),
        fail_on="" if fail_on is None else fail_on.value,
        fix=fix,
        unsafe_fixes=unsafe_fixes,
        diff=diff,
        snapshots=tuple(snapshot or ()),
        live=live,
        namespace=namespace,
        config=config,
        no_config=no_config,
        allow_empty=allow_empty,
        rules=rules,
        rule=rule,
        release=kubernetes_version,
        gates=tuple(feature_gates or ()),
        verify=verify,
    )
    raise typer.Exit(lint_run.run(asked, opt.connection_of(context), output.value, color.value))
