"""``snapshot``: read, reduce, replace names on request, write one file."""

from __future__ import annotations

import gc
import secrets
import sys
import time
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TextIO

from msgspec.structs import replace

from kubectl_dra.api.neighbour_kinds import NEIGHBOUR_KINDS
from kubectl_dra.cli.flags import SnapshotFlags
from kubectl_dra.cli.live import Progress, api_server, seconds
from kubectl_dra.cli.options import ConnectionFlags
from kubectl_dra.cluster.anonymize import Anonymizer
from kubectl_dra.cluster.builder import SnapshotBuilder
from kubectl_dra.cluster.client import passes
from kubectl_dra.cluster.duplicates import Place
from kubectl_dra.cluster.files import drop_oldest, path_at
from kubectl_dra.cluster.identities import Json
from kubectl_dra.cluster.kinds import SCHEDULING_KINDS
from kubectl_dra.cluster.live import About, ApiServer
from kubectl_dra.cluster.save import Recorder, check_target, disagreements, record_files, said, write_file, write_list
from kubectl_dra.cluster.snapshot import ABSENT, KINDS, Snapshot
from kubectl_dra.errors import ClusterError, UsageError
from kubectl_dra.report.color import tell
from kubectl_dra.scheduling.kinds_to_read import CONTROLLERS
from kubectl_dra.text import amount

STDOUT = "-"
LEAST_SECONDS: Final = 10.0
"""Least seconds between two snapshots: each reads the whole cluster."""
YAML = (".yaml", ".yml")
SAVED_KINDS = tuple(kind for kind in SCHEDULING_KINDS if kind not in ("Service", *CONTROLLERS, *NEIGHBOUR_KINDS))
"""What decides about a pod besides ``KINDS``; Services and controllers only choose among nodes. See ``_add_layers``."""


def run(flags: SnapshotFlags, connection: ConnectionFlags) -> int:
    """Write the snapshot; returns the exit code."""
    if flags.every:
        return _run_ring(flags, connection)
    _check(flags)
    return _run_once(flags, connection)


def _run_ring(flags: SnapshotFlags, connection: ConnectionFlags) -> int:
    """Takes one after another, until it is interrupted. A server that does not answer is asked at the next time."""
    pause = seconds(flags.every, "--every")
    if pause < LEAST_SECONDS:
        raise UsageError(f"--every {flags.every}: at least {LEAST_SECONDS:g}s")
    if flags.snapshots or flags.names:
        raise UsageError("--every reads a live cluster into several files: leave --snapshot and --names out")
    folder = Path(flags.output)
    if not flags.output or not folder.is_dir():
        raise UsageError("--every writes into a directory that exists: add -o DIRECTORY")
    # One replacement for one name in all of them, so that they can be compared.
    seed = flags.seed or secrets.token_hex(16) if flags.anonymize else flags.seed
    gc.enable()
    first = True
    while True:
        began = time.monotonic()
        path = path_at(folder, datetime.fromtimestamp(time.time(), UTC))
        single = replace(flags, output=str(path), seed=seed, force=True)
        try:
            if first:
                _check(single)
            _run_once(single, connection)
            first = False
        except ClusterError as error:
            if first or not passes(error):
                raise
            tell(f"note: {error}; trying again in {flags.every}")
        drop_oldest(folder, flags.keep)
        time.sleep(max(0.0, began + pause - time.monotonic()))


def _run_once(flags: SnapshotFlags, connection: ConnectionFlags) -> int:
    recorder = _record(flags, connection)
    items = recorder.items()
    snapshot = recorder.build(complete=flags.complete)
    head = said(snapshot)
    names: dict[str, dict[str, str]] = {}
    warnings: list[str] = []
    if flags.anonymize:
        # Notes on files name them.
        head["notes"] = [note for note in head["notes"] if not any(source in note for source in snapshot.sources)]
        anonymizer = Anonymizer(items, flags.seed or secrets.token_hex(16))
        items = [anonymizer.item(item) for item in items]
        head = anonymizer.said(head)
        names = anonymizer.names()
        warnings = _compared(snapshot, items)
    _write(flags, items, head, names)
    _tell(flags, items, snapshot, warnings)
    return 0


def _check(flags: SnapshotFlags) -> None:
    """Find usage errors before contacting the cluster."""
    if not flags.output:
        raise UsageError("say where to write: -o FILE.json, -o FILE.yaml, or -o - for standard output")
    if not flags.anonymize:
        for given, flag in ((flags.seed, "--seed"), (flags.names, "--names")):
            if given:
                raise UsageError(f"{flag} goes with --anonymize")
    if flags.output != STDOUT:
        if Path(flags.output).suffix.lower() not in (".json", *YAML):
            form = flags.output if flags.output in ("json", "yaml") else "json"
            hint = f"; -o is the file here: -o cluster.{form}" if flags.output in ("json", "yaml") else ""
            raise UsageError(f"--output: {flags.output} ends neither in .json nor in .yaml or .yml{hint}")
        check_target(Path(flags.output), force=flags.force)
    if flags.names:
        if Path(flags.names).absolute() == Path(flags.output).absolute():
            raise UsageError("--names and --output are the same file")
        check_target(Path(flags.names), force=flags.force)


def _record(flags: SnapshotFlags, connection: ConnectionFlags) -> Recorder:
    if flags.snapshots:
        return record_files(flags.snapshots)
    from kubectl_dra.drivers.daemons import NO_POD_MADE

    cluster = api_server(connection, flags.namespace)
    recorder = Recorder(cluster.namespace)
    with Progress() as progress:
        about = About("", reasons=(NO_POD_MADE,), more=True)
        cluster.read_into(recorder, (*KINDS, *SAVED_KINDS), progress=progress, about=about)
        _add_layers(recorder, cluster, progress)
    return recorder


def _add_layers(recorder: Recorder, cluster: ApiServer, progress: Progress) -> None:
    """Read the kinds of other layers that the cluster serves; none where the server does not list its kinds."""
    from kubectl_dra.cluster.pointed_objects import read_pointed
    from kubectl_dra.neighbours.pointers import saved

    served = cluster.neighbours()
    if served is None:
        return
    read_pointed(cluster, recorder, saved(served, recorder.speakers, recorder.pods), served, progress)
    for kind in NEIGHBOUR_KINDS.keys() - served.keys():
        # There can be no objects of it.
        recorder.present(kind)


def _compared(snapshot: Snapshot, items: Iterable[Json]) -> list[str]:
    """What explain may answer differently for the anonymized objects."""

    builder = SnapshotBuilder()
    for index, item in enumerate(items):
        builder.add(item, Place("the anonymized objects", item=index))
    return disagreements(snapshot, builder.build(complete=True))


def _write(flags: SnapshotFlags, items: list[Json], head: Json, names: dict[str, dict[str, str]]) -> None:
    if flags.names:
        from kubectl_dra.report.json_output import json_text

        def write_names(stream: TextIO) -> None:
            stream.write(json_text(names))

        write_file(Path(flags.names), write_names, force=flags.force)
    if flags.output == STDOUT:
        write_list(items, head, sys.stdout)
        return
    path = Path(flags.output)
    yaml = path.suffix.lower() in YAML
    write_file(path, lambda stream: write_list(items, head, stream, yaml=yaml), force=flags.force)


def _tell(flags: SnapshotFlags, items: list[Json], snapshot: Snapshot, warnings: list[str]) -> None:
    """Print on standard error what was written and what was not."""
    for gap in snapshot.gaps:
        if gap.reason != ABSENT:
            tell(f"note: not in the snapshot: {gap}")
    for warning in warnings:
        tell(f"warning: explain may answer differently: {warning}")
    if flags.output != STDOUT:
        counts = Counter(item["kind"] for item in items)
        listed = ", ".join(amount(count, kind) for kind, count in counts.items())
        tell(f"wrote {flags.output}: {listed or 'no objects'}")
