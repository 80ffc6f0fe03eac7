"""What ``claims --alignment`` does: read, look where devices are, and try what would align those of one pod."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from msgspec.structs import replace

from kubectl_dra.cli import listing
from kubectl_dra.cli.claims import ClaimsFlags
from kubectl_dra.cli.command_line import cluster_flags
from kubectl_dra.cli.explain.reading import completed, read_cluster
from kubectl_dra.cli.label_selector import label_selector
from kubectl_dra.cli.options import ConnectionFlags, TableOutput
from kubectl_dra.cli.release import assumed
from kubectl_dra.errors import InputError, UsageError
from kubectl_dra.exit_codes import EXIT_NO, EXIT_UNDETERMINED
from kubectl_dra.report.structured import write
from kubectl_dra.text import did_you_mean_or_known
from kubectl_dra.usage.alignment import Alignment, Alignments, Way, alignments, ways_to_align


def run(flags: ClaimsFlags, pods: Sequence[str], connection: ConnectionFlags) -> int:
    """Lists pods and prints; returns the exit code.

    Raises:
        DraError: wrong usage, input that cannot be read, a cluster that does not answer.
    """
    if flags.states or flags.output in (TableOutput.name, TableOutput.wide):
        raise UsageError("--alignment lists pods: leave --state and -o wide and name out")
    snapshot, _ = read_cluster(flags, connection)
    labels = label_selector(flags.labels) if flags.labels else None
    aligned = alignments(snapshot, flags.namespace, labels, pods)
    known = {name for space, name in snapshot.pods if flags.namespace in ("", space)}
    if missing := [name for name in pods if name not in known]:
        place = f" in namespace {flags.namespace}" if flags.namespace else ""
        raise InputError(f"there is no pod {missing[0]}{place}; {did_you_mean_or_known(missing[0], known)}")
    ways: tuple[Way, ...] = ()
    if len(aligned.pods) == 1 and aligned.pods[0].split:
        waiting = replace(aligned.pods[0].pod, node_name="")
        snapshot = completed(snapshot, [waiting], flags, connection)
        ways = ways_to_align(aligned.pods[0], snapshot, assumed(snapshot))
    _print(aligned, ways, pods, flags, connection)
    return _code(aligned)


def _code(aligned: Alignments) -> int:
    if aligned.unread:
        return EXIT_UNDETERMINED
    if not aligned.pods:
        return EXIT_NO
    states = aligned.counts
    if Alignment.APART in states:
        return EXIT_NO
    return EXIT_UNDETERMINED if {*states} == {Alignment.UNKNOWN} else 0


def _print(
    alignments: Alignments, ways: Sequence[Way], pods: Sequence[str], flags: ClaimsFlags, connection: ConnectionFlags
) -> None:
    if flags.output is not TableOutput.text:
        from kubectl_dra.report.alignment import to_json

        write(to_json(alignments, ways), flags.output.value, sys.stdout, _code(alignments))
        return
    from kubectl_dra.report.alignment import write_alignments

    listing.tell_notes(alignments.unread)
    where = cluster_flags(flags, connection)
    write_alignments(alignments, ways, flags.color.value, where=where, limit=flags.limit, named=pods)
