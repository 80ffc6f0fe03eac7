"""What ``fit`` does: read, place, report."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from kubectl_dra.api.releases import UNTOLD
from kubectl_dra.cli.command_line import assumed_flags, cluster_flags, repeated, with_other_values
from kubectl_dra.cli.explain.reading import (
    applied,
    completed_for_new,
    read_cluster,
    read_manifest,
    scheduler_config,
    settings_of,
)
from kubectl_dra.cli.explain.target import NotThere, TypedTarget, targets_of
from kubectl_dra.cli.flags import FitFlags, FitOutput
from kubectl_dra.cli.kind_words import VOLCANO_JOB, group_of
from kubectl_dra.cli.live import Progress, api_server
from kubectl_dra.cli.options import ConnectionFlags
from kubectl_dra.cluster.apply import Server, overlay
from kubectl_dra.cluster.cluster import Cluster
from kubectl_dra.cluster.kinds import MAKER_PLURALS
from kubectl_dra.cluster.snapshot import Snapshot, stand_in
from kubectl_dra.command import ClusterFlags, CommandLine, kubectl, misnamed
from kubectl_dra.errors import FlagValueError, InputError, UndeterminedError, UsageError
from kubectl_dra.exit_codes import Verdict
from kubectl_dra.explain.phrase import say
from kubectl_dra.explain.question.new_pod import about_new_pod
from kubectl_dra.explain.settings import Settings
from kubectl_dra.fit.answer import fit
from kubectl_dra.fit.existing_pods import missing_namespaces
from kubectl_dra.fit.placed_again import with_fixed_template, with_other_order
from kubectl_dra.fit.result import FitAnswer, FitOptions
from kubectl_dra.fit.workload import DAEMON_SET, WorkloadPods, workloads_of
from kubectl_dra.report.explain_commands import Invocation
from kubectl_dra.safe_output import put
from kubectl_dra.text import did_you_mean, nearest

if TYPE_CHECKING:
    from kubectl_dra.explain.phrase import Words
    from kubectl_dra.explain.question.with_node_flag import Addition
    from kubectl_dra.explain.settings import Settings


def run(flags: FitFlags, connection: ConnectionFlags) -> int:
    """Places and prints; returns the exit code."""
    try:
        return _run(flags, connection)
    except FlagValueError as error:
        raise with_other_values(error, _invocation(flags, connection).argv) from None


def _run(flags: FitFlags, connection: ConnectionFlags) -> int:
    _check(flags)
    if flags.with_nodes:
        from kubectl_dra.explain.question.new_nodes import check

        check(flags.with_nodes)
    scheduler_config(flags, UNTOLD)
    workloads, snapshot = _read(flags, connection)
    if (flags.most or flags.replicas is not None) and all(workload.kind == DAEMON_SET for workload in workloads):
        raise UsageError("--max and --replicas count replicas, and a DaemonSet makes a pod for each node: leave it out")
    missing = missing_namespaces(workloads, snapshot)
    if missing:
        # What fits once they exist is worth more than that every pod is refused.
        snapshot = Cluster(snapshot).adding_namespaces(missing).snapshot
    settings = settings_of(flags, snapshot)
    with Progress() as progress:
        options = FitOptions(flags.replicas, flags.most)
        if flags.with_nodes:
            from kubectl_dra.fit.nodes_needed import fit_with_nodes

            said = _new_nodes(flags, workloads, snapshot, settings)
            answer = fit_with_nodes(workloads, snapshot, settings, options, progress, *said)
        else:
            answer = fit(workloads, snapshot, settings, options, progress)
            answer = with_fixed_template(answer, snapshot, settings, options, progress)
            answer = with_other_order(answer, snapshot, settings, options, progress)
            answer = _with_sharing(answer, flags, snapshot, settings, progress)
    answer = replace(answer, missing_namespaces=missing)
    if flags.output is FitOutput.html:
        from kubectl_dra.report.fit_blocks import to_html
        from kubectl_dra.report.html.page import PageOrigin

        origin = PageOrigin.of(snapshot, settings.scheduler.release)
        put(to_html(answer, origin, _invocation(flags, connection)))
    else:
        _print(answer, flags, _invocation(flags, connection))
    return answer.exit_code


def _check(flags: FitFlags) -> None:
    if not flags.manifests and not flags.target:
        raise UsageError("say what to place: -f MANIFEST, or deployment/NAME (see kubectl dra fit --help)")
    if flags.manifests and flags.target:
        raise UsageError("name a workload of the cluster, or a manifest with -f, not both")
    if flags.most and flags.replicas is not None:
        raise UsageError("--max places as many replicas as fit; leave --replicas out")


def _read(flags: FitFlags, connection: ConnectionFlags) -> tuple[list[WorkloadPods], Snapshot]:
    """The workloads of the manifest, and the cluster with everything of the manifest but its new pods."""
    target = named_workload(flags.target, flags.namespace, cluster_flags(flags, connection)) if flags.target else None
    cluster, namespace = read_cluster(flags, connection, stored=target is not None)
    if target is None:
        manifest = read_manifest(flags, namespace)
    else:
        cluster.require_namespace(flags.namespace)
        if not flags.snapshots:
            from kubectl_dra.cluster.pointed_objects import with_stored

            server = api_server(connection, flags.namespace)
            cluster = with_stored(cluster, server, [(asked_for(target), namespace)])
        manifest = stored_manifest(target, namespace, cluster)
    workloads = workloads_of(manifest)
    if not workloads:
        raise InputError(f"{', '.join(flags.manifests)} holds no pod and nothing that makes pods: nothing to place")
    # A pod that stands for those of a workload is none, and has perhaps the name of another one.
    written = {key: pod for key, pod in manifest.pods.items() if stand_in(pod) is None}
    existing = {key: pod for key, pod in written.items() if key in cluster.pods}
    snapshot = applied(cluster, replace(manifest, pods=existing), flags)
    return workloads, completed_for_new(manifest, snapshot, flags, connection)


def _new_nodes(
    flags: FitFlags, workloads: Sequence[WorkloadPods], snapshot: Snapshot, settings: Settings
) -> tuple[list[Addition], list[Words], list[Words]]:
    """The new nodes, what to say of them, and what autoscalers make of them."""
    from kubectl_dra.explain.autoscaler_limits import autoscaler_notes, taints_left_out
    from kubectl_dra.explain.on_new_nodes import doubts
    from kubectl_dra.explain.question.with_node_flag import assumed_of, filled_in, new_additions

    pods = [role.pod for workload in workloads for role in workload.roles]
    questions = [about_new_pod(pod, snapshot, settings) for pod in pods]
    added = new_additions(flags.with_nodes, questions, snapshot, settings.scheduler)
    views: list[Words] = [*autoscaler_notes(questions, added, snapshot, settings)]
    left_out = taints_left_out(questions, added, snapshot, settings)
    return added, [*doubts(added, snapshot), *left_out, *assumed_of(added), *filled_in(added)], views


def _with_sharing(
    answer: FitAnswer, flags: FitFlags, snapshot: Snapshot, settings: Settings, progress: Callable[[str], None]
) -> FitAnswer:
    """The answer with a note where all pods would run if they shared one claim, which their template does not make."""
    lacking = len(answer.workloads) == 1 and answer.workloads[0].verdict in (Verdict.PARTLY, Verdict.UNSCHEDULABLE)
    workload = answer.workloads[0].workload if answer.workloads else None
    if not lacking or workload is None or not workload.raw or flags.manifests == ("-",) or len(flags.manifests) != 1:
        return answer
    if answer.workloads[0].refused:
        return answer
    if flags.most or flags.replicas is not None or workload.size > 1:
        # Of pods that work together each has its part of the devices.
        return answer
    from kubectl_dra.fit.shared_template import read_manifest, shared_template
    from kubectl_dra.fit.sharing import SharingWay, SharingWriter
    from kubectl_dra.fit.sharing_proof import tried
    from kubectl_dra.manifests.inputs import find_inputs, read
    from kubectl_dra.manifests.source import decode

    files = find_inputs(flags.manifests)
    try:
        documents = read_manifest(decode(read(files[0]), files[0].name).text, files[0].name)
        template = shared_template(documents, files[0].name, workload.namespace, snapshot.templates)
    except InputError:
        return answer
    writer = SharingWriter(documents, template, settings.scheduler.gates)

    def overlaid(manifest: Snapshot) -> Snapshot:
        return overlay(
            snapshot, replace(manifest, pods={}), Server(settings.scheduler.release, settings.scheduler.gates)
        )

    (way,) = tried(writer, [SharingWay.CLAIM], "", snapshot, workload.namespace, settings, overlaid, progress)
    if not way.works or way.after:
        # A rollout that waits for pods which hold the devices does not come so far.
        return answer
    note = say(
        "with one claim for all pods in place of template {template} all fit, if they may share a device",
        template=template.name,
        command=CommandLine(("kubectl", "dra", "share", *repeated({"-f": flags.manifests, "-n": (flags.namespace,)}))),
    )
    return replace(answer, notes=(note, *answer.notes))


def _invocation(typed: FitFlags, connection: ConnectionFlags) -> Invocation:
    """The command line without what only refines the output."""
    where = cluster_flags(typed, connection)
    flags = {
        "-f": typed.manifests,
        "-n": (typed.namespace,),
        "--with-node": typed.with_nodes,
        "--replicas": () if typed.replicas is None else (str(typed.replicas),),
        **assumed_flags(typed),
    }
    most = ("--max",) if typed.most else ()
    argv = ("kubectl", "dra", "fit", *typed.target, *repeated(flags), *most, *where.flags)
    return Invocation(argv, where, files=typed.manifests)


def _print(answer: FitAnswer, flags: FitFlags, invocation: Invocation) -> None:
    output = flags.output.value
    if output == "text":
        from kubectl_dra.report.fit_blocks import write_fit

        diagnosis = answer.first_diagnosis if flags.explain else None
        # What follows needs no command to be seen.
        asked = invocation if diagnosis is None else invocation._replace(argv=())
        write_fit(answer, flags.color.value, invocation=asked, full=flags.full)
        if diagnosis is not None:
            from kubectl_dra.report.explain_blocks import write_text

            write_text([diagnosis], flags.color.value, invocation=invocation._replace(argv=()), full=True)
        return
    from kubectl_dra.report.fit_json import to_json
    from kubectl_dra.report.json_output import write

    write(to_json(answer, invocation), output, sys.stdout, answer.exit_code)


# A workload of the cluster by its name, as a manifest: what it would take once more, or with other replicas.


_VERSIONS: Final = {
    "": "v1",
    "apps": "apps/v1",
    "batch": "batch/v1",
    "batch.volcano.sh": "batch.volcano.sh/v1alpha1",
    "jobset.x-k8s.io": "jobset.x-k8s.io/v1alpha2",
    "leaderworkerset.x-k8s.io": "leaderworkerset.x-k8s.io/v1",
}
"""The version of a group that is asked for."""


def named_workload(words: Sequence[str], namespace: str, where: ClusterFlags) -> TypedTarget:
    """The one workload that was typed, as TYPE/NAME or TYPE NAME; ``namespace`` and ``where`` were typed besides.

    Raises UsageError: anything else.
    """
    from kubectl_dra.cli.usage_errors import like_file, unexpected_words

    if like_file(words[0]) or (len(words) == 1 and (words[0].count("/") != 1 or misnamed(words[0].split("/")))):
        raise unexpected_words("fit", words, files=True, namespace=namespace, where=where)
    targets = targets_of(words)
    target = targets[0]
    if len(targets) > 1:
        raise UsageError("fit is about one workload by its name; several are in a manifest: -f MANIFEST")
    if not group_of(target.kind) or target.kind.startswith("VirtualMachine"):
        raise UsageError(f"fit places workloads: deployment/NAME and the like, or -f MANIFEST; {target} is none")
    return target


def identity(target: TypedTarget) -> tuple[str, str]:
    """Group and kind of a workload."""
    return group_of(target.kind), "Job" if target.kind == VOLCANO_JOB else target.kind


def asked_for(target: TypedTarget) -> Mapping[str, Any]:
    """What tells a live cluster which object is meant."""
    group, kind = identity(target)
    return {"apiVersion": _VERSIONS.get(group, group), "kind": kind, "metadata": {"name": target.name}}


def stored_manifest(target: TypedTarget, namespace: str, snapshot: Snapshot) -> Snapshot:
    """The workload as a manifest would give it.

    Raises NotThere: it does not exist; UndeterminedError: it was not read.
    """
    from kubectl_dra.cluster.builder import SnapshotBuilder
    from kubectl_dra.cluster.duplicates import Place

    group, kind = identity(target)
    raw = snapshot.stored.get((group, kind, namespace, target.name))
    if raw is None:
        raise _absent(target, namespace, snapshot)
    builder = SnapshotBuilder(namespace, workloads=True)
    fields = {name: value for name, value in raw.items() if name != "status"}
    metadata = {name: value for name, value in raw["metadata"].items() if name in ("name", "namespace", "labels")}
    annotations = raw["metadata"].get("annotations") or {}
    builder.add({**fields, "metadata": {**metadata, "annotations": annotations}}, Place(str(target)))
    return builder.build()


def _absent(target: TypedTarget, namespace: str, snapshot: Snapshot) -> NotThere | UndeterminedError:
    group, kind = identity(target)
    known = [name for of, own, space, name in snapshot.stored if (of, own, space) == (group, kind, namespace)]
    title = f"{kind} {target.name} in namespace {namespace}"
    show = kubectl("get", kind=f"{target.kind.lower()}", namespace=namespace)
    if snapshot.server and (group, kind) not in MAKER_PLURALS:
        return UndeterminedError(f"{kind}s are not read from a cluster: write its manifest to a file, and say -f FILE")
    if gap := snapshot.missing(kind, namespace) if snapshot.server else None:
        return UndeterminedError(f"{title} was not read: {gap}")
    hint = did_you_mean(nearest(target.name, known))
    elsewhere = [space for of, own, space, name in snapshot.stored if (of, own, name) == (group, kind, target.name)]
    if elsewhere:
        hint = f"it is in namespace {elsewhere[0]}: did you mean -n {elsewhere[0]}?"
    what = "is not in the cluster" if snapshot.server else "is not in what was read, with its template"
    return NotThere(title, f"{title} {what}{f'; {hint}' if hint else ''}", ("What there is", show))
