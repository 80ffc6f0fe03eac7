"""``migrate`` with a cluster, live or saved: the survey, the rollout plan, and where pods could run."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from kubectl_dra.api.releases import EXPLAINED, GROUP, parse_release
from kubectl_dra.cli.live import Progress, api_server, read_saved
from kubectl_dra.cli.migrate import MigrateFlags
from kubectl_dra.cli.migrate.files import write_new
from kubectl_dra.cli.options import ConnectionFlags
from kubectl_dra.cluster.snapshot import KINDS, Snapshot
from kubectl_dra.command import ClusterFlags, CommandLine
from kubectl_dra.errors import InputError, UsageError
from kubectl_dra.manifests.inputs import find_inputs
from kubectl_dra.migrate.model import MigrationSettings

if TYPE_CHECKING:
    from kubectl_dra.migrate.model import LandingComparison, MigrationReport
    from kubectl_dra.migrate.rollout.plan import Rollout
    from kubectl_dra.migrate.rollout.survey import Survey

_SEEN = tuple(kind for kind in KINDS if kind != "Event")


class ClusterSeen(Struct, frozen=True):
    """What was read of a cluster: its objects, its workloads, and what could not be read.

    ``namespace`` is from the flags or the context, ``scope`` is the namespace in question, empty for all.
    """

    snapshot: Snapshot
    workloads: Sequence[Mapping[str, Any]] = ()
    notes: tuple[str, ...] = ()
    namespace: str = "default"
    scope: str = ""


def look(flags: MigrateFlags, connection: ConnectionFlags, *, whole: bool = False) -> ClusterSeen:
    """Read the cluster, live or saved; with ``whole`` all of it, whatever the namespace in question. Writes nothing."""
    if flags.live and flags.snapshots:
        raise UsageError("--live and --snapshot exclude one another")
    if flags.all_namespaces and flags.namespace:
        raise UsageError("-A and -n exclude one another")
    if not (flags.live or flags.snapshots):
        raise UsageError("-A and -n are about a cluster: add --live or --snapshot FILE")
    if flags.snapshots:
        return _look_at_files(flags)
    from kubectl_dra.migrate.rollout.plan import live_workloads

    cluster = api_server(connection, flags.namespace)
    scope = "" if flags.all_namespaces else cluster.namespace
    with Progress() as progress:
        snapshot = cluster.read_snapshot(_SEEN, namespace="" if whole else scope, progress=progress)
        snapshot.require_namespace(flags.namespace)
        workloads, notes = ([], []) if whole else live_workloads(cluster, scope, progress)
    return ClusterSeen(snapshot, workloads, tuple(notes), cluster.namespace, scope)


def _look_at_files(flags: MigrateFlags) -> ClusterSeen:
    from kubectl_dra.migrate.rollout.plan import file_workloads

    namespace = flags.namespace or "default"
    snapshot = read_saved(flags, namespace)
    snapshot.require_namespace(flags.namespace)
    named = [path for path in flags.snapshots if path != "-"]
    return ClusterSeen(snapshot, list(file_workloads(find_inputs(named))), (), namespace, flags.namespace)


def survey(seen: ClusterSeen, settings: MigrationSettings) -> Survey:
    """What still uses device plugins in the cluster."""
    from kubectl_dra.migrate.rollout.survey import survey as found

    return found(seen.snapshot, settings, seen.workloads, namespace=seen.scope, notes=seen.notes)


def show_survey(survey: Survey, output: str, color: str, code: int, plan: CommandLine) -> None:
    """Print the survey; ``code`` is the exit code, ``plan`` the command that writes what to do.

    Raises UsageError: an unsupported format.
    """
    if output not in ("text", "json"):
        raise UsageError(f"-o {output} is for manifests; name them, or use -o json")
    if output == "json":
        from kubectl_dra.report.json_output import write
        from kubectl_dra.report.migrate_live import to_json

        write(to_json(survey), "json", sys.stdout, code)
        return
    from kubectl_dra.report.migrate_live import write_survey

    write_survey(survey, color, plan=plan)


# --- the rollout -----------------------------------------------------------------------------------


def in_manifests(paths: Sequence[str], exclude: Sequence[str]) -> ClusterSeen:
    """The contents of manifests alone: workloads, pods, quotas, namespaces and classes.

    Raises InputError: a path that does not exist.
    """
    from kubectl_dra.cluster.builder import SnapshotBuilder
    from kubectl_dra.cluster.duplicates import Place
    from kubectl_dra.migrate.rollout.plan import file_objects, file_workloads

    inputs = find_inputs(paths, (), exclude)
    builder = SnapshotBuilder()
    twins: list[Mapping[str, Any]] = []
    for raw in file_objects(inputs):
        kind = str(raw.get("kind"))
        core = raw.get("apiVersion") == "v1" and kind in ("Pod", "ResourceQuota", "Namespace")
        if core or (kind == "DeviceClass" and str(raw.get("apiVersion")).startswith(f"{GROUP}/")):
            try:
                builder.add(dict(raw), Place(", ".join(paths)))
            except InputError:
                # Overlays and other clusters have objects of the same name; lint says what is wrong with others.
                twins += [raw] if raw["kind"] == "Pod" else []
    snapshot = builder.build()
    return ClusterSeen(snapshot, [*file_workloads(inputs), *twins])


def write_plan(
    seen: ClusterSeen, settings: MigrationSettings, folder: str, *, live: bool, where: ClusterFlags
) -> tuple[list[Path], Rollout]:
    """Write the rollout below a directory; returns its files, and what they are about.

    ``where``: the cluster that its commands are for.

    Raises InputError: a different file already exists, or one cannot be written.
    """
    from kubectl_dra.migrate.rollout.plan import files, rollout

    surveyed = survey(seen, settings)
    if not live:
        surveyed = surveyed._replace(notes=())
    target = Path(folder)
    plan = rollout(surveyed, seen.snapshot, settings, live=live)._replace(where=where)
    wanted = files(plan)
    write_new({target / name: text.encode for name, text in wanted.items()})
    return [target / name for name in wanted], plan


# --- where pods would land -------------------------------------------------------------------------


def comparisons(report: MigrationReport, seen: ClusterSeen, release: str) -> list[LandingComparison]:
    """Where each migrated pod could run in the cluster, and where it could before."""
    from kubectl_dra.cli.release import assumed
    from kubectl_dra.migrate.landing import compare

    # migrate writes for more releases than have an allocator that is modelled.
    modelled = bool(release) and parse_release(release) in EXPLAINED
    settings = assumed(seen.snapshot, release if modelled else "")
    return compare(report, seen.snapshot, settings, seen.namespace)
