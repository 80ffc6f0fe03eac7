"""``kubectl dra explain``: why a pod or claim is pending."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from kubectl_dra.cli import options as opt

HELP = """Say why a pod or a claim gets no devices, by doing locally what the scheduler does.

Reads the live cluster, or a snapshot with --snapshot. Never writes.

\b
Examples:
  # why is this pod pending?
  kubectl dra explain pod/train-0 -n ml
  # the same, on saved objects (kubectl get ... -o json)
  kubectl dra explain pod/train-0 -n ml --snapshot cluster.json
  # would this manifest be scheduled?
  kubectl dra explain -f pod.yaml
  # every device and the reason it is refused
  kubectl dra explain claim/gpus -n ml --devices
  # would two devices be had?
  kubectl dra explain pod/train-0 -n ml --what-if count=2
  # every pending claim of the cluster, with its first cause
  kubectl dra explain -A
  # each part of the selectors on one device
  kubectl dra explain claim/gpus -n ml --trace gpu-node-1/gpu-0
  # one page with the fleet as a picture, to attach to a ticket
  kubectl dra explain pod/train-0 -n ml -o html > train-0.html

\b
Exit codes:
  0  allocated, or can be allocated
  1  cannot be allocated
  2  error: usage, input, connection
  3  undetermined: something that decides could not be seen or is not modelled
"""


class ExplainOutput(StrEnum):
    """Output formats of a diagnosis."""

    text = "text"
    json = "json"
    yaml = "yaml"
    html = "html"


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("explain", help=HELP, cls=opt.ClusterCommand)(explain)


def explain(
    context: typer.Context,
    target: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[pod/NAME | claim/NAME]", help="The pod or claim; pod NAME is as good.", show_default=False
        ),
    ] = None,
    filename: Annotated[
        list[str] | None,
        typer.Option(
            "--filename",
            "-f",
            metavar="MANIFEST",
            callback=opt.no_empty_path,
            help="Explain what this manifest would get; - is standard input.",
        ),
    ] = None,
    namespace: opt.Namespace = "",
    snapshot: opt.Snapshots = None,
    node: Annotated[str, typer.Option("--node", metavar="NODE", help="Look at this node only.")] = "",
    request: Annotated[
        str, typer.Option("--request", metavar="NAME", help="Show this request (or request/subrequest) only.")
    ] = "",
    devices: Annotated[
        bool, typer.Option("--devices", help="List every device and the first reason that refuses it.")
    ] = False,
    trace: Annotated[
        str,
        typer.Option(
            "--trace",
            metavar="DEVICE",
            help="Show every part of the selectors on one device ([driver/]pool/device).",
        ),
    ] = "",
    what_if: Annotated[
        list[str] | None,
        typer.Option(
            "--what-if",
            metavar="CHANGE",
            help="Answer as if something were different; may be repeated. [REQUEST:]count=N, class=NAME, selector=CEL, "
            "capacity=NAME=QUANTITY or toleration=KEY[=VALUE][:EFFECT]; constraints=none, free=NAMESPACE/CLAIM, "
            "untaint=DEVICE.",
        ),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="A table of every pending claim of the namespace, with its first cause.")
    ] = False,
    all_namespaces: Annotated[
        bool, typer.Option("--all-namespaces", "-A", help="As --all, for all namespaces.")
    ] = False,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Answer again whenever the answer changes; end when it is allocated.")
    ] = False,
    verify: Annotated[
        bool,
        typer.Option("--verify", help="Evaluate selectors with cel-python as well and report differences."),
    ] = False,
    output: Annotated[
        ExplainOutput,
        typer.Option("--output", "-o", help="Output format; html is one page with the fleet as a picture."),
    ] = ExplainOutput.text,
    color: opt.ColorOption = opt.Color.auto,
    kubernetes_version: opt.ReleaseOption = "",
    feature_gates: opt.GatesOption = None,
) -> None:
    from kubectl_dra.cli.explain import run as explain_run

    asked = explain_run.Asked(
        target=tuple(target or ()),
        manifests=tuple(filename or ()),
        namespace=namespace,
        snapshots=tuple(snapshot or ()),
        node=node,
        request=request,
        with_devices=devices,
        trace=trace,
        verify=verify,
        what_if=tuple(what_if or ()),
        everything=everything or all_namespaces,
        all_namespaces=all_namespaces,
        watch=watch,
        release=kubernetes_version,
        gates=tuple(feature_gates or ()),
    )
    raise typer.Exit(explain_run.run(asked, opt.connection_of(context), output.value, color.value))
