"""``taint --list``: every taint of the cluster."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from kubectl_dra.cli.notes import tell_age
from kubectl_dra.cli.options import ConnectionFlags
from kubectl_dra.cli.taint import session
from kubectl_dra.cluster.moment import moment
from kubectl_dra.cluster.snapshot import ABSENT, Snapshot
from kubectl_dra.report import taint_text as text
from kubectl_dra.taint.listing import list_taints

TAINTED_BY = ("ResourceSlice", "DeviceTaintRule")
KINDS = ("ResourceSlice", "DeviceTaintRule", "ResourceClaim", "Node")


def run(connection: ConnectionFlags, asked: session.SavedWorld, output: str, color: str) -> int:
    """List and print; returns the exit code, which is 3 where taints may be there that could not be read.

    Raises:
        UndeterminedError: the ResourceSlices, which have taints, could not be read.
        DraError: a cluster that does not answer, or unreadable input.
    """
    world = session.read_world(connection, asked, kinds=KINDS, rules=False)
    at = moment(world.snapshot)
    lines = list_taints(world.inventory.rows, world.snapshot, at.at)
    notes = [*_not_seen(world.snapshot)]
    code = session.EXIT_UNDETERMINED if world.snapshot.unread(TAINTED_BY) else 0
    if output in ("json", "yaml"):
        from kubectl_dra.report.structured import write
        from kubectl_dra.report.taint_json import list_json

        write(list_json(lines, notes), output, sys.stdout)
        return code
    for note in notes:
        session.say(f"note: {note}")
    if output == "name":
        text.write_rule_names(lines, sys.stdout)
    else:
        tell_age(at)
        text.write_list(lines, color, at=at.at, all_seen=not code)
    return code


def _not_seen(snapshot: Snapshot) -> Iterator[str]:
    for gap in snapshot.unread(KINDS):
        who = ": who uses a device is not known" if gap.kind == "ResourceClaim" else gap.help
        if gap.reason != ABSENT or gap.kind in (*TAINTED_BY, "ResourceClaim"):
            yield f"not seen: {gap}{who}"
