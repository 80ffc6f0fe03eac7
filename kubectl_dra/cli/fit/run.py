"""What ``fit`` does: read, place, report."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from kubectl_dra.api.releases import UNTOLD
from kubectl_dra.cli.explain import ExplainFlags
from kubectl_dra.cli.explain.questions import new_nodes
from kubectl_dra.cli.explain.reading import (
    applied,
    completed,
    read_cluster,
    read_manifest,
    scheduler_config,
    settings_of,
    with_admission,
)
from kubectl_dra.cli.fit import FitFlags, FitOutput
from kubectl_dra.cli.live import Progress
from kubectl_dra.cli.options import ConnectionFlags, cluster_flags, repeated
from kubectl_dra.cluster.apply import Server
from kubectl_dra.cluster.overlay import overlay
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.console import put
from kubectl_dra.errors import InputError, UsageError
from kubectl_dra.explain.diagnosis import Verdict
from kubectl_dra.explain.phrase import say
from kubectl_dra.explain.question.new_pod import about_new_pod
from kubectl_dra.explain.settings import Settings
from kubectl_dra.fit.answer import FitOptions, diagnosis_of, fit
from kubectl_dra.fit.result import FitAnswer
from kubectl_dra.fit.workload import WorkloadPods, workloads_of
from kubectl_dra.report.explain_words import Invocation

if TYPE_CHECKING:
    from kubectl_dra.explain.phrase import Words
    from kubectl_dra.explain.question.new_nodes import Addition
    from kubectl_dra.explain.settings import Settings


def run(asked: FitFlags, connection: ConnectionFlags) -> int:
    """Places and prints; returns the exit code.

    Raises:
        DraError: wrong usage, input that cannot be read, a cluster that does not answer.
    """
    _check(asked)
    # The cluster is read as ``explain -f`` reads it.
    reading = ExplainFlags(
        manifests=asked.manifests,
        namespace=asked.namespace,
        snapshots=asked.snapshots,
        complete=asked.complete,
        scheduler_config=asked.scheduler_config,
        release=asked.release,
        gates=asked.gates,
        with_nodes=asked.with_nodes,
    )
    new_nodes(reading)
    scheduler_config(reading, UNTOLD)
    workloads, snapshot = _read(reading, connection)
    settings = settings_of(reading, snapshot)
    with Progress() as progress:
        options = FitOptions(asked.replicas, asked.most)
        if asked.with_nodes:
            from kubectl_dra.fit.new_nodes import fit_with_nodes

            added, notes = _new_nodes(reading, workloads, snapshot, settings)
            answer = fit_with_nodes(workloads, snapshot, settings, options, progress, added, notes)
        else:
            answer = fit(workloads, snapshot, settings, options, progress)
            answer = _with_sharing(answer, asked, snapshot, settings, progress)
    if asked.output is FitOutput.html:
        from kubectl_dra.report.fit_blocks import to_html
        from kubectl_dra.report.html.page import PageOrigin

        origin = PageOrigin.of(snapshot, settings.scheduler.release)
        put(to_html(answer, origin, _invocation(asked, connection)))
    else:
        _print(answer, asked, _invocation(asked, connection))
    return answer.exit_code


def _check(asked: FitFlags) -> None:
    if not asked.manifests:
        raise UsageError("say what to place: -f MANIFEST (see kubectl dra fit --help)")
    if asked.most and asked.replicas is not None:
        raise UsageError("--max places as many replicas as fit; leave --replicas out")


def _read(asked: ExplainFlags, connection: ConnectionFlags) -> tuple[list[WorkloadPods], Snapshot]:
    """The workloads of the manifest, and the cluster with everything of the manifest but its new pods."""
    cluster, namespace = read_cluster(asked, connection)
    manifest = read_manifest(asked, namespace)
    workloads = workloads_of(manifest)
    if not workloads:
        raise InputError(f"{', '.join(asked.manifests)} holds no pod and nothing that makes pods: nothing to place")
    existing = {key: pod for key, pod in manifest.pods.items() if key in cluster.pods}
    snapshot = applied(cluster, replace(manifest, pods=existing), asked)
    snapshot = with_admission(snapshot, manifest, asked, connection)
    settings = settings_of(asked, snapshot)
    pods = [about_new_pod(pod, snapshot, settings).pod for pod in manifest.pods.values()]
    return workloads, completed(snapshot, [pod for pod in pods if pod is not None], asked, connection)


def _new_nodes(
    asked: ExplainFlags, workloads: Sequence[WorkloadPods], snapshot: Snapshot, settings: Settings
) -> tuple[list[Addition], list[Words]]:
    """The new nodes, and what to say of them."""
    from kubectl_dra.explain.autoscaling import autoscaler_notes
    from kubectl_dra.explain.question.new_nodes import additions, assumed_of, require_known

    added = additions(new_nodes(asked), snapshot)
    pods = [role.pod for workload in workloads for role in workload.roles]
    questions = [about_new_pod(pod, snapshot, settings) for pod in pods]
    require_known(added, questions, snapshot, settings.scheduler)
    return added, [*autoscaler_notes(questions, added, snapshot, settings), *assumed_of(added)]


def _with_sharing(
    answer: FitAnswer, asked: FitFlags, snapshot: Snapshot, settings: Settings, progress: Callable[[str], None]
) -> FitAnswer:
    """The answer with a note where all pods would run if they shared one claim, which their template does not make."""
    lacking = len(answer.workloads) == 1 and answer.workloads[0].verdict in (Verdict.PARTLY, Verdict.UNSCHEDULABLE)
    workload = answer.workloads[0].workload if answer.workloads else None
    if not lacking or workload is None or not workload.raw or asked.manifests == ("-",) or len(asked.manifests) > 1:
        return answer
    if asked.most or asked.replicas is not None or workload.size > 1:
        # Of pods that work together each has its part of the devices.
        return answer
    from kubectl_dra.fit.sharing import SharingWay, SharingWriter, read_manifest, shared_template
    from kubectl_dra.fit.sharing_proof import tried
    from kubectl_dra.manifests.inputs import find_inputs, read
    from kubectl_dra.manifests.source import decode

    found = find_inputs(asked.manifests)
    try:
        documents = read_manifest(decode(read(found[0]), found[0].name).text, found[0].name)
        template = shared_template(documents, found[0].name, workload.namespace, snapshot.templates)
    except InputError:
        return answer
    writer = SharingWriter(documents, template, settings.scheduler.release)

    def overlaid(manifest: Snapshot) -> Snapshot:
        return overlay(
            snapshot, replace(manifest, pods={}), Server(settings.scheduler.release, settings.scheduler.gates)
        )

    (one,) = tried(writer, [SharingWay.CLAIM], "", snapshot, workload.namespace, settings, overlaid, progress)
    if not one.works:
        return answer
    note = say(
        "template {template} makes a claim for each pod; with one claim for all of them all fit, if they may share a "
        "device (kubectl dra share)",
        template=template.name,
    )
    return replace(answer, notes=(note, *answer.notes))


def _invocation(asked: FitFlags, connection: ConnectionFlags) -> Invocation:
    """The command line without what only refines the output."""
    where = cluster_flags(asked, connection)
    flags = {
        "-f": asked.manifests,
        "-n": (asked.namespace,),
        "--with-node": asked.with_nodes,
        "--replicas": () if asked.replicas is None else (str(asked.replicas),),
        "--kubernetes-version": (asked.release,),
        "--feature-gates": asked.gates,
        "--scheduler-config": (asked.scheduler_config,),
    }
    most = ("--max",) if asked.most else ()
    return Invocation(("kubectl", "dra", "fit", *repeated(flags), *most, *where.flags), where)


def _print(answer: FitAnswer, asked: FitFlags, invocation: Invocation) -> None:
    output = asked.output.value
    if output == "text":
        from kubectl_dra.report.fit_blocks import write_fit

        write_fit(answer, asked.color.value, invocation=invocation)
        diagnosis = diagnosis_of(answer) if asked.explain else None
        if diagnosis is not None:
            from kubectl_dra.report.explain_blocks import write_text

            put("\n")
            write_text([diagnosis], asked.color.value, invocation=invocation._replace(argv=()), full=True)
        return
    from kubectl_dra.report.fit_json import to_json
    from kubectl_dra.report.table import write

    write(to_json(answer), output, sys.stdout)
