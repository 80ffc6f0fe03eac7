"""The flags and arguments of ``kubectl dra migrate``."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from typer import Argument, Option

from kubectl_dra.cli import options as opt
from kubectl_dra.cli.command_line import ReadingFlags


class MigrateOutput(StrEnum):
    """Formats of the plan; yaml prints the migrated manifests themselves."""

    text = "text"
    json = "json"
    yaml = "yaml"
    sarif = "sarif"
    github = "github"
    junit = "junit"


class StrategyChoice(StrEnum):
    """What requests devices after the migration."""

    claims = "claims"
    extended_resource = "extended-resource"
    auto = "auto"


class ShareChoice(StrEnum):
    """Who shares the devices."""

    template = "template"
    claim = "claim"


class WrittenVersion(StrEnum):
    """API versions that can be written."""

    v1 = "v1"
    v1beta2 = "v1beta2"
    v1beta1 = "v1beta1"


class MigrateFlags(ReadingFlags, frozen=True):
    """The flags and arguments of ``migrate``."""

    paths: Annotated[
        tuple[str, ...],
        Argument(
            metavar="[plan] [PATH]...",
            help="Files, directories, or - for standard input. After the word plan: the manifests to roll out.",
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
            help="Migrate the files of a kustomization; with -o yaml, what it builds.",
        ),
    ] = ()
    diff: Annotated[bool, Option("--diff", help="Show the changes as a unified diff; write nothing.")] = False
    check: Annotated[bool, Option("--check", help="Only list what would change or is refused.")] = False
    write: Annotated[bool, Option("--write", help="Change the files.")] = False
    interactive: Annotated[
        bool, Option("--interactive", help="Show the diff of each file and ask whether to write it.")
    ] = False
    output_dir: Annotated[
        str, Option("--output-dir", metavar="DIR", help="Write all files, changed or not, below DIR instead.")
    ] = ""
    claims_file: Annotated[
        str,
        Option("--claims-file", metavar="FILE", help="Append new objects to FILE. Default: the file of the workload."),
    ] = ""
    strategy: Annotated[
        StrategyChoice,
        Option(
            "--strategy",
            help="claims: pods claim devices. extended-resource: DeviceClasses take over the resource name and the "
            "workloads stay (1.36 and later). auto: the second if it is equivalent, else the first.",
        ),
    ] = StrategyChoice.claims
    share: Annotated[
        ShareChoice,
        Option("--share", help="template: each pod has its own devices. claim: all pods of a workload share."),
    ] = ShareChoice.template
    to: Annotated[
        WrittenVersion | None, Option("--to", help="API version to write. Default: v1, or the newest in the release.")
    ] = None
    unsafe: Annotated[
        bool, Option("--unsafe", help="Also make changes after which pods may get other devices, or run elsewhere.")
    ] = False
    reverse: Annotated[
        bool, Option("--reverse", help="Turn claims that migrate created back into requests of device plugins.")
    ] = False
    live: Annotated[
        bool,
        Option(
            "--live",
            help="Read the cluster. Without PATH: what uses device plugins; with PATH: where the pods could run.",
        ),
    ] = False
    namespace: Annotated[str, Option("--namespace", "-n", metavar="NS", help="Only this namespace of the cluster.")] = (
        ""
    )
    all_namespaces: Annotated[bool, Option("--all-namespaces", "-A", help="All namespaces of the cluster.")] = False
    vendors: Annotated[
        tuple[str, ...], Option("--vendors", metavar="FILE", help="More vendors, as in kubectl_dra/data/vendors.")
    ] = ()
    values: Annotated[
        tuple[str, ...],
        Option("--values", "-f", metavar="FILE", help="Values for charts, as helm takes them. Repeatable."),
    ] = ()
    sets: Annotated[
        tuple[str, ...],
        Option("--set", metavar="KEY=VALUE", help="One value for charts, as helm takes it. Repeatable."),
    ] = ()
    exclude: Annotated[
        tuple[str, ...], Option("--exclude", metavar="PATTERN", help="Skip matching files and directories below PATH.")
    ] = ()
    baseline: opt.BaselineOption = ""
    write_baseline: opt.WriteBaselineOption = False
    release: Annotated[
        str,
        Option("--kubernetes-version", metavar="VERSION", help="Release to write for, 1.32 to 1.37. Default: 1.37."),
    ] = ""
    code: Annotated[str, Option("--explain", metavar="CODE", help="Explain one code and exit.")] = ""
    output: Annotated[
        MigrateOutput, Option("--output", "-o", help="Output format; yaml prints the migrated manifests.")
    ] = MigrateOutput.text
    color: opt.ColorOption = opt.Color.auto

    @property
    def of_cluster(self) -> bool:
        """Whether a flag about a cluster is given."""
        return bool(self.live or self.snapshots or self.namespace or self.all_namespaces)
