"""What ``top`` does: read, count, report; with --watch again and again."""

from __future__ import annotations

import sys
from collections.abc import Callable

from kubectl_dra.api.meta import FAILED_PREPARE
from kubectl_dra.cli import listing
from kubectl_dra.cli.command_line import cluster_flags
from kubectl_dra.cli.list_flags import TopFlags
from kubectl_dra.cli.options import ConnectionFlags, Output
from kubectl_dra.cli.release import assumed
from kubectl_dra.cluster.time_read import Moment, moment
from kubectl_dra.command import ClusterFlags
from kubectl_dra.errors import UsageError
from kubectl_dra.exit_codes import EXIT_NO, EXIT_UNDETERMINED
from kubectl_dra.report.json_output import write
from kubectl_dra.usage.choices import UseBy, UseSort
from kubectl_dra.usage.counts import SORTS, UseReport, use_reports

KINDS = ("ResourceSlice", "DeviceClass", "ResourceClaim", "DeviceTaintRule", "Node", "Pod")
"""The kinds that are counted, or tell who holds devices and where drivers run."""


def run(flags: TopFlags, connection: ConnectionFlags) -> int:
    """Counts and prints; returns the exit code."""
    by = flags.by or UseBy.nodes
    if flags.sort not in (None, UseSort.name, *SORTS[by]):
        others = ", ".join(["name", *SORTS[by]])
        raise UsageError(f"--sort-by {flags.sort}: {by} are sorted by {others}")
    if flags.namespace and flags.all_namespaces:
        raise UsageError("-n and -A exclude one another: -A counts all namespaces")
    if flags.namespace and by in (UseBy.nodes, UseBy.classes):
        raise UsageError(f"-n: {by} are in no namespace; count owners or claims: top owners -n {flags.namespace}")
    if flags.full and flags.limit is not None:
        raise UsageError("--full shows all rows; leave --limit out")
    return listing.run(lambda: _look(flags, connection), _code, watch=flags.watch)


def _code(report: UseReport) -> int:
    if report.unread:
        return EXIT_UNDETERMINED
    return 0 if report.rows else EXIT_NO


def _look(flags: TopFlags, connection: ConnectionFlags) -> tuple[UseReport, Callable[[], None]]:
    """The counts, and what prints them."""
    snapshot = listing.read(flags, connection, (*KINDS, "Event"), flags.namespace, reasons=(FAILED_PREPARE,))
    settings = assumed(snapshot, flags.release, flags.gates)
    (report,) = use_reports(snapshot, settings.scheduler, (flags.by or UseBy.nodes,), flags.sort, flags.namespace)
    return report, lambda: _print(report, moment(snapshot), flags, cluster_flags(flags, connection))


def _print(report: UseReport, at: Moment, flags: TopFlags, where: ClusterFlags) -> None:
    if flags.output is Output.text:
        from kubectl_dra.report.top import MAX_ROWS, write_top

        listing.tell_notes(report.notes, where)
        if report.claims:
            listing.tell_age(at)
        limit = None if flags.full else flags.limit or MAX_ROWS
        headers = not flags.no_headers
        write_top(report, at.at, flags.color.value, limit=limit, full=flags.full, headers=headers, where=where)
    else:
        from kubectl_dra.report.top import to_json

        write(to_json(report, where), flags.output.value, sys.stdout, _code(report))
