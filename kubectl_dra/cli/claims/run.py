"""What ``claims`` does: read, list, report."""

from __future__ import annotations

import sys
from collections.abc import Callable

from kubectl_dra.cli.claims import ClaimsFlags, ClaimsOutput
from kubectl_dra.cli.kind_words import kind_of
from kubectl_dra.cli.label_selector import label_selector
from kubectl_dra.cli.live import Progress, connection_options, read_saved
from kubectl_dra.cli.notes import tell_age
from kubectl_dra.cli.options import ConnectionFlags, cluster_flags
from kubectl_dra.cluster.moment import moment
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.console import put
from kubectl_dra.errors import UsageError
from kubectl_dra.usage.claim_use import ClaimUses, claim_uses

KINDS = ("ResourceClaim", "Pod")
"""The kinds that the table is made from."""
EXIT_NONE = 1
EXIT_UNDETERMINED = 3


def run(asked: ClaimsFlags, connection: ConnectionFlags) -> int:
    """Lists and prints; returns the exit code.

    Raises:
        DraError: wrong usage, input that cannot be read, a cluster that does not answer.
    """
    if asked.namespace and asked.all_namespaces:
        raise UsageError("-n and -A exclude one another: -A lists the claims of all namespaces")
    if asked.alignment:
        pods = tuple(map(_pod_name, asked.pods))
        from kubectl_dra.cli.claims.alignment import run as run_alignment

        return run_alignment(asked, pods, connection)
    if asked.pods:
        from kubectl_dra.cli.unknown_command import unexpected_words

        raise unexpected_words("claims", asked.pods, files=False)
    if asked.watch and asked.output not in (ClaimsOutput.text, ClaimsOutput.wide):
        raise UsageError("--watch shows the table: leave other outputs out")
    if asked.watch:
        from kubectl_dra.cli.watched import watched

        watched(lambda: _look(asked, connection))
    found, show = _look(asked, connection)
    show()
    if found.unread:
        return EXIT_UNDETERMINED
    return 0 if found.items else EXIT_NONE


def _look(asked: ClaimsFlags, connection: ConnectionFlags) -> tuple[ClaimUses, Callable[[], None]]:
    """The claims, and what prints them."""
    snapshot = _read(asked, connection)
    snapshot.require_dra()
    labels = label_selector(asked.labels) if asked.labels else None
    found = claim_uses(snapshot, asked.namespace, asked.states, labels)
    return found, lambda: _print(found, snapshot, asked, connection)


def _print(found: ClaimUses, snapshot: Snapshot, asked: ClaimsFlags, connection: ConnectionFlags) -> None:
    output = asked.output.value
    if output in ("json", "yaml"):
        from kubectl_dra.report.claims import to_json
        from kubectl_dra.report.table import write

        write(to_json(found), output, sys.stdout)
    elif output == "name":
        names = (item.claim.metadata.name for item in found.items[: asked.limit])
        put("".join(f"resourceclaim.resource.k8s.io/{name}\n" for name in names))
    else:
        from kubectl_dra.explain.driver_words import driver_notes, twice_notes
        from kubectl_dra.report.claims import write_claims
        from kubectl_dra.report.notes import sentences
        from kubectl_dra.report.paint import tell

        for note in sentences((*found.unread, *driver_notes(snapshot), *twice_notes(snapshot))):
            tell(f"note: {note}")
        tell_age(at := moment(snapshot))
        write_claims(
            found,
            at.at,
            asked.color.value,
            wide=output == "wide",
            namespace=asked.namespace,
            where=cluster_flags(asked, connection),
            limit=asked.limit,
            headers=not asked.no_headers,
        )


def _pod_name(word: str) -> str:
    kind, slash, name = word.rpartition("/")
    if not name or (slash and kind_of(kind) != "pod"):
        raise UsageError(f'"{word}" is not of the form NAME or pod/NAME')
    return name


def _read(asked: ClaimsFlags, connection: ConnectionFlags) -> Snapshot:
    if asked.snapshots:
        with Progress() as progress:
            return read_saved(asked, progress=progress)
    from kubectl_dra.cluster.live import ApiServer

    cluster = ApiServer(connection_options(connection, asked.namespace))
    with Progress() as progress:
        return cluster.read_snapshot(KINDS, namespace=asked.namespace, progress=progress)
