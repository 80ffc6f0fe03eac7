"""What can be typed after most commands: for those that list see ``list_flags``, for large ones their packages."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from typer import Argument, Option

from kubectl_dra.cli import options as opt
from kubectl_dra.cli.command_line import ClusterCommand, CommandFlags, DocumentedCommand, ReadingFlags, SchedulingFlags


class FitOutput(StrEnum):
    """Output formats of the answer."""

    text = "text"
    json = "json"
    yaml = "yaml"
    html = "html"


class FitFlags(SchedulingFlags, frozen=True):
    """What is typed after ``fit``."""

    target: Annotated[
        tuple[str, ...],
        Argument(
            metavar="[deployment/NAME]",
            help="A workload of the cluster, in place of a manifest: also job/NAME, statefulset/NAME and the like.",
            show_default=False,
        ),
    ] = ()
    manifests: Annotated[
        tuple[str, ...],
        Option(
            "--filename",
            "-f",
            metavar="MANIFEST",
            callback=opt.no_empty_path,
            help="The workload: Deployment, StatefulSet, Job, JobSet, LeaderWorkerSet, PodGroup with its pods, Pod and "
            "the like; - is standard input.",
        ),
    ] = ()
    replicas: Annotated[
        int | None, Option("--replicas", metavar="N", min=1, help="Place so many replicas instead of those written.")
    ] = None
    most: Annotated[bool, Option("--max", help="Place as many replicas as fit.")] = False
    with_nodes: opt.WithNodes = ()
    explain: Annotated[bool, Option("--explain", help="Explain the first pod that does not fit, as explain does.")] = (
        False
    )
    full: Annotated[
        bool, Option("--full", help="Every node that gets pods, everything that makes room, and all notes.")
    ] = False
    namespace: opt.Namespace = ""
    output: Annotated[FitOutput, Option("--output", "-o", help="Output format; html is one page.")] = FitOutput.text
    scheduler_config: opt.SchedulerConfigOption = ""
    color: opt.ColorOption = opt.Color.auto
    release: opt.ReleaseOption = ""
    gates: opt.GatesOption = ()


class ShareBy(StrEnum):
    """A way to share: the values of ``fit.sharing.SharingWay``, named here without importing it."""

    each = "each"
    claim = "claim"
    time_slices = "time-slices"
    mps = "mps"
    partitions = "partitions"
    capacity = "capacity"
    admin = "admin"


class ShareFlags(SchedulingFlags, frozen=True):
    """What is typed after ``share``."""

    manifests: Annotated[
        tuple[str, ...],
        Option(
            "--filename",
            "-f",
            metavar="MANIFEST",
            callback=opt.no_empty_path,
            help="A workload with a claim from a template, and the template unless the cluster has it; - is standard "
            "input.",
        ),
    ] = ()
    device_class: Annotated[
        str, Option("--class", metavar="CLASS", help="Without a manifest: share devices of this class.")
    ] = ""
    pods: Annotated[
        int | None,
        Option("--pods", metavar="N", min=1, help="So many pods share, with --class. Default: 2.", show_default=False),
    ] = None
    containers: Annotated[
        int | None,
        Option(
            "--containers",
            metavar="N",
            min=2,
            help="So many containers of one pod share, with --class.",
            show_default=False,
        ),
    ] = None
    tolerate: Annotated[
        tuple[str, ...],
        Option(
            "--tolerate",
            metavar="KEY[=VALUE][:EFFECT]",
            help="With --class: the pods tolerate this taint of nodes; may be repeated.",
        ),
    ] = ()
    by: Annotated[
        ShareBy | None, Option("--by", help="Write the manifest for this way to standard output.", show_default=False)
    ] = None
    part: Annotated[
        str, Option("--part", metavar="QUANTITY", help="With capacity: how much each pod gets, such as 10Gi.")
    ] = ""
    namespace: opt.Namespace = ""
    output: opt.OutputOption = opt.Output.text
    color: opt.ColorOption = opt.Color.auto
    release: opt.ReleaseOption = ""
    gates: opt.GatesOption = ()


class MetricsFlags(SchedulingFlags, frozen=True):
    """What is typed after ``metrics``."""

    listen: Annotated[
        str,
        Option(
            "--listen",
            metavar="[HOST]:PORT",
            help="Serve the metrics here and keep them current by watching the cluster. Default: print them once.",
        ),
    ] = ""
    node_pool_labels: Annotated[
        tuple[str, ...],
        Option(
            "--node-pool-label",
            metavar="KEY",
            help="Label of nodes whose value is node_pool; of several the first that a node has. Default: those of "
            "GKE, EKS, AKS and Karpenter, else the instance type.",
        ),
    ] = ()
    scheduler_config: opt.SchedulerConfigOption = ""
    release: opt.ReleaseOption = ""
    gates: opt.GatesOption = ()


class SnapshotFlags(ReadingFlags, frozen=True):
    """The flags of ``snapshot``."""

    output: Annotated[
        str,
        Option(
            "--output", "-o", metavar="FILE", help="The file to write: .json, .yaml or .yml, or - for JSON on stdout."
        ),
    ] = ""
    anonymize: Annotated[bool, Option("--anonymize", help="Replace names and other identities, consistently.")] = False
    seed: Annotated[
        str,
        Option(
            "--seed",
            metavar="TEXT",
            help="With --anonymize: give serial numbers and UUIDs the same replacements in each run. Default: random.",
        ),
    ] = ""
    names: Annotated[
        str,
        Option(
            "--names",
            metavar="FILE",
            help="With --anonymize: also write a JSON file that maps each name to its replacement. Keep it private.",
        ),
    ] = ""
    every: Annotated[
        str,
        Option(
            "--every",
            metavar="DURATION",
            help="Go on, with a new snapshot so often (10m, 1h), each a file in the directory of --output.",
        ),
    ] = ""
    keep: Annotated[
        int, Option("--keep", metavar="N", min=1, help="With --every: how many snapshots to keep, the newest.")
    ] = 144
    force: Annotated[bool, Option("--force", help="Replace existing files.")] = False
    namespace: Annotated[
        str, Option("--namespace", "-n", metavar="NS", help="Namespace to read if reading all namespaces is forbidden.")
    ] = ""


class CanFlags(CommandFlags, frozen=True):
    """The flags of ``can``."""

    command: Annotated[
        str, Argument(metavar="[COMMAND]", help="The command to ask about. Default: all that ask a cluster.")
    ] = ""
    namespace: Annotated[
        str, Option("--namespace", "-n", metavar="NS", help="Also say what is allowed in this namespace alone.")
    ] = ""
    needs: Annotated[
        bool, Option("--needs", help="Print what it needs, without asking a server; -o yaml prints the role.")
    ] = False
    full: Annotated[bool, Option("--full", help="Also name the permissions that only some answers need.")] = False
    output: opt.OutputOption = opt.Output.text
    color: opt.ColorOption = opt.Color.auto


class DemoFlags(CommandFlags, frozen=True):
    """The flags and arguments of ``demo``."""

    COMMAND = DocumentedCommand

    name: Annotated[str, Argument(metavar="[NAME]", help="The example to play.", show_default=False)] = ""
    path: Annotated[bool, Option("--path", help="Print where the example's files are, and play nothing.")] = False
    color: opt.ColorOption = opt.Color.auto


class UiFlags(SchedulingFlags, frozen=True):
    """What is typed after ``ui``."""

    namespace: Annotated[
        str, Option("--namespace", "-n", metavar="NS", help="Only claims and pods of this namespace. Default: all.")
    ] = ""
    scheduler_config: opt.SchedulerConfigOption = ""
    color: opt.ColorOption = opt.Color.auto
    release: opt.ReleaseOption = ""
    gates: opt.GatesOption = ()


class LspFlags(ReadingFlags, frozen=True):
    """The flags of ``lsp``: those of ``lint`` that say what to check for, under the same names."""

    live: Annotated[bool, Option("--live", help="Know the classes and devices of the cluster.")] = False
    namespace: opt.CheckedNamespace = ""
    config: opt.Config = ""
    release: opt.CheckedRelease = ""
    gates: opt.GatesOption = ()


class Quick(ClusterCommand):
    """A command that does not wait for an unresponsive server."""

    request_timeout = "3s"


class VersionFlags(CommandFlags, frozen=True):
    """The flags of ``version``."""

    COMMAND = Quick
    client: Annotated[bool, Option("--client", help="Do not ask the server.")] = False
    full: Annotated[bool, Option("--full", help="List the kinds and feature gates of each release as well.")] = False
    output: opt.OutputOption = opt.Output.text
    color: opt.ColorOption = opt.Color.auto


class Shell(StrEnum):
    """The shell, or kubectl."""

    bash = "bash"
    zsh = "zsh"
    fish = "fish"
    powershell = "powershell"
    kubectl = "kubectl"


class CompletionFlags(CommandFlags, frozen=True):
    """The flags and arguments of ``completion``."""

    COMMAND = DocumentedCommand
    shell: Annotated[Shell, Argument(metavar="bash|zsh|fish|powershell|kubectl", help="The shell, or kubectl.")]
