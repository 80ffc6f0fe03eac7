"""What a question is about as it is read: a cluster, a manifest, and what is assumed of them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from kubectl_dra.api.pods import Pod
from kubectl_dra.cli.command_line import SchedulingFlags
from kubectl_dra.cli.explain import ExplainFlags
from kubectl_dra.cli.explain.target import TypedTarget, is_elsewhere
from kubectl_dra.cli.live import Progress, api_server, read_kinds, read_live, read_saved, seconds, with_neighbours
from kubectl_dra.cli.options import ConnectionFlags
from kubectl_dra.cli.release import assumed
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.cluster.time_read import parse, stamp
from kubectl_dra.errors import UsageError
from kubectl_dra.explain.settings import Settings
from kubectl_dra.report.color import tell
from kubectl_dra.scheduling.kinds_to_read import kinds_needed, selecting_kinds
from kubectl_dra.scheduling.profile import default_profile
from kubectl_dra.text import nearest

if TYPE_CHECKING:
    from kubectl_dra.api.releases import Release
    from kubectl_dra.cluster.apply import Server
    from kubectl_dra.cluster.snapshot import Snapshot
    from kubectl_dra.scheduling.scheduler_config import SchedulerConfig


def applied(cluster: Snapshot, manifest: Snapshot, flags: SchedulingFlags) -> Snapshot:
    """The cluster after its API server applied a manifest, which may make the namespace that was typed.

    Raises InputError: there is no such namespace.
    """
    from kubectl_dra.cluster.apply import overlay
    from kubectl_dra.neighbours.operators import with_channel_templates

    manifest = with_channel_templates(manifest, cluster)
    if flags.namespace not in manifest.namespaces:
        cluster.require_namespace(flags.namespace)
    return overlay(cluster, manifest, server_of(flags, cluster))


def server_of(flags: SchedulingFlags, snapshot: Snapshot) -> Server:
    from kubectl_dra.cluster.apply import Server

    settings = assumed(snapshot, flags.release, flags.gates)
    return Server(settings.scheduler.release, settings.scheduler.gates)


def read_cluster(
    flags: SchedulingFlags,
    connection: ConnectionFlags,
    targets: Sequence[TypedTarget] = (),
    *,
    everything: bool = False,
    stored: bool = False,
) -> tuple[Snapshot, str]:
    """The snapshot and the namespace meant. ``everything``: all that is pending is asked about.

    ``stored``: workloads of a snapshot are kept as they are, which a manifest wants anyway.

    Raises:
        NoDRA: the cluster does not serve resource.k8s.io.
        InputError: there is no such namespace; where a manifest may make it, ``applied`` says so.
    """
    if flags.snapshots:
        namespace = flags.namespace or "default"
        with Progress() as progress:
            snapshot = read_saved(
                flags, namespace, compact=True, progress=progress, stored=stored or bool(flags.manifests)
            )
    else:
        pod = targets[0].name if len(targets) == 1 and targets[0].kind == "pod" else ""
        snapshot, namespace = read_live(connection, flags.namespace, compact=True, everything=everything, pod=pod)
    snapshot.require_dra()
    misspelt = bool(nearest(flags.namespace, snapshot.namespaces))
    if not flags.manifests and (misspelt or not any(is_elsewhere(target, snapshot) for target in targets)):
        snapshot.require_namespace(flags.namespace)
    return snapshot, namespace


def read_manifest(flags: SchedulingFlags, namespace: str, *, target: bool = False) -> Snapshot:
    """The objects of the manifest; what names no namespace is put into this one.

    With a ``target``, the namespace that was typed is that of the target, and objects may be in any.

    Raises InputError: an object of another namespace than the one that was typed.
    """
    from kubectl_dra.cluster.files import read_snapshot
    from kubectl_dra.cluster.workload_pods import with_own_volumes

    return with_own_volumes(
        read_snapshot(
            list(flags.manifests), namespace=namespace, workloads=True, only="" if target else flags.namespace
        )
    )


def completed(
    snapshot: Snapshot,
    pods: Iterable[Pod],
    flags: SchedulingFlags,
    connection: ConnectionFlags,
    *,
    everything: bool = False,
) -> Snapshot:
    """The live cluster with the further kinds that affect these pods while they wait, and who else decides of them."""
    if flags.snapshots:
        return snapshot
    from kubectl_dra.neighbours.pointers import pointers

    pods = tuple(pods)
    kinds = kinds_to_complete(snapshot, pods, flags, everything=everything)
    snapshot = _with_kinds(kinds, snapshot, flags, connection)
    return with_neighbours(snapshot, lambda known: pointers(pods, known), connection, flags.namespace)


def completed_for_new(
    manifest: Snapshot, snapshot: Snapshot, flags: SchedulingFlags, connection: ConnectionFlags
) -> Snapshot:
    """The same for the pods that a manifest would make, with what decides whether they are admitted."""
    from kubectl_dra.explain.question.new_pod import about_new_pod

    snapshot = with_what_decides(snapshot, manifest, flags, connection)
    settings = settings_of(flags, snapshot)
    pods = [about_new_pod(pod, snapshot, settings).pod for pod in manifest.pods.values()]
    return completed(snapshot, [pod for pod in pods if pod is not None], flags, connection)


def all_completed(snapshot: Snapshot, flags: SchedulingFlags, connection: ConnectionFlags) -> Snapshot:
    """The same for all pods; who else decides is read for those that need devices."""
    if flags.snapshots:
        return snapshot
    from kubectl_dra.explain.pending_alike import pods_with_devices
    from kubectl_dra.neighbours.pointers import pointers

    waiting = [pod for pod in snapshot.pods.values() if not pod.finished]
    kinds = kinds_to_complete(snapshot, waiting, flags, everything=True)
    snapshot = _with_kinds(kinds, snapshot, flags, connection)
    settings = settings_of(flags, snapshot)
    return with_neighbours(
        snapshot, lambda known: pointers(pods_with_devices(known, settings), known), connection, flags.namespace
    )


def _with_kinds(
    wanted: Iterable[tuple[str, str]], snapshot: Snapshot, flags: SchedulingFlags, connection: ConnectionFlags
) -> Snapshot:
    """The live cluster with further kinds, each of a namespace, or of all where that is empty."""
    kinds = {space: tuple(kind for _, kind in rows) for space, rows in groupby(sorted({*wanted}), key=itemgetter(0))}
    if not kinds:
        return snapshot
    from kubectl_dra.cluster.apply import with_kinds
    from kubectl_dra.cluster.transport import side_by_side

    cluster = api_server(connection, flags.namespace)
    with Progress() as progress:

        def read(space: str) -> Iterator[Snapshot]:
            yield cluster.read_snapshot(kinds[space], namespace=space, progress=progress)

        answers = dict(side_by_side([partial(read, space) for space in kinds]))
    for index, names in enumerate(kinds.values()):
        snapshot = with_kinds(snapshot, answers[index], names, server_of(flags, snapshot))
    return snapshot


def kinds_to_complete(
    snapshot: Snapshot, pods: Iterable[Pod], flags: SchedulingFlags, *, everything: bool
) -> Iterator[tuple[str, str]]:
    """The further kinds that affect those of these pods that wait, each with its namespace, or empty for all."""
    lowest = min((pod.priority for pod in snapshot.pods.values() if pod.node_name), default=None)
    settings = settings_of(flags, snapshot)
    for pod in pods:
        if pod.node_name:
            continue
        yield from (("", kind) for kind in kinds_needed(pod, lowest))
        profile = settings.scheduler.profile_of(pod) or default_profile(settings.scheduler.release)
        if not everything or any(constraint.required for constraint in profile.args.spread.constraints):
            yield from ((pod.metadata.namespace, kind) for kind in selecting_kinds(pod, profile))


def with_daemon_sets(snapshot: Snapshot, connection: ConnectionFlags) -> Snapshot:
    """The live cluster with its DaemonSets, and the events about pods that nobody can make: two requests."""
    from kubectl_dra.cluster.apply import with_events, with_kinds
    from kubectl_dra.drivers.daemons import NO_POD_MADE

    more = read_kinds(connection, "", ("DaemonSet", "Event"), reasons=(NO_POD_MADE,))
    return with_events(with_kinds(snapshot, more, ("DaemonSet",)), more)


def with_admission(
    snapshot: Snapshot, manifest: Snapshot, flags: SchedulingFlags, connection: ConnectionFlags
) -> Snapshot:
    """The live cluster with what decides whether the API server takes the pods of a manifest, by namespace."""
    if flags.snapshots:
        return snapshot
    from kubectl_dra.admission.admit import kinds_needed as kinds_to_admit

    needed = ((space, kind) for (space, _), pod in manifest.pods.items() for kind in kinds_to_admit(pod))
    return _with_kinds(needed, snapshot, flags, connection)


def with_what_decides(
    snapshot: Snapshot, manifest: Snapshot, flags: SchedulingFlags, connection: ConnectionFlags
) -> Snapshot:
    """The same, and the workloads of the manifest as the cluster has them: those with pods, and Jobs."""
    snapshot = with_admission(snapshot, manifest, flags, connection)
    if flags.snapshots or not manifest.workloads:
        return snapshot
    from kubectl_dra.cluster.pointed_objects import with_stored
    from kubectl_dra.fit.existing_pods import pods_of
    from kubectl_dra.fit.workload import makers_of

    there = [each for each in makers_of(manifest) if each.kind == "Job" or pods_of(each, snapshot)]
    if not there:
        return snapshot
    server = api_server(connection, flags.namespace)
    return with_stored(snapshot, server, [(each.raw, each.namespace) for each in there])


def settings_of(flags: SchedulingFlags, snapshot: Snapshot) -> Settings:
    """The release, gates and scheduler to assume."""
    settings = assumed(snapshot, flags.release, flags.gates)
    scheduler = settings.scheduler
    return replace(settings, scheduler=scheduler.changed(config=scheduler_config(flags, scheduler.release)))


def asked_settings(flags: ExplainFlags, snapshot: Snapshot) -> Settings:
    """The same, and which parts of the answer are requested."""
    settings = settings_of(flags, snapshot)
    return replace(settings, node=flags.node, request=flags.request, with_devices=flags.with_devices)


def scheduler_config(flags: SchedulingFlags, release: Release) -> SchedulerConfig | None:
    """The scheduler's configuration, if given."""
    if not flags.scheduler_config:
        return None
    from kubectl_dra.scheduling.scheduler_config import read_config

    return read_config(flags.scheduler_config, release)


# ``explain --at TIME``: which of the snapshots that ``snapshot --every`` took is meant.


def taken_then(text: str, folders: Sequence[str]) -> str:
    """The path of the last snapshot before a time, which is said.

    Raises UsageError: no time, or not one directory; InputError: there is no such snapshot.
    """
    from kubectl_dra.cluster.files import last_before

    if len(folders) != 1 or not Path(folders[0]).is_dir():
        raise UsageError("--at chooses among the files of kubectl dra snapshot --every: add --snapshot DIRECTORY")
    recording = last_before(Path(folders[0]), _time(text))
    tell(f"note: answered from {recording.path}, taken at {stamp(recording.at)}")
    return str(recording.path)


def _time(text: str) -> datetime:
    """A time of RFC 3339, or so long ago. Raises UsageError."""
    at = parse(text)
    if at is not None:
        return at
    try:
        return datetime.fromtimestamp(time.time() - seconds(text, "--at"), UTC)
    except UsageError:
        hint = "2026-11-24T03:00Z, 2026-11-24T04:00+01:00, or 8h for eight hours ago"
        raise UsageError(f'--at: "{text}" is no time, such as {hint}') from None
