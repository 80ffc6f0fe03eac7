"""When and from what an HTML page is made."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import PurePath
from typing import TYPE_CHECKING

from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.explain.scene.prepare import Settings
from kubectl_dra.text import whole_number

if TYPE_CHECKING:
    from kubectl_dra.report.html.page import PageOrigin


def page_origin(snapshot: Snapshot, settings: Settings) -> PageOrigin:
    """The origin of a page about a snapshot. Of files it has the names alone: folders are nobody else's business."""
    from kubectl_dra.report.html.page import PageOrigin

    return PageOrigin(
        made=_now(),
        server=snapshot.server,
        context=snapshot.context,
        files=() if snapshot.server else tuple(PurePath(source).name for source in snapshot.sources),
        release=str(settings.scheduler.release),
    )


def _now() -> datetime:
    """Now, or what SOURCE_DATE_EPOCH says, with which the same input gives the same file."""
    fixed = whole_number(os.environ.get("SOURCE_DATE_EPOCH", ""), 11)
    return datetime.now(UTC) if fixed is None else datetime.fromtimestamp(fixed, UTC)
