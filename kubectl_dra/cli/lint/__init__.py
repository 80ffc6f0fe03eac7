"""The flags and arguments of ``kubectl dra lint``."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from typer import Argument, Option

from kubectl_dra.cli import options as opt
from kubectl_dra.cli.command_line import SchedulingFlags


class LintOutput(StrEnum):
    """Formats of findings."""

    text = "text"
    concise = "concise"
    json = "json"
    sarif = "sarif"
    github = "github"
    junit = "junit"


class FailOn(StrEnum):
    """The mildest severity that makes the exit code 1."""

    error = "error"
    warning = "warning"
    info = "info"


class LintFlags(SchedulingFlags, frozen=True):
    """The flags and arguments of ``lint``."""

    paths: Annotated[
        tuple[str, ...],
        Argument(
            metavar="[PATH]...",
            help="Files, directories, or - for standard input.",
            show_default=False,
            callback=opt.no_empty_path,
        ),
    ] = ()
    kustomize: Annotated[
        tuple[str, ...],
        Option(
            "--kustomize",
            "-k",
            metavar="DIR",
            callback=opt.no_empty_path,
            help="Check what kustomize builds from a directory.",
        ),
    ] = ()
    select: Annotated[
        tuple[str, ...],
        Option("--select", metavar="CODES", help="Only these rules: codes, prefixes of codes, or names."),
    ] = ()
    ignore: Annotated[tuple[str, ...], Option("--ignore", metavar="CODES", help="Not these rules.")] = ()
    fail_on: Annotated[
        FailOn | None, Option("--fail-on", help="The mildest severity that makes the exit code 1. Default: warning.")
    ] = None
    fix: Annotated[bool, Option("--fix", help="Make the safe fixes in the files.")] = False
    unsafe_fixes: Annotated[
        bool, Option("--unsafe-fixes", help="With --fix or --diff: also the fixes that may change the meaning.")
    ] = False
    diff: Annotated[bool, Option("--diff", help="Show what the fixes would change; write nothing.")] = False
    live: Annotated[bool, Option("--live", help="Check against the classes and devices of the cluster.")] = False
    namespace: opt.CheckedNamespace = ""
    manifests: Annotated[
        tuple[str, ...],
        Option(
            "--filename", "-f", metavar="PATH", callback=opt.no_empty_path, help="A PATH, as kubectl apply takes it."
        ),
    ] = ()
    recursive: Annotated[
        bool, Option("--recursive", "-R", hidden=True, help="Nothing more: directories are read so anyway.")
    ] = False
    old: Annotated[
        tuple[str, ...],
        Option(
            "--old",
            metavar="FILE",
            callback=opt.no_empty_path,
            help="Objects as they are stored now: judge the same ones in PATH as changes of these.",
        ),
    ] = ()
    config: opt.Config = ""
    no_config: Annotated[bool, Option("--no-config", help="Read no configuration.")] = False
    allow_empty: Annotated[
        bool, Option("--allow-empty", help="Exit with 0 if there is no Kubernetes object to check.")
    ] = False
    baseline: opt.BaselineOption = ""
    write_baseline: opt.WriteBaselineOption = False
    rules: Annotated[bool, Option("--rules", help="List all rules and exit.")] = False
    rule: Annotated[str, Option("--explain", metavar="RULE", help="Explain one rule and exit.")] = ""
    verify: Annotated[
        bool, Option("--verify", help="Evaluate selectors with cel-python as well and report differences.")
    ] = False
    output: Annotated[LintOutput, Option("--output", "-o", help="Output format.")] = LintOutput.text
    color: opt.ColorOption = opt.Color.auto
    release: opt.CheckedRelease = ""
    upgraded_from: Annotated[
        str,
        Option(
            "--from",
            metavar="VERSION",
            help="Release before an upgrade: what it changes for PATH, or else in the cluster (--live, --snapshot).",
        ),
    ] = ""
    gates: opt.GatesOption = ()
