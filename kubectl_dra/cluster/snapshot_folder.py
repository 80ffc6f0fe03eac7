"""A folder of snapshots, each called after the time at which it was taken; the oldest go."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

from kubectl_dra.cluster.time_read import stamp
from kubectl_dra.errors import InputError

_NAME: Final = re.compile(r"snapshot-(\d{4}-\d\d-\d\dT\d{6}Z)\.json")
_FORM: Final = "%Y-%m-%dT%H%M%SZ"


class TakenSnapshot(NamedTuple):
    """A snapshot of the folder."""

    at: datetime
    path: Path


def path_at(folder: Path, at: datetime) -> Path:
    """The file of a snapshot that is taken now."""
    return folder / f"snapshot-{at.astimezone(UTC).strftime(_FORM)}.json"


def taken(folder: Path) -> Sequence[TakenSnapshot]:
    """The snapshots in a folder, oldest first; other files do not count. Raises InputError: no folder."""
    try:
        names = {path.name: path for path in folder.iterdir()}
    except OSError as error:
        raise InputError(f"{folder}: cannot be read: {error.strerror or error}") from None
    matches = ((_NAME.fullmatch(name), path) for name, path in names.items())
    recordings: list[TakenSnapshot] = []
    for match, path in matches:
        if match is not None:
            recordings.append(TakenSnapshot(datetime.strptime(match[1], _FORM).replace(tzinfo=UTC), path))
    return sorted(recordings)


def drop_oldest(folder: Path, keep: int) -> None:
    """Delete all but the newest. Raises InputError."""
    for old in taken(folder)[:-keep]:
        try:
            old.path.unlink(missing_ok=True)
        except OSError as error:
            raise InputError(f"{old.path}: cannot be deleted: {error.strerror or error}") from None


def last_before(folder: Path, at: datetime) -> TakenSnapshot:
    """The newest snapshot that was taken at that time or before. Raises InputError: there is none."""
    known = taken(folder)
    before = [snapshot for snapshot in known if snapshot.at <= at]
    if before:
        return before[-1]
    hint = f"; the oldest is of {stamp(known[0].at)}" if known else "; kubectl dra snapshot --every 10m makes them"
    raise InputError(f"{folder}: there is no snapshot of {stamp(at)} or before{hint}")
