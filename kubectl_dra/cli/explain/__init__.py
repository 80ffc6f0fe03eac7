"""What can be typed after ``kubectl dra explain``."""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum
from typing import Annotated, Final

from typer import Argument, Option

from kubectl_dra.cli import options as opt
from kubectl_dra.cli.command_line import SchedulingFlags
from kubectl_dra.errors import UsageError

SCHEDULER_CONFIG: Final = "--scheduler-config"
RELEASE: Final = ("--kubernetes-version", "--feature-gates")


class ExplainOutput(StrEnum):
    """Output formats of a diagnosis."""

    text = "text"
    json = "json"
    yaml = "yaml"
    name = "name"
    html = "html"


class ExplainFlags(SchedulingFlags, frozen=True):
    """What is typed after ``explain``."""

    target: Annotated[
        tuple[str, ...],
        Argument(
            metavar="[pod/NAME | deployment/NAME | node/NAME | NAME]...",
            help="A pod, claim, template, workload (its pod that is stuck), node, class, device or driver. Default: "
            "list everything pending.",
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
            help="Explain what this manifest would get; - is standard input.",
        ),
    ] = ()
    labels: Annotated[
        str, Option("--selector", "-l", metavar="LABELS", help="The pod that is stuck of those with these labels.")
    ] = ""
    namespace: opt.Namespace = ""
    at: Annotated[
        str,
        Option(
            "--at",
            metavar="TIME",
            help="As it was then (2026-11-24T03:00Z, or 8h for eight hours ago): of the directory of --snapshot, which "
            "snapshot --every has filled, the last one before.",
        ),
    ] = ""
    node: Annotated[str, Option("--node", metavar="NODE", help="Only this node.")] = ""
    request: Annotated[str, Option("--request", metavar="NAME", help="Only this request (or request/subrequest).")] = ""
    with_devices: Annotated[
        bool, Option("--devices", help="List every device and the first reason why it is refused.")
    ] = False
    full: Annotated[
        bool,
        Option(
            "--full",
            help="Show everything behind the answer, not only fifteen lines; of a list, each in a row of its own.",
        ),
    ] = False
    trace: Annotated[
        str,
        Option(
            "--trace",
            metavar="DEVICE",
            help="Evaluate each part of the selectors on one device ([driver/]pool/device).",
        ),
    ] = ""
    what_if: Annotated[
        tuple[str, ...],
        Option(
            "--what-if",
            metavar="CHANGE",
            help="Answer as if something were different; may be repeated. [REQUEST:]count=N, class=NAME, selector=CEL, "
            "capacity=NAME=QUANTITY or toleration=KEY[=VALUE][:EFFECT]; constraints=none, free=[NAMESPACE/]CLAIM, "
            "end=[NAMESPACE/]POD, untaint=DEVICE. REQUEST may be REQUEST/SUBREQUEST, and CLAIM/REQUEST where several "
            "claims have such a request.",
        ),
    ] = ()
    with_nodes: opt.WithNodes = ()
    all_claims: Annotated[
        bool, Option("--all", help="A table of every pending claim of the namespace, with its first cause.")
    ] = False
    all_namespaces: Annotated[bool, Option("--all-namespaces", "-A", help="Like --all, for all namespaces.")] = False
    no_headers: Annotated[
        bool, Option("--no-headers", help="Of the list of what is pending only the rows, each on one line.")
    ] = False
    cause: Annotated[str, Option("--explain", metavar="CAUSE", help="Print the page of one cause and exit.")] = ""
    message: Annotated[
        str,
        Option(
            "--message",
            metavar="TEXT",
            help="Say what a message of the kubelet or of a driver means, without any cluster; - reads standard input.",
        ),
    ] = ""
    watch: Annotated[
        bool, Option("--watch", "-w", help="Print the answer whenever it changes; end once allocated.")
    ] = False
    verify: Annotated[
        bool, Option("--verify", help="Evaluate selectors with cel-python as well and report differences.")
    ] = False
    output: Annotated[
        ExplainOutput,
        Option(
            "--output",
            "-o",
            help="Output format; name lists what is pending, html is one page with the fleet as a picture.",
        ),
    ] = ExplainOutput.text
    scheduler_config: opt.SchedulerConfigOption = ""
    color: opt.ColorOption = opt.Color.auto
    release: opt.ReleaseOption = ""
    gates: opt.GatesOption = ()

    @property
    def whole_page(self) -> bool:
        """Whether the text has to show what only the full page does."""
        return self.full or self.with_devices or self.verify or bool(self.trace or self.request)

    @property
    def summary(self) -> bool:
        """Whether nothing is named, so that what is pending is to be listed in short."""
        return not (self.target or self.labels or self.manifests or self.all_claims or self.all_namespaces)

    @property
    def everything(self) -> bool:
        """Whether all that is pending is asked about, of one namespace or of all."""
        return self.all_claims or self.all_namespaces or self.summary

    @property
    def of_all_namespaces(self) -> bool:
        """Whether what is pending in all namespaces is asked about."""
        return self.all_namespaces or (self.summary and not self.namespace)

    def refuse(self, needed: str, allowed: Collection[str]) -> None:
        """Refuse each flag that would change nothing about the answer, unless it is ``allowed``.

        Raises UsageError: such a flag was given; it says what is ``needed``.
        """
        release, gates = RELEASE
        for flag, given in (
            ("--what-if", self.what_if),
            ("--with-node", self.with_nodes),
            ("--watch", self.watch),
            ("--trace", self.trace),
            ("--verify", self.verify),
            ("--request", self.request),
            ("--node", self.node),
            ("-f", self.manifests),
            (SCHEDULER_CONFIG, self.scheduler_config),
            (release, self.release),
            (gates, self.gates),
        ):
            if given and flag not in allowed:
                raise UsageError(f"{flag} needs {needed}")
