"""``explain --at TIME``: which of the snapshots that ``snapshot --every`` took is meant."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from kubectl_dra.cli.live import seconds
from kubectl_dra.cluster.files import last_before
from kubectl_dra.cluster.time_read import parse, stamp
from kubectl_dra.errors import UsageError
from kubectl_dra.report.color import tell


def taken_then(text: str, folders: Sequence[str]) -> str:
    """The path of the last snapshot before a time, which is said.

    Raises:
        UsageError: no time, or not one directory.
        InputError: there is no such snapshot.
    """
    if len(folders) != 1 or not Path(folders[0]).is_dir():
        raise UsageError("--at chooses among the files of kubectl dra snapshot --every: add --snapshot DIRECTORY")
    recording = last_before(Path(folders[0]), _time(text))
    tell(f"note: answered from {recording.path}, taken at {stamp(recording.at)}")
    return str(recording.path)


def _time(text: str) -> datetime:
    """A time of RFC 3339, or so long ago. Raises UsageError."""
    at = parse(text)
    if at is not None:
        return at
    try:
        return datetime.fromtimestamp(time.time() - seconds(text, "--at"), UTC)
    except UsageError:
        hint = "2026-11-24T03:00Z, 2026-11-24T04:00+01:00, or 8h for eight hours ago"
        raise UsageError(f'--at: "{text}" is no time, such as {hint}') from None
