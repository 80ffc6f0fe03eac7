"""What ``claims --alignment`` does: read, look where devices are, and try what would align those of one pod."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from kubectl_dra.cli.assumed import assumed
from kubectl_dra.cli.claims import ClaimsFlags, ClaimsOutput
from kubectl_dra.cli.explain import ExplainFlags
from kubectl_dra.cli.explain.reading import completed, read_cluster
from kubectl_dra.cli.label_selector import label_selector
from kubectl_dra.cli.options import ConnectionFlags, cluster_flags
from kubectl_dra.errors import InputError, UsageError
from kubectl_dra.text import did_you_mean_or_known
from kubectl_dra.usage.aligning import Way, ways_to_align
from kubectl_dra.usage.alignment import Alignment, Alignments, alignments

EXIT_APART: Final = 1
EXIT_UNDETERMINED: Final = 3


def run(asked: ClaimsFlags, pods: Sequence[str], connection: ConnectionFlags) -> int:
    """Lists pods and prints; returns the exit code.

    Raises:
        DraError: wrong usage, input that cannot be read, a cluster that does not answer.
    """
    if asked.states or asked.output in (ClaimsOutput.name, ClaimsOutput.wide):
        raise UsageError("--alignment lists pods: leave --state and -o wide and name out")
    reading = ExplainFlags(namespace=asked.namespace, snapshots=asked.snapshots, complete=asked.complete)
    snapshot, _ = read_cluster(reading, connection)
    labels = label_selector(asked.labels) if asked.labels else None
    found = alignments(snapshot, asked.namespace, labels, pods)
    known = {name for space, name in snapshot.pods if asked.namespace in ("", space)}
    if missing := [name for name in pods if name not in known]:
        place = f" in namespace {asked.namespace}" if asked.namespace else ""
        raise InputError(f"there is no pod {missing[0]}{place}; {did_you_mean_or_known(missing[0], known)}")
    ways: tuple[Way, ...] = ()
    if len(found.pods) == 1 and found.pods[0].split:
        waiting = replace(found.pods[0].pod, node_name="")
        snapshot = completed(snapshot, [waiting], reading, connection)
        ways = ways_to_align(found.pods[0], snapshot, assumed(snapshot))
    _print(found, ways, pods, asked, connection)
    if found.unread:
        return EXIT_UNDETERMINED
    if not found.pods:
        return EXIT_APART
    states = found.counts
    if Alignment.APART in states:
        return EXIT_APART
    return EXIT_UNDETERMINED if {*states} == {Alignment.UNKNOWN} else 0


def _print(
    found: Alignments, ways: Sequence[Way], pods: Sequence[str], asked: ClaimsFlags, connection: ConnectionFlags
) -> None:
    if asked.output is not ClaimsOutput.text:
        from kubectl_dra.report.alignment import to_json
        from kubectl_dra.report.table import write

        write(to_json(found, ways), asked.output.value, sys.stdout)
        return
    from kubectl_dra.report.alignment import write_alignments
    from kubectl_dra.report.notes import sentences
    from kubectl_dra.report.paint import tell

    for note in sentences(found.unread):
        tell(f"note: {note}")
    where = cluster_flags(asked, connection)
    write_alignments(found, ways, asked.color.value, where=where, limit=asked.limit, named=pods)
