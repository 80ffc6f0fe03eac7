"""``snapshot``: read, reduce, replace names on request, write one file."""

from __future__ import annotations

import secrets
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TextIO

from kubectl_dra.api.neighbour_kinds import NEIGHBOUR_KINDS
from kubectl_dra.cli.live import Progress, connection_options
from kubectl_dra.cli.options import ConnectionFlags
from kubectl_dra.cli.snapshot import SnapshotFlags
from kubectl_dra.cluster.anonymize import Anonymizer
from kubectl_dra.cluster.builder import SnapshotBuilder
from kubectl_dra.cluster.copies import Place
from kubectl_dra.cluster.kinds import SCHEDULING_KINDS
from kubectl_dra.cluster.live import About, ApiServer
from kubectl_dra.cluster.save import (
    Recorder,
    check_target,
    record_files,
    said,
    write_file,
    write_list,
)
from kubectl_dra.cluster.snapshot import ABSENT, KINDS, Snapshot
from kubectl_dra.errors import UsageError
from kubectl_dra.report.paint import tell
from kubectl_dra.report.table import json_text
from kubectl_dra.scheduling.kinds_to_read import CONTROLLERS

STDOUT = "-"
YAML = (".yaml", ".yml")
SAVED_KINDS = tuple(kind for kind in SCHEDULING_KINDS if kind not in ("Service", *CONTROLLERS, *NEIGHBOUR_KINDS))
"""What decides about a pod besides ``KINDS``; Services and controllers only choose among nodes. See ``_add_layers``."""
Json = dict[str, Any]


def run(asked: SnapshotFlags, connection: ConnectionFlags) -> int:
    """Write the snapshot; returns the exit code.

    Raises:
        DraError: wrong usage, unreadable input, a cluster that does not answer, or a file that cannot be written.
            Nothing is written then.
    """
    _check(asked)
    recorder = _record(asked, connection)
    items = recorder.items()
    snapshot = recorder.build(complete=asked.complete)
    head = said(snapshot)
    names: dict[str, dict[str, str]] = {}
    warnings: list[str] = []
    if asked.anonymize:
        # Notes on files name them.
        head["notes"] = [note for note in head["notes"] if not any(source in note for source in snapshot.sources)]
        anonymizer = Anonymizer(items, asked.seed or secrets.token_hex(16))
        items = [anonymizer.item(item) for item in items]
        head = anonymizer.said(head)
        names = anonymizer.names()
        warnings = _compared(snapshot, items)
    _write(asked, items, head, names)
    _tell(asked, items, snapshot, warnings)
    return 0


def _check(asked: SnapshotFlags) -> None:
    """Find usage errors before contacting the cluster."""
    if not asked.output:
        raise UsageError("say where to write: -o FILE.json, -o FILE.yaml, or -o - for standard output")
    if not asked.anonymize:
        for given, flag in ((asked.seed, "--seed"), (asked.names, "--names")):
            if given:
                raise UsageError(f"{flag} goes with --anonymize")
    if asked.output != STDOUT:
        if Path(asked.output).suffix.lower() not in (".json", *YAML):
            form = asked.output if asked.output in ("json", "yaml") else "json"
            hint = f"; -o is the file here: -o cluster.{form}" if asked.output in ("json", "yaml") else ""
            raise UsageError(f"--output: {asked.output} ends neither in .json nor in .yaml or .yml{hint}")
        check_target(Path(asked.output), force=asked.force)
    if asked.names:
        if Path(asked.names).absolute() == Path(asked.output).absolute():
            raise UsageError("--names and --output are the same file")
        check_target(Path(asked.names), force=asked.force)


def _record(asked: SnapshotFlags, connection: ConnectionFlags) -> Recorder:
    if asked.snapshots:
        return record_files(asked.snapshots)
    from kubectl_dra.drivers.daemons import NO_POD_MADE

    cluster = ApiServer(connection_options(connection, asked.namespace))
    recorder = Recorder(cluster.namespace)
    with Progress() as progress:
        about = About("", reason=NO_POD_MADE, more=True)
        cluster.read_into(recorder, (*KINDS, *SAVED_KINDS), progress=progress, about=about)
        _add_layers(recorder, cluster, progress)
    return recorder


def _add_layers(recorder: Recorder, cluster: ApiServer, progress: Progress) -> None:
    """Read the kinds of other layers that the cluster serves; none where the server does not list its kinds."""
    from kubectl_dra.cluster.pointed import read_pointed
    from kubectl_dra.neighbours.pointers import saved

    served = cluster.neighbours()
    if served is None:
        return
    read_pointed(cluster, recorder, saved(served), served, progress)
    for kind in NEIGHBOUR_KINDS.keys() - served.keys():
        # There can be no objects of it.
        recorder.present(kind)


def _compared(snapshot: Snapshot, items: Iterable[Json]) -> list[str]:
    """What explain may answer differently for the anonymized objects."""
    from kubectl_dra.cluster.save import disagreements

    builder = SnapshotBuilder()
    for index, item in enumerate(items):
        builder.add(item, Place("the anonymized objects", item=index))
    return disagreements(snapshot, builder.build(complete=True))


def _write(asked: SnapshotFlags, items: list[Json], head: Json, names: dict[str, dict[str, str]]) -> None:
    if asked.names:

        def write_names(stream: TextIO) -> None:
            stream.write(json_text(names))

        write_file(Path(asked.names), write_names, force=asked.force)
    if asked.output == STDOUT:
        write_list(items, head, sys.stdout)
        return
    path = Path(asked.output)
    yaml = path.suffix.lower() in YAML
    write_file(path, lambda stream: write_list(items, head, stream, yaml=yaml), force=asked.force)


def _tell(asked: SnapshotFlags, items: list[Json], snapshot: Snapshot, warnings: list[str]) -> None:
    """Print on standard error what was written and what was not."""
    for gap in snapshot.gaps:
        if gap.reason != ABSENT:
            tell(f"note: not in the snapshot: {gap}")
    for warning in warnings:
        tell(f"warning: explain may answer differently: {warning}")
    if asked.output != STDOUT:
        counts = Counter(item["kind"] for item in items)
        listed = ", ".join(f"{count:,} {kind}" for kind, count in counts.items())
        tell(f"wrote {asked.output}: {listed or 'no objects'}")
