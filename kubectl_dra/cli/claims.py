"""What ``claims`` does: read, list, report."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from kubectl_dra.cli import listing
from kubectl_dra.cli.command_line import cluster_flags
from kubectl_dra.cli.kind_words import kind_of
from kubectl_dra.cli.list_flags import ClaimsFlags
from kubectl_dra.cli.options import ConnectionFlags, TableOutput
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.cluster.time_read import moment
from kubectl_dra.errors import InputError, UsageError
from kubectl_dra.exit_codes import EXIT_NO, EXIT_UNDETERMINED
from kubectl_dra.report.json_output import write
from kubectl_dra.safe_output import put
from kubectl_dra.text import did_you_mean_or_known
from kubectl_dra.usage.claim_use import ClaimUses, claim_uses, sorted_claims

if TYPE_CHECKING:
    from kubectl_dra.usage.alignment import Alignments, Way

KINDS = ("ResourceClaim", "Pod")
"""The kinds that the table is made from."""


def run(flags: ClaimsFlags, connection: ConnectionFlags) -> int:
    """Lists and prints; returns the exit code."""
    if flags.namespace and flags.all_namespaces:
        raise UsageError("-n and -A exclude one another: -A lists the claims of all namespaces")
    if flags.full and flags.limit is not None:
        raise UsageError("--full shows all claims; leave --limit out")
    if flags.alignment:
        return _run_alignment(flags, tuple(map(_pod_name, flags.pods)), connection)
    if flags.pods:
        from kubectl_dra.cli.usage_errors import unexpected_words

        where = cluster_flags(flags, connection)
        raise unexpected_words("claims", flags.pods, files=False, namespace=flags.namespace, where=where)
    if flags.watch and flags.output not in (TableOutput.text, TableOutput.wide):
        raise UsageError("--watch shows the table: leave other outputs out")
    return listing.run(lambda: _look(flags, connection), _code, watch=flags.watch)


def _code(claim_uses: ClaimUses) -> int:
    if claim_uses.unread:
        return EXIT_UNDETERMINED
    return 0 if claim_uses.items else EXIT_NO


def _look(flags: ClaimsFlags, connection: ConnectionFlags) -> tuple[ClaimUses, Callable[[], None]]:
    """The claims, and what prints them."""
    snapshot = listing.read(flags, connection, KINDS, flags.namespace, of=flags.namespace)
    labels = listing.label_selector(flags.labels) if flags.labels else None
    uses = sorted_claims(claim_uses(snapshot, flags.namespace, flags.states, labels), flags.sort)
    return uses, lambda: _print(uses, snapshot, flags, connection)


def _print(claim_uses: ClaimUses, snapshot: Snapshot, flags: ClaimsFlags, connection: ConnectionFlags) -> None:
    from kubectl_dra.explain.driver_words import driver_notes, twice_notes

    output, where = flags.output.value, cluster_flags(flags, connection)
    notes = (*claim_uses.unread, *driver_notes(snapshot), *twice_notes(snapshot)) if output != "name" else ()
    if output in ("json", "yaml"):
        from kubectl_dra.report.claims import to_json

        write(to_json(claim_uses, notes, where), output, sys.stdout, _code(claim_uses))
    elif output == "name":
        names = (item.claim.metadata.name for item in claim_uses.items[: flags.limit])
        put("".join(f"resourceclaim.resource.k8s.io/{name}\n" for name in names))
    else:
        from kubectl_dra.report.claims import write_claims

        listing.tell_notes(notes, where)
        listing.tell_age(at := moment(snapshot))
        write_claims(
            claim_uses,
            at.at,
            flags.color.value,
            wide=flags.full or output == "wide",
            namespace=flags.namespace,
            where=where,
            limit=flags.limit,
            headers=not flags.no_headers,
        )


def _pod_name(word: str) -> str:
    kind, slash, name = word.rpartition("/")
    if not name or (slash and kind_of(kind) != "pod"):
        raise UsageError(f'"{word}" is not of the form NAME or pod/NAME')
    return name


# ``--alignment``: where devices are, and what would align those of one pod.


def _run_alignment(flags: ClaimsFlags, pods: Sequence[str], connection: ConnectionFlags) -> int:
    """Lists pods and prints; returns the exit code."""
    from kubectl_dra.cli.explain.reading import completed, read_cluster
    from kubectl_dra.cli.release import assumed
    from kubectl_dra.usage.alignment import alignments, ways_to_align

    if flags.states or flags.output in (TableOutput.name, TableOutput.wide):
        raise UsageError("--alignment lists pods: leave --state and -o wide and name out")
    snapshot, _ = read_cluster(flags, connection)
    labels = listing.label_selector(flags.labels) if flags.labels else None
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
    _print_alignment(aligned, ways, pods, flags, connection)
    return _alignment_code(aligned)


def _alignment_code(aligned: Alignments) -> int:
    from kubectl_dra.usage.alignment import Alignment

    if aligned.unread:
        return EXIT_UNDETERMINED
    if not aligned.pods:
        return EXIT_NO
    states = aligned.counts
    if Alignment.APART in states:
        return EXIT_NO
    return EXIT_UNDETERMINED if {*states} == {Alignment.UNKNOWN} else 0


def _print_alignment(
    alignments: Alignments, ways: Sequence[Way], pods: Sequence[str], flags: ClaimsFlags, connection: ConnectionFlags
) -> None:
    from kubectl_dra.report.alignment import to_json, write_alignments

    if flags.output is not TableOutput.text:
        write(to_json(alignments, ways), flags.output.value, sys.stdout, _alignment_code(alignments))
        return
    listing.tell_notes(alignments.unread)
    where = cluster_flags(flags, connection)
    write_alignments(alignments, ways, flags.color.value, where=where, limit=flags.limit, named=pods)
